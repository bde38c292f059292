"""Reading on with a cache: `KeyValueCache`, `visible`, `CachedAttention`, `CachedGPT`, and the rotary twins.

What a student reads in pieces is compared with what the same student reads in one pass, so that a mistake in gpt.py or
rope.py that is the same in both costs nothing again; cache.one-pass alone compares with the reference. Letters: B
batch, T time, C, H, D, V as in gpt.py.

Tolerances, measured over 200 seeds (tests/test_tolerances.py measures again). All is in float64: one pass and pieces
differ by 8e-15, with outputs up to 20. Turns may be computed in float32: 30 positions further on they then change a
layer's output by 2e-6. Mistakes change outputs by 0.07 and more (RoPE that starts again at 0), and what must change
does so by 0.13 and more.
"""

import torch

from harness.grading import check, expect

EXACT = 0.0  # moving numbers about does not round
F64 = 1e-9
TURNED = 1e-3  # with turns that may be computed in float32
CHANGES = 1e-2
V, BLOCK, LAYERS, H, D = 11, 16, 2, 3, 4
C = H * D
SIZES = dict(vocab_size=V, block_size=BLOCK, n_layer=LAYERS, n_head=H, n_embd=C)


# KeyValueCache and visible


def empty(student, start=0):
    made = expect.handle(student.cache.KeyValueCache, what="KeyValueCache")
    return expect.handle(made(start), what=f"KeyValueCache({start})")


@check(
    "cache.extend",
    title="KeyValueCache.extend puts new keys and values behind old ones",
    points=1,
    hint="Old first, then new, along time: the axis before the last. Keys and values are both kept for the next call, "
    "both returned, and `seen` grows by the number of new positions.",
    reproduce="""
import torch; from cache import KeyValueCache
cache = KeyValueCache(start=7)
cache.extend(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4))
k, v = cache.extend(torch.ones(1, 2, 1, 4), torch.ones(1, 2, 1, 4))
print(cache.seen, k[0, 0, :, 0])  # 7 + 3 + 1 = 11 positions seen; 0 0 0 1
""",
)
def test_extend(student, draw):
    cache = empty(student, 7)
    lengths = (4, 1, 2)
    parts = [[draw.normal(2, 3, T, 5, dtype=torch.float64) for T in lengths] for _ in "kv"]
    for i in range(len(lengths)):
        both = expect.items(cache.extend(parts[0][i], parts[1][i]), 2, what=f"extend(k, v) #{i + 1}")
        for side, name in enumerate(("keys", "values")):
            expected = torch.cat(parts[side][: i + 1], dim=2)
            expect.close(both[side], expected, atol=EXACT, what=f"extend(k, v)[{side}] #{i + 1}")
            expect.close(getattr(cache, name), expected, atol=EXACT, what=f"KeyValueCache.{name} #{i + 1}")
        expect.equal(cache.seen, 7 + sum(lengths[: i + 1]), what=f"KeyValueCache.seen #{i + 1}")


@check(
    "cache.visible",
    title="visible: new queries see what is old, and a triangle of the new",
    points=1,
    hint="The last query belongs to the last key. With 2 queries and 5 keys the first row sees 4 keys and the second "
    "all 5: the triangle stands at the right end, not at the left.",
    reproduce="""
from cache import visible
print(visible(2, 5).int())  # 1 1 1 1 0, then 1 1 1 1 1
print(visible(1, 3).int())  # 1 1 1: one new token sees everything
""",
)
def test_visible(student):
    function = expect.handle(student.cache.visible, what="visible")
    for q_len, k_len in ((2, 5), (1, 1), (1, 6), (4, 4), (3, 7), (6, 7)):
        own = torch.arange(k_len - q_len, k_len)  # the position of each query
        expected = torch.arange(k_len) <= own[:, None]
        expect.close(function(q_len, k_len), expected, atol=EXACT, what=f"visible({q_len}, {k_len})")


# A layer


def layer(student, name, draw):
    """CachedAttention or CachedRotaryAttention with random weights, in float64."""
    config = student.gpt.GPTConfig(**SIZES, position="rope" if "Rotary" in name else "learned")
    made = expect.handle(getattr(student.cache, name), what=name)
    attention = expect.handle(made(config), what=f"{name}(config)")
    attention.to(torch.float64)
    shapes = {"qkv.weight": (3 * C, C), "qkv.bias": (3 * C,), "proj.weight": (C, C), "proj.bias": (C,)}
    attention.load_state_dict(
        {key: draw.normal(*shape, dtype=torch.float64, scale=0.5) for key, shape in shapes.items()}
    )
    attention.eval()
    return attention


