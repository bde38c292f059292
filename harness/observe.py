"""What a check saw of the student's answers, in order: the footprint by which a known mistake is recognised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from harness.worker import protocol
from harness.worker.client import Handle
from harness.worker.protocol import Ref


class Mismatch(BaseException):
    """A run that was to repeat another's answers gave a different one: the rest of the check is not worth running.

    Not an Exception, so that no check can catch it by accident.
    """


class _Log:
    def __init__(self, expected: Sequence[object] | None) -> None:
        self.seen: list[object] = []
        self.expected = expected

    def add(self, value: object) -> None:
        self.seen.append(value)
        if self.expected is not None:
            place = len(self.seen) - 1
            if place >= len(self.expected) or not alike(self.expected[place], value):
                raise Mismatch


_log: ContextVar[_Log | None] = ContextVar("log", default=None)

# Two runs of the same arithmetic, in another order or with another mask value, differ by rounding: at most 2e-15 in
# float64 and 1e-6 in float32 on the lesson's sizes, relative to the largest value. Different mistakes differ by 1e-2.
_ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-1}


@contextmanager
def observing(expected: Sequence[object] | None = None) -> Iterator[list[object]]:
    """Collect what the comparisons within are given; with `expected`, raise Mismatch at the first that is not alike."""
    log = _Log(expected)
    token = _log.set(log)
    try:
        yield log.seen
    finally:
        _log.reset(token)


def observe(value: object) -> None:
    """Note an answer of the student; comparisons call this before they judge."""
    log = _log.get()
    if log is not None:
        log.add(value)


class _Nothing:
    """What could not be kept: alike to nothing."""


def keep(value: object) -> bytes:
    """An observed value as bytes; of a handle, only that it is one. None for what is not data."""
    try:
        return bytes(protocol.pack(_as_data(value)))
    except protocol.ProtocolError:
        return b""


def _as_data(value: object) -> object:
    if isinstance(value, Handle):
        return Ref(0)
    if isinstance(value, tuple | list):
        return type(value)(map(_as_data, value))
    if isinstance(value, dict):
        return {key: _as_data(item) for key, item in value.items()}
    return value


def kept(data: bytes) -> object:
    """The value that `keep` made bytes of, or something that is alike to nothing."""
    return protocol.unpack(data) if data else _Nothing()


def alike(first: object, second: object) -> bool:
    """Whether two observed values are the same but for rounding."""
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        if first.shape != second.shape or first.dtype != second.dtype:
            return False
        if torch.equal(first, second):  # as it is mostly, and sooner known
            return True
        if not first.is_floating_point():
            return False
        scale = float(torch.nan_to_num(second.abs(), posinf=0.0).max()) if second.numel() else 0.0
        rounding = _ROUNDING[second.dtype]
        return torch.allclose(first, second, rtol=rounding, atol=rounding * scale, equal_nan=True)
    if isinstance(first, float) and isinstance(second, float):
        return abs(first - second) <= 1e-9 + 1e-4 * abs(second) or (first != first and second != second)
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(map(alike, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(alike(item, second[key]) for key, item in first.items())
    if isinstance(first, Handle | Ref) and isinstance(second, Handle | Ref):
        return True  # objects that stay with their owners: what is asked of them is observed by itself
    return type(first) is type(second) and first == second
