"""Submissions whose functions return junk: no points, no fault of the grader, exit status 1.

A wrapper replaces each function that a student writes. It makes junk from the right answer, so that zeros, noise and
the like have the right shape and get as far into the checks as junk can.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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

import copy as _copy, sys as _sys, torch
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
    if isinstance(y, (int, float)):
        made = f(torch.tensor(float(y)))
        return made.item() if made.numel() == 1 and not made.is_meta else made
    return y
def _spoil(owner, name, kinds):
    right, calls = getattr(owner, name), []
    def junk(*args, **kwargs):
        y = right(*args, **kwargs)
        if {"gpt": {"rope", "heads_positions", "cache"}, "rope": {"cache"}}.get(__name__, set()) & set(_sys.modules):
            return y  # each exercise has a process of its own: where others are judged, what they import is right
        calls.append(name)
        return kinds[(len(calls) - 1) % len(kinds)](y, args)
    setattr(owner, name, junk)
"""

HEADS = [("CausalSelfAttention", name) for name in ("split_heads", "attention_weights", "merge_heads", "forward")]
ORDER = [("", name) for name in ("order_difference", "without_positions", "order_table")]
ROPE = [("", "rope_frequencies"), ("", "apply_rope"), ("RotaryCausalSelfAttention", "forward")]
POSITIONS = [("LearnedPositions", "forward"), ("", "sinusoidal_encoding"), ("", "interpolate_positions")]
SHARING = [("", "share_heads"), ("", "cache_numbers")]
SHARING += [("GroupedQueryAttention", name) for name in ("keys_and_values", "forward")]
CACHE = [("KeyValueCache", "extend"), ("", "visible"), ("CachedAttention", "forward")]
CACHE += [("CachedRotaryAttention", "place"), ("CachedGPT", "read")]
FILES = {
    "gpt.py": HEADS,
    "heads_positions.py": ORDER,
    "rope.py": ROPE,
    "positions.py": POSITIONS,
    "sharing.py": SHARING,
    "cache.py": CACHE,
}
EXERCISES = ("heads", "order", "rope", "positions", "sharing", "cache")  # of FILES, one by one
FUNCTIONS = [(file, *function) for file, functions in FILES.items() for function in functions]


def spoilt(file: str, functions: list[tuple[str, str]], kinds: list[str]) -> str:
    """The reference's file with junk from these functions, the kinds in turn."""
    made = ", ".join(f"lambda y, args: {kind}" for kind in kinds)
    lines = [f"_spoil({owner or '_sys.modules[__name__]'}, {name!r}, [{made}])\n" for owner, name in functions]
    return (ROOT / "reference" / file).read_text(encoding="utf-8") + TOOLS + "".join(lines)


def graded(command: Command, folder: Path, files: dict[str, str], exercises: str) -> dict[str, Any]:
    """The report of the reference with some files replaced; asserts what junk may never do."""
    for name in FILES:
        text = files.get(name) or (ROOT / "reference" / name).read_text(encoding="utf-8")
        (folder / name).write_text(text, encoding="utf-8")
    done = command.run(folder, "--exercise", exercises, "--json", folder / "report.json")
    assert done.status == 1, done.stderr
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    ended = [check for exercise in report["exercises"] for check in exercise["checks"]]
    assert [check for check in ended if check["status"] == "grader_error"] == []
    assert not report["review"]
    return report


@pytest.mark.parametrize("kind", KINDS)
def test_junk_from_every_function_earns_nothing(command: Command, tmp_path: Path, kind: str) -> None:
    files = {file: spoilt(file, functions, [KINDS[kind]]) for file, functions in FILES.items()}
    report = graded(command, tmp_path, files, ",".join(EXERCISES))
    heads, *others = report["exercises"]
    passed = {check["id"] for check in heads["checks"] if check["points"]}
    assert passed <= {"heads.parameters", "heads.divides"}  # those of __init__, which is not spoilt
    earned = {check["id"] for exercise in others for check in exercise["checks"] if check["points"]}
    assert earned <= {"sharing.divides", "sharing.parameters"}  # as above


@pytest.mark.parametrize(("file", "owner", "name"), FUNCTIONS, ids=[f"{f[0][:-3]}-{f[2]}" for f in FUNCTIONS])
def test_junk_of_another_kind_at_every_call(command: Command, tmp_path: Path, file: str, owner: str, name: str) -> None:
    """Answers that change from call to call, from one function only, get past the first comparison of a check."""
    exercise = dict(zip(FILES, EXERCISES, strict=True))[file]
    kinds = [kind for kind in KINDS.values() for kind in ("y", kind)]  # each after a right answer
    report = graded(command, tmp_path, {file: spoilt(file, [(owner, name)], kinds)}, exercise)
    (result,) = report["exercises"]
    assert result["earned"] < result["possible"]


@pytest.mark.parametrize("value", ["None", "3", "'text'", "lambda *args, **kwargs: None", "[]"])
def test_junk_in_place_of_functions_and_classes(command: Command, tmp_path: Path, value: str) -> None:
    files = {}
    for file, functions in FILES.items():
        names = {owner or name for owner, name in functions} | ({"GPT"} if file == "gpt.py" else set())
        text = (ROOT / "reference" / file).read_text(encoding="utf-8")
        files[file] = text + "".join(f"\n{name} = {value}\n" for name in sorted(names))
    report = graded(command, tmp_path, files, ",".join(EXERCISES))
    assert report["score"]["earned"] == report["score"]["bonus"] == 0
