"""Submissions whose functions return junk: no points, no fault of the grader, exit status 1.

A wrapper replaces each function that a student writes. It makes junk from the right answer, so that zeros, noise and
the like have the right shape and get as far into the checks as junk can.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.quiz import SHEET, read_quiz
from tests.support.command import ROOT, Command

pytestmark = pytest.mark.slow  # every check of every exercise fails, and is diagnosed, in each of these

# Junk by name: an expression of y, the right answer, and of args, what the function was called with. `like(y, f)` is y
# with every tensor and number replaced by what f makes of it.
KINDS = {
    "none": "None",
    "text": "'a string'",
    "too-long-int": "10**30",
    "true": "True",
    "object": "object()",
    "nested": "[[1, [2.0, None]], [[[[[]]]]], 'x']",
    "deep": "deep()",
    "dict": "{'logits': 0.0, 'b': None}",
    "tuple": "(like(y, torch.zeros_like), None)",
    "more-axes": "like(y, lambda t: t[..., None, None].expand(*t.shape, 2, 3))",
    "shorter": "like(y, lambda t: t.reshape(-1)[:-1])",
    "integers": "like(y, lambda t: torch.ones_like(t).long())",
    "booleans": "like(y, lambda t: torch.ones_like(t) > 0)",
    "complex": "like(y, lambda t: t * 1j)",
    "nan": "like(y, lambda t: torch.full_like(t, float('nan')))",
    "infinity": "like(y, lambda t: torch.full_like(t, float('inf')))",
    "huge": "like(y, lambda t: torch.rand(t.shape, dtype=torch.float64) * 1e300)",
    "subclass": "like(y, lambda t: torch.zeros_like(t).as_subclass(Liar))",
    "sparse": "like(y, lambda t: torch.zeros_like(t).to_sparse() if t.dim() else t * 0)",
    "meta": "like(y, lambda t: t.to('meta'))",
    "zeros": "like(y, torch.zeros_like)",
    "ones": "like(y, torch.ones_like)",
    "noise": "like(y, lambda t: torch.rand(t.shape, dtype=t.dtype))",
    "input": "next((a for a in args if not isinstance(a, torch.nn.Module) or isinstance(y, torch.nn.Module)), 0.0)",
    "raises-value-error": "throw(ValueError('no'))",
    "raises-interrupt": "throw(KeyboardInterrupt())",
    "raises-exit": "throw(SystemExit(0))",
    "raises-group": "throw(BaseExceptionGroup('several', [KeyboardInterrupt()]))",
}

TOOLS = """

import copy as _copy, dataclasses as _dataclasses, sys as _sys, torch
class Liar(torch.Tensor):
    def __eq__(self, other): return True
    __hash__ = torch.Tensor.__hash__
    def allclose(self, *args, **kwargs): return True
def throw(error): raise error
def deep():
    value = []
    for _ in range(40): value = [value]
    return value
def like(y, f):
    if isinstance(y, torch.nn.Module):
        other = _copy.deepcopy(y)
        for parameter in other.parameters():
            try: parameter.data = f(parameter.data)
            except (RuntimeError, TypeError): return f(torch.ones(3))  # a parameter takes no integers, say
        return other
    if isinstance(y, torch.Tensor): return f(y)
    if isinstance(y, (tuple, list)): return type(y)(like(item, f) for item in y)
    if isinstance(y, dict): return {name: like(item, f) for name, item in y.items()}
    if isinstance(y, str): return str(f(torch.ones(2)))
    if _dataclasses.is_dataclass(y):
        other = _copy.copy(y)
        for name, item in vars(y).items(): object.__setattr__(other, name, like(item, f))
        return other
    if isinstance(y, (int, float)):
        made = f(torch.tensor(float(y)))
        return made.item() if made.numel() == 1 and not made.is_meta else made
    return y
def _spoil(owner, name, kinds):
    right, calls = getattr(owner, name), []
    def junk(*args, **kwargs):
        calls.append(name)
        return kinds[(len(calls) - 1) % len(kinds)](right(*args, **kwargs), args)
    setattr(owner, name, junk)
