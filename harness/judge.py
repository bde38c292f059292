"""A process that judges many submissions: torch, the zygote, the graders and the oracle stay warm between them.

`JudgeProcess` is the end that a batch holds; it needs neither torch nor pytest. The other end is `python -m
harness.judge`. Orders and reports pass as MessagePack frames over its standard input and output.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from harness.course import ROOT, Limits, read_course
from harness.problem import Problem
from harness.report import Report
from harness.worker import confine

_HEADER = 8
_HOME = ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP")  # where packages of the user's own lie, and scratch


class Order(msgspec.Struct, kw_only=True):
    """One submission to judge.

    Args:
        name: how the report calls it.
        files: its content by name.
        exercises: ids of what to judge.
        seed: of the inputs.
        limits: instead of the course's.
        trusted: run it in the judge's own process; for the course's own right and wrong answers only.
    """

    name: str
    files: dict[str, bytes]
    exercises: list[str]
    seed: int
    limits: Limits | None = None
    trusted: bool = False


class Answer(msgspec.Struct, kw_only=True):
    """A report, or why there is none."""

    report: Report | None = None
    problem: str = ""
    help: str = ""


class JudgeDied(Exception):
    """The judging process ended before it answered."""


class JudgeProcess:
    """A judge in a process of its own, started at the first order.

    It has a session of its own, so that Ctrl-C at the terminal reaches only whoever gives the orders, and of the
    environment only what Python and torch need: nothing that the instructor keeps there comes near a submission.

    Args:
        isolation: `sandbox` or `process`.
        scratch: where workers get their folders; the system's temporary folder by default. Whoever gives it removes
            it: a judge that is killed leaves something behind.
        root: of the course.
    """

    def __init__(self, isolation: str = "process", scratch: Path | None = None, *, root: Path = ROOT) -> None:
        self.isolation, self.scratch, self.root = isolation, scratch, root
        self.process: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._starting = threading.Lock()

    def grade(self, order: Order, most_seconds: float | None = None) -> Report:
        """Judge one submission; blocks until the report is there.

        Args:
            order: what to judge.
            most_seconds: kill the judge when it takes longer by the clock; for what the limits of the submission
                did not stop.

        Raises:
            Problem: the graders cannot be run.
            JudgeDied: the process ended; the next order starts another, unless it was ended for good.
        """
        with self._starting:
            if self._ended:
                raise JudgeDied
            if self.process is None:
                self.process = _start(self.isolation, self.scratch, self.root)
            process = self.process
        assert process.stdin is not None and process.stdout is not None
        body = msgspec.msgpack.encode(order)
        watchdog = threading.Timer(most_seconds, process.kill) if most_seconds is not None else None
        if watchdog is not None:
            watchdog.daemon = True
            watchdog.start()
        try:
            _write(process.stdin, body)
            answered = _read(process.stdout)
        except (OSError, ValueError):  # ValueError: closed meanwhile by another thread
            answered = None
        finally:
            if watchdog is not None:
                watchdog.cancel()
        if answered is None:
            self.close(kill=True)
            raise JudgeDied
        answer = msgspec.msgpack.decode(answered, type=Answer)
        if answer.report is None:
            self.close()
            raise Problem(answer.problem, answer.help)
        return answer.report

    def end(self) -> None:
        """Kill the process, whatever it judges, and start no other. For another thread than the one that waits in
        `grade`, which gets JudgeDied; `close` is still to be called."""
        with self._starting:
            self._ended = True
            process = self.process
        if process is not None:
            process.kill()

    def close(self, *, kill: bool = False) -> None:
        """End the process; with `kill`, at once."""
        process, self.process = self.process, None
        if process is not None:
            if kill:
                process.kill()
            with contextlib.suppress(OSError):  # an unsent order may still be in the pipe's buffer
                process.communicate()


def _start(isolation: str, scratch: Path | None, root: Path) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in (*confine.KEPT_VARIABLES, *_HOME) if name in os.environ}
    if scratch is not None:
        environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    apart: dict[str, Any] = (
        {"start_new_session": True}
        if os.name == "posix"
        else {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    )
    return subprocess.Popen(
        [sys.executable, "-m", "harness.judge", isolation, str(root)],
        cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **apart,
    )  # fmt: skip


def _write(stream: IO[bytes], body: bytes) -> None:
    stream.write(len(body).to_bytes(_HEADER) + body)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes | None:
    """One frame, or None when the other end is gone."""
    header = stream.read(_HEADER)
    if len(header) < _HEADER:
        return None
    body = stream.read(int.from_bytes(header))
    return body if len(body) == int.from_bytes(header) else None


def main() -> None:
    """Judge orders from standard input until it closes."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # whatever prints must not print into the answers
    from harness.worker.torch_import import import_torch

    import_torch()
    from harness.worker import launch

    (launcher,) = launch.launchers(launch.best_start_method(), sys.argv[1], many=True)
    # Only now: workers inherit what this process held when the zygote was forked, seeds too.
    course = read_course(Path(sys.argv[2]) / "graders")
    from harness import session
    from harness.bench import Bench
    from harness.submission import Submission

    def answer(report: Report) -> None:
        if launcher.broken:  # what followed was no fault of the submission's, nor of the graders'
            os._exit(1)
        try:
            _write(answers, msgspec.msgpack.encode(Answer(report=report)))
        except BrokenPipeError:  # nobody waits for it any more; the workers' folders go with the zygote
            launcher.close()
            os._exit(0)

    def jobs() -> Iterator[session.Job]:
        while (body := _read(orders)) is not None:
            order = msgspec.msgpack.decode(body, type=Order)
            limited = course if order.limits is None else msgspec.structs.replace(course, limits=order.limits)
            bench = Bench(Submission(order.name, order.files), limited, None if order.trusted else launcher, None,
                          order.seed)  # fmt: skip
            chosen = tuple(exercise for exercise in course.exercise if exercise.id in order.exercises)
            yield session.Job(bench, chosen, answer)

    try:
        launcher.ready()
        session.grade_all(jobs(), course.exercise, warm=True, root=course.root)
    except Problem as problem:
        _write(answers, msgspec.msgpack.encode(Answer(problem=problem.what, help=problem.help)))
    except RuntimeError:
        if not launcher.broken:
            raise
        os._exit(1)  # somebody killed the zygote: this process has nothing to say of that, who gave the order has
    finally:
        launcher.close()


if __name__ == "__main__":
    from harness.leaving import leave

    main()
    leave(0)
