"""The known right and wrong answers: the right ones are right, the wrong ones wrong each in its own way."""

import math
import sys
import types
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
import torch
from torch import Tensor

from harness.authoring.variants import Variant, load_variants

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("gpt", "rope", "heads_positions")
REFERENCE = {f"{name}.py": (ROOT / "reference" / f"{name}.py").read_text(encoding="utf-8") for name in MODULES}
CORE = (
    "heads",
    "order",
    "rope",
)  # what `behaviour` knows; the graders judge the variants of all (tests/test_course.py)
VARIANTS = {
    kind: [variant for variant in load_variants(ROOT / "graders" / kind) if variant.exercise in CORE]
    for kind in ("accepted", "misconceptions", "degenerate")
}
CONVENTIONS = ("rope.half-split", "rope.half-split-reversed", "rope.sign-reversed")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small are several times faster on one thread, and free of one source of bit differences."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@cache
def course(variant: Variant | None = None) -> types.SimpleNamespace:
    """The course's modules with a variant spliced in, compiled in memory and gone from sys.modules."""
    files = variant.apply(REFERENCE) if variant else REFERENCE
    made: dict[str, types.ModuleType] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in MODULES:
            made[name] = types.ModuleType(name)
            patch.setitem(sys.modules, name, made[name])
            exec(compile(files[f"{name}.py"], f"<{name}>", "exec"), made[name].__dict__)
    return types.SimpleNamespace(**made)


def draw(*shape: int, seed: int = 2) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def attempt(call: Callable[[], object]) -> object:
    """The value, or a text for the error: what a wrong answer raises is a part of what it does."""
    try:
        return call()
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        IndexError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        return f"{type(error).__name__}: {error}"


def layer(of: types.SimpleNamespace, rotary: bool = False, **more: object) -> torch.nn.Module:
    """A layer with the reference's weights at default initialisation, in float64."""
    torch.manual_seed(1)
    weights = course().gpt.CausalSelfAttention(course().gpt.GPTConfig(5, n_head=3, n_embd=24)).state_dict()
    made = of.rope.RotaryCausalSelfAttention if rotary else of.gpt.CausalSelfAttention
    model = made(of.gpt.GPTConfig(5, **{"n_head": 3, "n_embd": 24, "block_size": 8, **more})).double().eval()
    model.load_state_dict(weights, strict=False)
    return model


def observe_heads(of: types.SimpleNamespace) -> dict[str, Callable[[], object]]:
    def dropped_out() -> Tensor:
        model = layer(of, dropout=0.3)
        torch.manual_seed(9)
        return model(draw(2, 5, 24))

    return {
        "count": lambda: [p.numel() for p in of.gpt.CausalSelfAttention(of.gpt.GPTConfig(5)).parameters()],
        "refused": lambda: of.gpt.CausalSelfAttention(of.gpt.GPTConfig(5, n_head=4, n_embd=30)).n_head,
        "split": lambda: layer(of).split_heads(draw(2, 5, 24)),
        "merge": lambda: layer(of).merge_heads(draw(2, 3, 5, 8)),
        "weights": lambda: layer(of).attention_weights(draw(2, 3, 5, 8), draw(2, 3, 5, 8, seed=3)),
        "eval": dropped_out,
        **{f"forward {T}": lambda T=T: layer(of)(draw(2, T, 24)) for T in (1, 5, 8)},
    }


def observe_rope(of: types.SimpleNamespace) -> dict[str, Callable[[], object]]:
    x, p, turn = draw(2, 3, 7, 8), torch.arange(7), of.rope.apply_rope
    return {
        "frequencies": lambda: torch.cat([of.rope.rope_frequencies(8), of.rope.rope_frequencies(6, 100.0)]),
        "refused": lambda: of.rope.rope_frequencies(5),
        "turned": lambda: torch.cat([turn(x, p), turn(x, p + 40), turn(x, 0.3 * p)]),
        "base": lambda: turn(x, p, 100.0),
        "half": lambda: turn(x.half(), p + 3000),
        "forward": lambda: layer(of, rotary=True)(draw(2, 5, 24)),
        "part": lambda: layer(of, rotary=True, rotary_dim=4)(draw(2, 5, 24)),
    }


