"""Measures what the graders say of their tolerances: right forms agree far within them, mistakes lie far outside."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.bench import reference_modules

F32, F64 = torch.float32, torch.float64


# Attention (graders/test_heads.py: 1e-10 in float64, 1e-5 in float32)


def manual(q: Tensor, k: Tensor, v: Tensor, fill: float = float("-inf"), scale: float | None = None) -> Tensor:
    T, D = q.shape[-2:]
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    scores = q @ k.mT / (scale or D**0.5)  # (B, H, T, T)
    return scores.masked_fill(future, fill).softmax(-1) @ v


def einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    T, D = q.shape[-2:]
    scores = torch.einsum("bhtd,bhsd->bhts", q / D**0.5, k)
    scores = scores + torch.full((T, T), float("-inf"), dtype=q.dtype).triu(1)
    return torch.einsum("bhts,bhsd->bhtd", scores.softmax(-1), v)


def loop(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.stack([manual(q[:, h : h + 1], k[:, h : h + 1], v[:, h : h + 1])[:, 0] for h in range(q.size(1))], 1)


FORMS: list[Callable[[Tensor, Tensor, Tensor], Tensor]] = [
    einsum,
    loop,
    lambda q, k, v: manual(q, k, v, fill=-1e9),
    lambda q, k, v: manual(q, k, v, fill=-1e5),
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
]


@pytest.mark.parametrize(("dtype", "measured"), [(F64, 1e-14), (F32, 2e-6)])
def test_forms_of_attention_agree(dtype: torch.dtype, measured: float) -> None:
    """A tenth of the tolerance and less."""
    torch.manual_seed(0)
    for shape in ((2, 3, 7, 4), (1, 2, 128, 4)):
        q, k, v = (torch.randn(shape, dtype=dtype) for _ in range(3))
        for form in FORMS:
            assert float((form(q, k, v) - manual(q, k, v)).abs().max()) < measured


def test_the_smallest_mistake_of_attention_is_far_outside() -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 7, 4, dtype=F64) for _ in range(3))
    assert float((manual(q, k, v, scale=12**0.5) - manual(q, k, v)).abs().max()) > 0.01


# RoPE (graders/test_rope.py: RATIO 5e-6, LENGTHS 1e-6, ANGLES 1e-4, FAR 2e-3)


def frequencies(D: int, base: float, dtype: torch.dtype, form: int = 0) -> Tensor:
    i = torch.arange(0, D, 2).to(dtype)
    if form == 0:
        return base ** (-i / D)
    return 1.0 / base ** (i / D) if form == 1 else torch.exp(-math.log(base) * i / D)


def turns(D: int, positions: list[int], base: float, dtype: torch.dtype, form: int = 0) -> Tensor:
    """(T, D, D): matrices of neighbouring pairs turned, with everything computed in `dtype`."""
    angles = torch.tensor(positions).to(dtype)[:, None] * frequencies(D, base, dtype, form)
    cos, sin = angles.cos().to(F64), angles.sin().to(F64)
    x = torch.eye(D, dtype=F64)[:, None].expand(D, len(positions), D)
    first, second = x[..., 0::2], x[..., 1::2]
    y = torch.stack((first * cos - second * sin, first * sin + second * cos), -1).flatten(-2)
    return y.permute(1, 2, 0)


def eigen_angles(M: Tensor) -> Tensor:
    return torch.linalg.eigvals(M).angle().abs().sort(-1).values


def errors(D: int, positions: list[int], base: float, dtype: torch.dtype, form: int = 0) -> tuple[float, float]:
    """(of the products of basis vectors, of the eigen-angles in radians)."""
    M = turns(D, positions, base, dtype, form)
    exact = torch.tensor(positions[1:], dtype=F64)[:, None] * frequencies(D, base, F64).repeat_interleave(2)
    exact = (torch.remainder(exact + math.pi, 2 * math.pi) - math.pi).abs().sort(-1).values
    orthogonal = float((M.mT @ M - torch.eye(D, dtype=F64)).abs().max())
    return orthogonal, float((eigen_angles(M[1:] @ M[0].T) - exact).abs().max())


@pytest.mark.parametrize("base", [100.0, 10000.0, 500000.0])
@pytest.mark.parametrize("D", [2, 8, 10, 64])
def test_forms_of_rope_are_within_the_tolerances(D: int, base: float) -> None:
    for form in (0, 1, 2):
        ratio = frequencies(D, base, F32, form).double() / frequencies(D, base, F64) - 1
        assert float(ratio.abs().max()) < 1e-6
        orthogonal, near = errors(D, [0, 1, 2, 7, 31, 127], base, F32, form)
        assert orthogonal < 2e-7 and near < 1e-5
        assert errors(D, [0, 1000, 4095, 4096], base, F32, form)[1] < 4e-4
        orthogonal, near = errors(D, [0, 1, 2, 7, 31, 127, 4096], base, F64, form)
        assert orthogonal < 1e-14 and near < 1e-11


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_angles_in_half_precision_are_outside(dtype: torch.dtype) -> None:
    assert errors(8, [0, 1, 2, 7, 31, 127], 10000.0, dtype)[1] > 1e-3
    assert errors(32, [0, 1000, 4095, 4096], 10000.0, dtype)[1] > 0.1


@pytest.mark.parametrize("wrong", [1000.0, 100000.0])
def test_another_base_is_outside(wrong: float) -> None:
    M = turns(8, [0, 1, 7, 127], wrong, F64)
    right = turns(8, [0, 1, 7, 127], 10000.0, F64)
    assert float((eigen_angles(M[1:] @ M[0].T) - eigen_angles(right[1:] @ right[0].T)).abs().max()) > 0.05


def test_float32_angles_are_outside_what_the_docstring_asks_of_float64() -> None:
    """rope.float64 allows 1e-9: 100 positions apart must be the same turn wherever it starts."""
    for dtype, within in ((F64, True), (F32, False)):
        M = turns(8, [0, 100, 27, 127], 10000.0, dtype)
        assert (float((M[0].T @ M[1] - M[2].T @ M[3]).abs().max()) < 1e-9) is within


# The order experiment (graders/test_order.py: equal within 1e-5 or 1e-12 of the largest logit, different from 1e-4 of
# it on)


@pytest.mark.parametrize(("dtype", "rounding"), [(F32, 2e-6), (F64, 5e-15)])
def test_orders_are_equal_or_different_by_a_wide_margin(dtype: torch.dtype, rounding: float) -> None:
    gpt = reference_modules().load("gpt")
    orders = torch.tensor([[*four, 4] for four in itertools.permutations(range(4))])
    for seed, position in itertools.product(range(5), ("learned", "none")):
        torch.manual_seed(seed)
        config = gpt.GPTConfig(vocab_size=22, block_size=16, n_layer=3, n_head=4, n_embd=32, position=position)
        model = gpt.GPT(config).eval().to(dtype)
        for n_layer in (3, 2, 1):
            with torch.no_grad():
                logits = model(orders)[0][:, -1]  # (24, V)
            apart = (logits[1:] - logits[0]).abs().amax(1) / logits.abs().max()
            if (n_layer, position) == (1, "none"):
                assert float(apart.max()) < rounding
            else:
                assert float(apart.min()) > 1e-3
            model.blocks.pop(-1)


# Positions (graders/test_positions.py: NEAR 1e-4 up to position 199, FAR 3e-3 up to 4999)


def waves(T: int, C: int, dtype: torch.dtype, form: int = 0, wide: int = 0) -> Tensor:
    """The sinusoidal encoding with everything computed in `dtype`; with `wide`, the angles of that many channels."""
    angles = torch.arange(T).to(dtype)[:, None] * frequencies(wide or C, 10000.0, dtype, form)
    return torch.stack((angles.sin(), angles.cos()), 2).flatten(1)[:, :C].double()


@pytest.mark.parametrize("C", [2, 5, 8, 33])
def test_forms_of_the_sinusoidal_encoding_are_within_the_tolerances(C: int) -> None:
    for form in (0, 1, 2):
        error = (waves(5000, C, F32, form) - waves(5000, C, F64)).abs()
        assert float(error[:200].max()) < 1e-5 and float(error.max()) < 3e-4
    if C % 2:
        assert float((waves(200, C, F64, wide=C + 1) - waves(200, C, F64)).abs().max()) > 0.1


# Caches (graders/test_cache.py: equal within 1e-9, with turns in float32 within 1e-3; different from 1e-2 on)


def test_pieces_equal_one_pass_and_a_restart_differs_by_a_wide_margin() -> None:
    modules = reference_modules()
    gpt, cache = modules.load("gpt"), modules.load("cache")
    config = gpt.GPTConfig(vocab_size=11, n_head=3, n_embd=12, position="rope")

    def in_steps(layer: Callable[..., Tensor], x: Tensor, restart: bool) -> Tensor:
        kept, steps = cache.KeyValueCache(), []
        for t in range(x.size(1)):
            kept.seen = 0 if restart else kept.seen
            steps.append(layer(x[:, t : t + 1], kept))
        return torch.cat(steps, 1)

    for seed in range(20):
        torch.manual_seed(seed)
        layer, x = cache.CachedRotaryAttention(config).double(), torch.randn(2, 6, 12, dtype=F64)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(torch.randn_like(parameter) * 0.5)
            whole = layer(x)
            assert float((whole - in_steps(layer, x, restart=False)).abs().max()) < 1e-13
            assert float((whole - in_steps(layer, x, restart=True)).abs().max()) > 0.05
            assert float((whole - layer(x[:, [1, 0, 2, 3, 4, 5]]))[:, -1].abs().max()) > 0.05
