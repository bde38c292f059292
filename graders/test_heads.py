"""Attention with several heads: `CausalSelfAttention` in gpt.py.

Helpers (`split_heads`, `attention_weights`, `merge_heads`) have fixed shapes and are judged directly; `forward` is
judged as a whole and need not call them. Letters: B batch, T time, C channels, H heads, D channels of one head. Sizes
within one check are all different where the lesson does not fix them, so that a swapped axis shows.

Tolerances. Manual attention, einsum, loops over heads and `scaled_dot_product_attention`, with masks of -inf, -1e9 and
-1e5, differ by at most 2e-15 in float64 and 2.4e-7 in float32 on these inputs (tests/test_tolerances.py measures it);
the smallest mistake that only values show, a scale of sqrt(C), differs by 0.01 and more.
"""

import torch

from harness.grading import check, expect

EXACT = 0.0  # moving numbers about does not round
F64 = 1e-10
F32 = 1e-5
CHANGES = 1e-6  # what must change does so by 1e-3 and more in a correct layer


def layer(gpt, n_embd, n_head, block_size=16, dropout=0.0):
    """A fresh attention layer."""
    config = gpt.GPTConfig(vocab_size=5, block_size=block_size, n_embd=n_embd, n_head=n_head, dropout=dropout)
    made = expect.handle(gpt.CausalSelfAttention, what="CausalSelfAttention")
    return expect.handle(made(config), what="CausalSelfAttention(config)")


def pair(student, reference, n_embd, n_head, block_size=16, dropout=0.0, dtype=torch.float64):
    """The student's layer and the reference's with the same weights, in eval mode."""
    ours = layer(reference.gpt, n_embd, n_head, block_size, dropout)
    theirs = layer(student.gpt, n_embd, n_head, block_size, dropout)
    theirs.load_state_dict(ours.state_dict())
    for one in (theirs, ours):
        one.to(dtype)
        one.eval()
    return theirs, ours


def attends(attention, x, what="forward(x)"):
    """The output for x, after making sure that the last position's depends on the first token."""
    y = expect.tensor(attention(x), x.shape, what=what)
    other = x.clone()
    other[:, 0] += 1.0
    moved = expect.tensor(attention(other), x.shape, what=what)
    expect.varies(y[:, -1], moved[:, -1], by=CHANGES, what=f"{what}[:, -1], x[:, 0] += 1")
    return y


# __init__


@check(
    "heads.parameters",
    title="3168 parameters in qkv and 1056 in proj, whatever the number of heads",
    points=4,
    hint="qkv maps C channels to 3C and proj maps C to C, both with bias. More heads cut the same channels into "
    "narrower pieces: the number of heads appears in no layer's size.",
    reproduce="""
from gpt import CausalSelfAttention, GPTConfig
for H in (1, 2, 4, 8):
    layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=32, n_head=H))
    print(H, *(sum(p.numel() for p in part.parameters()) for part in (layer.qkv, layer.proj)))  # 3168 1056
""",
)
def test_parameters(student):
    for n_head in (1, 2, 4, 8):
        attention = layer(student.gpt, 32, n_head)
        for name, count in (("qkv", 3168), ("proj", 1056)):
            state = expect.handle(getattr(attention, name), what=name).state_dict()
            what = f"sum(p.numel() for p in {name}.parameters()), n_head={n_head}"
            expect.true(
                isinstance(state, dict),
                "heads.parameters.uncountable",
                "{what} cannot be counted.",
                what=what,
                expected=str(count),
                actual=expect.describe(state),
            )
            expect.equal(sum(value.numel() for value in state.values()), count, what=what)


