"""Rotary position embedding: `rope_frequencies`, `apply_rope`, `RotaryCausalSelfAttention`, `RotaryGPT`.

Which channels form a pair is never a mistake, nor is the direction of the turn, a fixed permutation of the channels
that queries and keys share, nor a count from 1: only dot products of turned queries and keys are ever seen. So nothing
is compared with the reference channel by channel. Let F(m) be the matrix of apply_rope at position m and
G(m) = F(m) F(0)^T: in all these forms F is orthogonal, G(a) G(b) = G(a + b), and the eigenvalues of G(m) are
exp(+-i m base^(-2i/D)).

Tolerances. Angles, cosines and sines may be computed in float32 whatever the dtype of x, except where the docstring
asks for more (rope.float64). Measured over D 2 ... 128, bases 100 ... 500000 and three formulas of the frequencies
(tests/test_tolerances.py measures again): frequencies 7e-7 relative; products of basis vectors 9e-8; eigen-angles 7e-6
up to position 127 and 2.8e-4 up to 4096. In float64: 2e-15, 2e-16, 3e-14, 7e-13. Angles in bfloat16 or float16 are
wrong by 1e-3 at position 31 and by more than 1 at 4096, any wrong base or exponent by 0.05 and more.
"""

import math

import torch

from harness.grading import check, expect

BASE = 10000.0
RATIO = 5e-6  # of frequencies, relative
LENGTHS = 1e-6  # dot products of turned unit vectors at one position
ANGLES = 1e-4  # eigen-angles in radians, and dot products of unit vectors across positions, up to position 127
FAR = 2e-3  # the same, up to position 4096
F64 = 1e-9
CHANGES = 1e-3  # what must change does so by 1e-2 and more in correct answers
SEEN = 1e-5  # rounding is 1e-7; a turn 57 times too small, in degrees, which is another check's matter, is above it
F32 = torch.float32


# Frequencies


