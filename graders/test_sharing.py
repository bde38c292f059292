"""Heads that share keys and values: `share_heads`, `cache_numbers`, `GroupedQueryAttention` in sharing.py.

Nothing here uses the student's gpt.py: a mistake in heads costs nothing again. Letters: B batch, T time, C channels,
H query heads, G heads of keys and values, D channels of one head; all different within a check where they can be.

Tolerances. As for ordinary attention (test_heads.py): right forms differ by at most 2e-15 in float64 on these inputs
(tests/test_tolerances.py measures it), the smallest mistake, heads tiled, by 1 and more.
"""

import torch

from harness.grading import check, expect

EXACT = 0.0  # moving numbers about does not round
F64 = 1e-10
CHANGES = 1e-6  # what must change does so by 0.1 and more in a correct layer


def drawn(draw, H, G, D):
    """Random weights of GroupedQueryAttention, in float64."""
    C = H * D
    wide = {"q": C, "k": G * D, "v": G * D, "proj": C}
    state = {}
    for name, out in wide.items():
        state[f"{name}.weight"] = draw.normal(out, C, dtype=torch.float64, scale=0.5)
        state[f"{name}.bias"] = draw.normal(out, dtype=torch.float64, scale=0.5)
    return state


def layer(sharing, H, G, D, state=None):
    """GroupedQueryAttention(H * D, H, G); in float64, with these weights if there are any."""
    what = f"GroupedQueryAttention({H * D}, {H}, {G})"
    made = expect.handle(sharing.GroupedQueryAttention, what="GroupedQueryAttention")
    attention = expect.handle(made(H * D, H, G), what=what)
    if state is not None:
        attention.to(torch.float64)
        attention.load_state_dict(state)
        attention.eval()
    return attention


# __init__


@check(
    "sharing.divides",
    title="A clear error when the heads cannot be shared out",
    points=1,
    hint="4 query heads cannot be cut into 3 equal groups, nor 30 channels into 4 heads. Refuse each with a ValueError "
    "that names the two numbers, and think of 0 heads and of more heads of keys than of queries.",
    reproduce="""
from sharing import GroupedQueryAttention
for numbers in ((32, 4, 2), (32, 4, 3), (30, 4, 2)):  # the first is fine
    try: print(GroupedQueryAttention(*numbers).n_kv_head)
    except ValueError as error: print(error)  # should name 4 and 3, then 30 and 4
""",
)
def test_divides(student):
    layer(student.sharing, 4, 2, 8)  # numbers that divide are no reason to refuse
    wrong = (((32, 4, 3), (4, 3)), ((32, 4, 8), (4, 8)), ((30, 4, 2), (30, 4)), ((32, 4, 0), (4, 0)))
    for numbers, mentions in wrong:
        expect.raises(
            lambda numbers=numbers: student.sharing.GroupedQueryAttention(*numbers),
            "ValueError",
            mentions=mentions,
            what=f"GroupedQueryAttention{numbers}",
        )


@check(
    "sharing.parameters",
    title="Fewer heads of keys and values, fewer parameters in k and v",
    points=1,
    hint="k and v give D channels for each of the n_kv_head heads, D = n_embd / n_head. q and proj stay as wide as "
    "they are in ordinary attention.",
    reproduce="""
from sharing import GroupedQueryAttention
for G in (4, 2, 1):
    layer = GroupedQueryAttention(32, 4, G)
    print(G, *(sum(p.numel() for p in part.parameters()) for part in (layer.q, layer.k, layer.v, layer.proj)))
# 1056 for q and proj; for k and v 1056, 528, 264
""",
)
def test_parameters(student):
    H, D = 4, 8
    for G in (4, 2, 1):
        state = layer(student.sharing, H, G, D).state_dict()
        what = f"GroupedQueryAttention(32, 4, {G}).state_dict()"
        expect.equal(type(state).__name__, "dict", what=f"type({what})")
        counts = {name: sum(value.numel() for key, value in state.items() if key.startswith(f"{name}.")) for name in
                  ("q", "k", "v", "proj")}  # fmt: skip
        expected = {"q": 1056, "k": 264 * G, "v": 264 * G, "proj": 1056}
        for name, count in expected.items():
            expect.equal(counts[name], count, what=f"sum(p.numel() for p in {name}.parameters()), n_kv_head={G}")
        expect.equal(
            sum(value.numel() for value in state.values()), sum(expected.values()), what=f"{what}, n_kv_head={G}"
        )