def attend(attention, x, cache=None):
    """forward(x, cache), of the shape of x."""
    answer = attention(x) if cache is None else attention(x, cache)
    return expect.tensor(answer, x.shape, what="forward(x)" if cache is None else f"forward(x, cache), T={x.size(1)}")


@check(
    "cache.kept",
    title="CachedAttention keeps keys and values, and uses what it keeps",
    points=1,
    hint="After 4 tokens and 2 more the cache holds 6 keys and 6 values, and the first 4 have not changed. The "
    "next token looks at what the cache holds, not at something else that was remembered.",
    reproduce="""
import torch; from gpt import GPTConfig; from cache import CachedAttention, KeyValueCache
layer, cache = CachedAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=3)), KeyValueCache()
layer(torch.randn(1, 4, 12), cache); old = cache.keys
layer(torch.randn(1, 2, 12), cache); print(cache.keys.shape, cache.values.shape)  # (1, 3, 6, 4) twice
print((cache.keys[:, :, :4] - old).abs().max())  # 0: what is old stays
""",
)
def test_kept(student, draw):
    attention = layer(student, "CachedAttention", draw)
    B = 2
    x = draw.normal(B, 7, C, dtype=torch.float64)
    cache, held = empty(student), []
    attend(attention, x[:, :4], cache)
    for _ in range(2):
        held.append((cache.keys, cache.values))
        if len(held) < 2:
            attend(attention, x[:, 4:6], cache)
    for side, name in enumerate(("keys", "values")):
        old, new = (
            expect.tensor(both[side], (B, H, S, D), what=f"KeyValueCache.{name}, S={S}")
            for both, S in zip(held, (4, 6), strict=True)
        )
        expect.same(old, new[:, :, :4], atol=F64, what=f"KeyValueCache.{name}[:, :, :4]")
        expect.varies(new[:, :, :1], new[:, :, 1:2], by=CHANGES, what=f"KeyValueCache.{name}[:, :, 0], [:, :, 1]")
    true = attend(attention, x[:, 6:], cache)
    for name in ("keys", "values"):
        other = empty(student)
        attend(attention, x[:, :6], other)
        setattr(other, name, draw.normal(B, H, 6, D, dtype=torch.float64))
        changed = attend(attention, x[:, 6:], other)
        expect.varies(true, changed, by=CHANGES, what=f"forward(x, cache), cache.{name} = torch.randn(...)")


def ordered(student, attention, x, start):
    """One pass over x from position `start` on, after making sure that the order of the first two tokens counts."""
    whole = attend(attention, x, empty(student, start))
    swapped = attend(attention, x[:, [1, 0, *range(2, x.size(1))]], empty(student, start))
    expect.varies(whole[:, -1], swapped[:, -1], by=CHANGES, what="forward(x)[:, -1], x[:, [1, 0, 2, ...]]")
    return whole


@check(
    "cache.forget",
    title="CachedRotaryAttention counts on when positions are forgotten",
    points=1,
    hint="What is kept was turned for its place in the text, so new queries and keys count from all that has been seen "
    "(`seen`), not from the number of keys that are left.",
    reproduce="""
import torch; from gpt import GPTConfig; from cache import CachedRotaryAttention, KeyValueCache
layer = CachedRotaryAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=3, position="rope")); x = torch.randn(1, 7, 12)
cache, late = KeyValueCache(), KeyValueCache(start=4)
layer(x[:, :6], cache); cache.forget(4)  # 2 keys are left, 6 positions have been seen
print((layer(x[:, 6:], cache) - layer(x[:, 4:], late)[:, -1:]).abs().max())  # 0, but for rounding
""",
)
def test_forget(student, draw):
    attention = layer(student, "CachedRotaryAttention", draw)
    x = draw.normal(2, 9, C, dtype=torch.float64)
    whole = ordered(student, attention, x[:, 4:], 4)
    cache = empty(student)
    attend(attention, x[:, :6], cache)
    cache.forget(4)
    later = torch.cat([attend(attention, x[:, 6:7], cache), attend(attention, x[:, 7:], cache)], dim=1)
    expect.same(whole[:, 2:], later, atol=TURNED, what="forward(x[:, 6:], cache), cache.forget(4)")


# A model


