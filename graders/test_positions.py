"""Other ways to say where: `LearnedPositions`, `sinusoidal_encoding`, `interpolate_positions` in positions.py.

The order of the channels of the sinusoidal encoding is a convention: sines and cosines in turn, or one after the other.
So a table is compared with the formula after each of its columns has been paired with the column that is nearest.

Tolerances. Angles may be computed in float32. Measured over C 2 ... 33 and three formulas of the frequencies
(tests/test_tolerances.py measures again): values up to position 199 are wrong by 7e-6 at most, up to 4999 by 2e-4; the
smallest mistake, an odd C rounded up to an even one, is wrong by 0.6. Adding two float32 numbers rounds by 2.4e-7
at values up to 4.
"""

import torch

from harness.grading import check, expect

ADDED = 1e-6
NEAR = 1e-4  # of sines and cosines up to position 199, and of positions, relative to their range
FAR = 3e-3  # of sines and cosines up to position 4999
CHANGES = 1e-2  # what must differ does so by 0.05 and more
F64 = torch.float64


# LearnedPositions


def learned(student, rows, C, weight):
    """LearnedPositions(rows, C) with this table, (rows, C)."""
    made = expect.handle(student.positions.LearnedPositions, what="LearnedPositions")
    layer = expect.handle(made(rows, C), what=f"LearnedPositions({rows}, {C})")
    layer.load_state_dict({"table.weight": weight})
    return layer


def added(layer, x, weight, start):
    """Compare the layer's answer with the sum of x and rows start, start + 1, ... of the table."""
    T = x.size(1)
    expected = x + weight[start : start + T]
    expect.close(layer(x, start=start), expected, atol=ADDED, what=f"forward(x, start={start}), T={T}")


@check(
    "positions.table",
    title="LearnedPositions adds row p of its table at position p",
    points=1,
    hint="Position p gets row p: start, start + 1, ... for the T columns of x, the same in every sentence. The row is "
    "added to what is there.",
    reproduce="""
import torch; from positions import LearnedPositions
layer = LearnedPositions(8, 2)
with torch.no_grad(): layer.table.weight.copy_(torch.arange(16.0).view(8, 2))
print(layer(torch.zeros(1, 3, 2), start=2).tolist())  # rows 2 to 4: 4 5, 6 7, 8 9
""",
)
def test_table(student, draw):
    C, rows = 5, 20
    weight = draw.normal(rows, C)
    layer = learned(student, rows, C, weight)
    for B, T, start in ((2, 7, 0), (3, 1, 0), (2, 4, 9), (1, 6, 14)):
        added(layer, draw.normal(B, T, C), weight, start)


@check(
    "positions.table-end",
    title="LearnedPositions: 128 rows take 128 positions, 129 are refused",
    points=2,
    hint="Position 127 is the last of 128 rows. Where the text ends, at start + T, decides: refuse what lies beyond "
    "with a ValueError that names both numbers. nn.Embedding's IndexError names neither.",
    reproduce="""
import torch; from positions import LearnedPositions
layer = LearnedPositions(128, 2); print(layer(torch.zeros(1, 128, 2)).shape)  # (1, 128, 2)
for T, start in ((129, 0), (9, 120)):
    try: layer(torch.zeros(1, T, 2), start=start)
    except ValueError as error: print(error)  # should name 129 and 128, twice
""",
)
def test_table_end(student, draw):
    C, rows = 4, 128
    weight = draw.normal(rows, C)
    layer = learned(student, rows, C, weight)
    x = draw.normal(1, 129, C)
    added(layer, x[:, :128], weight, 0)
    added(layer, x[:, :8], weight, 120)
    for T, start, mentions in ((129, 0, (129, 128)), (9, 120, (129, 128)), (2, -1, ())):
        expect.raises(
            lambda T=T, start=start: layer(x[:, :T], start=start),
            "ValueError",
            mentions=mentions,
            what=f"forward(x, start={start}), T={T}",
        )


# sinusoidal_encoding


def encoding(student, T, C):
    """sinusoidal_encoding(T, C), in float64."""
    function = expect.handle(student.positions.sinusoidal_encoding, what="sinusoidal_encoding")
    return expect.tensor(function(T, C), (T, C), what=f"sinusoidal_encoding({T}, {C})").double()