@check(
    "heads.divides",
    title="A clear error when the heads do not divide the channels",
    points=3,
    hint="30 channels cannot be cut into 4 equal heads. Refuse with a ValueError that names both numbers, before "
    "anything is built: without it the mistake shows up much later, as a puzzling shape.",
    reproduce="""
from gpt import CausalSelfAttention, GPTConfig
CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=32, n_head=4))  # fine: 4 heads of 8 channels
try: CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=30, n_head=4))
except ValueError as error: print(error)  # should name 30 and 4
""",
)
def test_divides(student):
    for n_embd, n_head in ((30, 4), (32, 5)):
        layer(student.gpt, n_embd * n_head, n_head)  # sizes that divide are no reason to refuse
        expect.raises(
            lambda n_embd=n_embd, n_head=n_head: layer(student.gpt, n_embd, n_head),
            "ValueError",
            mentions=(n_embd, n_head),
            what=f"CausalSelfAttention(config), n_embd={n_embd}, n_head={n_head}",
        )


# split_heads and merge_heads


@check(
    "heads.split-lesson",
    title="split_heads: (1, 5, 32) becomes (1, 4, 5, 8)",
    points=2,
    hint="Four heads of 8 channels each. The head axis stands before time, and every head keeps its own 8 "
    "neighbouring channels at all 5 positions.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=32, n_head=4))
x = torch.arange(5 * 32.0).view(1, 5, 32)
print(layer.split_heads(x).shape)  # (1, 4, 5, 8)
print(layer.split_heads(x)[0, 1, 0])  # head 1 at position 0: channels 8 to 15
""",
)
def test_split_lesson(student, reference, draw):
    theirs, ours = layer(student.gpt, 32, 4), layer(reference.gpt, 32, 4)
    x = draw.normal(1, 5, 32)
    expect.close(theirs.split_heads(x), ours.split_heads(x), atol=EXACT, what="split_heads(x)")


@check(
    "heads.split",
    title="split_heads cuts channels, not time, at any size",
    points=4,
    hint="The right shape is not enough: a view straight to (B, H, T, D) has it too, and mixes positions and "
    "channels. First cut the channels in two axes where they are, then move the head axis.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=6, n_head=2))
x = torch.arange(4 * 6.0).view(1, 4, 6)  # row t holds 6t ... 6t + 5
print(layer.split_heads(x)[0, 0])  # head 0: the first 3 numbers of each row, 0 1 2 / 6 7 8 / 12 13 14 / 18 19 20
""",
)
def test_split(student, reference, draw):
    for B, T, H, D in ((2, 3, 5, 4), (3, 7, 2, 5), (2, 1, 3, 4)):
        theirs, ours = layer(student.gpt, H * D, H), layer(reference.gpt, H * D, H)
        x = draw.normal(B, T, H * D, dtype=torch.float64)
        expect.close(theirs.split_heads(x), ours.split_heads(x), atol=EXACT, what=f"split_heads(x), n_head={H}")


@check(
    "heads.merge",
    title="merge_heads puts the heads side by side again",
    points=4,
    hint="Merging is splitting backwards: the time axis must be in front of the heads again before two axes become "
    "one. A view straight away has the right shape, and mixes positions.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=6, n_head=2))
x = torch.arange(2 * 4 * 3.0).view(1, 2, 4, 3)  # 2 heads, 4 positions, 3 channels each
print(layer.merge_heads(x)[0, 0])  # position 0: 0 1 2 of head 0, then 12 13 14 of head 1
""",
)
def test_merge(student, reference, draw):
    for B, T, H, D in ((1, 5, 4, 8), (2, 3, 5, 4), (3, 7, 2, 5)):
        theirs, ours = layer(student.gpt, H * D, H), layer(reference.gpt, H * D, H)
        x = draw.normal(B, H, T, D, dtype=torch.float64)
        expect.close(theirs.merge_heads(x), ours.merge_heads(x), atol=EXACT, what=f"merge_heads(x), n_head={H}")


# attention_weights


def weights(attention, q, k):
    """attention_weights(q, k), after making sure that queries and keys matter, and nothing else does."""
    shape = (*q.shape[:3], q.shape[2])
    what = "attention_weights(q, k)"
    w = expect.tensor(attention.attention_weights(q, k), shape, what=what)
    expect.same(w, attention.attention_weights(q, k), atol=EXACT, what=f"{what} #2")
    for name, other in (("q", (q.flip(-1), k)), ("k", (q, k.flip(-1)))):
        moved = expect.tensor(attention.attention_weights(*other), shape, what=what)
        expect.varies(w, moved, by=CHANGES, what=f"{what}, {name}.flip(-1)")
    return w


@check(
    "heads.weights-rows",
    title="attention_weights: each of the 5 rows in 4 tables sums to 1",
    points=3,
    hint="Each query shares out a weight of 1 over the keys it may see: softmax runs along the last axis, and the mask "
    "comes before it. A mask after softmax takes weight away that is then missing.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=32, n_head=4))
q, k = torch.randn(2, 1, 4, 5, 8)
print(layer.attention_weights(q, k).shape)  # (1, 4, 5, 5)
print(layer.attention_weights(q, k).sum(-1))  # all 1
""",
)
def test_weights_rows(student, draw):
    attention = layer(student.gpt, 32, 4)
    q, k = draw.normal(1, 4, 5, 8, dtype=torch.float64), draw.normal(1, 4, 5, 8, dtype=torch.float64)
    w = weights(attention, q, k)
    expect.close(w.sum(-1), torch.ones(1, 4, 5, dtype=torch.float64), atol=F64, what="attention_weights(q, k).sum(-1)")