# share_heads


@check(
    "sharing.groups",
    title="share_heads: neighbouring query heads share keys and values",
    points=2,
    hint="Heads 0 and 1 look at head 0, heads 2 and 3 at head 1: each head is repeated where it stands, 0 0 1 1. The "
    "whole list repeated, 0 1 0 1, is another layout, and weights trained for one do not fit the other.",
    reproduce="""
import torch; from sharing import share_heads
x = torch.tensor([10.0, 20.0]).view(1, 2, 1, 1)  # two heads of one number
print(share_heads(x, 6).flatten().tolist())  # 10 10 10 20 20 20
""",
)
def test_groups(student, draw):
    function = expect.handle(student.sharing.share_heads, what="share_heads")
    for B, H, G, T, D in ((2, 6, 2, 5, 4), (1, 6, 3, 7, 5), (3, 4, 4, 2, 5), (2, 3, 1, 4, 5)):
        x = draw.normal(B, G, T, D, dtype=torch.float64)
        expected = x[:, torch.arange(H) // (H // G)]
        expect.close(function(x, H), expected, atol=EXACT, what=f"share_heads(x, {H}), x.shape={tuple(x.shape)}")


# What a cache keeps


@check(
    "sharing.cache",
    title="keys_and_values, cache_numbers: a cache keeps nothing twice",
    points=2,
    hint="A cache that keeps the repeated heads saves nothing: keys_and_values gives n_kv_head heads, each with D "
    "neighbouring channels. cache_numbers counts keys and values, two tensors a layer.",
    reproduce="""
import torch; from sharing import GroupedQueryAttention, cache_numbers
print(cache_numbers(n_layer=1, n_kv_head=2, head_dim=3, length=5))  # 60
k, v = GroupedQueryAttention(12, 4, 2).keys_and_values(torch.randn(1, 5, 12))
print(k.shape, k.numel() + v.numel())  # (1, 2, 5, 3), 60
""",
)
def test_cache(student, reference, draw):
    # First, because it costs nothing: mistakes in it are told apart before a layer is built.
    count = expect.handle(student.sharing.cache_numbers, what="cache_numbers")
    for numbers in ((3, 4, 8, 7), (3, 1, 8, 7), (32, 8, 128, 4096)):
        expected = 2 * numbers[0] * numbers[1] * numbers[2] * numbers[3]
        expect.equal(count(*numbers), expected, what=f"cache_numbers{numbers}")
    for B, T, H, G, D in ((2, 7, 6, 2, 5), (1, 4, 3, 1, 6), (2, 3, 4, 4, 5)):
        state = drawn(draw, H, G, D)
        x = draw.normal(B, T, H * D, dtype=torch.float64)
        ours = layer(reference.sharing, H, G, D, state).keys_and_values(x)
        theirs = expect.items(
            layer(student.sharing, H, G, D, state).keys_and_values(x), 2, what=f"keys_and_values(x), n_kv_head={G}"
        )
        for i in range(2):
            expect.close(theirs[i], ours[i], atol=F64, what=f"keys_and_values(x)[{i}], n_head={H}, n_kv_head={G}")


# forward


@check(
    "sharing.forward",
    title="forward, for n_kv_head from n_head down to 1",
    points=2,
    hint="Queries are cut into n_head heads, keys and values into n_kv_head, which are then shared out. If only some "
    "of the numbers come out right, look at which head goes with which group, and at how heads are merged.",
    reproduce="""
import torch; from sharing import GroupedQueryAttention
layer = GroupedQueryAttention(12, 4, 1); x = torch.randn(1, 1, 12)
v = layer.v(x).repeat(1, 1, 4)  # a single token attends to itself alone, and all four heads see the same value,
print((layer(x) - layer.proj(v)).abs().max())  # so its output is proj of that: 0, but for rounding
""",
)
def test_forward(student, reference, draw):
    for B, T, H, G, D in ((2, 7, 6, 6, 4), (1, 5, 6, 3, 4), (3, 4, 6, 2, 5), (2, 7, 4, 1, 5)):
        state = drawn(draw, H, G, D)
        x = draw.normal(B, T, H * D, dtype=torch.float64)
        ours, theirs = layer(reference.sharing, H, G, D, state), layer(student.sharing, H, G, D, state)
        expect.close(theirs(x), ours(x), atol=F64, what=f"forward(x), n_head={H}, n_kv_head={G}")


@check(
    "sharing.ordinary",
    title="With n_kv_head = n_head it is ordinary multi-head attention",
    points=1,
    hint="With as many heads of keys and values as of queries nothing is shared, and the same weights must give what "
    "ordinary attention gives.",
    reproduce="""
import torch; from sharing import GroupedQueryAttention
layer = GroupedQueryAttention(12, 3, 3); x = torch.randn(12).expand(1, 5, 12)
print((layer(x) - layer.proj(layer.v(x))).abs().max())  # equal tokens get proj(v): 0, but for rounding
""",
)
def test_ordinary(student, reference, draw):
    B, T, H, D = 2, 7, 3, 4
    state = drawn(draw, H, H, D)
    qkv = {f"qkv.{part}": torch.cat([state[f"{name}.{part}"] for name in "qkv"]) for part in ("weight", "bias")}
    proj = {name: value for name, value in state.items() if name.startswith("proj.")}
    ordinary = reference.gpt.CausalSelfAttention(reference.gpt.GPTConfig(vocab_size=5, n_embd=H * D, n_head=H))
    ordinary.to(torch.float64)
    ordinary.load_state_dict({**qkv, **proj})
    x = draw.normal(B, T, H * D, dtype=torch.float64)
    expected = ordinary(x)
    expect.close(
        layer(student.sharing, H, H, D, state)(x), expected, atol=F64, what=f"forward(x), n_head=n_kv_head={H}"
    )


@check(
    "sharing.perturb",
    title="Keys and values reach the query heads of their group only",
    points=1,
    hint="With proj as the identity, head h's output stands in channels h·D to h·D + D - 1. Changing head g of v must "
    "change the outputs of group g's neighbours and leave the others alone.",
    reproduce="""
import torch; from sharing import GroupedQueryAttention
layer = GroupedQueryAttention(12, 4, 2); x = torch.randn(1, 5, 12)
with torch.no_grad():
    layer.proj.weight.copy_(torch.eye(12)); a = layer(x); layer.v.weight[:3] *= 3; b = layer(x)
print((a - b).abs().amax((0, 1)))  # channels 0 to 5 (heads 0 and 1) change, the others do not
""",
)
def test_perturb(student, draw):
    H, G, D = 6, 3, 2
    C, width = H * D, H // G * D
    state = drawn(draw, H, G, D)
    state["proj.weight"], state["proj.bias"] = torch.eye(C, dtype=torch.float64), torch.zeros(C, dtype=torch.float64)
    x = draw.normal(2, 5, C, dtype=torch.float64)
    attention = layer(student.sharing, H, G, D, state)
    before = expect.tensor(attention(x), x.shape, what="forward(x)")
    for g in range(G):
        scaled = state["v.weight"].clone()
        scaled[g * D : g * D + D] *= 3
        attention.load_state_dict({**state, "v.weight": scaled})
        after = expect.tensor(attention(x), x.shape, what="forward(x)")
        own = slice(g * width, g * width + width)
        change = f"v.weight[{g * D}:{g * D + D}] *= 3"
        for first in range(own.start, own.stop, D):
            head = slice(first, first + D)
            what = f"forward(x)[..., {first}:{first + D}], {change}"
            expect.varies(before[..., head], after[..., head], by=CHANGES, what=what)
        others = [c for c in range(C) if not own.start <= c < own.stop]
        expect.same(before[..., others], after[..., others], atol=F64, what=f"forward(x)[..., others], {change}")
