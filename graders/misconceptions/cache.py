"""Mistakes about caches, as people really make them: each must be caught and named."""

import torch
import torch.nn.functional as F
from cache import KeyValueCache, visible
from rope import apply_rope

# The mask


class TriangleAtTheLeft:
    """The triangle stands at the left end: the first new query sees the first key only."""

    id = "cache.triangle-at-the-left"
    of = "cache"
    source = "pytorch/pytorch#108108: what is_causal meant when q_len and k_len differ"
    hint = (
        "Your triangle begins at the first key, so the new queries see the oldest positions and not the latest. Which "
        "key belongs to the last query?"
    )

    def visible(q_len, k_len):
        return torch.ones(q_len, k_len, dtype=torch.bool).tril()


class EverythingVisible:
    """Every query sees every key."""

    id = "cache.everything-visible"
    of = "cache"
    source = "own: one new token needs no mask, taken for several"
    hint = "All your queries see all keys. For one new token that is right; of several, the first may not see the next."

    def visible(q_len, k_len):
        return torch.ones(q_len, k_len, dtype=torch.bool)


class OwnKeyHidden:
    """A query does not see its own key."""

    id = "cache.own-key-hidden"
    of = "cache"
    source = "pbloem/former#10: the mask hides the position itself"
    hint = "Your queries do not see their own key, so the first one of a text sees nothing. The diagonal belongs to it."

    def visible(q_len, k_len):
        return torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len - 1)


class OneTooMany:
    """A query sees the key after its own."""

    id = "cache.one-too-many"
    of = "cache"
    source = "own: the off-by-one to the other side"
    hint = (
        "Each of your queries sees one key of the future. Count on paper where the triangle ends for 2 queries, 5 keys."
    )

    def visible(q_len, k_len):
        return torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len + 1)


class HiddenForVisible:
    """True where a query may not look."""

    id = "cache.hidden-for-visible"
    of = "cache"
    source = "rasbt/LLMs-from-scratch#1061: the polarity of the mask inverted"
    hint = (
        "Your mask says True where a query may not look. Here, and in scaled_dot_product_attention, True means: look."
    )

    def visible(q_len, k_len):
        return torch.ones(q_len, k_len, dtype=torch.bool).triu(k_len - q_len + 1)


class IsCausalWithACache:
    """scaled_dot_product_attention with is_causal, whatever has been read."""

    id = "cache.is-causal-with-a-cache"
    of = "cache.CachedAttention"
    source = "pytorch/pytorch#108108"
    hint = (
        "Your visible is right, but your layer does not use it: is_causal puts its triangle at the first key, where "
        "new queries see the oldest positions only."
    )

    def forward(self, x, cache=None):
        cache = KeyValueCache() if cache is None else cache
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))
        q, k = self.place(q, cache.seen), self.place(k, cache.seen)
        k, v = cache.extend(k, v)
        return self.proj(self.merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True)))


class NoMaskAfterTheFirst:
    """A mask for the first piece only."""

    id = "cache.no-mask-after-the-first"
    of = "cache.CachedAttention"
    source = "own: is_causal = cache is empty, as public code has it for single tokens"
    hint = (
        "Once something has been read, your layer has no mask. For one new token that is right; of several at once, "
        "the first must not see the ones behind it."
    )

    def forward(self, x, cache=None):
        cache = KeyValueCache() if cache is None else cache
        first = cache.keys is None
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))
        q, k = self.place(q, cache.seen), self.place(k, cache.seen)
        k, v = cache.extend(k, v)
        return self.proj(self.merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=first)))


class ScaledByAllChannels:
    """The scale is the square root of C."""

    id = "cache.scaled-by-all-channels"
    of = "cache.CachedAttention"
    source = "karpathy/ng-video-lecture#6"
    hint = "Your scores are divided by the square root of all channels. Each head has its own, fewer ones."

    def forward(self, x, cache=None):
        cache = KeyValueCache() if cache is None else cache
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))
        q, k = self.place(q, cache.seen), self.place(k, cache.seen)
        k, v = cache.extend(k, v)
        scores = (q @ k.mT / x.size(-1) ** 0.5).masked_fill(~visible(q.size(2), k.size(2)), float("-inf"))
        return self.proj(self.merge_heads(scores.softmax(dim=-1) @ v))


