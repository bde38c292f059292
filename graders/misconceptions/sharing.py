"""Mistakes about shared heads, as people really make them: each must be caught and named."""

import torch.nn.functional as F
from sharing import causal_attention, share_heads
from torch import nn

# Which head goes with which


class Tiled:
    """The heads are repeated as a list, 0 1 0 1, instead of each where it stands."""

    id = "sharing.tiled"
    of = "sharing"
    source = "onnx/onnx#7274, PrimeIntellect-ai/prime-rl#2681"
    hint = (
        "Your heads come as 0 1 0 1, and groups of neighbours need 0 0 1 1. From scratch that is only another layout "
        "and learns as well, but weights that were trained for neighbours do not fit it."
    )

    def share_heads(x, n_head):
        return x.repeat(1, n_head // x.size(1), 1, 1)


class TimeRepeated:
    """The time axis is repeated instead of the heads."""

    id = "sharing.time-repeated"
    of = "sharing"
    source = "PrimeIntellect-ai/prime-rl#2681: the same function on another layout of the axes"
    hint = "You repeat positions, not heads: time is axis 2 of (B, G, T, D), the heads are axis 1."

    def share_heads(x, n_head):
        return x.repeat_interleave(n_head // x.size(1), dim=2)


class MixedWithTime:
    """The new axis stands behind time, so that merging mixes heads and positions."""

    id = "sharing.mixed-with-time"
    of = "sharing"
    source = "own: expand on the wrong axis; the shape comes out right"
    hint = (
        "The shape is right, but your heads hold a mix of positions: the new axis must stand beside that of the heads "
        "before two axes become one."
    )

    def share_heads(x, n_head):
        B, G, T, D = x.shape
        return x[:, :, :, None].expand(B, G, T, n_head // G, D).reshape(B, n_head, T, D)


class FirstHeadForAll:
    """All query heads look at the first head of keys and values."""

    id = "sharing.first-head-for-all"
    of = "sharing"
    source = "own: right for multi-query attention, and tried on nothing else"
    hint = (
        "All your query heads look at head 0. That is right for n_kv_head = 1 only: every group has a head of its own."
    )

    def share_heads(x, n_head):
        return x[:, :1].expand(-1, n_head, -1, -1)


class Averaged:
    """The heads are averaged, and all query heads look at the mean."""

    id = "sharing.averaged"
    of = "sharing"
    source = "own: Ainslie et al. average the weights once, to convert a trained model, taken for what attention does"
    hint = (
        "You average the heads of keys and values. That is done once to the weights of a trained model that is to "
        "become a sharing one; here every head stays itself and is shared."
    )

    def share_heads(x, n_head):
        return x.mean(dim=1, keepdim=True).expand(-1, n_head, -1, -1)


class NotShared:
    """Keys and values go on as they are."""

    id = "sharing.not-shared"
    of = "sharing"
    source = "own: broadcasting was to do it"
    hint = "You hand the heads on as they are. With fewer heads of keys than of queries, each must come several times."

    def share_heads(x, n_head):
        return x


class QueriesStrided:
    """Queries are cut so that neighbours lie in different groups."""

    id = "sharing.queries-strided"
    of = "sharing.GroupedQueryAttention"
    source = "onnx/onnx#7274: the tiled order, reached from the side of the queries"
    hint = (
        "Your query heads 0 and 1 look at different heads of keys, although share_heads is right: in forward, the axis "
        "of the groups must stand before the one that counts within a group."
    )

    def forward(self, x):
        B, T, C = x.shape
        q = self.q(x).view(B, T, self.n_head // self.n_kv_head, self.n_kv_head, -1).permute(0, 3, 2, 1, 4)
        k, v = (t[:, :, None].expand_as(q) for t in self.keys_and_values(x))
        y = causal_attention(q, k, v)
        return self.proj(y.permute(0, 3, 2, 1, 4).reshape(B, T, C))


class OnlyKeysShared:
    """Keys go to the right group, values are tiled."""

    id = "sharing.only-keys-shared"
    of = "sharing.GroupedQueryAttention"
    source = "own: one of the two lines mended"
    hint = "Your keys reach the right groups, your values do not. Both are shared out in the same way."

    def forward(self, x):
        q = self.q(x).unflatten(-1, (self.n_head, -1)).transpose(1, 2)
        k, v = self.keys_and_values(x)
        v = v.repeat(1, self.n_head // self.n_kv_head, 1, 1)
        y = causal_attention(q, share_heads(k, self.n_head), v)
        return self.proj(y.transpose(1, 2).flatten(2))


# forward, apart from sharing


class KeysAndValuesSwapped:
    """The values are taken for keys and the other way round."""

    id = "sharing.keys-and-values-swapped"
    of = "sharing.GroupedQueryAttention"
    source = "vllm-project/vllm#42803: q, k and v taken in another order"
    hint = "Your queries meet the values, and what is passed on are the keys. Follow the two through your code."

    def forward(self, x):
        q = self.q(x).unflatten(-1, (self.n_head, -1)).transpose(1, 2)
        v, k = (share_heads(t, self.n_head) for t in self.keys_and_values(x))
        return self.proj(causal_attention(q, k, v).transpose(1, 2).flatten(2))


class MergedWithoutTranspose:
    """The heads are merged with one reshape."""

    id = "sharing.merged-without-transpose"
    of = "sharing.GroupedQueryAttention"
    source = "jsbaan/transformer-from-scratch#6"
    hint = "Your heads are merged across positions: time must stand before the heads again when two axes become one."

    def forward(self, x):
        q = self.q(x).unflatten(-1, (self.n_head, -1)).transpose(1, 2)
        k, v = (share_heads(t, self.n_head) for t in self.keys_and_values(x))
        return self.proj(causal_attention(q, k, v).reshape(x.shape))


class NoProjection:
    """The heads do not go through proj."""

    id = "sharing.no-projection"
    of = "sharing.GroupedQueryAttention"
    source = "Kyubyong/transformer#117"
    hint = "Your heads stand side by side and stay there: proj, which mixes them, is missing."

    def forward(self, x):
        q = self.q(x).unflatten(-1, (self.n_head, -1)).transpose(1, 2)
        k, v = (share_heads(t, self.n_head) for t in self.keys_and_values(x))
        return causal_attention(q, k, v).transpose(1, 2).flatten(2)


class FutureSeen:
    """No causal mask."""

    id = "sharing.future-seen"
    of = "sharing.GroupedQueryAttention"
    source = "keras-team/keras#23038"
    hint = "Your positions see the future: sharing heads changes nothing about the mask."
    imports = "import torch.nn.functional as F"

    def forward(self, x):
        q = self.q(x).unflatten(-1, (self.n_head, -1)).transpose(1, 2)
        k, v = (share_heads(t, self.n_head) for t in self.keys_and_values(x))
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


# What is kept


class KeysCutWithoutTranspose:
    """Keys and values are cut into heads with one view."""

    id = "sharing.keys-cut-without-transpose"
    of = "sharing.GroupedQueryAttention"
    source = "reczoo/FuxiCTR#30, hyunwoongko/transformer#15"
    hint = "Your heads of keys and values hold a mix of positions: first cut the channels in two axes, then move one."

    def keys_and_values(self, x):
        B, T, _ = x.shape
        return self.k(x).view(B, self.n_kv_head, T, -1), self.v(x).view(B, self.n_kv_head, T, -1)


class KeysCutStrided:
    """Channels are dealt out to the heads in turn."""

    id = "sharing.keys-cut-strided"
    of = "sharing.GroupedQueryAttention"
    source = "own: the axes (D, G) in place of (G, D)"
    hint = (
        "Your heads of keys and values take every G-th channel. From scratch that is only another layout, but here "
        "each head has neighbouring channels."
    )

    def keys_and_values(self, x):
        k, v = (layer(x).unflatten(-1, (-1, self.n_kv_head)).permute(0, 3, 1, 2) for layer in (self.k, self.v))
        return k, v


class RepeatedBeforeTheCache:
    """keys_and_values gives the repeated heads."""

    id = "sharing.repeated-before-the-cache"
    of = "sharing.GroupedQueryAttention"
    source = "own: repeat_kv before the cache instead of behind it, which costs all that was saved"
    hint = "You repeat the heads before they are kept, so the cache saves nothing. Repeat them when they are used."

    def keys_and_values(self, x):
        k, v = (layer(x).unflatten(-1, (self.n_kv_head, -1)).transpose(1, 2) for layer in (self.k, self.v))
        return share_heads(k, self.n_head), share_heads(v, self.n_head)


class OnlyKeysCounted:
    """The factor 2 for keys and values is missing."""

    id = "sharing.only-keys-counted"
    of = "sharing"
    source = "own"
    hint = "You count half of what a cache keeps. What besides the keys?"

    def cache_numbers(n_layer, n_kv_head, head_dim, length):
        return n_layer * n_kv_head * head_dim * length


class BytesCounted:
    """Bytes in half precision instead of numbers."""

    id = "sharing.bytes-counted"
    of = "sharing"
    source = "own: the formula as model cards give it"
    hint = "Your count is twice as large, as if it were bytes in half precision. The question is how many numbers."

    def cache_numbers(n_layer, n_kv_head, head_dim, length):
        return 2 * 2 * n_layer * n_kv_head * head_dim * length


class OneLayerCounted:
    """The layers are not counted."""

    id = "sharing.one-layer-counted"
    of = "sharing"
    source = "own"
    hint = "You count one layer. Each layer has keys and values of its own."

    def cache_numbers(n_layer, n_kv_head, head_dim, length):
        return 2 * n_kv_head * head_dim * length


# The layers


class WideKeys:
    """k and v are as wide as in ordinary attention."""

    id = "sharing.wide-keys"
    of = "sharing.GroupedQueryAttention"
    source = "own: D worked out as n_embd / n_kv_head"
    hint = (
        "Your k and v are as wide as in ordinary attention, whatever n_kv_head is. The channels of one head come from "
        "n_head, and k and v have n_kv_head of such heads."
    )
    imports = "from torch import nn"

    def __init__(self, n_embd, n_head, n_kv_head):
        super().__init__()
        self.n_head, self.n_kv_head = n_head, n_kv_head
        if n_head < 1 or n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} is not a multiple of n_head = {n_head}")
        if n_kv_head < 1 or n_head % n_kv_head != 0:
            raise ValueError(f"n_head = {n_head} is not a multiple of n_kv_head = {n_kv_head}")
        self.q, self.proj = nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd)
        self.k, self.v = nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd)


class NarrowQueries:
    """q shrinks together with k and v."""

    id = "sharing.narrow-queries"
    of = "sharing.GroupedQueryAttention"
    source = "own: n_kv_head in all three widths"
    hint = "Your queries have n_kv_head heads as well. Only keys and values are shared; every query head has its own q."
    imports = "from torch import nn"

    def __init__(self, n_embd, n_head, n_kv_head):
        super().__init__()
        self.n_head, self.n_kv_head = n_head, n_kv_head
        if n_head < 1 or n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} is not a multiple of n_head = {n_head}")
        if n_kv_head < 1 or n_head % n_kv_head != 0:
            raise ValueError(f"n_head = {n_head} is not a multiple of n_kv_head = {n_kv_head}")
        narrow = n_embd // n_head * n_kv_head
        self.q, self.k, self.v = (nn.Linear(n_embd, narrow) for _ in range(3))
        self.proj = nn.Linear(narrow, n_embd)


class NoBias:
    """k and v without bias."""

    id = "sharing.no-bias"
    of = "sharing.GroupedQueryAttention"
    source = "own: as in Llama, whose layers have none"
    hint = "Your k and v have no bias. Many models leave it out, but here all four layers have one."
    imports = "from torch import nn"

    def __init__(self, n_embd, n_head, n_kv_head):
        super().__init__()
        self.n_head, self.n_kv_head = n_head, n_kv_head
        if n_head < 1 or n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} is not a multiple of n_head = {n_head}")
        if n_kv_head < 1 or n_head % n_kv_head != 0:
            raise ValueError(f"n_head = {n_head} is not a multiple of n_kv_head = {n_kv_head}")
        narrow = n_embd // n_head * n_kv_head
        self.q, self.proj = nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd)
        self.k, self.v = nn.Linear(n_embd, narrow, bias=False), nn.Linear(n_embd, narrow, bias=False)


