"""Correct forms of shared heads. Each must get full marks."""

import torch
import torch.nn.functional as F
from torch import nn


class ExpandedBesideTheHead:
    """An axis of the group's size beside that of the heads, expanded and merged into it."""

    id = "sharing.expanded-beside-the-head"
    of = "sharing"
    source = "seen in public code: repeat_kv of Hugging Face's Llama"

    def share_heads(x, n_head):
        B, G, T, D = x.shape
        return x[:, :, None].expand(B, G, n_head // G, T, D).reshape(B, n_head, T, D)


class Indexed:
    """The head of each query head looked up by number."""

    id = "sharing.indexed"
    of = "sharing"
    source = "own: the definition taken literally"

    def share_heads(x, n_head):
        group = n_head // x.size(1)
        return x[:, [h // group for h in range(n_head)]]


class Concatenated:
    """Each head as often as needed, side by side."""

    id = "sharing.concatenated"
    of = "sharing"
    source = "own: a list comprehension"
    imports = "import torch"

    def share_heads(x, n_head):
        times = n_head // x.shape[1]
        return torch.cat([x[:, g : g + 1] for g in range(x.shape[1]) for _ in range(times)], dim=1)


class CountedOneByOne:
    """The numbers of the cache counted from a tensor that is never filled."""

    id = "sharing.counted-one-by-one"
    of = "sharing"
    source = "own: numel of what would be kept"
    imports = "import torch"

    def cache_numbers(n_layer, n_kv_head, head_dim, length):
        return sum(2 * torch.empty(n_kv_head, length, head_dim, device="meta").numel() for _ in range(n_layer))


class ByScaledDotProduct:
    """PyTorch shares the heads itself."""

    id = "sharing.by-scaled-dot-product"
    of = "sharing.GroupedQueryAttention"
    source = "seen in public code: scaled_dot_product_attention with enable_gqa"
    imports = "import torch.nn.functional as F"

    def forward(self, x):
        B, T, C = x.shape
        q = self.q(x).view(B, T, self.n_head, -1).transpose(1, 2)
        k, v = self.keys_and_values(x)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class FiveAxes:
    """Queries as (B, G, H / G, T, D), keys and values broadcast over the group."""

    id = "sharing.five-axes"
    of = "sharing.GroupedQueryAttention"
    source = "seen in public code: grouped einsum, nothing repeated"
    imports = "import torch"

    def forward(self, x):
        B, T, C = x.shape
        G, D = self.n_kv_head, C // self.n_head
        q = self.q(x).view(B, T, G, -1, D)
        k, v = self.keys_and_values(x)
        scores = torch.einsum("btgrd,bgsd->bgrts", q, k) * D**-0.5
        hidden = torch.triu(torch.full((T, T), float("-inf"), dtype=x.dtype), 1)
        y = torch.einsum("bgrts,bgsd->btgrd", torch.softmax(scores + hidden, dim=-1), v)
        return self.proj(y.reshape(B, T, C))


class HeadByHead:
    """A loop over the query heads."""

    id = "sharing.head-by-head"
    of = "sharing.GroupedQueryAttention"
    source = "own: the definition as a loop"
    imports = "import torch"

    def forward(self, x):
        T, D = x.size(1), x.size(2) // self.n_head
        queries, (k, v) = self.q(x).split(D, dim=-1), self.keys_and_values(x)
        mask = torch.ones(T, T).tril() == 0
        out = []
        for h, q in enumerate(queries):
            g = h * self.n_kv_head // self.n_head
            scores = (q @ k[:, g].transpose(1, 2) / D**0.5).masked_fill(mask, -1e9)
            out.append(scores.softmax(dim=-1) @ v[:, g])
        return self.proj(torch.cat(out, dim=-1))


class KeysByReshape:
    """keys_and_values with reshape and permute."""

    id = "sharing.keys-by-reshape"
    of = "sharing.GroupedQueryAttention"
    source = "own"

    def keys_and_values(self, x):
        B, T, _ = x.shape
        k = self.k(x).reshape(B, T, self.n_kv_head, -1).permute(0, 2, 1, 3)
        v = self.v(x).reshape(B, T, self.n_kv_head, -1).permute(0, 2, 1, 3)
        return [k, v]


class LayersByWidth:
    """The same layers, with the widths worked out another way."""

    id = "sharing.layers-by-width"
    of = "sharing.GroupedQueryAttention"
    source = "own"
    imports = "from torch import nn"

    def __init__(self, n_embd, n_head, n_kv_head):
        if n_head <= 0 or n_embd % n_head:
            raise ValueError(f"{n_head} heads do not divide {n_embd} channels")
        if not 0 < n_kv_head <= n_head or n_head % n_kv_head:
            raise ValueError(f"{n_kv_head} heads of keys and values cannot be shared by {n_head}")
        super().__init__()
        self.n_head, self.n_kv_head = n_head, n_kv_head
        narrow = n_embd * n_kv_head // n_head
        self.q, self.proj = nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd)
        self.k, self.v = nn.Linear(n_embd, narrow), nn.Linear(n_embd, narrow)
