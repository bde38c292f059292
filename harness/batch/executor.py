"""Who judges: the interface of executors, and the one that uses this machine's processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from harness.batch.scratch import Scratch
from harness.course import Limits
from harness.judge import JudgeProcess, Order
from harness.report import Report


class Executor(Protocol):
    """Judges orders; the futures raise `Problem` (the graders cannot be run) or `JudgeDied`."""

    @property
    def slots(self) -> int:
        """How many orders are judged at once."""
        ...

    def submit(self, order: Order) -> Future[Report]:
        """Have an order judged, some time."""
        ...

    def close(self, *, now: bool = False) -> None:
        """End all judges; with `now`, in the middle of what they do."""
        ...


class LocalExecutor:
    """Judges in processes of this machine, each of which stays warm.

    Args:
        jobs: how many. Memory depends on this, never on the size of the class.
        isolation: `sandbox` or `process`.
        make: makes a judge from an isolation and a folder for scratch.
    """

    def __init__(self, jobs: int, isolation: str, make: Callable[[str, Path], JudgeProcess] = JudgeProcess) -> None:
        self.slots = jobs
        self._scratch = Scratch()
        self._judges = [make(isolation, self._scratch.path) for _ in range(jobs)]
        self._free: SimpleQueue[JudgeProcess] = SimpleQueue()
        for judge in reversed(self._judges):
            self._free.put(judge)
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="judge")

    def submit(self, order: Order) -> Future[Report]:
        """Have an order judged by the next process that is free."""
        return self._pool.submit(self._grade, order)

    def close(self, *, now: bool = False) -> None:
        """End all judges and remove what they left."""
        if now:
            for judge in self._judges:  # before the pool: a thread whose judge is gone takes the next order at once
                judge.end()
        self._pool.shutdown(cancel_futures=True)
        for judge in self._judges:
            judge.close(kill=now)
        self._scratch.remove()

    def _grade(self, order: Order) -> Report:
        judge = self._free.get()
        try:
            return judge.grade(order, patience(order))
        finally:
            self._free.put(judge)


def patience(order: Order) -> float:
    """Seconds by the clock after which a judge is taken to hang: far beyond what the limits allow a submission."""
    limits = order.limits or Limits()
    return 300 + len(order.exercises) * (limits.start_seconds + limits.submission_seconds * limits.wall_factor)
