"""Heads that share: fewer keys and values than queries, so that a cache has less to keep.

Grouped-query attention (Ainslie et al. 2023, arXiv 2305.13245) lets neighbouring query heads look at the same
keys and values; with one pair of them for all it is multi-query attention (Shazeer 2019, arXiv 1911.02150).
Letters in the shape comments: B batch, T time, C channels, H query heads, G heads of keys and values, D = C / H.
Nothing here needs your gpt.py.
"""

import torch.nn.functional as F
from torch import Tensor, nn


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention in every head, blind to the future: q, k and v (B, H, T, D) -> (B, H, T, D). Given, and right."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def share_heads(x: Tensor, n_head: int) -> Tensor:
    """Gives every query head its keys or values: (B, G, T, D) -> (B, H, T, D), where H = n_head.

    Query heads stand in G groups of H / G neighbours, and group g looks at head g of x: with H = 4 and G = 2,
    heads 0 and 1 at head 0, heads 2 and 3 at head 1. H is a multiple of G.
    """
    # --- answer: sharing: repeat each head of x for all the query heads of its group
    # --- more: Try it on numbers that you know: which head comes second?
    return x.repeat_interleave(n_head // x.size(1), dim=1)  # (B, H, T, D)
    # --- end


def cache_numbers(n_layer: int, n_kv_head: int, head_dim: int, length: int) -> int:
    """How many numbers a cache keeps for one text of `length` positions: its keys and values in all layers."""
    # --- answer: sharing: count the keys and the values of all layers, heads and positions
    return 2 * n_layer * n_kv_head * head_dim * length
    # --- end


class GroupedQueryAttention(nn.Module):
    """Causal self-attention of `n_head` query heads over `n_kv_head` heads of keys and values.

    n_kv_head = n_head is ordinary attention with several heads, n_kv_head = 1 multi-query attention.
    """

    def __init__(self, n_embd: int, n_head: int, n_kv_head: int) -> None:
        """Makes four linear layers with bias: `q` (C -> H * D), `k` and `v` (C -> G * D), `proj` (H * D -> C).

        Raises ValueError that names both numbers when n_head is no divisor of n_embd, or n_kv_head none of n_head.
        """
        super().__init__()
        self.n_head, self.n_kv_head = n_head, n_kv_head
        # --- answer: sharing: refuse numbers that do not divide, then make self.q, self.k, self.v and self.proj
        # --- more: The docstring above says how wide each of them is. 0 divides nothing.
        if n_head < 1 or n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} is not a multiple of n_head = {n_head}")
        if n_kv_head < 1 or n_head % n_kv_head != 0:
            raise ValueError(f"n_head = {n_head} is not a multiple of n_kv_head = {n_kv_head}")
        D = n_embd // n_head
        self.q = nn.Linear(n_embd, n_head * D)
        self.k = nn.Linear(n_embd, n_kv_head * D)
        self.v = nn.Linear(n_embd, n_kv_head * D)
        self.proj = nn.Linear(n_head * D, n_embd)
        # --- end

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What a cache keeps of x, (B, T, C): the keys and the values, each (B, G, T, D), not repeated.

        Head g has the D neighbouring channels of its layer's output that begin at channel g * D.
        """
        # --- answer: sharing: keys and values of x, cut into their n_kv_head heads
        k, v = (layer(x).unflatten(-1, (self.n_kv_head, -1)).transpose(1, 2) for layer in (self.k, self.v))
        return k, v  # (B, G, T, D) each
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C): query head h, with channels h * D to h * D + D - 1, looks at its group's keys.

        The outputs of the heads stand side by side, in their order, before they go through `proj`.
        """
        # --- answer: sharing: queries in n_head heads, keys and values shared out, attention, the heads merged
        # --- more: causal_attention above wants as many heads of keys and values as of queries.
        q = self.q(x).unflatten(-1, (self.n_head, -1)).transpose(1, 2)  # (B, H, T, D)
        k, v = (share_heads(t, self.n_head) for t in self.keys_and_values(x))  # (B, H, T, D) each
        y = causal_attention(q, k, v)  # (B, H, T, D)
        return self.proj(y.transpose(1, 2).flatten(2))  # (B, T, C)
        # --- end