class NothingRefused:
    """Numbers that do not divide are accepted in silence."""

    id = "sharing.nothing-refused"
    of = "sharing.GroupedQueryAttention"
    source = "own: // hides the remainder"
    hint = (
        "3 heads of keys for 4 of queries are accepted in silence, and something breaks much later. Refuse them here."
    )
    imports = "from torch import nn"

    def __init__(self, n_embd, n_head, n_kv_head):
        super().__init__()
        self.n_head, self.n_kv_head = n_head, n_kv_head
        narrow = n_embd // n_head * n_kv_head
        self.q, self.proj = nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd)
        self.k, self.v = nn.Linear(n_embd, narrow), nn.Linear(n_embd, narrow)


class ChannelsTakenForHeads:
    """n_kv_head is compared with n_embd instead of n_head."""

    id = "sharing.channels-taken-for-heads"
    of = "sharing.GroupedQueryAttention"
    source = "own: the first condition copied"
    hint = "You ask whether n_kv_head divides the channels. It is the query heads that are put into groups."
    imports = "from torch import nn"

    def __init__(self, n_embd, n_head, n_kv_head):
        super().__init__()
        self.n_head, self.n_kv_head = n_head, n_kv_head
        if n_head < 1 or n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} is not a multiple of n_head = {n_head}")
        if n_kv_head < 1 or n_embd % n_kv_head != 0:
            raise ValueError(f"n_embd = {n_embd} is not a multiple of n_kv_head = {n_kv_head}")
        narrow = n_embd // n_head * n_kv_head
        self.q, self.proj = nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd)
        self.k, self.v = nn.Linear(n_embd, narrow), nn.Linear(n_embd, narrow)


class ZeroNotThoughtOf:
    """n_kv_head = 0 ends in a ZeroDivisionError."""

    id = "sharing.zero-not-thought-of"
    of = "sharing.GroupedQueryAttention"
    source = "own: the remainder by 0"
    hint = "With n_kv_head = 0 your condition itself breaks down. Ask first whether there is a head at all."
    imports = "from torch import nn"

    def __init__(self, n_embd, n_head, n_kv_head):
        super().__init__()
        self.n_head, self.n_kv_head = n_head, n_kv_head
        if n_embd % n_head != 0:
            raise ValueError(f"n_embd = {n_embd} is not a multiple of n_head = {n_head}")
        if n_head % n_kv_head != 0:
            raise ValueError(f"n_head = {n_head} is not a multiple of n_kv_head = {n_kv_head}")
        narrow = n_embd // n_head * n_kv_head
        self.q, self.proj = nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd)
        self.k, self.v = nn.Linear(n_embd, narrow), nn.Linear(n_embd, narrow)
