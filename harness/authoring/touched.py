"""Which mistakes can show in a check: those in functions that the check runs. The others need not be tried.

A check that runs on the reference goes the same way on a mistaken version, up to the first call of a function that was
replaced. If it calls none of them it ends as on the reference: it passes.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType, ModuleType

from harness.authoring.variants import Variant

_ABSENT = object()


Called = set[tuple[CodeType, int]]  # code, and the id of the globals that it runs in: modules may share their code


@contextmanager
def calls() -> Iterator[Called]:
    """Collects every Python function that this thread calls meanwhile."""
    seen: Called = set()

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.add((frame.f_code, id(frame.f_globals)))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield seen
    finally:
        sys.setprofile(before)


def can_show(variant: Variant, modules: Mapping[str, ModuleType], called: Called) -> bool:
    """Whether a check that calls these functions of the reference may end otherwise on `variant`.

    Args:
        variant: functions in place of the reference's.
        modules: the reference's, loaded.
        called: what the check called of them.
    """
    target = modules[variant.module]
    return any(
        _may_run(getattr(target, function.owner) if function.owner else target, function.name, called)
        for function in variant.functions
    )


def _may_run(owner: object, name: str, called: Called) -> bool:
    """Whether the function that is replaced, or hidden, or added, is run. In doubt it is."""
    there = inspect.getattr_static(owner, name, _ABSENT)
    if there is _ABSENT:  # an addition: only functions that are replaced know it, or Python itself
        return name.startswith("__")
    match there:
        case staticmethod() | classmethod():
            there = there.__func__
        case property(fget=FunctionType() as getter, fset=None, fdel=None):
            there = getter
    if not isinstance(there, FunctionType) or hasattr(there, "__wrapped__"):  # a cache may have answered for it
        return True
    return (there.__code__, id(there.__globals__)) in called