def formula(T, C):
    """The encoding by the formula of Vaswani et al. 2017, section 3.5, channel by channel."""
    position = torch.arange(T, dtype=F64)
    columns = []
    for channel in range(C):
        angle = position / 10000.0 ** (2 * (channel // 2) / C)
        columns.append(angle.sin() if channel % 2 == 0 else angle.cos())
    return torch.stack(columns, dim=1)


def in_order(got, expected):
    """`got` with its columns in the order of `expected`: each is the nearest one, if that takes every column once."""
    apart = (got[:, None] - expected[:, :, None]).abs().amax(0)  # (C, C)
    order = apart.argmin(dim=1)
    return got[:, order] if order.unique().numel() == order.numel() else got


def by_the_formula(student, sizes):
    for T, C in sizes:
        expected = formula(T, C)
        got = in_order(encoding(student, T, C), expected)
        expect.close(got, expected, atol=NEAR, what=f"sinusoidal_encoding({T}, {C})")


@check(
    "positions.sinusoidal",
    title="sinusoidal_encoding: sin and cos of pos / 10000^(2i/C)",
    points=2,
    hint="Channels come in pairs, a sine and a cosine with the same angle. i counts the pairs; if your counter goes "
    "0, 2, 4, ... it is 2i already. Position 0 is all sin 0 = 0 and cos 0 = 1.",
    reproduce="""
from positions import sinusoidal_encoding
print(sinusoidal_encoding(2, 4))  # sin 0, cos 0: 0 1 0 1; then sin 1, cos 1, sin 0.01, cos 0.01
""",
)
def test_sinusoidal(student):
    by_the_formula(student, ((200, 8), (50, 2), (200, 32), (12, 6)))


@check(
    "positions.sinusoidal-odd",
    title="sinusoidal_encoding: an odd number of channels",
    points=1,
    hint="With 5 channels there are three sines and two cosines, and the formula divides by 5 like any other C. "
    "Two slices of the same width do not fit.",
    reproduce="""
from positions import sinusoidal_encoding
print(sinusoidal_encoding(3, 5).shape)  # (3, 5)
print(sinusoidal_encoding(2, 3))  # 0 1 0, then sin 1, cos 1 and sin of 10000^(-2/3): 0.8415 0.5403 0.0022
""",
)
def test_sinusoidal_odd(student):
    by_the_formula(student, ((200, 5), (60, 3), (200, 13), (9, 1)))


@check(
    "positions.sinusoidal-far",
    title="sinusoidal_encoding goes on past every training length",
    points=1,
    hint="A row depends on its position alone, not on how long the table is. At position 4999 a small error of an "
    "angle has become a large one: compute in float32 or better.",
    reproduce="""
from positions import sinusoidal_encoding
long, short = sinusoidal_encoding(5000, 8), sinusoidal_encoding(100, 8)
print((long[:100] - short).abs().max())  # 0
print(long[4999, :2])  # sine and cosine of 4999, -0.6639 and -0.7478
""",
)
def test_sinusoidal_far(student):
    T, C = 5000, 8
    expected = formula(T, C)
    far = encoding(student, T, C)
    near = encoding(student, 100, C)
    what = f"sinusoidal_encoding({T}, {C})"
    expect.varies(far[0], far[-1], by=CHANGES, what=f"{what}[0], [-1]")
    expect.same(near, far[:100], atol=NEAR, what=f"sinusoidal_encoding(100, {C}), {what}[:100]")
    got = in_order(far, expected)
    expect.close(got[4000:], expected[4000:], atol=FAR, what=f"{what}[4000:]")


@check(
    "positions.sinusoidal-distance",
    title="sinusoidal_encoding: PE(p)·PE(q) depends on p - q alone",
    points=1,
    hint="sin a sin b + cos a cos b is the cosine of a - b: with a sine and a cosine for every angle, only distance "
    "is left. If it is not, one of the two is missing, or they have different angles.",
    reproduce="""
from positions import sinusoidal_encoding
PE = sinusoidal_encoding(6, 8); products = PE @ PE.T
print(products)  # equal along every diagonal, different from one diagonal to the next
""",
)
def test_sinusoidal_distance(student):
    T, C = 300, 10
    rows = encoding(student, T, C)
    apart = torch.cdist(rows, rows) + torch.eye(T, dtype=F64) * 1e9
    p, q = divmod(int(apart.argmin()), T)  # the two rows that are most alike; in the encoding, 0.97 apart and more
    expect.varies(rows[p], rows[q], by=CHANGES, what=f"sinusoidal_encoding({T}, {C})[{p}], [{q}]")
    products = rows @ rows.T
    expect.varies(products[0, :1], products[0, 1:2], by=CHANGES, what="PE[0] @ PE[0], PE[0] @ PE[1]")
    # Sums of five products; nearer 0 than 1 by far where a sine or a cosine is missing.
    expect.same(products[:-50, :-50], products[50:, 50:], atol=1e-3, what="PE[p] @ PE[q], PE[p + 50] @ PE[q + 50]")


# interpolate_positions


def interpolated(student, positions, L, length):
    """interpolate_positions(positions, L, length), in float64."""
    function = expect.handle(student.positions.interpolate_positions, what="interpolate_positions")
    what = f"interpolate_positions(positions, {L}, {length})"
    return expect.tensor(function(positions, L, length), positions.shape, what=what).double()


@check(
    "positions.interpolation",
    title="interpolate_positions: L' positions fit into the range of L",
    points=1,
    hint="Every position is multiplied by L / L', which is less than 1 for a long text. Whole numbers do not stay "
    "whole: no integer division, no rounding.",
    reproduce="""
import torch; from positions import interpolate_positions
print(interpolate_positions(torch.arange(8), 4, 8).tolist())  # 0 0.5 1 1.5 2 2.5 3 3.5
""",
)
def test_interpolation(student):
    halves = torch.arange(0.0, 12.0, 0.5, dtype=F64)
    for positions, L, length in ((torch.arange(64), 16, 64), (torch.arange(90, 97), 40, 100), (halves, 5, 12)):
        got = interpolated(student, positions, L, length)
        what = f"interpolate_positions(positions, {L}, {length})"
        expect.close(got, positions.double() * (L / length), atol=NEAR, what=what)


@check(
    "positions.interpolation-short",
    title="interpolate_positions leaves a text alone that fits anyway",
    points=1,
    hint="A text that is no longer than the trained length lies within the range already: its positions keep their "
    "values. Only a longer one is squeezed, and nothing is ever stretched.",
    reproduce="""
import torch; from positions import interpolate_positions
print(interpolate_positions(torch.arange(4), 16, 4).tolist())  # 0 1 2 3, as they were
print(interpolate_positions(torch.arange(4), 2, 4).tolist())  # 0 0.5 1 1.5
""",
)
def test_interpolation_short(student):
    positions = torch.arange(8)
    long = interpolated(student, positions, 16, 32)
    for length in (8, 16):
        got = interpolated(student, positions, 16, length)
        what = f"interpolate_positions(positions, 16, {length})"
        expect.varies(long, got, by=CHANGES, what=f"interpolate_positions(positions, 16, 32), {what}")
        expect.close(got, positions.double(), atol=NEAR, what=what)