def observe_order(of: types.SimpleNamespace) -> dict[str, Callable[[], object]]:
    lesson, tokenizer = of.heads_positions, of.gpt.CharTokenizer("白日依山尽")

    def model(n_layer: int) -> torch.nn.Module:
        torch.manual_seed(4)
        made = of.gpt.GPT(of.gpt.GPTConfig(5, n_layer=n_layer, n_embd=32)).double().eval()
        with torch.no_grad():  # larger weights than at initialisation, so that every difference shows
            for parameter in made.parameters():
                parameter.add_(0.1 * draw(*parameter.shape))
        return made

    def difference(n_layer: int, first: str, second: str) -> object:
        value = lesson.order_difference(model(n_layer), tokenizer, first, second)
        return float(value)

    def cleared() -> Tensor:
        with torch.enable_grad():
            given = model(1)
            blind = lesson.without_positions(given)
        tables = (blind.pos_emb.weight, blind.tok_emb.weight, given.pos_emb.weight)
        return torch.cat([table.detach().flatten() for table in tables])

    def table(seed: int) -> list[tuple[object, ...]]:
        return [tuple(row) for row in lesson.order_table(seed)]

    return {
        "cleared": cleared,
        "table 0": lambda: table(0),
        "table 1": lambda: table(1),
        **{
            f"{n_layer} {first} {second}": lambda n=n_layer, a=first, b=second: difference(n, a, b)
            for n_layer in (1, 2)
            for first, second in combinations(("白日依山尽", "山依日白尽", "日白依山尽"), 2)
        },
        "back": lambda: difference(1, "山依日白尽", "白日依山尽"),
    }


OBSERVE = {"heads": observe_heads, "order": observe_order, "rope": observe_rope}


@cache
def behaviour(exercise: str, variant: Variant | None = None) -> dict[str, object]:
    with torch.no_grad():
        of = course(variant)
        return {name: attempt(call) for name, call in OBSERVE[exercise](of).items()}


def alike(one: object, other: object, atol: float = 1e-12) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        same = one.shape == other.shape and one.dtype == other.dtype
        return same and torch.allclose(one, other, rtol=0, atol=atol, equal_nan=True)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(alike(a, b, atol) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=0, abs_tol=atol)
    return one == other


def spectrum_error(of: types.SimpleNamespace, D: int, base: float) -> float:
    """How far the eigen-angles of position m against 0 are from +-m base^(-2i/D), in any convention."""

    def matrix(m: int) -> Tensor:
        basis = torch.eye(D, dtype=torch.float64)[:, None]
        return of.rope.apply_rope(basis, torch.tensor([m]), base)[:, 0].T

    worst = 0.0
    for m in (1, 2, 5):
        values = torch.linalg.eigvals(matrix(m) @ torch.linalg.pinv(matrix(0)))
        angles = [sign * m * base ** (-2 * i / D) for i in range(D // 2) for sign in (1, -1)]
        expected = torch.tensor(angles, dtype=torch.float64)
        for of_one in (torch.cos, torch.sin):
            found = of_one(values.angle()).sort().values
            worst = max(worst, (found - of_one(expected).sort().values).abs().max().item())
        worst = max(worst, (values.abs() - 1).abs().max().item())
    return worst


@pytest.mark.parametrize("variant", VARIANTS["accepted"], ids=lambda v: v.id)
def test_an_accepted_form_equals_the_reference(variant: Variant) -> None:
    expected, found = behaviour(variant.exercise), behaviour(variant.exercise, variant)
    if variant.exercise != "rope":
        for name, value in found.items():
            if name == "refused":  # the wording is free, the numbers are not
                assert str(value).startswith("ValueError") and "30" in str(value) and "4" in str(value)
            elif name.startswith("table"):  # float32: a subtraction in float64 differs by its rounding, 2e-9 here
                assert alike(value, expected[name], 1e-8), name
            elif name != "count" or variant.id != "heads.divmod-check":  # which makes proj before qkv
                assert alike(value, expected[name], 1e-14), name
        return
    assert str(found["refused"]).startswith("ValueError") and "5" in str(found["refused"])
    float32 = 1e-7  # frequencies in float32 are declared good enough: the error that this makes at these angles
    for D, base in ((8, 10000.0), (6, 100.0)):
        assert spectrum_error(course(variant), D, base) < float32
    conventions = [None, *(v for v in VARIANTS["accepted"] if v.id in CONVENTIONS)]
    for name in ("forward", "part"):
        assert any(alike(found[name], behaviour("rope", c)[name], float32) for c in conventions), name


def test_the_four_conventions_of_rope_really_differ() -> None:
    conventions = [None, *(v for v in VARIANTS["accepted"] if v.id in CONVENTIONS)]
    assert len(conventions) == 4
    for one, other in combinations(conventions, 2):
        assert not alike(behaviour("rope", one)["forward"], behaviour("rope", other)["forward"], 1e-3)


@pytest.mark.parametrize("kind", ["misconceptions", "degenerate"])
@pytest.mark.parametrize("exercise", sorted(OBSERVE))
def test_wrong_answers_differ_from_the_reference_and_from_each_other(exercise: str, kind: str) -> None:
    wrong: list[Variant | None] = [v for v in VARIANTS[kind] if v.exercise == exercise]
    for one, other in combinations([None, *wrong], 2):
        first, second = behaviour(exercise, one), behaviour(exercise, other)
        assert any(not alike(first[name], second[name], 1e-6) for name in first), (one, other)