# What is kept


class OnlyTheLatestKept:
    """The cache holds the last piece only."""

    id = "cache.only-the-latest-kept"
    of = "cache.KeyValueCache"
    source = "own: = in place of cat"
    hint = "What came before the latest piece is gone: your cache overwrites it, or was never given it to keep."

    def extend(self, k, v):
        self.keys, self.values = k, v
        self.seen += k.size(2)
        return k, v


class NewOnesReturned:
    """All are kept, and the new ones returned."""

    id = "cache.new-ones-returned"
    of = "cache.KeyValueCache"
    source = "own: the arguments returned"
    hint = "You keep everything and return what has just come in, so attention never sees the old keys."

    def extend(self, k, v):
        self.keys = k if self.keys is None else torch.cat((self.keys, k), dim=2)
        self.values = v if self.values is None else torch.cat((self.values, v), dim=2)
        self.seen += k.size(2)
        return k, v


class NewInFront:
    """The new ones are put in front of the old ones."""

    id = "cache.new-in-front"
    of = "cache.KeyValueCache"
    source = "own: cat((new, old))"
    hint = "Your new keys stand in front of the old ones, so the mask hides the wrong end. Text grows at its end."

    def extend(self, k, v):
        self.keys = k if self.keys is None else torch.cat((k, self.keys), dim=2)
        self.values = v if self.values is None else torch.cat((v, self.values), dim=2)
        self.seen += k.size(2)
        return self.keys, self.values


class JoinedAsHeads:
    """Old and new are joined along the heads."""

    id = "cache.joined-as-heads"
    of = "cache.KeyValueCache"
    source = "own: dim=1, which is time in (B, T, C)"
    hint = "You join old and new along axis 1, and the heads become more. In (B, H, T, D), time is another axis."

    def extend(self, k, v):
        self.keys = k if self.keys is None else torch.cat((self.keys, k), dim=1)
        self.values = v if self.values is None else torch.cat((self.values, v), dim=1)
        self.seen += k.size(2)
        return self.keys, self.values


class OnlyKeysKept:
    """The values of old positions are not kept."""

    id = "cache.only-keys-kept"
    of = "cache.KeyValueCache"
    source = "own: half of a cache"
    hint = "You keep the keys of old positions and lose their values. Attention needs one of each for every position."

    def extend(self, k, v):
        self.keys = k if self.keys is None else torch.cat((self.keys, k), dim=2)
        self.values = v
        self.seen += k.size(2)
        return self.keys, self.values


class SeenNotCounted:
    """`seen` stays as it was."""

    id = "cache.seen-not-counted"
    of = "cache.KeyValueCache"
    source = "ml-explore/mlx-lm#93: every step is at position 0"
    hint = "Your cache grows, but `seen` does not, so that every new token stands at the first position."

    def extend(self, k, v):
        self.keys = k if self.keys is None else torch.cat((self.keys, k), dim=2)
        self.values = v if self.values is None else torch.cat((self.values, v), dim=2)
        return self.keys, self.values


class CallsCounted:
    """`seen` counts calls, not positions."""

    id = "cache.calls-counted"
    of = "cache.KeyValueCache"
    source = "own: += 1"
    hint = "`seen` counts your calls. Several positions can come in one: count these."

    def extend(self, k, v):
        self.keys = k if self.keys is None else torch.cat((self.keys, k), dim=2)
        self.values = v if self.values is None else torch.cat((self.values, v), dim=2)
        self.seen += 1
        return self.keys, self.values


class KeysLeftCounted:
    """`seen` becomes the number of keys that are held."""

    id = "cache.keys-left-counted"
    of = "cache.KeyValueCache"
    source = "MemTensor/MemOS#2315: the same confusion inside the cache"
    hint = (
        "`seen` is the number of your keys. A text can start later than at 0, and old keys can be forgotten: count on."
    )

    def extend(self, k, v):
        self.keys = k if self.keys is None else torch.cat((self.keys, k), dim=2)
        self.values = v if self.values is None else torch.cat((self.values, v), dim=2)
        self.seen = self.keys.size(2)
        return self.keys, self.values


# Positions


