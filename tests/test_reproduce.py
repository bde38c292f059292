"""The `reproduce` lines of every check run beside the reference, and show there what their comments say."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from harness.course import ROOT, read_course
from harness.grading import CheckInfo

REFERENCE = ROOT / "reference"
MODULES = tuple(path.stem for path in REFERENCE.glob("*.py"))


def checks() -> list[CheckInfo]:
    """What every check of the course says of itself."""
    found = []
    for exercise in read_course().exercise:
        spec = importlib.util.spec_from_file_location(f"grader_{exercise.id}", ROOT / "graders" / exercise.grader)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for test in vars(module).values():
            found += [mark.args[0] for mark in getattr(test, "pytestmark", []) if mark.name == "check"]
    return found


CHECKS = checks()


@pytest.fixture(scope="module", autouse=True)
def beside_the_reference() -> Iterator[None]:
    """`from gpt import ...` finds the reference's files, here only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REFERENCE))
        for name in MODULES:
            patch.delitem(sys.modules, name, raising=False)
        yield
        for name in MODULES:
            sys.modules.pop(name, None)


def shown(source: str) -> str:
    """What the lines print."""
    out = io.StringIO()
    torch.manual_seed(0)
    with contextlib.redirect_stdout(out):
        exec(compile(source, "<reproduce>", "exec"), {"__name__": "prompt"})
    return out.getvalue()


def numbers(text: str) -> list[float]:
    """Every number in what was printed; what is part of a word is none."""
    text = re.sub(r"grad_fn=<\w+>|torch\.\w+|dtype=\S+", "", text)
    return [float(number) for number in re.findall(r"(?<![\w.])-?\d+\.?\d*(?:e[-+]?\d+)?", text)]


def rounding(values: list[float]) -> bool:
    return bool(values) and max(map(abs, values)) < 1e-5


def near(*expected: float) -> Callable[[list[float]], bool]:
    return lambda values: values == pytest.approx(expected, abs=2e-4)


def same_twice(values: list[float]) -> bool:
    return len(values) == 2 and always_the_same(values)


def always_the_same(values: list[float]) -> bool:
    return values[0] != 0 and len(values) > 1 and values == pytest.approx([values[0]] * len(values), abs=1e-9)


def zeros_right_of_the_diagonal(values: list[float]) -> bool:
    table = torch.tensor(values).view(5, 5)
    return bool((table.triu(1) == 0).all()) and bool((table.tril() + torch.ones(5, 5).triu(1) > 0).all())


def constant_along_diagonals(values: list[float]) -> bool:
    table = torch.tensor(values).view(6, 6)
    return torch.allclose(table[1:, 1:], table[:-1, :-1], atol=1e-3) and float(table[0].std()) > 0.01