@check(
    "heads.weights-future",
    title="attention_weights: nothing looks into the future",
    points=3,
    hint="Row t may see the keys 0 to t: itself and what comes before. Everything right of the diagonal must be 0 "
    "after softmax, so it must be minus infinity before.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=32, n_head=4))
q, k = torch.randn(2, 1, 4, 5, 8)
print(layer.attention_weights(q, k)[0, 0])  # zeros right of the diagonal, and only there
""",
)
def test_weights_future(student, draw):
    attention = layer(student.gpt, 32, 4)
    q, k = draw.normal(1, 4, 5, 8, dtype=torch.float64), draw.normal(1, 4, 5, 8, dtype=torch.float64)
    w = weights(attention, q, k)
    # Fills of -1e5 and lower all underflow to an exact 0.
    expect.zero(w.triu(1), atol=1e-12, what="attention_weights(q, k).triu(1)")
    seen = w[torch.ones(5, 5, dtype=torch.bool).tril().expand_as(w)]
    expect.true(
        bool((seen > 0).all()),
        "heads.weights-future.hides",
        "{what} hides positions that a row may see, itself included.",
        what="attention_weights(q, k).tril()",
        expected="> 0",
        actual=f"<= 0: {int((seen <= 0).sum())} / {seen.numel()}",
    )


@check(
    "heads.weights",
    title="attention_weights: softmax of q·k over the square root of D",
    points=5,
    hint="Look at the scale first: the scores are divided (not multiplied) by the square root of the channels of one "
    "head, D, not of all channels, C.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=8, n_head=2))
q = torch.ones(1, 2, 2, 4); k = torch.stack((q[0, :, 0], 2 * q[0, :, 0]), 1)[None]
print(layer.attention_weights(q, k)[0, 0, 1])  # q.k is 4 and 8; halved, 2 and 4; softmax: 0.1192 0.8808
""",
)
def test_weights(student, reference, draw):
    for B, T, H, D in ((1, 5, 4, 8), (2, 7, 3, 5)):
        theirs, ours = layer(student.gpt, H * D, H), layer(reference.gpt, H * D, H)
        q, k = draw.normal(B, H, T, D, dtype=torch.float64), draw.normal(B, H, T, D, dtype=torch.float64)
        expect.close(
            theirs.attention_weights(q, k), ours.attention_weights(q, k), atol=F64, what="attention_weights(q, k)"
        )


# forward