def model(student, reference, position, scale=10.0):
    """The student's model and the reference's without a cache, on the same weights, in float64.

    Weights of std 0.02 leave scores close to 0: they are scaled up until attention looks at some tokens more than at
    others.
    """
    plain = reference.rope.RotaryGPT if position == "rope" else reference.gpt.GPT
    ours = plain(reference.gpt.GPTConfig(**SIZES, position=position))
    state = {name: value * scale if value.dim() > 1 else value for name, value in ours.state_dict().items()}
    name = "CachedRotaryGPT" if position == "rope" else "CachedGPT"
    made = expect.handle(getattr(student.cache, name), what=name)
    theirs = expect.handle(made(student.gpt.GPTConfig(**SIZES, position=position)), what=f"{name}(config)")
    for one in (theirs, ours):
        one.load_state_dict(state)
        one.to(torch.float64)
        one.eval()
    return theirs, ours


def one_pass(gpt, idx, start=0):
    """The logits of model(idx, start=start)."""
    what = "model(idx)" if start == 0 else f"model(idx, start={start})"
    answer = expect.items(gpt(idx, start=start), 2, what=what)
    return expect.tensor(answer[0], (*idx.shape, V), what=f"{what}[0]")


def in_pieces(gpt, idx, lengths, start=0):
    """The logits of `read`, piece by piece, side by side."""
    caches = gpt.new_caches(start)
    pieces, t = [], 0
    for n in lengths:
        piece = gpt.read(idx[:, t : t + n], caches)
        pieces.append(expect.tensor(piece, (idx.size(0), n, V), what=f"read(idx[:, {t}:{t + n}], caches)"))
        t += n
    return torch.cat(pieces, dim=1)


def said(lengths, start=0):
    """How `in_pieces` is written in a message."""
    return f"read(idx, caches), T={','.join(map(str, lengths))}, new_caches({start})"


def reads_on(gpt, idx, whole, lengths, *, start=0, atol):
    """Read in pieces is read in one pass; and the last logits depend on the first character."""
    pieces = in_pieces(gpt, idx, lengths, start)
    expect.same(whole, pieces, atol=atol, what=f"model(idx), {said(lengths, start)}")
    other = idx.clone()
    other[:, 0] = (other[:, 0] + 1) % V
    moved = in_pieces(gpt, other, lengths, start)
    expect.varies(pieces[:, -1], moved[:, -1], by=CHANGES, what=f"{said(lengths, start)}[:, -1], idx[:, 0] += 1")


@check(
    "cache.one-pass",
    title="CachedGPT without a cache is the GPT of the course",
    points=1,
    hint="model(idx) goes through CachedAttention.forward without a cache: ordinary attention. Look at the scale, at "
    "the mask, at the order of q, k and v, and at proj.",
    reproduce="""
import torch; from gpt import GPT, GPTConfig; from cache import CachedGPT
config = GPTConfig(vocab_size=5, n_layer=2, n_embd=12, n_head=3); model, plain = CachedGPT(config), GPT(config)
model.load_state_dict(plain.state_dict()); idx = torch.tensor([[0, 1, 2, 3, 4]])
print((model(idx)[0] - plain(idx)[0]).abs().max())  # 0, but for rounding
""",
)
def test_one_pass(student, reference, draw):
    theirs, ours = model(student, reference, "learned")
    idx = draw.integers(0, V, 3, 7)
    expected = ours(idx)[0]
    expect.close(one_pass(theirs, idx), expected, atol=F64, what="model(idx)[0]")


@check(
    "cache.learned",
    title="CachedGPT: one token at a time gives the logits of one pass",
    points=2,
    hint="Each new token stands behind those that were read: it gets their number as its position, and each block goes "
    "on with its own cache. A model that starts again at position 0 is right for the first token only.",
    reproduce="""
import torch; from gpt import GPTConfig; from cache import CachedGPT
model = CachedGPT(GPTConfig(vocab_size=5, n_layer=2, n_embd=12, n_head=3)); idx = torch.tensor([[0, 1, 2, 3, 4]])
caches = model.new_caches()
steps = torch.cat([model.read(idx[:, t : t + 1], caches) for t in range(5)], dim=1)
print((model(idx)[0] - steps).abs().max())  # 0, but for rounding
""",
)
def test_learned(student, reference, draw):
    gpt, _ = model(student, reference, "learned")
    idx = draw.integers(0, V, 3, 4)
    steps = [1] * 4
    whole = one_pass(gpt, idx)
    reads_on(gpt, idx, whole, steps, atol=F64)
    alone = in_pieces(gpt, idx[1:2], steps)
    expect.same(whole[1:2], alone, atol=F64, what=f"model(idx)[1:2], {said(steps)}, idx[1:2]")


