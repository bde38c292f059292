"""Watches one request: its CPU time, the clock, and what the worker writes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from harness.course import Limits
from harness.outcome import Status, Stop
from harness.worker import explain, homes
from harness.worker.launch import Process
from harness.worker.protocol import Begin, Compile, Import, Open, Request, Run

_LOOK = 0.2  # seconds between two looks at CPU time and files; each costs some system calls


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, all threads; 0 when it is gone."""
    import psutil  # here, because most gradings never ask and it is slow to import

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


@dataclass
class Account:
    """What a submission has used so far, over all of its workers.

    cpu: CPU seconds of workers that have ended. waited: seconds by the clock that its requests took.
    """

    cpu: float = 0.0
    waited: float = 0.0

    def check(self, limits: Limits, used: float = 0.0, elapsed: float = 0.0) -> None:
        """Compare with the limits, with what the running worker and request add.

        Raises:
            Stop: TIMEOUT.
        """
        seconds = limits.submission_seconds
        if self.cpu + used > seconds or self.waited + elapsed > seconds * limits.wall_factor:
            raise Stop(Status.TIMEOUT, explain.spent(seconds))


class Guard:
    """Looks after one request.

    CPU time counts first, so that a busy machine costs nobody points; the clock, more loosely, stops what sleeps.

    Args:
        process: the worker.
        limits: of the submission.
        request: what it is doing.
        account: what the submission has used before.
    """

    def __init__(self, process: Process, limits: Limits, request: Request, account: Account) -> None:
        self.process, self.limits, self.request, self.account = process, limits, request, account
        self.began = self.looked = time.monotonic()
        self.cpu_before: float | None = None

    def look(self) -> None:
        """Called often while the request runs.

        Raises:
            Stop: TIMEOUT or BLOCKED.
        """
        now = time.monotonic()
        if now - self.looked < _LOOK:
            return
        self.looked = now
        self._look_at_time(now - self.began)
        self._look_at_files()

    def look_at_scratch(self) -> None:
        """Called when the reply is there: many short calls must not fill the disk unseen.

        Raises:
            Stop: BLOCKED.
        """
        now = time.monotonic()
        if now - self.process.scratch_seen > _LOOK:
            self._look_at_files()

    def end(self) -> None:
        """Called when the request is over, however it ended."""
        self.account.waited += time.monotonic() - self.began

    def _look_at_time(self, elapsed: float) -> None:
        if isinstance(self.request, Begin):
            if elapsed > self.limits.start_seconds:
                raise Stop(Status.TIMEOUT, explain.timeout(self.request, self.limits.start_seconds))
            return
        importing = isinstance(self.request, Import | Open | Compile | Run)
        allowed = self.limits.import_seconds if importing else self.limits.call_seconds
        used = cpu_seconds(self.process.pid)
        if self.cpu_before is None:
            # The first look comes late enough for short calls never to pay for it; what ran before counts in full.
            self.cpu_before = max(0.0, used - elapsed)
        if used - self.cpu_before > allowed or elapsed > allowed * self.limits.wall_factor:
            raise Stop(Status.TIMEOUT, explain.timeout(self.request, allowed))
        self.account.check(self.limits, used, elapsed)

    def _look_at_files(self) -> None:
        self.process.scratch_seen = time.monotonic()
        size, count = homes.used(self.process.home, self.limits.scratch_files)
        if size > self.limits.scratch_bytes or count > self.limits.scratch_files:
            raise Stop(Status.BLOCKED, explain.scratch(self.limits))