@check(
    "heads.forward",
    title="forward gives the reference's output on the same weights",
    points=8,
    hint="Go through the stages in order: q, k, v are the first, second and third third of qkv's output; the weights "
    "are applied to v; the merged heads go through proj.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=3)); x = torch.randn(1, 1, 12)
v = layer.qkv(x)[..., 24:]  # a single token attends to itself alone,
print((layer(x) - layer.proj(v)).abs().max())  # so its output is proj(v): 0, but for rounding
""",
)
def test_forward(student, reference, draw):
    for B, T, H, D in ((2, 7, 3, 4), (1, 5, 4, 8), (3, 6, 1, 10)):
        theirs, ours = pair(student, reference, H * D, H)
        x = draw.normal(B, T, H * D, dtype=torch.float64)
        expect.close(theirs(x), ours(x), atol=F64, what=f"forward(x), n_head={H}")


@check(
    "heads.constant-tokens",
    title="forward: equal tokens get proj(v), however attention is shared out",
    points=2,
    hint="When all tokens are equal, all values are, and any weights that sum to 1 give v back: the output must be "
    "proj(v). If it is not, look at what the weights are applied to, and at proj.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=3))
x = torch.randn(12).expand(1, 5, 12)
print((layer(x) - layer.proj(layer.qkv(x)[..., 24:])).abs().max())  # 0, but for rounding
""",
)
def test_constant_tokens(student, reference, draw):
    C, H = 12, 3
    theirs, ours = pair(student, reference, C, H)
    state = ours.state_dict()
    x = draw.normal(2, 1, C, dtype=torch.float64).expand(2, 5, C).contiguous()
    v = x @ state["qkv.weight"][2 * C :].T + state["qkv.bias"][2 * C :]
    expected = v @ state["proj.weight"].T + state["proj.bias"]
    expect.close(theirs(x), expected, atol=F64, what="forward(x), x[:, t] == x[:, 0]")


@check(
    "heads.causal",
    title="forward: what comes later changes nothing earlier",
    points=3,
    hint="A position may depend on itself and on the past only. If a later token changes an earlier output, the mask "
    "is missing, turned around or applied on the wrong axis, or the heads were put together across time.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=3)).eval()
x = torch.randn(1, 6, 12); y = x.clone(); y[:, 4:] += 1
print((layer(x) - layer(y)).abs().amax((0, 2)))  # zeros at positions 0 to 3, then not
""",
)
def test_causal(student, reference, draw):
    theirs, _ = pair(student, reference, 12, 3)
    x = draw.normal(2, 6, 12, dtype=torch.float64)
    y = attends(theirs, x)
    for t in range(1, 6):
        later = x.clone()
        later[:, t:] = draw.normal(2, 6 - t, 12, dtype=torch.float64)
        changed = expect.tensor(theirs(later), x.shape, what="forward(x)")
        expect.same(y[:, :t], changed[:, :t], atol=F64, what=f"forward(x)[:, :{t}], x[:, {t}:] = y[:, {t}:]")


@check(
    "heads.prefix",
    title="forward: the first 4 tokens alone give what they give within 6",
    points=2,
    hint="The output at a position is the same whether or not more text follows. If it is not, look for something that "
    "depends on the length: the mask, the scale, a view.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=3)).eval()
x = torch.randn(1, 6, 12)
print((layer(x)[:, :4] - layer(x[:, :4])).abs().max())  # 0, but for rounding
""",
)
def test_prefix(student, reference, draw):
    theirs, _ = pair(student, reference, 12, 3)
    x = draw.normal(2, 6, 12, dtype=torch.float64)
    y = attends(theirs, x)
    for t in (1, 2, 4):
        alone = expect.tensor(theirs(x[:, :t]), (2, t, 12), what=f"forward(x[:, :{t}])")
        expect.same(y[:, :t], alone, atol=F64, what=f"forward(x)[:, :{t}], forward(x[:, :{t}])")