# What the numbers that a snippet prints must be like, on the reference. The two checks of errors print a text.
CLAIMS: dict[str, Callable[[list[float]], bool]] = {
    "heads.parameters": near(1, 3168, 1056, 2, 3168, 1056, 4, 3168, 1056, 8, 3168, 1056),
    "heads.divides": near(30, 4),
    "heads.split-lesson": near(1, 4, 5, 8, *range(8, 16)),
    "heads.split": near(0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19, 20),
    "heads.merge": near(0, 1, 2, 12, 13, 14),
    "heads.weights-rows": near(1, 4, 5, 5, *[1] * 20),
    "heads.weights-future": zeros_right_of_the_diagonal,
    "heads.weights": near(0.1192, 0.8808),
    "heads.forward": rounding,
    "heads.constant-tokens": rounding,
    "heads.causal": lambda v: rounding(v[:4]) and min(v[4:]) > 1e-3 and len(v) == 6,
    "heads.prefix": rounding,
    "heads.independent": lambda v: min(v[:4]) > 1e-4 and rounding(v[4:]) and len(v) == 12,
    "heads.batch": rounding,
    "heads.lengths": near(1, 1, 1, 12, 2, 1, 2, 12, 15, 1, 15, 12, 16, 1, 16, 12),
    "heads.eval": near(0),
    "order.difference": lambda v: v[0] > 1e-4 and v == pytest.approx([v[0]] * 2, rel=1e-3),
    "order.figures": lambda v: len(v) == 2 and all(7e-4 < value < 9e-2 for value in v),
    "order.mode": lambda v: len(v) == 1 and v[0] > 1e-4,
    "order.without-positions": near(0, 0),
    "order.untouched": same_twice,
    "order.blind": lambda v: len(v) == 3 and max(v) < 1e-6,
    "order.sighted": lambda v: len(v) == 4 and min(v[:3]) > 1e-4 and v[3] == 0,
    "order.deeper": lambda v: v[::2] == [1, 2, 3] and v[1] < 1e-6 and min(v[3], v[5]) > 5e-3,
    "order.table": lambda v: v[0:9:3] == [1, 2, 3] and v[9:] == v[6:9],
    "rope.frequencies": near(1, 0.1, 1, 0.1, 0.01, 0.001),
    "rope.odd": lambda v: v[0] == 3 and 5 in v[1:],
    "rope.norm": rounding,
    "rope.same-position": rounding,
    "rope.relative": constant_along_diagonals,
    "rope.composition": rounding,
    "rope.spectrum": near(-0.4161, -0.4161, 0.9801, 0.9801),
    "rope.shapes": near(5, 6, 3, 5, 6, 2, 3, 5, 6, 1, 2, 3, 5, 6),
    "rope.positions": near(-0.9365, -0.9365),
    "rope.long": lambda v: len(v) == 2 and v[0] == pytest.approx(v[1], abs=5e-3),
    "rope.dtype": lambda v: v[0] < 0.05,
    "rope.float64": lambda v: abs(v[0]) < 1e-12,
    "rope.layer": lambda v: v[0] > 1e-4 and v[1] == 0,
    "rope.values": rounding,
    "rope.rotary-dim": near(4, 1, 5, 12),
    "rope.follows": lambda v: v == [],
    "rope.sentences": lambda v: 1e-5 < v[0] < 1e-2,
    "positions.table": near(4, 5, 6, 7, 8, 9),
    "positions.table-end": lambda v: v[:3] == [1, 128, 2] and v.count(129) == v.count(128) - 1 == 2,
    "positions.sinusoidal": near(0, 1, 0, 1, math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)),
    "positions.sinusoidal-odd": near(3, 5, 0, 1, 0, 0.8415, 0.5403, 0.0022),
    "positions.sinusoidal-far": near(0, -0.6639, -0.7478),
    "positions.sinusoidal-distance": constant_along_diagonals,
    "positions.interpolation": near(0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5),
    "positions.interpolation-short": near(0, 1, 2, 3, 0, 0.5, 1, 1.5),
    "sharing.divides": lambda v: v[0] == 2 and {4, 3} <= set(v[1:3]) and {30, 4} <= set(v[3:]),
    "sharing.parameters": near(4, 1056, 1056, 1056, 1056, 2, 1056, 528, 528, 1056, 1, 1056, 264, 264, 1056),
    "sharing.groups": near(10, 10, 10, 20, 20, 20),
    "sharing.cache": near(60, 1, 2, 5, 3, 60),
    "sharing.forward": rounding,
    "sharing.ordinary": rounding,
    "sharing.perturb": lambda v: min(v[:6]) > 1e-4 and rounding(v[6:]) and len(v) == 12,
    "cache.extend": near(11, 0, 0, 0, 1),
    "cache.visible": near(1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1),
    "cache.kept": near(1, 3, 6, 4, 1, 3, 6, 4, 0),
    "cache.forget": rounding,
    "cache.one-pass": rounding,
    "cache.learned": rounding,
    "cache.pieces": rounding,
    "cache.start": rounding,
    "cache.rope": rounding,
    "maps.values": lambda v: v[:4] == [3, 2, 5, 5] and zeros_right_of_the_diagonal(v[4:]),
    "maps.trained": near(2, 4, 12, 12),
    "maps.dropout": near(0),
    "maps.untouched": near(0),
    "maps.rope": rounding,
    "pruning.silence": lambda v: len(v) == 12 and min(v[:8]) > 0.1 and v[8:] == [0] * 4,
    "pruning.copy": same_twice,
    "pruning.all-silent": near(0),
    "pruning.importance": lambda v: v[:2] == [2, 3] and rounding(v[2:]),
    "pruning.trained": lambda v: v == [],
    "pruning.rank": near(1, 1, 0, 0, 1, 0, 0, 2, 1, 2, 0, 1),
    "pruning.ties": near(0, 1, 1, 0, 0, 0, 1, 1),
    "training.split": near(17, 6),
    "training.split-seed": lambda v: v[:6] == v[6:12] and len(v) == 18 and v[12:] != v[:6],
    "training.windows": near(*range(3, 7), *range(50, 54), *range(4, 8), *range(51, 55)),
    "training.step": lambda v: v == [],
    "training.step-fresh": always_the_same,
    "training.step-loss": near(0),
    "training.evaluate": rounding,
    "training.evaluate-mode": near(0),
    "training.evaluate-quiet": lambda v: v == [],
    "training.learns": lambda v: v == [],
    "training.compare": near(*(n for seed in (3, 5) for heads in (1, 4, 8) for n in (seed, heads, 24, 7))),
    "training.compare-rows": lambda v: v == [],
    "training.results": near(1, 0, 8.264822, 4, 0, 8.429717),  # of the table below
}


def test_every_check_has_its_claim() -> None:
    assert [info.id for info in CHECKS] == list(CLAIMS)


def test_the_points_make_a_hundred_and_about_ten_for_each_bonus() -> None:
    bonus = {exercise.id for exercise in read_course().exercise if exercise.bonus}
    assert sum(info.points for info in CHECKS if info.exercise not in bonus) == 100
    for exercise in bonus - {"quiz"}:
        assert 8 <= sum(info.points for info in CHECKS if info.exercise == exercise) <= 14


@pytest.mark.parametrize("info", CHECKS, ids=lambda info: info.id)
def test_the_lines_run_and_show_what_they_say(info: CheckInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Path(__file__).parent / "submissions" / "results_of_runs" / "files" / "runs.csv"
    (tmp_path / "runs.csv").write_bytes(table.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert 1 <= len(info.reproduce.splitlines()) <= 5
    text = shown(info.reproduce)
    assert CLAIMS[info.id](numbers(text)), text


@pytest.mark.parametrize(
    ("id", "words"),
    [
        ("maps.dropout", "True"),
        ("pruning.trained", "tensor(True)"),
        ("training.split", "none"),
        ("training.step", "True"),
        ("training.step-loss", "False"),
        ("training.evaluate-mode", "True"),
        ("training.evaluate-quiet", "False None"),
        ("training.learns", "True"),
        ("training.compare-rows", "True\nTrue\nTrue"),
    ],
)
def test_the_words_that_snippets_show(id: str, words: str) -> None:
    source = next(info.reproduce for info in CHECKS if info.id == id)
    assert shown(source).strip().endswith(words)


def test_the_dtype_snippets_name_the_dtypes() -> None:
    sources = {info.id: info.reproduce for info in CHECKS}
    assert shown(sources["rope.follows"]).split() == ["torch.float64", "torch.bfloat16"]
    assert shown(sources["rope.dtype"]).startswith("torch.bfloat16 ")


def test_no_snippet_leaves_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for info in CHECKS:
        shown(info.reproduce)
    assert not list(tmp_path.iterdir())
