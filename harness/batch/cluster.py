"""Judging on several machines: the executor that hands orders to a Dask scheduler.

Each Dask worker process keeps a judge of its own, and with it a warm zygote. Orders and reports pass as bytes of
MessagePack: what Dask pickles is our own function and its arguments, never anything that a submission made.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import importlib
import threading
from concurrent.futures import Future
from typing import Any

import msgspec

from harness.batch.executor import patience
from harness.batch.keys import Basis, basis
from harness.batch.scratch import Scratch
from harness.course import course_root, read_course
from harness.judge import JudgeDied, JudgeProcess, Order
from harness.problem import Problem
from harness.report import Report

_CONNECT_SECONDS = 30
_SAME = ("course", "graders", "reference", "harness", "headcheck", "python", "torch")


class Ordered(msgspec.Struct, kw_only=True):
    """What a worker is sent.

    Args:
        order: what to judge.
        isolation: of the workers.
        same: what must be the same over there, by name: graders, reference, harness, Python, torch.
    """

    order: Order
    isolation: str
    same: dict[str, str]


class Outcome(msgspec.Struct, kw_only=True):
    """What a worker sends back: a report, or why there is none. `died`: the judge ended by itself."""

    report: Report | None = None
    problem: str = ""
    help: str = ""
    died: bool = False


class DaskExecutor:
    """Sends orders to a Dask scheduler. Orders of a worker that is lost are judged by another.

    Args:
        address: of the scheduler, as `tcp://10.0.0.1:8786`.
        isolation: `sandbox` or `process`.
        basis: what results depend on; a worker with other files or versions refuses to judge.

    Raises:
        Problem: `distributed` is not installed, or there is no scheduler.
    """

    def __init__(self, address: str, isolation: str, basis: Basis) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise Problem("--cluster needs the package distributed.",
                          "Run 'python -m pip install distributed', here and on the workers.") from None  # fmt: skip
        self.isolation, self.same = isolation, same(basis)
        try:
            self._client: Any = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise Problem(f"There is no Dask scheduler at {address}: {error}.",
                          "Start one with `dask scheduler`; it prints its address.") from None  # fmt: skip
        self._open: set[Any] = set()

    @property
    def slots(self) -> int:
        """Threads of all workers; at least 1, for workers may come later."""
        threads: dict[str, int] = self._client.nthreads()
        return max(1, sum(threads.values()))

    def submit(self, order: Order) -> Future[Report]:
        """Have an order judged by some worker."""
        if self._client.status != "running":
            raise _gone()
        body = msgspec.msgpack.encode(Ordered(order=order, isolation=self.isolation, same=self.same))
        theirs = self._client.submit(judge, body, pure=False)
        ours: Future[Report] = Future()
        self._open.add(theirs)

        def take(done: Any) -> None:
            self._open.discard(done)
            try:
                outcome = msgspec.msgpack.decode(done.result(), type=Outcome)
            except asyncio.CancelledError:  # which is no Exception; nobody but a scheduler that goes cancels here
                ours.set_exception(_gone())
                return
            except Exception as error:  # noqa: BLE001 - the caller hears of whatever Dask says, as of a local judge
                ours.set_exception(_explain(error))
                return
            if outcome.report is not None:
                ours.set_result(outcome.report)
            else:
                ours.set_exception(JudgeDied() if outcome.died else Problem(outcome.problem, outcome.help))

        theirs.add_done_callback(take)
        return ours

    def close(self, *, now: bool = False) -> None:
        """Leave the scheduler; the workers stay, for the next batch."""
        if now and self._open:
            with contextlib.suppress(OSError, TimeoutError, RuntimeError):
                self._client.cancel(list(self._open), force=True)
        self._client.close(timeout=10)


def same(basis: Basis) -> dict[str, str]:
    """What a worker must have in common with the machine that asks."""
    return {name: basis.common[name] for name in _SAME} | {
        f"exercise {id}": digest for id, digest in basis.exercises.items()
    }


def _explain(error: Exception) -> Exception:
    if type(error).__name__ == "KilledWorker":  # several workers in turn ended while they judged it
        return JudgeDied()
    return Problem(f"The cluster could not judge: {type(error).__name__}: {error}.",
                   "Is this version of headcheck installed on the workers?")  # fmt: skip


def _gone() -> Problem:
    return Problem("The Dask scheduler is gone.", "Start it again, then run the same command again.")


_own = threading.local()  # a judge for each thread of the worker process
_differing: dict[bytes, list[str]] = {}


def judge(body: bytes) -> bytes:
    """Runs on a worker: judge one order with this process's own judge."""
    ordered = msgspec.msgpack.decode(body, type=Ordered)
    key = msgspec.msgpack.encode(ordered.same)
    if key not in _differing:
        here = same(basis(read_course(), 0, ordered.isolation))
        _differing[key] = sorted(name for name, value in ordered.same.items() if here.get(name) != value)
    if _differing[key]:
        return _encode(Outcome(
            problem=f"A worker has another version of: {', '.join(_differing[key])}.",
            help="Give all workers the same files and packages as here, then run the same command again.",
        ))  # fmt: skip
    judges: dict[str, JudgeProcess] = _own.__dict__.setdefault("judges", {})
    if ordered.isolation not in judges:
        scratch = Scratch()
        atexit.register(scratch.remove)
        judges[ordered.isolation] = JudgeProcess(ordered.isolation, scratch.path, root=course_root())
    try:
        return _encode(Outcome(report=judges[ordered.isolation].grade(ordered.order, patience(ordered.order))))
    except JudgeDied:
        return _encode(Outcome(died=True))
    except Problem as problem:
        return _encode(Outcome(problem=problem.what, help=problem.help))


def _encode(outcome: Outcome) -> bytes:
    return msgspec.msgpack.encode(outcome)
