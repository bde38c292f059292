"""Mistakes about positions, as people really make them: each must be caught and named."""

import torch

# The sinusoidal encoding


class ExponentDoubled:
    """2i with an i that steps by 2 already."""

    id = "positions.exponent-doubled"
    of = "positions"
    source = "SamLynnEvans/Transformer#25"
    hint = (
        "Your angles fall twice as fast as they should. If your counter already goes 0, 2, 4, ..., it is the 2i "
        "of the formula."
    )

    def sinusoidal_encoding(length, dim):
        i = torch.arange(0, dim, 2, dtype=torch.float64)
        angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (2 * i / dim)
        encoding = torch.zeros(length, dim)
        encoding[:, 0::2], encoding[:, 1::2] = angles.sin(), angles[:, : dim // 2].cos()
        return encoding


class ExponentHalved:
    """The factor 2 is missing in the exponent."""

    id = "positions.exponent-halved"
    of = "positions"
    source = "own: the counterpart of the doubled exponent"
    hint = (
        "Your angles fall only half as fast as they should. Compare your exponent with the formula for the last pair."
    )

    def sinusoidal_encoding(length, dim):
        i = torch.arange((dim + 1) // 2, dtype=torch.float64)
        angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (i / dim)
        encoding = torch.zeros(length, dim)
        encoding[:, 0::2], encoding[:, 1::2] = angles.sin(), angles[:, : dim // 2].cos()
        return encoding


class AngleOfItsOwn:
    """Every channel has an angle of its own: the cosine does not belong to the sine beside it."""

    id = "positions.angle-of-its-own"
    of = "positions"
    source = "own: 10000^(j/C) for channel j, without rounding j down to an even number"
    hint = (
        "The cosines of your table have other angles than the sines beside them. Both channels of a pair share one "
        "2i, or their product does not know the distance."
    )

    def sinusoidal_encoding(length, dim):
        channel = torch.arange(dim, dtype=torch.float64)
        angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (channel / dim)
        return torch.where(channel % 2 == 0, angles.sin(), angles.cos()).float()


class OtherBase:
    """The base is ten times too small: a zero lost."""

    id = "positions.other-base"
    of = "positions"
    source = "karpathy/llama2.c#356, ggml-org/llama.cpp#3090: the same slip in RoPE"
    hint = "Your angles belong to another base. Count the zeros."

    def sinusoidal_encoding(length, dim):
        even = torch.arange(0, dim, 2, dtype=torch.float64)
        angles = torch.arange(length, dtype=torch.float64)[:, None] / 1000 ** (even / dim)
        encoding = torch.zeros(length, dim)
        encoding[:, 0::2], encoding[:, 1::2] = angles.sin(), angles[:, : dim // 2].cos()
        return encoding


class SpacedToTheEnd:
    """The angles are spread from 1 to 1/10000 with both ends."""

    id = "positions.spaced-to-the-end"
    of = "positions"
    source = "own: tensor2tensor's timescales, spaced over one pair fewer"
    hint = (
        "Your slowest pair turns by exactly 1/10000 a position. That is another spacing in use, but not this formula, "
        "whose exponents stop one step before 1."
    )

    def sinusoidal_encoding(length, dim):
        exponents = torch.linspace(0, 1, (dim + 1) // 2, dtype=torch.float64)
        angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000**exponents
        encoding = torch.zeros(length, dim)
        encoding[:, 0::2], encoding[:, 1::2] = angles.sin(), angles[:, : dim // 2].cos()
        return encoding


class OnlySines:
    """Sines in all channels."""

    id = "positions.only-sines"
    of = "positions"
    source = "own: the second line copied from the first"
    hint = "Both channels of each pair hold the sine. The odd ones should be cosines."

    def sinusoidal_encoding(length, dim):
        even = torch.arange(0, dim, 2, dtype=torch.float64)
        angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (even / dim)
        encoding = torch.zeros(length, dim)
        encoding[:, 0::2], encoding[:, 1::2] = angles.sin(), angles[:, : dim // 2].sin()
        return encoding


class FirstPositionIsOne:
    """Positions count from 1."""

    id = "positions.first-position-is-one"
    of = "positions"
    source = "own: arange(1, length + 1)"
    hint = "Your first row is that of position 1. Positions count from 0, whose row is all sin 0 and cos 0."

    def sinusoidal_encoding(length, dim):
        even = torch.arange(0, dim, 2, dtype=torch.float64)
        angles = torch.arange(1, length + 1, dtype=torch.float64)[:, None] / 10000 ** (even / dim)
        encoding = torch.zeros(length, dim)
        encoding[:, 0::2], encoding[:, 1::2] = angles.sin(), angles[:, : dim // 2].cos()
        return encoding


class DividedByTheLength:
    """Positions are scaled to the interval from 0 to 1."""

    id = "positions.divided-by-the-length"
    of = "positions"
    source = "own: positions normalised by the length of the text"
    hint = (
        "Your rows change with the length of the table: position 3 of a short text is encoded like another one of a "
        "long text. Use the position itself."
    )

    def sinusoidal_encoding(length, dim):
        even = torch.arange(0, dim, 2, dtype=torch.float64)
        angles = (torch.arange(length, dtype=torch.float64) / length)[:, None] / 10000 ** (even / dim)
        encoding = torch.zeros(length, dim)
        encoding[:, 0::2], encoding[:, 1::2] = angles.sin(), angles[:, : dim // 2].cos()
        return encoding


class LowPrecision:
    """The angles are computed in bfloat16."""

    id = "positions.low-precision"
    of = "positions"
    source = "EleutherAI/gpt-neox#1003, huggingface/transformers#25681: the same in RoPE"
    hint = "Your angles are right to two or three digits only, and far positions have none left. Use a precise dtype."

    def sinusoidal_encoding(length, dim):
        even = torch.arange(0, dim, 2).bfloat16()
        angles = torch.arange(length).bfloat16()[:, None] / 10000 ** (even / dim)
        encoding = torch.zeros(length, dim)
        encoding[:, 0::2], encoding[:, 1::2] = angles.float().sin(), angles[:, : dim // 2].float().cos()
        return encoding


class NotPastTheTrainingLength:
    """The table ends at 512 rows."""

    id = "positions.not-past-the-training-length"
    of = "positions"
    source = "own: a buffer of max_len rows, cut to the length of the text"
    hint = "Your encoding ends after 512 rows. Nothing in the formula does: compute as many as are asked for."

    def sinusoidal_encoding(length, dim):
        even = torch.arange(0, dim, 2, dtype=torch.float64)
        angles = torch.arange(512, dtype=torch.float64)[:, None] / 10000 ** (even / dim)
        encoding = torch.zeros(512, dim)
        encoding[:, 0::2], encoding[:, 1::2] = angles.sin(), angles[:, : dim // 2].cos()
        return encoding[:length]


class OddCrashes:
    """As many cosines as sines: an odd number of channels does not fit."""

    id = "positions.odd-crashes"
    of = "positions"
    source = "codertimo/BERT-pytorch#78"
    hint = "With an odd number of channels you have one cosine too many. There is one sine more than there are cosines."

    def sinusoidal_encoding(length, dim):
        even = torch.arange(0, dim, 2, dtype=torch.float64)
        angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (even / dim)
        encoding = torch.zeros(length, dim)
        encoding[:, 0::2] = angles.sin()
        encoding[:, 1::2] = angles.cos()
        return encoding


class OddRoundedUp:
    """An odd C is made even, and the last channel cut off."""

    id = "positions.odd-rounded-up"
    of = "positions"
    source = "own: dim + dim % 2, which changes every angle"
    hint = (
        "For an odd number of channels your table is that of one channel more, with the last one cut off. The formula "
        "divides by the C that was asked for."
    )

    def sinusoidal_encoding(length, dim):
        wide = dim + dim % 2
        even = torch.arange(0, wide, 2, dtype=torch.float64)
        angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (even / wide)
        return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1)[:, :dim].float()


class OddLeftZero:
    """The last channel of an odd number stays 0."""

    id = "positions.odd-left-zero"
    of = "positions"
    source = "own: only whole pairs are filled"
    hint = "For an odd number of channels your last one is 0 everywhere. It is the sine of a pair like the others."

    def sinusoidal_encoding(length, dim):
        even = torch.arange(0, dim - 1, 2, dtype=torch.float64)
        angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (even / dim)
        encoding = torch.zeros(length, dim)
        encoding[:, 0 : dim - dim % 2 : 2], encoding[:, 1::2] = angles.sin(), angles.cos()
        return encoding


# The learned table


class BareIndexError:
    """Past the end of the table, nn.Embedding's own error."""

    id = "positions.bare-index-error"
    of = "positions.LearnedPositions"
    source = "openai/gpt-2#137"
    hint = (
        "Past the last row your code stops with the embedding's own error, which says neither how long the text is nor "
        "how long it may be. Look before you reach."
    )

    def forward(self, x, start=0):
        return x + self.table(torch.arange(start, start + x.size(1), device=x.device))


class LastRowRefused:
    """A text that fills the table is refused."""

    id = "positions.last-row-refused"
    of = "positions.LearnedPositions"
    source = "own: >= in place of >"
    hint = "You refuse a text that just fits. 128 rows are enough for the positions 0 to 127."

    def forward(self, x, start=0):
        T, rows = x.size(1), self.table.num_embeddings
        if start < 0 or start + T >= rows:
            raise ValueError(f"{start + T} positions do not fit into {rows} rows")
        return x + self.table(torch.arange(start, start + T, device=x.device))


class OnlyTheLengthChecked:
    """T is compared with the table, and not start + T."""

    id = "positions.only-the-length-checked"
    of = "positions.LearnedPositions"
    source = "own: a check from the time before there was a start"
    hint = "You compare the length of the text with the table. A short text can end beyond the last row as well."

    def forward(self, x, start=0):
        T, rows = x.size(1), self.table.num_embeddings
        if T > rows:
            raise ValueError(f"{T} positions do not fit into {rows} rows")
        return x + self.table(torch.arange(start, start + T, device=x.device))


class LastRowRepeated:
    """Positions past the end get the last row."""

    id = "positions.last-row-repeated"
    of = "positions.LearnedPositions"
    source = "own: clamp, so that nothing crashes"
    hint = "All positions past the end get your last row: nothing crashes, and nobody learns that the text is too long."

    def forward(self, x, start=0):
        positions = torch.arange(start, start + x.size(1), device=x.device)
        return x + self.table(positions.clamp(0, self.table.num_embeddings - 1))


class BeginsAgain:
    """Positions past the end begin again at row 0."""

    id = "positions.begins-again"
    of = "positions.LearnedPositions"
    source = "own: modulo, so that nothing crashes"
    hint = "Past the end your positions begin again at row 0, so that two places of a text look the same. Refuse them."

    def forward(self, x, start=0):
        positions = torch.arange(start, start + x.size(1), device=x.device)
        return x + self.table(positions % self.table.num_embeddings)


class StartIgnored:
    """The rows always count from 0."""

    id = "positions.start-ignored"
    of = "positions.LearnedPositions"
    source = "ml-explore/mlx-lm#93, pytorch/executorch#2010: a step with a cache starts again at 0"
    hint = "Your first column always gets row 0. Text that begins at position 9 needs the rows from 9 on."

    def forward(self, x, start=0):
        T, rows = x.size(1), self.table.num_embeddings
        if start < 0 or start + T > rows:
            raise ValueError(f"{start + T} positions do not fit into {rows} rows")
        return x + self.table(torch.arange(T, device=x.device))


class CountedFromOne:
    """Position p gets row p + 1."""

    id = "positions.counted-from-one"
    of = "positions.LearnedPositions"
    source = "own: row 0 kept for padding, as in OPT and BART"
    hint = "Position 0 gets your row 1. Here no row is kept for padding: position p gets row p."

    def forward(self, x, start=0):
        T, rows = x.size(1), self.table.num_embeddings
        if start < 0 or start + T > rows:
            raise ValueError(f"{start + T} positions do not fit into {rows} rows")
        return x + self.table(torch.arange(start + 1, start + T + 1, device=x.device))


class RowsByBatch:
    """One row a sentence instead of one a position."""

    id = "positions.rows-by-batch"
    of = "positions.LearnedPositions"
    source = "own: size(0) where time is axis 1"
    hint = "You count sentences, not positions. Which axis of (B, T, C) is time?"

    def forward(self, x, start=0):
        T, rows = x.size(0), self.table.num_embeddings
        if start < 0 or start + x.size(1) > rows:
            raise ValueError(f"{start + x.size(1)} positions do not fit into {rows} rows")
        return x + self.table(torch.arange(start, start + T, device=x.device))[:, None]


class Multiplied:
    """The rows are multiplied with the vectors."""

    id = "positions.multiplied"
    of = "positions.LearnedPositions"
    source = "own: * in place of +"
    hint = "You multiply the rows with the vectors. The lesson adds them."

    def forward(self, x, start=0):
        T, rows = x.size(1), self.table.num_embeddings
        if start < 0 or start + T > rows:
            raise ValueError(f"{start + T} positions do not fit into {rows} rows")
        return x * self.table(torch.arange(start, start + T, device=x.device))


class CharactersLost:
    """Only the rows come back, without the vectors that they are added to."""

    id = "positions.characters-lost"
    of = "positions.LearnedPositions"
    source = "own: the rows alone"
    hint = "You return the rows alone, and the characters are lost. Add the rows to what came in."

    def forward(self, x, start=0):
        T, rows = x.size(1), self.table.num_embeddings
        if start < 0 or start + T > rows:
            raise ValueError(f"{start + T} positions do not fit into {rows} rows")
        return self.table(torch.arange(start, start + T, device=x.device)).expand_as(x)


# Interpolation


class Stretched:
    """Positions are multiplied by L' / L."""

    id = "positions.stretched"
    of = "positions"
    source = "own: the fraction upside down"
    hint = "Your positions move apart instead of together: the fraction is upside down."

    def interpolate_positions(positions, trained_length, length):
        return positions * max(1.0, length / trained_length)


class WholeNumbers:
    """Positions stay whole numbers."""

    id = "positions.whole-numbers"
    of = "positions"
    source = "own: // in place of /, for an index into a table"
    hint = (
        "Several of your positions fall together, since they are cut to whole numbers. RoPE can turn by any position."
    )

    def interpolate_positions(positions, trained_length, length):
        if length <= trained_length:
            return positions.float()
        return (positions * trained_length // length).float()


class EndsAligned:
    """The last position becomes L - 1: the factor is (L - 1) / (L' - 1)."""

    id = "positions.ends-aligned"
    of = "positions"
    source = "own: linspace(0, L - 1, L')"
    hint = (
        "Your last position falls exactly on the last trained one. That fits as well, but the formula is L / L', which "
        "is another factor."
    )

    def interpolate_positions(positions, trained_length, length):
        if length <= trained_length:
            return positions.float()
        return positions * ((trained_length - 1) / (length - 1))


class CutOff:
    """All positions past the trained ones become the last of them."""

    id = "positions.cut-off"
    of = "positions"
    source = "own: clamp"
    hint = "All positions past the trained range become one and the same in your code. Move them together instead."

    def interpolate_positions(positions, trained_length, length):
        return positions.float().clamp(max=trained_length - 1)


class Wrapped:
    """Positions past the trained ones begin again at 0."""

    id = "positions.wrapped"
    of = "positions"
    source = "own: modulo"
    hint = "Past the trained range your positions begin again at 0, so that far places look near. Move them together."

    def interpolate_positions(positions, trained_length, length):
        return positions.float() % trained_length


class ShortTextsStretched:
    """A text shorter than the trained length is stretched over all of it."""

    id = "positions.short-texts-stretched"
    of = "positions"
    source = "own: the formula without its condition"
    hint = "You stretch a short text over the whole trained range. It fits already: leave its positions alone."

    def interpolate_positions(positions, trained_length, length):
        return positions * (trained_length / length)
