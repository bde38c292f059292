"""Correct forms of positions. Each must get full marks."""

import math

import torch
import torch.nn.functional as F


class SinesThenCosines:
    """All sines, then all cosines."""

    id = "positions.sines-then-cosines"
    of = "positions"
    source = "seen in public code: sin/cos concatenated, another order of the channels"

    def sinusoidal_encoding(length, dim):
        frequencies = 10000.0 ** (-torch.arange(0, dim, 2).float() / dim)
        angles = torch.arange(length)[:, None] * frequencies
        return torch.cat((angles.sin(), angles[:, : dim // 2].cos()), dim=1)


class CosinesFirst:
    """The cosine of a pair stands before its sine."""

    id = "positions.cosines-first"
    of = "positions"
    source = "own: another order of the channels"

    def sinusoidal_encoding(length, dim):
        frequencies = 10000.0 ** (-torch.arange(0, dim, 2).double() / dim)
        angles = torch.arange(length).double()[:, None] * frequencies
        cosines = angles.cos()[:, : dim // 2]
        pairs = torch.stack((cosines, angles.sin()[:, : dim // 2]), dim=2).flatten(1)
        return torch.cat((pairs, angles.sin()[:, dim // 2 :]), dim=1).float()


class ExponentialOfLogarithm:
    """exp of a multiple of log(10000), in float32, assigned to slices with step 2."""

    id = "positions.exponential-of-logarithm"
    of = "positions"
    source = "seen in public code: the form of PyTorch's tutorials"
    imports = "import math"

    def sinusoidal_encoding(length, dim):
        position = torch.arange(length).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        pe = torch.zeros(length, dim)
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term[: dim // 2])
        return pe


class NumberByNumber:
    """The formula as two loops over Python floats."""

    id = "positions.number-by-number"
    of = "positions"
    source = "own: the definition taken literally"
    imports = "import math"

    def sinusoidal_encoding(length, dim):
        frequencies = [10000.0 ** (-2 * (c // 2) / dim) for c in range(dim)]
        waves = [math.sin, math.cos]
        return torch.tensor([[waves[c % 2](p * frequencies[c]) for c in range(dim)] for p in range(length)])


class CosineAsShiftedSine:
    """One sine with a phase of a quarter turn for odd channels, in float64."""

    id = "positions.cosine-as-shifted-sine"
    of = "positions"
    source = "own: cos x = sin(x + pi / 2); float64 is more than was asked for"
    imports = "import math"

    def sinusoidal_encoding(length, dim):
        c = torch.arange(dim, dtype=torch.float64)
        angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (2 * (c // 2) / dim)
        return torch.sin(angles + (c % 2) * (math.pi / 2))


class CutFromTheTable:
    """Rows by slicing the weight."""

    id = "positions.cut-from-the-table"
    of = "positions.LearnedPositions"
    source = "own: a slice in place of an index"

    def forward(self, x, start=0):
        end = start + x.shape[1]
        if not 0 <= start <= end <= len(self.table.weight):
            raise ValueError(f"the text ends at position {end}, the table at {len(self.table.weight)}")
        return x + self.table.weight[start:end]


class LookedUpForEverySentence:
    """Positions expanded to (B, T) and looked up with F.embedding."""

    id = "positions.looked-up-for-every-sentence"
    of = "positions.LearnedPositions"
    source = "own: as position_ids are handed about in public code"
    imports = "import torch.nn.functional as F"

    def forward(self, x, start=0):
        B, T, _ = x.shape
        if start < 0:
            raise ValueError("start must not be negative")
        if start + T > self.table.weight.shape[0]:
            raise ValueError(f"{start + T} positions, but there are only {self.table.weight.shape[0]} rows")
        ids = torch.arange(start, start + T, device=x.device).unsqueeze(0).expand(B, T)
        return F.embedding(ids, self.table.weight) + x


class ErrorCaught:
    """The IndexError of the table turned into a clear one."""

    id = "positions.error-caught"
    of = "positions.LearnedPositions"
    source = "own: ask forgiveness, not permission"

    def forward(self, x, start=0):
        end = start + x.size(1)
        try:
            return x + self.table(torch.arange(start, end))
        except IndexError as error:
            raise ValueError(f"no row for position {end - 1}: {end} of {self.table.num_embeddings}") from error


class DividedByTheFactor:
    """Positions divided by L' / L, in float64, if that is more than 1."""

    id = "positions.divided-by-the-factor"
    of = "positions"
    source = "seen in public code: linear scaling, t / scaling_factor"

    def interpolate_positions(positions, trained_length, length):
        factor = max(1.0, length / trained_length)
        return positions.double() / factor


class TwoCases:
    """Short and long texts told apart with an if."""

    id = "positions.two-cases"
    of = "positions"
    source = "own"

    def interpolate_positions(positions, trained_length, length):
        if length <= trained_length:
            return positions.float()
        return positions * trained_length / length