class KeysMoved:
    """New positions count from the number of keys that are left."""

    id = "cache.keys-moved"
    of = "cache.CachedAttention"
    source = "MemTensor/MemOS#2315: cached keys moved, and not turned again"
    hint = (
        "When old positions are forgotten, your new ones count from the keys that are left, as if these had moved. But "
        "they were turned for their old places. How many positions have been seen?"
    )

    def forward(self, x, cache=None):
        cache = KeyValueCache() if cache is None else cache
        start = 0 if cache.keys is None else cache.keys.size(2)
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))
        k, v = cache.extend(self.place(k, start), v)
        y = F.scaled_dot_product_attention(self.place(q, start), k, v, attn_mask=visible(x.size(1), k.size(2)))
        return self.proj(self.merge_heads(y))


class QueriesTurnedLate:
    """Queries are placed when the cache has counted them already."""

    id = "cache.queries-turned-late"
    of = "cache.CachedAttention"
    source = "own: extend before place, and place asks the cache"
    hint = "Your queries count from the end of the new positions: the cache had been extended when they asked it."

    def forward(self, x, cache=None):
        cache = KeyValueCache() if cache is None else cache
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))
        k, v = cache.extend(self.place(k, cache.seen), v)
        q = self.place(q, cache.seen)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible(q.size(2), k.size(2)))
        return self.proj(self.merge_heads(y))


class OnlyQueriesPlaced:
    """Queries know where they are, keys always count from 0."""

    id = "cache.only-queries-placed"
    of = "cache.CachedAttention"
    source = "vllm-project/vllm-omni#3828: one of the two handled"
    hint = "Your queries know their position, your keys count from 0 at every call. Both stand where the text goes on."

    def forward(self, x, cache=None):
        cache = KeyValueCache() if cache is None else cache
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))
        q, k = self.place(q, cache.seen), self.place(k, 0)
        k, v = cache.extend(k, v)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible(q.size(2), k.size(2)))
        return self.proj(self.merge_heads(y))


class TurnedAgain:
    """Keys are turned before they are kept, and all of them again at every call."""

    id = "cache.turned-again"
    of = "cache.CachedAttention"
    source = "own: two right ways, both taken"
    hint = "Your keys are turned when they come and again when they are used. Decide for one of the two."

    def forward(self, x, cache=None):
        cache = KeyValueCache() if cache is None else cache
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))
        q, k = self.place(q, cache.seen), self.place(k, cache.seen)
        k, v = cache.extend(k, v)
        k = self.place(k, cache.seen - k.size(2))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible(q.size(2), k.size(2)))
        return self.proj(self.merge_heads(y))


class NeverPlaced:
    """`place` is not called."""

    id = "cache.never-placed"
    of = "cache.CachedAttention"
    source = "own: right for the learned table, where place does nothing"
    hint = "Your layer never calls `place`, so rotary attention knows no positions. The learned table hides it."

    def forward(self, x, cache=None):
        cache = KeyValueCache() if cache is None else cache
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))
        k, v = cache.extend(k, v)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible(q.size(2), k.size(2)))
        return self.proj(self.merge_heads(y))


class TurnsFromZero:
    """Every call turns from position 0."""

    id = "cache.turns-from-zero"
    of = "cache.CachedRotaryAttention"
    source = "ml-explore/mlx-lm#93, pytorch/executorch#2010"
    hint = "Every call turns its first column for position 0, wherever the text has come to. What is `start` for?"

    def place(self, x, start):
        return apply_rope(x, torch.arange(x.size(2), device=x.device))


class SamePositionForAll:
    """All columns of a piece are turned for its start."""

    id = "cache.same-position-for-all"
    of = "cache.CachedRotaryAttention"
    source = "own: right for single tokens, and tried on nothing else"
    hint = "All columns of a piece are turned for the position of the first. The next ones stand one further each."

    def place(self, x, start):
        return apply_rope(x, torch.full((x.size(2),), start))


class EmbedsFromZero:
    """Every piece gets the first rows of the position table."""

    id = "cache.embeds-from-zero"
    of = "cache.CachedGPT"
    source = "ml-explore/mlx-lm#93, pytorch/executorch#2010"
    hint = "Every piece gets the rows of the table from 0 on, so each new token believes it is the first. Where is it?"

    def read(self, idx, caches):
        x = self.drop(self.embed(idx))
        for block, cache in zip(self.blocks, caches, strict=True):
            x = x + block.attn(block.ln_1(x), cache)
            x = x + block.mlp(block.ln_2(x))
        return self.head(self.ln_f(x))


