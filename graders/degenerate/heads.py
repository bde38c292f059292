"""Answers without content, which must earn nothing: every body that the student writes is replaced."""

import torch
from torch import nn


class Identity:
    """What comes in goes out."""

    id = "heads.identity"
    of = "gpt.CausalSelfAttention"
    source = "own: return x"

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.qkv, self.proj = nn.Identity(), nn.Identity()
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)

    def split_heads(self, x):
        return x

    def attention_weights(self, q, k):
        return q

    def merge_heads(self, x):
        return x

    def forward(self, x):
        return x


class Zeros:
    """Zeros of the right shape."""

    id = "heads.zeros"
    of = "gpt.CausalSelfAttention"
    source = "own: shape-only answers"

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.qkv, self.proj = nn.Identity(), nn.Identity()
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)

    def split_heads(self, x):
        shape = (x.size(0), self.n_head, x.size(1), x.size(-1) // self.n_head)
        return x.new_zeros(shape)

    def attention_weights(self, q, k):
        return q.new_zeros((*q.shape[:3], q.size(2)))

    def merge_heads(self, x):
        shape = (x.size(0), x.size(2), x.size(1) * x.size(3))
        return x.new_zeros(shape)

    def forward(self, x):
        return x.new_zeros(x.shape)


class Ones:
    """Ones of the right shape."""

    id = "heads.ones"
    of = "gpt.CausalSelfAttention"
    source = "own: shape-only answers"

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.qkv, self.proj = nn.Identity(), nn.Identity()
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)

    def split_heads(self, x):
        shape = (x.size(0), self.n_head, x.size(1), x.size(-1) // self.n_head)
        return x.new_ones(shape)

    def attention_weights(self, q, k):
        return q.new_ones((*q.shape[:3], q.size(2)))

    def merge_heads(self, x):
        shape = (x.size(0), x.size(2), x.size(1) * x.size(3))
        return x.new_ones(shape)

    def forward(self, x):
        return x.new_ones(x.shape)


class Constants:
    """One number everywhere; the weights sum to 1."""

    id = "heads.constants"
    of = "gpt.CausalSelfAttention"
    source = "own: shape-only answers that know one property"

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.qkv, self.proj = nn.Identity(), nn.Identity()
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)

    def split_heads(self, x):
        shape = (x.size(0), self.n_head, x.size(1), x.size(-1) // self.n_head)
        return x.new_full(shape, 0.2)

    def attention_weights(self, q, k):
        return q.new_full((*q.shape[:3], q.size(2)), 1 / q.size(2))

    def merge_heads(self, x):
        shape = (x.size(0), x.size(2), x.size(1) * x.size(3))
        return x.new_full(shape, 0.2)

    def forward(self, x):
        return x.new_full(x.shape, 0.2)


class NotANumber:
    """NaN of the right shape."""

    id = "heads.not-a-number"
    of = "gpt.CausalSelfAttention"
    source = "own: comparisons with NaN are never true"

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.qkv, self.proj = nn.Identity(), nn.Identity()
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)

    def split_heads(self, x):
        shape = (x.size(0), self.n_head, x.size(1), x.size(-1) // self.n_head)
        return x.new_full(shape, float("nan"))

    def attention_weights(self, q, k):
        return q.new_full((*q.shape[:3], q.size(2)), float("nan"))

    def merge_heads(self, x):
        shape = (x.size(0), x.size(2), x.size(1) * x.size(3))
        return x.new_full(shape, float("nan"))

    def forward(self, x):
        return x.new_full(x.shape, float("nan"))


class Noise:
    """Right-shaped noise."""

    id = "heads.noise"
    of = "gpt.CausalSelfAttention"
    source = "own: shape-only answers"

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.qkv, self.proj = nn.Identity(), nn.Identity()
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)

    def split_heads(self, x):
        shape = (x.size(0), self.n_head, x.size(1), x.size(-1) // self.n_head)
        return torch.randn(shape, dtype=x.dtype)

    def attention_weights(self, q, k):
        return torch.randn((*q.shape[:3], q.size(2)), dtype=q.dtype).softmax(-1)

    def merge_heads(self, x):
        shape = (x.size(0), x.size(2), x.size(1) * x.size(3))
        return torch.randn(shape, dtype=x.dtype)

    def forward(self, x):
        return torch.randn(x.shape, dtype=x.dtype)


class UniformWeights:
    """Causal weights that look at nothing: each position averages what it may see."""

    id = "heads.uniform-weights"
    of = "gpt.CausalSelfAttention"
    source = "own: rows sum to 1 and the future is 0, without any scores"

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.qkv, self.proj = nn.Identity(), nn.Identity()
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)

    def split_heads(self, x):
        return x.new_zeros((x.size(0), self.n_head, x.size(1), x.size(-1) // self.n_head))

    def attention_weights(self, q, k):
        T = q.size(2)
        ones = q.new_ones(T, T).tril()
        return (ones / ones.sum(-1, keepdim=True)).expand(*q.shape[:2], T, T)

    def merge_heads(self, x):
        return x.new_zeros(x.size(0), x.size(2), x.size(1) * x.size(3))

    def forward(self, x):
        T = x.size(1)
        return x.cumsum(1) / torch.arange(1, T + 1, dtype=x.dtype)[:, None]


class Nothing:
    """None everywhere."""

    id = "heads.nothing"
    of = "gpt.CausalSelfAttention"
    source = "own: pass in place of an answer"

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.qkv, self.proj = nn.Identity(), nn.Identity()
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)

    def split_heads(self, x):
        return None

    def attention_weights(self, q, k):
        return None

    def merge_heads(self, x):
        return None

    def forward(self, x):
        return None
