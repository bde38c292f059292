"""Three ways to say where in a text a character stands, or where it would stand in a shorter one.

A table that is learned, waves that are computed, and, for rotary positions, a longer text squeezed into the
range of a shorter one. Letters in the shape comments: B batch (sentences), T time (positions), C channels.
"""

import torch
from torch import Tensor, nn


class LearnedPositions(nn.Module):
    """One vector a position, learned like any other weight and added to the characters' vectors.

    GPT-2's way (Radford et al. 2019). The table ends, and with it what the model can read.
    """

    def __init__(self, block_size: int, n_embd: int) -> None:
        """Makes `table`, an embedding with `block_size` rows of C = n_embd channels."""
        super().__init__()
        self.table = nn.Embedding(block_size, n_embd)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Adds row p of the table to the vector at position p, in every sentence alike: (B, T, C) -> (B, T, C).

        start: the position of the first column of x; the next ones follow it. Raises ValueError that names
        start + T and the number of rows when the text goes beyond the last row, and for a negative start.
        """
        # --- answer: positions: refuse what has no row, then add to each vector the row of its position
        # --- more: nn.Embedding's own error says neither how long the text is nor how long it may be.
        T, rows = x.size(1), self.table.num_embeddings
        if start < 0 or start + T > rows:
            raise ValueError(f"positions {start} to {start + T} (without the last): the table has {rows} rows, from 0")
        return x + self.table(torch.arange(start, start + T, device=x.device))  # (B, T, C)
        # --- end


def sinusoidal_encoding(length: int, dim: int) -> Tensor:
    """One row a position, of sines and cosines that turn ever slower: (T, C), float32.

    T is `length`, C is `dim`, odd or even. PE(pos, 2i) = sin(pos / 10000^(2i / C)) and PE(pos, 2i + 1) =
    cos(pos / 10000^(2i / C)): Vaswani et al. 2017 (arXiv 1706.03762), section 3.5. The lesson puts sines and
    cosines in turn, as here; all sines first and then all cosines is in use too, and as good. Raises
    ValueError for a size below 1.
    """
    # --- answer: positions: fill the even channels with sines and the odd ones with cosines
    # --- more: The formula is in the docstring. An odd C has one sine more than it has cosines.
    if length < 1 or dim < 1:
        raise ValueError(f"length and dim must be at least 1, not {length} and {dim}")
    even = torch.arange(0, dim, 2, dtype=torch.float64)  # (ceil(C/2),): 2i
    angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (even / dim)  # (T, ceil(C/2))
    encoding = torch.zeros(length, dim, dtype=torch.float64)  # (T, C)
    encoding[:, 0::2] = angles.sin()
    encoding[:, 1::2] = angles[:, : dim // 2].cos()
    return encoding.float()  # (T, C)
    # --- end


def interpolate_positions(positions: Tensor, trained_length: int, length: int) -> Tensor:
    """Positions of a long text, moved together into the range that a rotary model was trained on: (T,) -> (T,).

    trained_length: L, how many positions the model has seen in training. length: L', how many the text has.
    Position m becomes m * L / L' (Chen et al. 2023, arXiv 2306.15595, section 3), between whole numbers too, so
    that all L' of them lie in [0, L). A text of L positions or fewer needs no help: its positions keep their
    values. The result is float64 if `positions` is, else float32. Raises ValueError for a length below 1.
    """
    # --- answer: positions: move the positions together if the text is longer than the trained length
    # --- more: Only the scale changes: a position between two whole numbers is as good as any for a turn.
    if trained_length < 1 or length < 1:
        raise ValueError(f"trained_length and length must be at least 1, not {trained_length} and {length}")
    dtype = torch.float64 if positions.dtype == torch.float64 else torch.float32
    return positions.to(dtype) * min(1.0, trained_length / length)  # (T,)
    # --- end
