"""Answers without content, which must earn nothing: every body that the student writes is replaced."""

import torch


class Identity:
    """What comes in goes out; logits of the characters alone."""

    id = "cache.identity"
    of = "cache"
    source = "own: without a look at other positions, pieces are always as one pass"

    def visible(q_len, k_len):
        return torch.ones(q_len, k_len)

    class KeyValueCache:
        def extend(self, k, v):
            self.seen += k.size(2)
            return k, v

    class CachedAttention:
        def forward(self, x, cache=None):
            return x

    class CachedRotaryAttention:
        def place(self, x, start):
            return x

    class CachedGPT:
        def read(self, idx, caches):
            x = self.embed(idx, caches[0].seen)
            for block, cache in zip(self.blocks, caches, strict=True):
                x = x + block.attn(block.ln_1(x), cache)
                x = x + block.mlp(block.ln_2(x))
                cache.seen += idx.size(1)
            return self.head(self.ln_f(x))


class Zeros:
    """Zeros of the right shape."""

    id = "cache.zeros"
    of = "cache"
    source = "own: shape-only answers"

    def visible(q_len, k_len):
        return torch.zeros(q_len, k_len, dtype=torch.bool)

    class KeyValueCache:
        def extend(self, k, v):
            length = k.size(2) if self.keys is None else self.keys.size(2) + k.size(2)
            self.keys = torch.zeros(k.size(0), k.size(1), length, k.size(3), dtype=k.dtype)
            self.values = self.keys
            self.seen += k.size(2)
            return self.keys, self.values

    class CachedAttention:
        def forward(self, x, cache=None):
            if cache is not None:
                cache.extend(self.split_heads(x), self.split_heads(x))
            return torch.zeros_like(x)

    class CachedRotaryAttention:
        def place(self, x, start):
            return torch.zeros_like(x)

    class CachedGPT:
        def read(self, idx, caches):
            return torch.zeros(*idx.shape, self.config.vocab_size, dtype=torch.float64)


class Noise:
    """Right-shaped noise."""

    id = "cache.noise"
    of = "cache"
    source = "own: shape-only answers"

    def visible(q_len, k_len):
        return torch.rand(q_len, k_len) > 2.0 / 3.0

    class KeyValueCache:
        def extend(self, k, v):
            self.keys, self.values = torch.rand(k.shape).to(k.dtype), torch.rand(v.shape).to(v.dtype)
            return self.keys, self.values

    class CachedAttention:
        def forward(self, x, cache=None):
            return torch.randn(x.shape).to(x.dtype)

    class CachedRotaryAttention:
        def place(self, x, start):
            return torch.randn(x.shape).to(x.dtype)

    class CachedGPT:
        def read(self, idx, caches):
            return torch.randn(*idx.shape, self.config.vocab_size, dtype=torch.float64)


class NotANumber:
    """NaN of the right shape."""

    id = "cache.not-a-number"
    of = "cache"
    source = "own: comparisons with NaN are never true"

    def visible(q_len, k_len):
        return torch.full((q_len, k_len), float("nan"))

    class KeyValueCache:
        def extend(self, k, v):
            self.keys, self.values = torch.full_like(k, float("nan")), torch.full_like(v, float("nan"))
            return self.keys, self.values

    class CachedAttention:
        def forward(self, x, cache=None):
            return torch.full_like(x, float("nan"))

    class CachedRotaryAttention:
        def place(self, x, start):
            return torch.full_like(x, float("nan"))

    class CachedGPT:
        def read(self, idx, caches):
            return torch.full((*idx.shape, self.config.vocab_size), float("nan"))


class AlwaysRefused:
    """Everything is refused with a ValueError."""

    id = "cache.always-refused"
    of = "cache"
    source = "own: passes a check of errors that does not first see it work"

    def visible(q_len, k_len):
        raise ValueError("no")

    class KeyValueCache:
        def extend(self, k, v):
            raise ValueError("no")

    class CachedAttention:
        def forward(self, x, cache=None):
            raise ValueError("no")

    class CachedRotaryAttention:
        def place(self, x, start):
            raise ValueError("no")

    class CachedGPT:
        def read(self, idx, caches):
            raise ValueError("no")