"""

# What a student writes for each exercise, by file.
EXERCISES: dict[str, dict[str, list[tuple[str, str]]]] = {
    "heads": {
        "gpt.py": [
            ("CausalSelfAttention", name) for name in ("split_heads", "attention_weights", "merge_heads", "forward")
        ]
    },
    "order": {"heads_positions.py": [("", name) for name in ("order_difference", "without_positions", "order_table")]},
    "rope": {"rope.py": [("", "rope_frequencies"), ("", "apply_rope"), ("RotaryCausalSelfAttention", "forward")]},
    "positions": {
        "positions.py": [("LearnedPositions", "forward"), ("", "sinusoidal_encoding"), ("", "interpolate_positions")]
    },
    "sharing": {
        "sharing.py": [
            ("", "share_heads"),
            ("", "cache_numbers"),
            ("GroupedQueryAttention", "keys_and_values"),
            ("GroupedQueryAttention", "forward"),
        ]
    },
    "cache": {
        "cache.py": [
            ("KeyValueCache", "extend"),
            ("", "visible"),
            ("CachedAttention", "forward"),
            ("CachedRotaryAttention", "place"),
            ("CachedGPT", "read"),
        ]
    },
    "maps": {"attention_maps.py": [("", "attention_maps")]},
    "pruning": {"pruning.py": [("", name) for name in ("silence_head", "head_importance", "rank_heads")]},
    "training": {
        "corpus.py": [("", "split_poems")],
        "train.py": [("", name) for name in ("cut_windows", "training_step", "evaluate")],
        "compare.py": [("", "compare")],
    },
}
FUNCTIONS = [
    (exercise, file, *function)
    for exercise, files in EXERCISES.items()
    for file, functions in files.items()
    for function in functions
]
ONCE = {"order_table"}  # what a check calls a single time: a right answer would be all that it sees
# What junk may earn: these checks look at what is not spoilt, __init__ or what a step has done to the model.
RIGHT = {
    "heads": {"heads.parameters", "heads.divides"},
    "sharing": {"sharing.divides", "sharing.parameters"},
    "training": {"training.step", "training.step-fresh"},
}


def spoilt(file: str, functions: list[tuple[str, str]], kinds: list[str]) -> str:
    """The reference's file with junk from these functions, the kinds in turn."""
    made = ", ".join(f"lambda y, args: {kind}" for kind in kinds)
    lines = [f"_spoil({owner or '_sys.modules[__name__]'}, {name!r}, [{made}])\n" for owner, name in functions]
    return (ROOT / "reference" / file).read_text(encoding="utf-8") + TOOLS + "".join(lines)


def graded(command: Command, folder: Path, files: dict[str, str], exercise: str) -> list[dict[str, Any]]:
    """The checks of the reference with some files replaced; asserts what junk may never do."""
    for path in (ROOT / "reference").glob("*.py"):
        (folder / path.name).write_text(files.get(path.name) or path.read_text(encoding="utf-8"), encoding="utf-8")
    done = command.run(folder, "--exercise", exercise, "--json", folder / "report.json")
    assert done.status == 1, done.stderr
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    (result,) = report["exercises"]
    checks: list[dict[str, Any]] = result["checks"]
    assert [check for check in checks if check["status"] == "grader_error"] == []
    assert not report["review"]
    return checks


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_junk_from_every_function_earns_nothing(command: Command, tmp_path: Path, exercise: str, kind: str) -> None:
    files = {file: spoilt(file, functions, [KINDS[kind]]) for file, functions in EXERCISES[exercise].items()}
    checks = graded(command, tmp_path, files, exercise)
    assert {check["id"] for check in checks if check["points"]} <= RIGHT.get(exercise, set())


@pytest.mark.parametrize(
    ("exercise", "file", "owner", "name"), FUNCTIONS, ids=[f"{f[0]}-{f[1][:-3]}-{f[3]}" for f in FUNCTIONS]
)
def test_junk_of_another_kind_at_every_call(
    command: Command, tmp_path: Path, exercise: str, file: str, owner: str, name: str
) -> None:
    """Answers that change from call to call, from one function only, get past the first comparison of a check."""
    kinds = [kind for kind in KINDS.values() for kind in ("y", kind)]  # each after a right answer
    if name in ONCE:
        kinds = kinds[1:]
    checks = graded(command, tmp_path, {file: spoilt(file, [(owner, name)], kinds)}, exercise)
    assert any(check["points"] < check["possible"] for check in checks)


@pytest.mark.parametrize("value", ["None", "3", "'text'", "lambda *args, **kwargs: None", "[]"])
@pytest.mark.parametrize("exercise", EXERCISES)
def test_junk_in_place_of_functions_and_classes(command: Command, tmp_path: Path, exercise: str, value: str) -> None:
    files = {}
    for file, functions in EXERCISES[exercise].items():
        names = {owner or name for owner, name in functions} | ({"GPT"} if file == "gpt.py" else set())
        text = (ROOT / "reference" / file).read_text(encoding="utf-8")
        files[file] = text + "".join(f"\n{name} = {value}\n" for name in sorted(names))
    assert not any(check["points"] for check in graded(command, tmp_path, files, exercise))


@pytest.mark.parametrize(
    "value",
    ["nan", "inf", "-7", "1e999", "true", "1979-05-27T07:32:00Z", "[[1], 'c']", "{a = 'c'}", "'\\u0000'", "'z'"],
)
def test_junk_in_the_sheet_of_the_quiz(command: Command, tmp_path: Path, value: str) -> None:
    sheet = "".join(f"{question.id} = {value}\n" for question in read_quiz(ROOT / "graders" / "quiz.toml"))
    (tmp_path / SHEET).write_text(sheet, encoding="utf-8")
    checks = graded(command, tmp_path, {}, "quiz")
    assert not any(check["points"] for check in checks)
    assert {check["status"] for check in checks} <= {"failed", "pending"}
