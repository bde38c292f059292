"""Reading on instead of starting over: the keys and values of what has been read are kept.

A model that writes one character at a time would otherwise read the whole text anew for each. What a position
is asked by later ones does not change, so its keys and values can be kept; queries are needed only once.
Letters: B batch, T time (the positions that are new), S all positions that can be seen, C, H, D, V as in gpt.py.
"""

import torch
import torch.nn.functional as F
from gpt import GPT, CausalSelfAttention
from rope import apply_rope
from torch import Tensor


class KeyValueCache:
    """The keys and values of one layer, as far as a text has been read.

    keys, values: (B, H, S, D), or None while there are none. seen: the position of the next character. It
    counts what has been forgotten too, so it can be more than S.
    """

    def __init__(self, start: int = 0) -> None:
        """start: the position of the text's first character."""
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self.seen = start

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Puts the keys and values of T new positions, (B, H, T, D), behind the old ones, and counts them in `seen`.

        Returns all keys and all values, old and new: (B, H, S, D) each.
        """
        # --- answer: cache: put the new keys and values behind the old ones, if there are any, and count them
        # --- more: Which of the four axes is time?
        self.keys = k if self.keys is None else torch.cat((self.keys, k), dim=2)  # (B, H, S, D)
        self.values = v if self.values is None else torch.cat((self.values, v), dim=2)  # (B, H, S, D)
        self.seen += k.size(2)
        return self.keys, self.values
        # --- end

    def forget(self, n: int) -> None:
        """Drops the n oldest positions, to make room. What stays keeps its place in the text, and so does `seen`."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[:, :, n:], self.values[:, :, n:]


def visible(q_len: int, k_len: int) -> Tensor:
    """Which keys the newest q_len of k_len positions may look at: (q_len, k_len), bool, True where they may.

    The last query belongs to the last key and sees all of them, the one before it all but the last, and so on:
    what came before the q_len new positions is seen by each. Raises ValueError when q_len is more than k_len.
    """
    # --- answer: cache: every query sees the keys up to its own; the last query belongs to the last key
    # --- more: With q_len = k_len this is the triangle that you know. What changes when there are more keys?
    if q_len > k_len:
        raise ValueError(f"{q_len} queries cannot be the newest of {k_len} positions")
    return torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len)  # (q_len, k_len)
    # --- end


class CachedAttention(CausalSelfAttention):
    """Causal self-attention that goes on where a cache ends. The layers are those of CausalSelfAttention."""

    def place(self, x: Tensor, start: int) -> Tensor:
        """Queries or keys (B, H, T, D) that know the positions start, start + 1, ...: here just as they are."""
        return x

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """(B, T, C) -> (B, T, C): x has the T positions after those in `cache`, which is extended by them.

        Queries and keys go through `place`, each once, with the position of the first of them. Without a cache the
        text begins at position 0 and this is ordinary attention. No dropout.
        """
        # --- answer: cache: place the new q and k, extend the cache, let each query look at what it may
        # --- more: Which position has the first column of x? The cache knows, until it is extended.
        # --- more: Scores here are (B, H, T, S): attention_weights of gpt.py has no mask for T and S that differ.
        cache = KeyValueCache() if cache is None else cache
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))  # (B, H, T, D) each
        q, k = self.place(q, cache.seen), self.place(k, cache.seen)  # (B, H, T, D) each
        k, v = cache.extend(k, v)  # (B, H, S, D) each
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible(q.size(2), k.size(2)).to(x.device))
        return self.proj(self.merge_heads(y))  # (B, T, C)
        # --- end


class CachedRotaryAttention(CachedAttention):
    """The same with rotary positions: all channels of each head turn."""

    def place(self, x: Tensor, start: int) -> Tensor:
        """(B, H, T, D) -> (B, H, T, D): x, turned by `apply_rope` for the positions start, start + 1, ..."""
        # --- answer: cache: turn x for the positions that it has
        return apply_rope(x, torch.arange(start, start + x.size(2), device=x.device))  # (B, H, T, D)
        # --- end


class CachedGPT(GPT):
    """The GPT of the course that can read on. Called as a GPT it still reads a text in one pass."""

    attention_class = CachedAttention

    def new_caches(self, start: int = 0) -> list[KeyValueCache]:
        """A cache a layer, for a text whose first character stands at position `start`."""
        return [KeyValueCache(start) for _ in self.blocks]

    def read(self, idx: Tensor, caches: list[KeyValueCache]) -> Tensor:
        """Reads on: the logits (B, T, V) of T new characters, idx (B, T), after those in `caches`.

        One cache a layer, as `new_caches` makes them; each is extended. In one pass or in pieces of any length,
        a text gets the same logits. Raises ValueError as `forward` does.
        """
        # --- answer: cache: embed the new characters where they stand, then go through the blocks with their caches
        # --- more: Look at GPT.forward and Block.forward in gpt.py: it is the same way, with a cache a layer.
        x = self.drop(self.embed(idx, caches[0].seen))  # (B, T, C)
        for block, cache in zip(self.blocks, caches, strict=True):
            x = x + block.attn(block.ln_1(x), cache)  # (B, T, C)
            x = x + block.mlp(block.ln_2(x))  # (B, T, C)
        return self.head(self.ln_f(x))  # (B, T, V)
        # --- end


class CachedRotaryGPT(CachedGPT):
    """The same with RoPE in every layer in place of the position table."""

    attention_class = CachedRotaryAttention
    positions = ("rope",)