class EmbedsOneAhead:
    """Positions are one ahead of those of one pass."""

    id = "cache.embeds-one-ahead"
    of = "cache.CachedGPT"
    source = "own: the next position taken for the one after it"
    hint = "Your positions are one ahead: `seen` is the position of the first new character already."

    def read(self, idx, caches):
        x = self.drop(self.embed(idx, caches[0].seen + 1))
        for block, cache in zip(self.blocks, caches, strict=True):
            x = x + block.attn(block.ln_1(x), cache)
            x = x + block.mlp(block.ln_2(x))
        return self.head(self.ln_f(x))


class BareIndexError:
    """Past the end of the table, nn.Embedding's own error."""

    id = "cache.bare-index-error"
    of = "cache.CachedGPT"
    source = "openai/gpt-2#137"
    hint = "Past the last row of the table your code stops with the embedding's own error. GPT.embed has a clear one."

    def read(self, idx, caches):
        start = caches[0].seen
        x = self.tok_emb(idx)
        if self.pos_emb is not None:
            x = x + self.pos_emb(torch.arange(start, start + idx.size(1), device=idx.device))
        for block, cache in zip(self.blocks, caches, strict=True):
            x = x + block.attn(block.ln_1(x), cache)
            x = x + block.mlp(block.ln_2(x))
        return self.head(self.ln_f(x))


# The model


class OneCacheForAllLayers:
    """All layers share the first cache."""

    id = "cache.one-cache-for-all-layers"
    of = "cache.CachedGPT"
    source = "own: caches[0] in the loop"
    hint = "All your layers write into one cache, and see each other's keys. Each layer has its own."

    def read(self, idx, caches):
        x = self.drop(self.embed(idx, caches[0].seen))
        for block in self.blocks:
            x = x + block.attn(block.ln_1(x), caches[0])
            x = x + block.mlp(block.ln_2(x))
        return self.head(self.ln_f(x))


class CachesNotPassedOn:
    """The blocks are called as in one pass, and counted by hand."""

    id = "cache.caches-not-passed-on"
    of = "cache.CachedGPT"
    source = "own: block(x), where nothing takes a cache"
    hint = "Your blocks never see the caches, so each piece is read as a text of its own."

    def read(self, idx, caches):
        x = self.drop(self.embed(idx, caches[0].seen))
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x)
            cache.seen += idx.size(1)
        return self.head(self.ln_f(x))


class MlpLeftOut:
    """The MLP of each block is left out."""

    id = "cache.mlp-left-out"
    of = "cache.CachedGPT"
    source = "own: half of the block copied"
    hint = "Your read goes through attention only: each block also has an MLP, on its own normalised input."

    def read(self, idx, caches):
        x = self.drop(self.embed(idx, caches[0].seen))
        for block, cache in zip(self.blocks, caches, strict=True):
            x = x + block.attn(block.ln_1(x), cache)
        return self.head(self.ln_f(x))


class LastNormLeftOut:
    """The logits are made without the last normalisation."""

    id = "cache.last-norm-left-out"
    of = "cache.CachedGPT"
    source = "own: head(x)"
    hint = "Your logits come from what the last block gives. One pass normalises that once more, with ln_f."

    def read(self, idx, caches):
        x = self.drop(self.embed(idx, caches[0].seen))
        for block, cache in zip(self.blocks, caches, strict=True):
            x = x + block.attn(block.ln_1(x), cache)
            x = x + block.mlp(block.ln_2(x))
        return self.head(x)


class OnlyTheLastLogits:
    """The logits of the last new character alone."""

    id = "cache.only-the-last-logits"
    of = "cache.CachedGPT"
    source = "own: all that is needed for writing"
    hint = (
        "You return the logits of the last character only. For writing that is enough; here each new one has its own."
    )

    def read(self, idx, caches):
        x = self.drop(self.embed(idx, caches[0].seen))
        for block, cache in zip(self.blocks, caches, strict=True):
            x = x + block.attn(block.ln_1(x), cache)
            x = x + block.mlp(block.ln_2(x))
        return self.head(self.ln_f(x[:, -1:]))