@check(
    "heads.independent",
    title="forward: heads do not disturb each other",
    points=2,
    hint="Each head has its own q, k and v. With proj as the identity, head h's output stands in channels h·D to "
    "h·D + D - 1, and changing another head's queries leaves it alone.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=3)); x = torch.randn(1, 5, 12)
with torch.no_grad():
    layer.proj.weight.copy_(torch.eye(12)); a = layer(x); layer.qkv.weight[:4] *= 3; b = layer(x)
print((a - b).abs().amax((0, 1)))  # channels 0 to 3 (head 0) change, the others do not
""",
)
def test_independent(student, reference, draw):
    C, H, D = 12, 3, 4
    theirs, ours = pair(student, reference, C, H)
    state = dict(ours.state_dict())
    state["proj.weight"], state["proj.bias"] = torch.eye(C, dtype=torch.float64), torch.zeros(C, dtype=torch.float64)
    x = draw.normal(2, 5, C, dtype=torch.float64)
    theirs.load_state_dict(state)
    before = attends(theirs, x)
    for head in range(H):
        scaled = state["qkv.weight"].clone()
        scaled[head * D : head * D + D] *= 3
        theirs.load_state_dict({**state, "qkv.weight": scaled})
        after = expect.tensor(theirs(x), x.shape, what="forward(x)")
        own = slice(head * D, head * D + D)
        change = f"qkv.weight[{own.start}:{own.stop}] *= 3"
        expect.varies(
            before[..., own],
            after[..., own],
            by=CHANGES,
            what=f"forward(x)[..., {own.start}:{own.stop}], {change}",
        )
        others = [c for c in range(C) if not head * D <= c < head * D + D]
        expect.same(
            before[..., others],
            after[..., others],
            atol=F64,
            what=f"forward(x)[..., others], {change}",
        )


@check(
    "heads.batch",
    title="forward: sentences of a batch do not see each other",
    points=1,
    hint="Each sentence alone must give what it gives within the batch. A view that confuses the batch axis with "
    "another mixes sentences.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=3)).eval()
x = torch.randn(4, 5, 12)
print((layer(x)[1:2] - layer(x[1:2])).abs().max())  # 0, but for rounding
""",
)
def test_batch(student, reference, draw):
    theirs, _ = pair(student, reference, 12, 3)
    x = draw.normal(4, 5, 12, dtype=torch.float64)
    y = attends(theirs, x)
    for row in range(4):
        alone = expect.tensor(theirs(x[row : row + 1]), (1, 5, 12), what=f"forward(x[{row}:{row + 1}])")
        expect.same(y[row : row + 1], alone, atol=F64, what=f"forward(x)[{row}:{row + 1}], forward(x[{row}:{row + 1}])")


@check(
    "heads.lengths",
    title="forward works at every length from 1 to block_size, and at 128",
    points=3,
    hint="The mask must fit the text at hand, T x T, not block_size x block_size; and one token (T = 1) is a text.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, block_size=16, n_embd=12, n_head=3))
for T in (1, 2, 15, 16): print(T, layer(torch.randn(1, T, 12)).shape)  # (1, T, 12)
""",
)
def test_lengths(student, reference, draw):
    theirs, ours = pair(student, reference, 12, 3, block_size=16)
    for T in range(1, 17):
        x = draw.normal(2, T, 12, dtype=torch.float64)
        expect.close(theirs(x), ours(x), atol=F64, what=f"forward(x), T={T}")
    theirs, ours = pair(student, reference, 8, 2, block_size=128, dtype=torch.float32)
    x = draw.normal(1, 128, 8)
    expect.close(theirs(x), ours(x), atol=F32, what="forward(x), T=128")


@check(
    "heads.eval",
    title="forward: no dropout in eval mode",
    points=1,
    hint="In eval mode the same input gives the same output. Use the layer's own nn.Dropout modules; a function such "
    "as F.dropout or scaled_dot_product_attention must be told when not to drop.",
    reproduce="""
import torch; from gpt import CausalSelfAttention, GPTConfig
layer = CausalSelfAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=3, dropout=0.4)).eval()
x = torch.randn(1, 5, 12)
print((layer(x) - layer(x)).abs().max())  # exactly 0
""",
)
def test_eval(student, reference, draw):
    theirs, ours = pair(student, reference, 12, 3, dropout=0.4)
    x = draw.normal(2, 6, 12, dtype=torch.float64)
    y = attends(theirs, x)
    again = expect.tensor(theirs(x), x.shape, what="forward(x)")
    expect.same(y, again, atol=EXACT, what="forward(x) #2, training=False")
    expect.close(y, ours(x), atol=F64, what="forward(x), training=False")
