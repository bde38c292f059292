"""Answers without content, which must earn nothing: every body that the student writes is replaced."""

import torch


class Identity:
    """What comes in goes out; a ramp for the encoding."""

    id = "positions.identity"
    of = "positions"
    source = "own: nothing done"

    def sinusoidal_encoding(length, dim):
        return torch.arange(length).float()[:, None].expand(length, dim)

    def interpolate_positions(positions, trained_length, length):
        return positions

    class LearnedPositions:
        def forward(self, x, start=0):
            return x


class Zeros:
    """Zeros of the right shape."""

    id = "positions.zeros"
    of = "positions"
    source = "own: shape-only answers"

    def sinusoidal_encoding(length, dim):
        return torch.zeros(length, dim)

    def interpolate_positions(positions, trained_length, length):
        return torch.zeros(positions.shape)

    class LearnedPositions:
        def forward(self, x, start=0):
            return torch.zeros_like(x)


class Ones:
    """Ones of the right shape."""

    id = "positions.ones"
    of = "positions"
    source = "own: shape-only answers"

    def sinusoidal_encoding(length, dim):
        return torch.ones(length, dim)

    def interpolate_positions(positions, trained_length, length):
        return torch.ones(positions.shape)

    class LearnedPositions:
        def forward(self, x, start=0):
            return torch.ones_like(x)


class Noise:
    """Right-shaped noise: unique rows, at least."""

    id = "positions.noise"
    of = "positions"
    source = "own: shape-only answers"

    def sinusoidal_encoding(length, dim):
        return torch.randn(length, dim)

    def interpolate_positions(positions, trained_length, length):
        return torch.rand(positions.shape) * trained_length

    class LearnedPositions:
        def forward(self, x, start=0):
            return torch.randn(x.shape)


class NotANumber:
    """NaN of the right shape."""

    id = "positions.not-a-number"
    of = "positions"
    source = "own: comparisons with NaN are never true"

    def sinusoidal_encoding(length, dim):
        return torch.full((length, dim), float("nan"))

    def interpolate_positions(positions, trained_length, length):
        return torch.full(positions.shape, float("nan"))

    class LearnedPositions:
        def forward(self, x, start=0):
            return torch.full_like(x, float("nan"))


class AlwaysRefused:
    """Everything is refused, with an error that names 128 and 129."""

    id = "positions.always-refused"
    of = "positions"
    source = "own: passes a check of errors that does not first see it work"

    def sinusoidal_encoding(length, dim):
        raise ValueError("128, 129")

    def interpolate_positions(positions, trained_length, length):
        raise ValueError("128, 129")

    class LearnedPositions:
        def forward(self, x, start=0):
            raise ValueError("128, 129")
