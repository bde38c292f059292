"""Comparisons for checks. Each returns quietly or raises `Stop(FAILED)` with what was expected and what came.

A student's answer is data of unknown type: pass it through one of these before using it, and a check never fails by
its own fault. Numbers are compared here, in the judge, on copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import torch

from harness.messages import message
from harness.observe import observe
from harness.outcome import Evidence, Message, Scalar, Status, Stop, StudentError
from harness.worker.client import Handle


def tensor(
    actual: object, shape: Sequence[int] | None = None, *, dtype: torch.dtype | None = None, what: str
) -> torch.Tensor:
    """`actual`, if it is a tensor of that shape (and dtype) whose values are all finite."""
    observe(actual)
    if not isinstance(actual, torch.Tensor):
        _fail("expect.tensor", what, "Tensor", describe(actual))
    if actual.is_complex():
        _fail("expect.real", what, "not is_complex()", _dtype(actual))
    if shape is not None and tuple(actual.shape) != tuple(shape):
        wanted, got = str(tuple(shape)), str(tuple(actual.shape))
        _fail("expect.shape", what, wanted, got)
    if dtype is not None and actual.dtype != dtype:
        wanted = str(dtype).removeprefix("torch.")
        _fail("expect.dtype", what, wanted, _dtype(actual))
    if actual.is_floating_point() and not _all_finite(actual):
        where = _first(~torch.isfinite(actual))
        _fail(
            "expect.finite",
            what,
            "isfinite",
            _number(actual, where),
            where,
        )
    return actual


def _all_finite(values: torch.Tensor) -> bool:
    # What is not finite makes the sum so; looking at each value takes five times as long and is seldom needed.
    return math.isfinite(values.sum().item()) or bool(torch.isfinite(values).all())


def close(actual: object, expected: torch.Tensor | float, *, atol: float, what: str) -> None:
    """`actual` has the shape and type of `expected` and differs by at most `atol` anywhere.

    Args:
        actual: the student's answer.
        expected: the right one, a tensor or a number.
        atol: largest absolute difference; the check that uses it says where the figure comes from.
        what: the expression, as a student would write it.
    """
    if not isinstance(expected, torch.Tensor):
        number(actual, expected, atol=atol, what=what)
        return
    got = tensor(actual, expected.shape, what=what)
    if got.dtype != expected.dtype:
        wanted, have = _dtype(expected), _dtype(got)
        _fail("expect.dtype", what, wanted, have)
    if expected.numel() == 0:
        return
    difference = (got.double() - expected.double()).abs()
    error = float(difference.max())
    if error > atol:
        where = _first(difference > atol)
        _fail(
            "expect.close",
            what,
            _number(expected, where),
            _number(got, where),
            where,
            tolerance=atol,
            error=error,
        )


def number(actual: object, expected: float, *, atol: float, what: str) -> None:
    """`actual` is a number (or a tensor of one element) within `atol` of `expected`."""
    observe(actual)
    value = actual.item() if isinstance(actual, torch.Tensor) and actual.numel() == 1 else actual
    if isinstance(value, bool) or not isinstance(value, int | float):
        _fail("expect.number", what, f"{expected:.6g}", describe(actual))
    error = abs(value - expected)
    if not error <= atol:
        _fail(
            "expect.number-close",
            what,
            f"{expected:.6g}",
            f"{value:.6g}",
            tolerance=atol,
            error=error if math.isfinite(error) else None,
        )


def real(actual: object, *, what: str) -> float:
    """`actual` as a float, if it is a finite number or a tensor of one."""
    observe(actual)
    value = actual.item() if isinstance(actual, torch.Tensor) and actual.numel() == 1 else actual
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        _fail("expect.real-number", what, "float",
              describe(value))  # fmt: skip
    return float(value)


def handle(actual: object, *, what: str) -> Handle:
    """`actual`, if it is an object that stays with the student: a model, a layer, a function."""
    if not isinstance(actual, Handle):
        _fail("expect.handle", what, "object",
              describe(actual))  # fmt: skip
    return actual


def items(actual: object, length: int, *, what: str) -> Sequence[object]:
    """`actual`, if it is a tuple or a list of that length."""
    observe(actual)
    if not isinstance(actual, tuple | list) or len(actual) != length:
        _fail("expect.items", what, f"len {length}", describe(actual), length=length)
    return actual


def equal(actual: object, expected: object, *, what: str) -> None:
    """`actual` is exactly `expected`, type included. For counts, names and lists, not for floats."""
    observe(actual)
    if type(actual) is not type(expected) or actual != expected:
        _fail("expect.equal", what, describe(expected), describe(actual))


def zero(actual: torch.Tensor, *, atol: float, what: str) -> None:
    """Every value of `actual` is within `atol` of 0. Pass answers through `tensor` first."""
    close(actual, torch.zeros_like(actual), atol=atol, what=what)


def same(first: torch.Tensor, second: torch.Tensor, *, atol: float, what: str) -> None:
    """Two answers of the student agree within `atol`. Pass both through `tensor` first."""
    tensor(second, tensor(first, what=what).shape, what=what)
    error = float((first.double() - second.double()).abs().max()) if first.numel() else 0.0
    if error > atol:
        where = _first((first.double() - second.double()).abs() > atol)
        _fail(
            "expect.same",
            what,
            _number(first, where),
            _number(second, where),
            where,
            tolerance=atol,
            error=error,
        )


def varies(first: torch.Tensor, second: torch.Tensor, *, by: float, what: str) -> None:
    """Two answers of the student differ by more than `by` somewhere.

    A property that a constant has as well proves nothing: establish with this that the answer depends on what it
    should, before testing that it does not depend on what it should not.
    """
    tensor(second, tensor(first, what=what).shape, what=what)
    error = float((first.double() - second.double()).abs().max()) if first.numel() else 0.0
    if error <= by:
        _fail(
            "expect.varies",
            what,
            f"> {by:g}",
            f"{error:.3g}",
            tolerance=by,
            error=error,
        )


@contextmanager
def on_the_way(check: str) -> Iterator[None]:
    """For what a check must establish before it comes to its own matter: what fails within is judged by `check`, and
    the hint says so."""
    try:
        yield
    except Stop as stop:
        if stop.status is Status.FAILED and stop.hint is None:
            stop.hint = message("expect.on-the-way", check=check)
        raise


def true(condition: bool, id: str, sentence: str, *, what: str, expected: str, actual: str) -> None:
    """For what no other comparison says.

    Args:
        condition: what must hold.
        id: of the sentence, for its translations: the check's, a dot and a word.
        sentence: what to say else, over `what`, `expected` and `actual`.
        what: the expression, as a student would write it.
        expected: in code or numbers, as `actual`; words belong into the sentence.
        actual: what came.
    """
    if not condition:
        said = Message(id, sentence, {"what": what, "expected": expected, "actual": actual})
        raise Stop(Status.FAILED, said, evidence=Evidence(what=what, expected=expected, actual=actual))


def raises(call: Callable[[], object], kind: str, *, mentions: Sequence[object] = (), what: str) -> None:
    """`call` makes the submission raise an exception of class `kind` (by name) whose text mentions all of `mentions`.

    A stub's NotImplementedError never counts: it is passed on, and the check reads as not started.
    """
    try:
        answer = call()
    except StudentError as error:
        if "NotImplementedError" in error.kinds or error.status not in (Status.ERROR, Status.NOT_STARTED):
            raise
        observe((error.kinds[0], error.said))
        if kind not in error.kinds:
            _fail(
                "expect.raises-kind",
                what,
                kind,
                f"{error.kinds[0]}: {error.said}"[:200],
            )
        absent = [str(item) for item in mentions if str(item) not in error.said]
        if absent:
            _fail(
                "expect.raises-text",
                what,
                ", ".join(str(item) for item in mentions),
                error.said[:200],
                kind=kind,
            )
        return
    observe(answer if isinstance(answer, torch.Tensor) else describe(answer))
    _fail("expect.raises", what, kind, describe(answer))


def describe(value: object) -> str:
    """A short text for any value a worker can return, the same in every language: it is shown as code."""
    if isinstance(value, torch.Tensor):
        return f"Tensor {tuple(value.shape)}"
    if isinstance(value, tuple | list | dict):
        text = repr(value) if len(value) <= 20 and not _holds_tensor(value) else ""
        return text if 0 < len(text) <= 60 else f"{type(value).__name__}, len {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _holds_tensor(value: object) -> bool:
    """Whether its text would show numbers of a tensor, which takes milliseconds to make."""
    if isinstance(value, dict):
        return any(map(_holds_tensor, value.values()))
    return any(map(_holds_tensor, value)) if isinstance(value, tuple | list) else isinstance(value, torch.Tensor)


def _fail(
    identity: str,
    what: str,
    expected: str,
    actual: str,
    where: tuple[int, ...] | None = None,
    *,
    tolerance: float | None = None,
    error: float | None = None,
    **more: Scalar,
) -> NoReturn:
    place = "" if where is None else "[" + ", ".join(map(str, where)) + "]"
    said = message(identity, what=what, expected=expected, actual=actual, where=place, **more)
    evidence = Evidence(what=what, expected=expected, actual=actual, tolerance=tolerance, error=error, where=place)
    raise Stop(Status.FAILED, said, evidence=evidence)


def _first(mask: torch.Tensor) -> tuple[int, ...]:
    """The index of the first true element, in row-major order."""
    return tuple(int(i) for i in mask.nonzero()[0])


def _number(values: torch.Tensor, where: tuple[int, ...]) -> str:
    value = values[where].item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _dtype(value: torch.Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
