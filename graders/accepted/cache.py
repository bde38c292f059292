"""Correct forms of a cache. Each must get full marks."""

import torch
import torch.nn.functional as F
from cache import KeyValueCache, visible


class Compared:
    """Positions compared with each other."""

    id = "cache.compared"
    of = "cache"
    source = "own: the definition taken literally"

    def visible(q_len, k_len):
        if q_len > k_len:
            raise ValueError(f"{q_len} > {k_len}")
        queries = torch.arange(q_len)[:, None] + (k_len - q_len)
        return torch.arange(k_len)[None, :] <= queries


class CutFromTheBottom:
    """The last rows of the whole triangle."""

    id = "cache.cut-from-the-bottom"
    of = "cache"
    source = "seen in public code: a mask of block_size, cut to what is needed"

    def visible(q_len, k_len):
        assert q_len <= k_len
        return ~torch.ones(k_len, k_len, dtype=torch.bool).triu(1)[k_len - q_len :]


class BuiltFromParts:
    """Ones for what is old, a triangle for what is new."""

    id = "cache.built-from-parts"
    of = "cache"
    source = "own: the two parts side by side"

    def visible(q_len, k_len):
        old = torch.ones(q_len, k_len - q_len, dtype=torch.bool)
        return torch.cat((old, torch.tril(torch.ones(q_len, q_len, dtype=torch.bool))), dim=1)


class BeginsEmpty:
    """An empty tensor in place of None."""

    id = "cache.begins-empty"
    of = "cache.KeyValueCache"
    source = "own: no case of its own for the first call"

    def extend(self, k, v):
        keys = k[:, :, :0] if self.keys is None else self.keys
        values = v[:, :, :0] if self.values is None else self.values
        self.keys, self.values = torch.concat([keys, k], -2), torch.concat([values, v], -2)
        self.seen = self.seen + k.shape[-2]
        return [self.keys, self.values]


class WrittenIntoABuffer:
    """A new tensor of the whole size, filled part by part."""

    id = "cache.written-into-a-buffer"
    of = "cache.KeyValueCache"
    source = "seen in public code: buffers that are written to at the position"

    def grown(self, old, new):
        held = 0 if old is None else old.size(2)
        buffer = new.new_empty(new.size(0), new.size(1), held + new.size(2), new.size(3))
        if old is not None:
            buffer[:, :, :held] = old
        buffer[:, :, held:] = new
        return buffer

    def extend(self, k, v):
        self.keys, self.values = self.grown(self.keys, k), self.grown(self.values, v)
        self.seen += k.size(2)
        return self.keys, self.values


class ByHand:
    """Scores, mask and softmax written out; heads cut and merged without helpers."""

    id = "cache.by-hand"
    of = "cache.CachedAttention"
    source = "own: as in the exercise on heads"

    def forward(self, x, cache=None):
        B, T, C = x.shape
        if cache is None:
            cache = KeyValueCache()
        start = cache.seen
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, C // self.n_head).permute(2, 0, 3, 1, 4)
        k, v = cache.extend(self.place(k, start), v)
        scores = self.place(q, start) @ k.transpose(-2, -1) * (C // self.n_head) ** -0.5
        weights = scores.masked_fill(~visible(T, k.size(2)), float("-inf")).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(B, T, C))


class AdditiveMask:
    """The mask added as 0 and -1e9."""

    id = "cache.additive-mask"
    of = "cache.CachedAttention"
    source = "seen in public code: additive masks"

    def forward(self, x, cache=None):
        cache = cache or KeyValueCache()
        start = cache.seen
        q, k, v = (self.split_heads(t) for t in self.qkv(x).split(x.size(-1), dim=-1))
        q, k = self.place(q, start), self.place(k, start)
        k, v = cache.extend(k, v)
        bias = torch.zeros(x.size(1), k.size(2), dtype=x.dtype).masked_fill(~visible(x.size(1), k.size(2)), -1e9)
        return self.proj(self.merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=bias)))


class OneAfterTheOther:
    """A loop over the new positions, which needs no mask."""

    id = "cache.one-after-the-other"
    of = "cache.CachedAttention"
    source = "own: every token looks at the cache as it is then"

    def forward(self, x, cache=None):
        cache = KeyValueCache() if cache is None else cache
        outputs = []
        for t in range(x.size(1)):
            start = cache.seen
            q, k, v = (self.split_heads(part) for part in self.qkv(x[:, t : t + 1]).chunk(3, dim=-1))
            keys, values = cache.extend(self.place(k, start), v)
            weights = torch.softmax(self.place(q, start) @ keys.mT / q.size(-1) ** 0.5, dim=-1)
            outputs.append(self.merge_heads(weights @ values))
        return self.proj(torch.cat(outputs, dim=1))


class KeptUnturned:
    """The cache holds keys as they are, and all are turned at every step."""

    id = "cache.kept-unturned"
    of = "cache.CachedAttention"
    source = "seen in public code: keys cached before the rotation"

    def forward(self, x, cache=None):
        cache = KeyValueCache() if cache is None else cache
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))
        q = self.place(q, cache.seen)
        k, v = cache.extend(k, v)
        k = self.place(k, cache.seen - k.size(2))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible(q.size(2), k.size(2)))
        return self.proj(self.merge_heads(y))


class NewestCounted:
    """Positions counted back from the last one."""

    id = "cache.newest-counted"
    of = "cache.CachedAttention"
    source = "own: the start worked out after the cache has grown"

    def forward(self, x, cache=None):
        cache = KeyValueCache() if cache is None else cache
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))
        end = cache.seen + x.size(1)
        k, v = cache.extend(self.place(k, end - x.size(1)), v)
        q = self.place(q, cache.seen - x.size(1))
        y = F.scaled_dot_product_attention(q, k, v, visible(x.size(1), k.size(2)))
        return self.proj(self.merge_heads(y))


class EmbeddedByHand:
    """Table and characters added in read itself, with an error of its own."""

    id = "cache.embedded-by-hand"
    of = "cache.CachedGPT"
    source = "own: without GPT.embed"

    def read(self, idx, caches):
        start, T = caches[0].seen, idx.size(1)
        x = self.tok_emb(idx)
        if self.pos_emb is not None:
            if start + T > self.config.block_size:
                raise ValueError(f"position {start + T - 1} is not in the table")
            x = x + self.pos_emb(torch.arange(start, start + T))
        for i in range(len(self.blocks)):
            block = self.blocks[i]
            attended = block.attn(block.ln_1(x), cache=caches[i])
            x = x + attended + block.mlp(block.ln_2(x + attended))
        return self.head(self.ln_f(x))


class HalvesTurned:
    """Channel i paired with channel i + D/2, without apply_rope."""

    id = "cache.halves-turned"
    of = "cache.CachedRotaryAttention"
    source = "seen in public code: half-split pairs (GPT-NeoX, Hugging Face's Llama)"

    def place(self, x, start):
        D, T = x.size(-1), x.size(2)
        angles = torch.arange(start, start + T)[:, None] * 10000.0 ** (-torch.arange(0, D, 2) / D)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