def frequencies(student, head_dim, *base):
    """rope_frequencies(head_dim, base): (D / 2,) in float64."""
    function = expect.handle(student.rope.rope_frequencies, what="rope_frequencies")
    what = f"rope_frequencies({', '.join(f'{value:g}' for value in (head_dim, *base))})"
    return expect.tensor(function(head_dim, *base), (head_dim // 2,), what=what).double()


@check(
    "rope.frequencies",
    title="rope_frequencies: pair i turns by base^(-2i/D) from one position to the next",
    points=3,
    hint="The exponent runs 0, 2/D, 4/D, ... up to just below 1. Does i count pairs (then 2i) or channels in steps of "
    "two (then it is 2i already)? And is the base the one that was handed in?",
    reproduce="""
from rope import rope_frequencies
print(rope_frequencies(4, base=100.0))  # 1 and 0.1
print(rope_frequencies(8))  # 1, 0.1, 0.01, 0.001
""",
)
def test_frequencies(student, reference):
    for head_dim, *base in ((8,), (4, 100.0), (2, BASE), (10, 500000.0), (64, BASE)):
        expected = reference.rope.rope_frequencies(head_dim, *base)
        # Neither the order of the pairs nor the direction of the turn matters.
        got = frequencies(student, head_dim, *base).abs().sort(descending=True).values
        what = f"rope_frequencies({head_dim}, base={(base or [BASE])[0]:g}) / base ** (-2 * i / D)"
        expect.close(got / expected, torch.ones_like(expected), atol=RATIO, what=what)


@check(
    "rope.odd",
    title="A clear error when a head has no pairs",
    points=1,
    hint="5 channels cannot be cut into pairs. Refuse an odd head_dim, and one below 2, with a ValueError that names "
    "the number: without it the mistake shows up later, as a puzzling shape.",
    reproduce="""
from rope import rope_frequencies
print(rope_frequencies(6).shape)  # (3,): 6 channels are fine
try: rope_frequencies(5)
except ValueError as error: print(error)  # should name 5
""",
)
def test_odd(student):
    for head_dim in (5, 13, 0):
        even = frequencies(student, 6)  # an even number is no reason to refuse
        expect.number(even.abs().max(), 1.0, atol=RATIO, what="rope_frequencies(6).abs().max()")
        expect.varies(even[:1], even[1:2], by=CHANGES, what="rope_frequencies(6)[0], rope_frequencies(6)[1]")
        expect.raises(
            lambda head_dim=head_dim: student.rope.rope_frequencies(head_dim),
            "ValueError",
            mentions=(head_dim,),
            what=f"rope_frequencies({head_dim})",
        )


# apply_rope


def turn(student, x, positions, *base):
    """apply_rope(x, positions, base), of the shape of x, in float64."""
    function = expect.handle(student.rope.apply_rope, what="apply_rope")
    return expect.tensor(function(x, positions, *base), x.shape, what="apply_rope(x, positions)").double()


def turned(student, x, positions):
    """apply_rope(x, positions), after making sure that positions matter, and nothing but the arguments."""
    y = turn(student, x, positions)
    again = turn(student, x, positions)
    expect.same(y, again, atol=LENGTHS, what="apply_rope(x, positions) #2")
    moved = turn(student, x, positions + 1)
    expect.varies(y, moved, by=SEEN, what="apply_rope(x, positions), positions += 1")
    return y


def matrices(student, D, positions, *base, dtype=torch.float64):
    """F, (T, D, D): column i at time t is what becomes of the basis vector e_i at positions[t].

    Makes sure that lengths and angles are kept, and that the last position differs from the first.
    """
    positions = torch.as_tensor(positions)
    x = torch.eye(D, dtype=dtype)[:, None].expand(D, len(positions), D).contiguous()  # (D, T, D)
    y = turn(student, x, positions, *base)
    again = turn(student, x, positions, *base)
    expect.same(y, again, atol=LENGTHS, what="apply_rope(x, positions) #2")
    F = y.permute(1, 2, 0)
    what = "F.T @ F, F = apply_rope(torch.eye(D), positions)"
    expect.close(F.mT @ F, torch.eye(D, dtype=torch.float64).expand_as(F), atol=LENGTHS, what=what)
    expect.varies(F[0], F[-1], by=CHANGES, what="apply_rope(x, positions), positions[0], positions[-1]")
    return F


def spectrum(student, D, positions, *base, dtype=torch.float64, atol):
    """Compare the eigen-angles of G(m) with +-m base^(-2i/D). `positions` begins with 0."""
    F = matrices(student, D, positions, *base, dtype=dtype)
    # |angle| in [0, pi] is continuous in the eigenvalue, so sorting pairs each angle with its own.
    got = torch.linalg.eigvals(F[1:] @ F[0].T).angle().abs().sort(-1).values  # (T - 1, D)
    b = base[0] if base else BASE
    each = b ** (-torch.arange(0, D, 2, dtype=torch.float64) / D).repeat_interleave(2)  # (D,)
    angles = torch.as_tensor(positions, dtype=torch.float64)[1:, None] * each
    expected = (torch.remainder(angles + math.pi, 2 * math.pi) - math.pi).abs().sort(-1).values
    what = f"eigvals(F(m) @ F(0).T).angle(), D={D}, base={b:g}, m={positions[1:]}"
    expect.close(got, expected, atol=atol, what=what)


@check(
    "rope.norm",
    title="apply_rope keeps lengths",
    points=2,
    hint="A turn changes no length. Each pair (a, b) becomes (a cos - b sin, a sin + b cos): check the signs, and that "
    "both channels of a pair get the same angle. Repeating each angle twice in a row goes with neighbouring pairs, "
    "repeating the whole list with pairs half a head apart.",
    reproduce="""
import torch; from rope import apply_rope
x = torch.randn(5, 8)
print(x.norm(dim=-1) - apply_rope(x, torch.arange(5)).norm(dim=-1))  # 0, but for rounding
""",
)
def test_norm(student, draw):
    for dtype in (torch.float64, F32):
        x = draw.normal(2, 3, 7, 10, dtype=dtype)
        y = turned(student, x, torch.arange(7))
        lengths = x.double().norm(dim=-1)
        # Lengths are around 3; float32 throughout is wrong by 4e-7.
        expect.close(y.norm(dim=-1), lengths, atol=1e-5, what="apply_rope(x, positions).norm(dim=-1)")


@check(
    "rope.same-position",
    title="At the same position, q·k stays what it was",
    points=1,
    hint="Turning two vectors by the same angle does not change their dot product. If it changes, q and k are not "
    "turned alike: look for something that depends on more than the position.",
    reproduce="""
import torch; from rope import apply_rope
q, k, positions = torch.randn(5, 8), torch.randn(5, 8), torch.arange(5)
print((q * k).sum(-1) - (apply_rope(q, positions) * apply_rope(k, positions)).sum(-1))  # 0, but for rounding
""",
)
def test_same_position(student, draw):
    q, k = draw.normal(7, 10, dtype=torch.float64), draw.normal(7, 10, dtype=torch.float64)
    positions = torch.arange(7)
    got = (turned(student, q, positions) * turned(student, k, positions)).sum(-1)
    expect.close(got, (q * k).sum(-1), atol=1e-5, what="(apply_rope(q, positions) * apply_rope(k, positions)).sum(-1)")


def unit(draw, D):
    x = draw.normal(D, dtype=torch.float64)
    return x / x.norm()


@check(
    "rope.relative",
    title="q·k depends on the distance of the positions, and on nothing else",
    points=3,
    hint="Position m turns by m times the frequency, so that only m - n is left in the product of q at m and k at n. "
    "Are the angles positions times frequencies, is every pair turned within itself, and is time the axis before "
    "the last?",
    reproduce="""
import torch; from rope import apply_rope
q, k = torch.randn(8).expand(6, 8), torch.randn(8).expand(6, 8)
scores = apply_rope(q, torch.arange(6)) @ apply_rope(k, torch.arange(6)).T
print(scores)  # equal along every diagonal, different from one diagonal to the next
""",
)
def test_relative(student, draw):
    T, D = 12, 8
    q, k = unit(draw, D).expand(T, D).contiguous(), unit(draw, D).expand(T, D).contiguous()
    positions = torch.arange(T)
    scores = turned(student, q, positions) @ turned(student, k, positions).T  # (T, T)
    what = "apply_rope(q, positions) @ apply_rope(k, positions).T"
    expect.tensor(scores, what=what)
    expect.varies(scores[0], scores[:, 0].flip(0), by=SEEN, what=f"{what}, m - n")
    expect.same(scores[:-1, :-1], scores[1:, 1:], atol=ANGLES, what=f"{what}, positions += 1")
    later = turn(student, q, positions + 50) @ turn(student, k, positions + 50).T
    expect.same(scores, later, atol=ANGLES, what=f"{what}, positions += 50")


@check(
    "rope.composition",
    title="Turning by a positions and then by b is turning by a + b",
    points=2,
    hint="Angles add up. If they do not, something other than the position goes into the angle, or the pair that is "
    "turned is not the pair that was meant.",
    reproduce="""
import torch; from rope import apply_rope
F = [apply_rope(torch.eye(8)[:, None], torch.tensor([m]))[:, 0].T for m in (0, 3, 5, 8)]  # the turns as matrices
G = [f @ F[0].T for f in F]
print((G[1] @ G[2] - G[3]).abs().max())  # 0, but for rounding
""",
)
def test_composition(student):
    F = matrices(student, 8, list(range(14)))
    G = F @ F[0].T
    for a, b in ((1, 2), (3, 5), (5, 8)):
        what = f"G({a}) @ G({b}), G({a + b}), G(m) = F(m) @ F(0).T"
        expect.close(G[a] @ G[b], G[a + b], atol=ANGLES, what=what)


@check(
    "rope.spectrum",
    title="The pairs turn by the right angles, for several bases and head sizes",
    points=5,
    hint="Lengths and distances come out right with any angles; here the angles themselves are looked at. Check base "
    "and exponent, that apply_rope hands on its base, and that D is the size of x, not a fixed one.",
    reproduce="""
import torch; from rope import apply_rope
x = torch.eye(4)[:, None].expand(4, 3, 4)  # each basis vector at positions 0, 1, 2
y = apply_rope(x, torch.arange(3), 100.0)
print((y[:, 0] * y[:, 2]).sum(-1))  # cosines of the angles of two steps: cos(2) = -0.4161 and cos(0.2) = 0.9801, twice
""",
)
def test_spectrum(student):
    for D, *base in ((8,), (2, BASE), (4, 100.0), (10, 500000.0), (32, 1000.0)):
        spectrum(student, D, [0, 1, 2, 7, 31, 127], *base, atol=ANGLES)


@check(
    "rope.shapes",
    title="apply_rope takes any number of axes before time",
    points=1,
    hint="x is (..., T, D): time is the last axis but one, whatever stands before it. Index from the right (x[..., i], "
    "dim=-1) and let the angles, (T, D/2), be broadcast.",
    reproduce="""
import torch; from rope import apply_rope
for shape in ((5, 6), (3, 5, 6), (2, 3, 5, 6), (1, 2, 3, 5, 6)):
    print(apply_rope(torch.randn(shape), torch.arange(5)).shape)  # as shape
""",
)
def test_shapes(student, draw):
    x, positions = draw.normal(2, 4, 3, 5, 6, dtype=torch.float64), torch.arange(5)
    y = turned(student, x, positions)
    for index in ((0,), (1, 3), (1, 2, 0)):
        alone = turn(student, x[index], positions)
        what = f"apply_rope(x{list(index)}, positions)"
        expect.same(y[index], alone, atol=LENGTHS, what=what)
    alone = turn(student, x[..., 4:, :], positions[4:])
    expect.same(y[..., 4:, :], alone, atol=LENGTHS, what="apply_rope(x[..., 4:, :], positions[4:])")


@check(
    "rope.positions",
    title="apply_rope takes positions in any order, between whole numbers, and below zero",
    points=1,
    hint="Use the positions that are handed in, as numbers: not arange(T), and not as an index into a table, which has "
    "no row 2.5 and none for -3.",
    reproduce="""
import torch; from rope import apply_rope
x = torch.tensor([1.0, 0.0]).expand(3, 2)  # one pair, which turns by one radian a position
y = apply_rope(x, torch.tensor([3.5, 0.0, -3.5]))
print(y[0] @ y[1], y[2] @ y[1])  # cos(3.5) = -0.9365 twice
""",
)
def test_positions(student):
    F = matrices(student, 6, list(range(8)))
    order = [5, 0, 3, 3, 7, 1]
    shuffled = matrices(student, 6, order)
    expect.same(F[order], shuffled, atol=LENGTHS, what=f"apply_rope(x, torch.tensor({order}))")
    spectrum(student, 6, [0.0, 0.5, 2.25, -3.0, -0.75], atol=ANGLES)


@check(
    "rope.long",
    title="Positions up to 4096 stay exact",
    points=2,
    hint="At position 4096 a small error of a frequency has become a large one of the angle. Compute frequencies and "
    "angles in float32 or better: float16 and bfloat16 have 3 digits.",
    reproduce="""
import torch; from rope import apply_rope
x = torch.eye(64)[2].expand(2, 64)
y = apply_rope(x, torch.tensor([0, 4096]))
print(y[0] @ y[1], torch.tensor(4096 * 10000 ** (-2 / 64), dtype=torch.float64).cos())  # the same to three digits
""",
)
def test_long(student):
    spectrum(student, 32, [0, 1000, 4095, 4096], dtype=F32, atol=FAR)


@check(
    "rope.dtype",
    title="apply_rope returns the dtype it was given, and turns half-precision input exactly enough",
    points=1,
    hint="Compute the turn in float32 at least, and return x's own dtype (.to(x.dtype) at the end). Angles in "
    "bfloat16 go wrong after a few hundred positions.",
    reproduce="""
import torch; from rope import apply_rope
x = torch.randn(2, 8, dtype=torch.bfloat16)
y = apply_rope(x, torch.tensor([0, 4095]))
print(y.dtype, (y - apply_rope(x.float(), torch.tensor([0, 4095]))).abs().max())  # bfloat16, about 0.01
""",
)
def test_dtype(student, draw):
    positions = torch.tensor([0, 1, 300, 4095])
    function = expect.handle(student.rope.apply_rope, what="apply_rope")
    x = draw.normal(4, 8).clamp(-2, 2).bfloat16().float()  # the same numbers in every dtype
    exact = turned(student, x, positions)
    for dtype in (torch.float64, F32, torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        what = f"apply_rope(x.to(torch.{name}), positions)"
        got = expect.tensor(function(x.to(dtype), positions), x.shape, dtype=dtype, what=what)
        # bfloat16 keeps 8 bits: values below 3 are rounded by up to 8e-3, and up to three times on the way.
        atol = 0.05 if dtype in (torch.bfloat16, torch.float16) else FAR
        expect.same(exact, got.double(), atol=atol, what=f"{what}, float32")


@check(
    "rope.float64",
    title="apply_rope computes in float64 when x is float64",
    points=1,
    hint="Somewhere float32 comes in between: torch.arange and torch.tensor of floats are float32, and so is what "
    ".float() returns. Cast the positions and frequencies to float64 before they are multiplied.",
    reproduce="""
import torch; from rope import apply_rope
q = torch.randn(8, dtype=torch.float64).expand(4, 8); y = apply_rope(q, torch.tensor([0, 100, 27, 127]))
print(y[0] @ y[1] - y[2] @ y[3])  # 100 positions apart both times: 0, but for rounding of 1e-15
""",
)
def test_float64(student):
    F = matrices(student, 8, [0, 100, 27, 127])
    expect.close(
        F.mT @ F,
        torch.eye(8, dtype=torch.float64).expand_as(F),
        atol=F64,
        what="F.T @ F, F = apply_rope(torch.eye(8), positions)",
    )
    near, far = F[0].T @ F[1], F[2].T @ F[3]
    expect.same(near, far, atol=F64, what="F(0).T @ F(100), F(27).T @ F(127)")


# RotaryCausalSelfAttention


def attention(module, gpt, n_embd, n_head, rotary_dim=None):
    config = gpt.GPTConfig(
        vocab_size=5, block_size=16, n_embd=n_embd, n_head=n_head, position="rope", rotary_dim=rotary_dim
    )
    made = expect.handle(module.RotaryCausalSelfAttention, what="RotaryCausalSelfAttention")
    layer = expect.handle(made(config), what="RotaryCausalSelfAttention(config)")
    layer.eval()
    return layer


def scores(layer, q, k):
    """(B, H, T, T): the layer's own scores, where n <= m, read off its output.

    Each token of the batch is a basis vector of its own, so that the columns of qkv's weight are q, k and v of each
    token. v is e_t in every head and proj the identity: the output of head h at m is its attention weights. Their
    logarithms are the scores, but for one constant in each row; that is known because key 0 is zero, and so its score.

    Args:
        layer: in float64, of H heads with D channels.
        q, k: (B, H, T, D) with T <= D and B <= H.
    """
    B, H, T, D = q.shape
    C = H * D
    k = k.clone()
    k[:, :, 0] = 0.0
    v = torch.eye(T, D, dtype=torch.float64).expand(B, H, T, D)
    weight = torch.zeros(3, H, D, C, dtype=torch.float64)
    weight[..., : B * T] = torch.stack((q, k, v)).permute(0, 2, 4, 1, 3).flatten(-2)  # (3, H, D, B * T)
    zeros = torch.zeros(3 * C, dtype=torch.float64)
    identity = torch.eye(C, dtype=torch.float64)
    state = {"qkv.weight": weight.view(3 * C, C), "qkv.bias": zeros, "proj.weight": identity, "proj.bias": zeros[:C]}
    layer.load_state_dict(state)
    y = expect.tensor(layer(identity[: B * T].reshape(B, T, C).clone()), (B, T, C), what="forward(x)").double()
    w = y.view(B, T, H, D)[..., :T].transpose(1, 2)  # (B, H, T, T)
    seen = torch.ones(T, T, dtype=torch.bool).tril()
    what = "forward(x): softmax(q @ k.T)"
    expect.close(w.sum(-1), torch.ones(B, H, T, dtype=torch.float64), atol=LENGTHS, what=f"{what}.sum(-1)")
    values = w[..., seen]
    expect.true(
        bool((values > 0).all()),
        "rope.scores.positive",
        "{what} are not all positive where a position may look.",
        what=what,
        expected="> 0",
        actual=f"<= 0: {int((values <= 0).sum())} / {values.numel()}",
    )
    s = torch.where(seen, (w / w[..., :1]).log() * D**0.5, 0.0)
    return expect.tensor(s, what="forward(x): q @ k.T")  # a weight of 1e-320 is as good as 0


def own_scores(student, H, D, rotary_dim=None):
    """(D, H, D, D): the scores of the basis vector e_i with itself, for each i, at all distances below D."""
    layer = attention(student.rope, student.gpt, H * D, H, rotary_dim)
    layer.to(torch.float64)
    basis = torch.eye(D, dtype=torch.float64)[:, None, None].expand(D, H, D, D)
    return torch.cat([scores(layer, some, some) for some in basis.split(H)])  # as many as there is room for


def trace(D, rotary_dim, distances):
    """The sum over i of e_i turned by a distance, times e_i: that of the cosines, and 1 for each channel that rests."""
    each = BASE ** (-torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim)
    return 2 * (distances[:, None] * each).cos().sum(-1) + (D - rotary_dim)


def at_distances(values):
    """(..., T, T) -> (..., T - 1): the scores of key 1 with queries at distances 0 ... T - 2."""
    return values[..., 1:, 1]


@check(
    "rope.layer",
    title="RotaryCausalSelfAttention turns q and k, each once, in every head",
    points=4,
    hint="Both q and k go through apply_rope, once each, with the same positions, after they are cut into heads. "
    "Turning one alone, turning over all C channels before the cut, or starting k at another position changes the "
    "scores.",
    reproduce="""
import torch; from gpt import GPTConfig; from rope import *
layer = RotaryCausalSelfAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=2, position="rope")).eval()
x = torch.randn(1, 5, 12); y = x[:, [1, 0, 2, 3, 4]]  # two tokens change places
print((layer(x) - layer(y))[0, -1].abs().max())  # not 0: the last position sees the order
print((layer(x) - layer(x))[0, -1].abs().max())  # 0
""",
)
def test_layer(student, draw):
    H, T, D = 3, 8, 8
    layer = attention(student.rope, student.gpt, H * D, H)
    layer.to(torch.float64)
    q, k = draw.normal(H, 1, D, dtype=torch.float64), draw.normal(H, 1, D, dtype=torch.float64)
    s = scores(layer, q.expand(1, H, T, D), k.expand(1, H, T, D))[0]
    what = "forward(x): q[m] @ k[n]"
    expect.varies(s[:, 1:2, 1].expand(H, T - 2), s[:, 2:, 1], by=CHANGES, what=f"{what}, m - n")
    # |q| |k| is around 8, and cosines in float32 are wrong by 1e-7.
    own = s[:, 1:, 1:].diagonal(dim1=1, dim2=2)  # (H, T - 1)
    expect.close(own, (q * k).sum(-1).expand(H, T - 1), atol=1e-5, what=f"{what}, m == n")
    expect.same(s[:, 1:-1, 1:-1].tril(), s[:, 2:, 2:].tril(), atol=ANGLES, what=f"{what}, m + 1, n + 1")
    H, D = 3, 6
    turns = at_distances(own_scores(student, H, D).sum(0))  # (H, D - 1)
    expected = trace(D, D, torch.arange(D - 1.0, dtype=torch.float64)).expand(H, D - 1)
    what = "forward(x): e[i, m] @ e[i, n], sum(i), m - n"
    expect.close(turns, expected, atol=ANGLES, what=what)


def aware(layer, x):
    """The output for x, after making sure that the last position's depends on the order of the first two tokens."""
    y = expect.tensor(layer(x), x.shape, what="forward(x)")
    again = expect.tensor(layer(x), x.shape, what="forward(x)")
    expect.same(y, again, atol=LENGTHS, what="forward(x) #2")
    swapped = x[:, [1, 0, *range(2, x.size(1))]]
    other = expect.tensor(layer(swapped), x.shape, what="forward(x)")
    what = "forward(x)[:, -1], x[:, [1, 0, ...]]"
    expect.varies(y[:, -1], other[:, -1], by=1e-6, what=what)  # 0.03 and more with weights drawn as here
    return y


def rotary_pair(student, reference, C, H, scale=1.0):
    """The student's layer, with the weights of a fresh reference layer times `scale`; and these weights."""
    state = attention(reference.rope, reference.gpt, C, H).state_dict()
    state = {name: value * scale for name, value in state.items()}
    layer = attention(student.rope, student.gpt, C, H)
    layer.load_state_dict(state)
    return layer, state


@check(
    "rope.values",
    title="RotaryCausalSelfAttention leaves v alone: equal tokens get proj(v)",
    points=2,
    hint="Only q and k are turned: positions belong into the scores, not into what is passed on. If v is turned too, "
    "equal tokens no longer give equal outputs.",
    reproduce="""
import torch; from gpt import GPTConfig; from rope import *
layer = RotaryCausalSelfAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=2, position="rope"))
x = torch.randn(12).expand(1, 5, 12)
print((layer(x) - layer.proj(layer.qkv(x)[..., 24:])).abs().max())  # 0, but for rounding
""",
)
def test_values(student, reference, draw):
    C, H = 12, 2
    layer, state = rotary_pair(student, reference, C, H, scale=2.0)
    layer.to(torch.float64)
    aware(layer, draw.normal(3, 5, C, dtype=torch.float64))
    state = {name: value.double() for name, value in state.items()}
    x = draw.normal(3, 1, C, dtype=torch.float64).expand(3, 5, C).contiguous()
    v = x @ state["qkv.weight"][2 * C :].T + state["qkv.bias"][2 * C :]
    expected = v @ state["proj.weight"].T + state["proj.bias"]
    # Weights that sum to 1 give v back to 1e-15, whatever the angles; v turned by one position is wrong by 0.1.
    expect.close(layer(x), expected, atol=LENGTHS, what="forward(x), x[:, t] == x[:, 0]")


@check(
    "rope.rotary-dim",
    title="rotary_dim: only the first channels of each head turn",
    points=2,
    hint="Cut q and k at rotary_dim, turn the first part and put the rest back behind it unchanged. The frequencies "
    "are those of rotary_dim channels, not of the whole head.",
    reproduce="""
import torch; from gpt import GPTConfig; from rope import *
layer = RotaryCausalSelfAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=2, position="rope", rotary_dim=4))
print(layer.rotary_dim)  # 4 of the 6 channels of each head
print(layer(torch.randn(1, 5, 12)).shape)  # (1, 5, 12)
""",
)
def test_rotary_dim(student):
    H, D, R = 3, 6, 4
    turns = at_distances(own_scores(student, H, D, R))  # (D, H, D - 1)
    what = "forward(x), rotary_dim=4, D=6: e[i, m] @ e[i, n]"
    expect.varies(turns[:R, :, 0], turns[:R, :, 1], by=CHANGES, what=f"{what}, i < 4, m - n")
    expect.close(turns[R:], torch.ones_like(turns[R:]), atol=1e-5, what=f"{what}, i >= 4")
    expected = trace(D, R, torch.arange(D - 1.0, dtype=torch.float64)).expand(H, D - 1)
    expect.close(turns.sum(0), expected, atol=ANGLES, what=f"{what}, sum(i), m - n")


@check(
    "rope.follows",
    title="RotaryCausalSelfAttention follows .to(dtype)",
    points=1,
    hint="A tensor that is kept as a plain attribute stays in float32 when the model moves on. Compute cos and sin in "
    "forward, or keep them with register_buffer, and bring them to the dtype of q.",
    reproduce="""
import torch; from gpt import GPTConfig; from rope import *
layer = RotaryCausalSelfAttention(GPTConfig(vocab_size=5, n_embd=12, n_head=2, position="rope"))
for dtype in (torch.float64, torch.bfloat16):
    print(layer.to(dtype)(torch.randn(1, 5, 12, dtype=dtype)).dtype)  # float64, then bfloat16
""",
)
def test_follows(student, reference, draw):
    layer, _ = rotary_pair(student, reference, 12, 2, scale=2.0)
    x = draw.normal(2, 9, 12)
    y = aware(layer, x)
    # Over 200 seeds, with outputs up to 6: float32 is wrong by 1.4e-6, bfloat16 by 0.05.
    for dtype, atol in ((torch.float64, 1e-5), (torch.bfloat16, 0.2)):
        layer.to(dtype)
        what = f"layer.to({dtype})(x)"
        got = expect.tensor(layer(x.to(dtype)), x.shape, dtype=dtype, what=what)
        expect.same(y, got, atol=atol, what=f"{what}, layer(x)")


@check(
    "rope.sentences",
    title="RotaryGPT tells the two sentences apart, at one layer",
    points=3,
    hint="With RoPE one layer is enough, although the two sentences have the same characters and nothing is added to "
    "the input. If they come out equal, the turn does not reach the scores of attention.",
    reproduce="""
import torch; from gpt import *; from rope import *
model = RotaryGPT(GPTConfig(vocab_size=5, n_layer=1, n_embd=32, position="rope")).eval()
a, b = (model(torch.tensor([order]))[0][0, -1] for order in ([0, 1, 2, 3, 4], [3, 2, 1, 0, 4]))
print((a - b).abs().max())  # about 1e-4: not 0, and more than the 1e-7 of rounding
""",
)
def test_sentences(student, reference):
    V = 10
    # 白日依山尽 and 山依日白尽, and two neighbours exchanged.
    texts = torch.tensor([[0, 1, 2, 3, 4], [3, 2, 1, 0, 4], [0, 2, 1, 3, 4]])
    sizes = dict(vocab_size=V, block_size=16, n_layer=1, n_head=4, n_embd=32)
    ours = reference.rope.RotaryGPT(reference.gpt.GPTConfig(**sizes, position="rope"))
    # Weights of std 0.02 leave scores close to 0, and differences of 4e-4 of the largest logit; ten times larger ones
    # give 0.017 and more over 100 seeds.
    state = {name: value * 10.0 if value.dim() > 1 else value for name, value in ours.state_dict().items()}
    made = expect.handle(student.rope.RotaryGPT, what="RotaryGPT")
    model = expect.handle(made(student.gpt.GPTConfig(**sizes, position="rope")), what="RotaryGPT(config)")
    model.load_state_dict(state)
    model.to(torch.float64)
    model.eval()

    def logits(idx):
        answer = expect.items(model(idx), 2, what="model(idx)")
        return expect.tensor(answer[0], (*idx.shape, V), what="RotaryGPT(config)(idx)[0]")

    together = logits(texts)
    alone = torch.cat([logits(text[None]) for text in texts])
    expect.same(together, alone, atol=LENGTHS, what="RotaryGPT(config)(idx)[0], RotaryGPT(config)(idx[:1])[0]")
    last, scale = alone[:, -1], float(alone.abs().max())
    for other in (1, 2):
        what = "RotaryGPT(config)(idx)[0][:, -1], idx[:, [3, 2, 1, 0, 4]]"
        expect.varies(last[0], last[other], by=SEEN * scale, what=what)
