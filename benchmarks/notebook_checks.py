"""The course's checks on what a notebook has defined, for benchmarks/peers.py: imported inside a peer's kernel.

`run("heads.split-shape", globals())` returns when the check passes and raises when it does not. All modules that a
check asks for are the notebook itself. There is no isolation: the peers have none to offer.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import types
from collections.abc import Callable, Mapping

from harness.bench import Bench
from harness.course import read_course
from harness.grading import CheckInfo
from harness.submission import Submission
from harness.worker.client import LocalLink
from harness.worker.objects import Objects


def run(id: str, names: Mapping[str, object]) -> None:
    """Take one check.

    Args:
        id: of the check.
        names: what the notebook has defined.

    Raises:
        Exception: the check did not pass.
    """
    info, function = _checks(id.partition(".")[0])[id]
    notebook = types.ModuleType("notebook")
    notebook.__dict__.update(names)
    reference = _bench().reference(info)
    given: dict[str, Callable[[], object]] = {
        "student": lambda: _bench().begin(LocalLink(Objects(lambda _: notebook)), info),
        "reference": lambda: reference,
        "draw": lambda: Bench.inputs(reference),
    }
    wanted = inspect.signature(function).parameters
    function(**{name: make() for name, make in given.items() if name in wanted})


@functools.cache
def _bench() -> Bench:
    course = read_course()
    return Bench(Submission("", {}), course, None, None, course.seed)


@functools.cache
def _checks(exercise: str) -> dict[str, tuple[CheckInfo, Callable[..., object]]]:
    path = read_course().root / "graders" / f"test_{exercise}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {}
    for value in vars(module).values():
        for mark in getattr(value, "pytestmark", []):
            found[mark.args[0].id] = (mark.args[0], value)
    return found