@check(
    "cache.pieces",
    title="CachedGPT: several tokens at once, after any number of others",
    points=1,
    hint="With 3 new tokens after 4 old ones there are 3 queries and 7 keys: each new token sees all old ones, and of "
    "the new ones itself and those before it. is_causal of scaled_dot_product_attention puts its triangle elsewhere.",
    reproduce="""
import torch; from gpt import GPTConfig; from cache import CachedGPT
model = CachedGPT(GPTConfig(vocab_size=5, n_layer=2, n_embd=12, n_head=3)); idx = torch.tensor([[0, 1, 2, 3, 4, 0, 1]])
caches = model.new_caches(); model.read(idx[:, :4], caches)
print((model(idx)[0][:, 4:] - model.read(idx[:, 4:], caches)).abs().max())  # 0, but for rounding
""",
)
def test_pieces(student, reference, draw):
    gpt, _ = model(student, reference, "learned")
    idx = draw.integers(0, V, 2, 9)
    whole = one_pass(gpt, idx)
    reads_on(gpt, idx, whole, (1, 3, 5), atol=F64)


@check(
    "cache.start",
    title="CachedGPT: a text begins anywhere, and ends with the table",
    points=1,
    hint="new_caches(start) says where the first character stands; the caches count on from there. The last row of the "
    "table is block_size - 1; what lies beyond is refused with a ValueError, as GPT.forward does.",
    reproduce="""
import torch; from gpt import GPTConfig; from cache import CachedGPT
model = CachedGPT(GPTConfig(vocab_size=5, n_layer=2, n_embd=12, n_head=3)); idx = torch.tensor([[0, 1, 2]])
caches = model.new_caches(start=9); model.read(idx[:, :2], caches)
print((model(idx, start=9)[0][:, 2:] - model.read(idx[:, 2:], caches)).abs().max())  # 0, but for rounding
""",
)
def test_start(student, reference, draw):
    gpt, _ = model(student, reference, "learned")
    idx = draw.integers(0, V, 2, 5)
    first, late = one_pass(gpt, idx), one_pass(gpt, idx, start=9)
    expect.varies(first, late, by=CHANGES, what="model(idx)[0], model(idx, start=9)[0]")
    reads_on(gpt, idx, late, (2, 1, 2), start=9, atol=F64)
    caches = gpt.new_caches(BLOCK - 4)
    expect.tensor(gpt.read(idx[:, :4], caches), (2, 4, V), what=f"read(idx, caches), new_caches({BLOCK - 4})")
    expect.raises(
        lambda: gpt.read(idx[:, 4:], caches), "ValueError", what=f"read(idx[:, 4:], caches), block_size={BLOCK}"
    )


@check(
    "cache.rope",
    title="CachedRotaryGPT: in pieces as in one pass, from any position",
    points=1,
    hint="A new token is turned for the position it has in the text, query and key alike, and once: keys in the cache "
    "have been turned already. A step that counts from 0 again has all distances wrong.",
    reproduce="""
import torch; from gpt import GPTConfig; from cache import CachedRotaryAttention, KeyValueCache
layer = CachedRotaryAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=3, position="rope"))
x, cache = torch.randn(1, 5, 12), KeyValueCache()
steps = torch.cat([layer(x[:, t : t + 1], cache) for t in range(5)], dim=1)
print((layer(x) - steps).abs().max())  # 0, but for rounding
""",
)
def test_rope(student, reference, draw):
    attention = layer(student, "CachedRotaryAttention", draw)
    x = draw.normal(2, 6, C, dtype=torch.float64)
    gpt, _ = model(student, reference, "rope")
    idx = draw.integers(0, V, 2, 3)
    wholes = []
    for start in (0, 30):
        cache, steps, t = empty(student, start), [], 0
        for n in (1, 1, 3, 1):
            steps.append(attend(attention, x[:, t : t + n], cache))
            t += n
        wholes.append(ordered(student, attention, x, start))
        what = f"forward(x, KeyValueCache({start})), forward(x, cache), T=1,1,3,1"
        expect.same(wholes[-1], torch.cat(steps, dim=1), atol=TURNED, what=what)
    # What is turned twice, or not at all, is as wrong in one pass as in pieces: distances show it.
    expect.same(*wholes, atol=TURNED, what="forward(x, KeyValueCache(0)), forward(x, KeyValueCache(30))")
    reads_on(gpt, idx, one_pass(gpt, idx), [1] * 3, atol=TURNED)
