"""Mean over a sentence: `mean_pool` in pooling.py.

Tolerance. A sum and a division in float64 on numbers of size 1 differ by less than 1e-15 between ways of writing them;
the smallest mistake that is known differs by 1e-2.
"""

import torch

from harness.grading import check, expect

F64 = 1e-12
B, T, C = 2, 5, 3  # different, so that a swapped axis shows


@check(
    "pool.values",
    title="mean_pool: sentences without padding",
    points=3,
    hint="Which axis holds the tokens?",
)
def test_values(student, reference, draw):
    x, lengths = draw.normal(B, T, C).double(), torch.tensor([T, T])
    expected = reference.pooling.mean_pool(x, lengths)
    got = expect.tensor(student.pooling.mean_pool(x, lengths), (B, C), what="mean_pool(x, lengths)")
    expect.close(got, expected, atol=F64, what="mean_pool(x, lengths)")


@check(
    "pool.padding",
    title="mean_pool: what pads a sentence does not count",
    points=4,
    hint="The number of tokens to divide by is not T in every sentence.",
)
def test_padding(student, reference, draw):
    x, lengths = draw.normal(B, T, C).double(), torch.tensor([2, T])
    x[0, 2:] = 1e6
    expected = reference.pooling.mean_pool(x, lengths)
    got = expect.tensor(student.pooling.mean_pool(x, lengths), (B, C), what="mean_pool(x, lengths)")
    expect.close(got, expected, atol=F64, what="mean_pool(x, lengths)")


@check(
    "pool.short",
    title="mean_pool: sentences of different lengths",
    points=3,
    hint="Leave the padding out of the sum, and out of the number that it is divided by.",
)
def test_short(student, reference, draw):
    x, lengths = draw.normal(B, T, C).double(), torch.tensor([3, 1])
    expected = reference.pooling.mean_pool(x, lengths)
    got = expect.tensor(student.pooling.mean_pool(x, lengths), (B, C), what="mean_pool(x, lengths)")
    expect.close(got, expected, atol=F64, what="mean_pool(x, lengths)")
