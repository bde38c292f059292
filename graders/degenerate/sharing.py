"""Answers without content, which must earn nothing: every body that the student writes is replaced."""

import torch
from torch import nn


class Identity:
    """What comes in goes out; a layer without parts."""

    id = "sharing.identity"
    of = "sharing"
    source = "own: nothing done"
    imports = "from torch import nn"

    def share_heads(x, n_head):
        return x

    def cache_numbers(n_layer, n_kv_head, head_dim, length):
        return length

    class GroupedQueryAttention:
        def __init__(self, n_embd, n_head, n_kv_head):
            nn.Module.__init__(self)

        def keys_and_values(self, x):
            return x, x

        def forward(self, x):
            return x


class Zeros:
    """Zeros of the right shape."""

    id = "sharing.zeros"
    of = "sharing"
    source = "own: shape-only answers"
    imports = "import torch\nfrom torch import nn"

    def share_heads(x, n_head):
        return torch.zeros(x.size(0), n_head, x.size(2), x.size(3), dtype=x.dtype)

    def cache_numbers(n_layer, n_kv_head, head_dim, length):
        return 0

    class GroupedQueryAttention:
        def __init__(self, n_embd, n_head, n_kv_head):
            nn.Module.__init__(self)
            self.G, self.D = n_kv_head, n_embd // n_head
            self.q, self.k, self.v, self.proj = (nn.Linear(n_embd, n_embd, bias=False) for _ in range(4))

        def keys_and_values(self, x):
            zeros = torch.zeros(x.size(0), self.G, x.size(1), self.D, dtype=x.dtype)
            return zeros, zeros

        def forward(self, x):
            return torch.zeros_like(x)


class Noise:
    """Right-shaped noise."""

    id = "sharing.noise"
    of = "sharing"
    source = "own: shape-only answers"
    imports = "import torch\nfrom torch import nn"

    def share_heads(x, n_head):
        return torch.randn(x.size(0), n_head, x.size(2), x.size(3)).to(x.dtype)

    def cache_numbers(n_layer, n_kv_head, head_dim, length):
        return int(torch.randint(1, 1000, ()))

    class GroupedQueryAttention:
        def __init__(self, n_embd, n_head, n_kv_head):
            nn.Module.__init__(self)
            self.G, self.D = n_kv_head, n_embd // n_head
            self.q, self.k, self.v, self.proj = (nn.Linear(n_embd, n_head) for _ in range(4))

        def keys_and_values(self, x):
            return tuple(torch.randn(x.size(0), self.G, x.size(1), self.D).to(x.dtype) for _ in range(2))

        def forward(self, x):
            return torch.randn(x.shape).to(x.dtype)


class AlwaysRefused:
    """Everything is refused, with an error that names what was handed in."""

    id = "sharing.always-refused"
    of = "sharing"
    source = "own: passes a check of errors that does not first see it work"

    def share_heads(x, n_head):
        raise ValueError(f"{x.shape} {n_head}")

    def cache_numbers(n_layer, n_kv_head, head_dim, length):
        raise ValueError(f"{n_layer} {n_kv_head} {head_dim} {length}")

    class GroupedQueryAttention:
        def __init__(self, n_embd, n_head, n_kv_head):
            raise ValueError(f"{n_embd} {n_head} {n_kv_head}")

        def keys_and_values(self, x):
            raise ValueError(f"{x.shape}")

        def forward(self, x):
            raise ValueError(f"{x.shape}")


class NotANumber:
    """NaN of the right shape."""

    id = "sharing.not-a-number"
    of = "sharing"
    source = "own: comparisons with NaN are never true"
    imports = "import torch\nfrom torch import nn"

    def share_heads(x, n_head):
        return torch.full((x.size(0), n_head, x.size(2), x.size(3)), float("nan"), dtype=x.dtype)

    def cache_numbers(n_layer, n_kv_head, head_dim, length):
        return float("nan")

    class GroupedQueryAttention:
        def __init__(self, n_embd, n_head, n_kv_head):
            nn.Module.__init__(self)
            self.G, self.D = n_kv_head, n_embd // n_head
            self.q, self.k, self.v, self.proj = (nn.Linear(n_embd, 1) for _ in range(4))

        def keys_and_values(self, x):
            nothing = torch.full((x.size(0), self.G, x.size(1), self.D), float("nan"), dtype=x.dtype)
            return nothing, nothing

        def forward(self, x):
            return torch.full_like(x, float("nan"))
