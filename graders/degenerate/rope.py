"""Answers without content, which must earn nothing: every body that the student writes is replaced."""

import torch


class Identity:
    """What comes in goes out."""

    id = "rope.identity"
    of = "rope"
    source = "own: passes norms, score(m, m) = q.k and every shift"

    def rope_frequencies(head_dim, base=10000.0):
        return torch.ones(head_dim // 2, dtype=torch.float64)

    def apply_rope(x, positions, base=10000.0):
        return x

    class RotaryCausalSelfAttention:
        def forward(self, x):
            return x


class Zeros:
    """Zeros of the right shape."""

    id = "rope.zeros"
    of = "rope"
    source = "own: shape-only answers"

    def rope_frequencies(head_dim, base=10000.0):
        return torch.zeros(head_dim // 2, dtype=torch.float64)

    def apply_rope(x, positions, base=10000.0):
        return torch.zeros_like(x)

    class RotaryCausalSelfAttention:
        def forward(self, x):
            return torch.zeros_like(x)


class Ones:
    """Ones of the right shape."""

    id = "rope.ones"
    of = "rope"
    source = "own: shape-only answers"

    def rope_frequencies(head_dim, base=10000.0):
        return torch.ones(head_dim // 2, dtype=torch.float64)

    def apply_rope(x, positions, base=10000.0):
        return torch.ones_like(x)

    class RotaryCausalSelfAttention:
        def forward(self, x):
            return torch.ones_like(x)


class Noise:
    """Right-shaped noise."""

    id = "rope.noise"
    of = "rope"
    source = "own: shape-only answers"

    def rope_frequencies(head_dim, base=10000.0):
        return torch.rand(head_dim // 2, dtype=torch.float64)

    def apply_rope(x, positions, base=10000.0):
        return torch.randn(x.shape).to(x.dtype)

    class RotaryCausalSelfAttention:
        def forward(self, x):
            return torch.randn(x.shape).to(x.dtype)


class Negated:
    """A fixed orthogonal map: norms and scores are kept, positions take no part."""

    id = "rope.negated"
    of = "rope"
    source = "own: passes norms, score(m, m) = q.k and every shift"

    def rope_frequencies(head_dim, base=10000.0):
        return torch.full((head_dim // 2,), 0.5, dtype=torch.float64)

    def apply_rope(x, positions, base=10000.0):
        return -x

    class RotaryCausalSelfAttention:
        def forward(self, x):
            return -x


class NotANumber:
    """NaN of the right shape."""

    id = "rope.not-a-number"
    of = "rope"
    source = "own: comparisons with NaN are never true"

    def rope_frequencies(head_dim, base=10000.0):
        return torch.full((head_dim // 2,), float("nan"))

    def apply_rope(x, positions, base=10000.0):
        return torch.full_like(x, float("nan"))

    class RotaryCausalSelfAttention:
        def forward(self, x):
            return torch.full_like(x, float("nan"))
