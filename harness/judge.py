"""A process that judges many submissions: torch, the zygote, the graders and the oracle stay warm between them.

`JudgeProcess` is the end that a batch holds; it needs neither torch nor pytest. The other end is `python -m
harness.judge`. Orders and reports pass as MessagePack frames over its standard input and output.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import IO

import msgspec

from harness.course import ROOT, Limits, read_course
from harness.problem import Problem
from harness.report import Report

_HEADER = 8


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

    Args:
        isolation: `sandbox` or `process`.
    """

    def __init__(self, isolation: str = "process") -> None:
        self.isolation = isolation
        self.process: subprocess.Popen[bytes] | None = None

    def grade(self, order: Order) -> Report:
        """Judge one submission; blocks until the report is there.

        Raises:
            Problem: the graders cannot be run.
            JudgeDied: the process ended; the next order starts another.
        """
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "harness.judge", self.isolation],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            _write(self.process.stdin, msgspec.msgpack.encode(order))
            body = _read(self.process.stdout)
        except OSError:
            body = None
        if body is None:
            self.close(kill=True)
            raise JudgeDied
        answer = msgspec.msgpack.decode(body, type=Answer)
        if answer.report is None:
            raise Problem(answer.problem, answer.help)
        return answer.report

    def close(self, *, kill: bool = False) -> None:
        """End the process; with `kill`, at once."""
        process, self.process = self.process, None
        if process is not None:
            if kill:
                process.kill()
            with contextlib.suppress(OSError):  # an unsent order may still be in the pipe's buffer
                process.communicate()


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
    from harness.worker import serve

    serve.single_thread()
    import torch

    torch.set_num_threads(1)
    from harness.worker import launch

    course = read_course()
    launcher = launch.launcher(launch.best_start_method(), sys.argv[1], course.warm)
    from harness import session
    from harness.bench import Bench
    from harness.submission import Submission

    def answer(report: Report) -> None:
        _write(answers, msgspec.msgpack.encode(Answer(report=report)))

    def jobs() -> Iterator[session.Job]:
        while (body := _read(orders)) is not None:
            order = msgspec.msgpack.decode(body, type=Order)
            limited = course if order.limits is None else msgspec.structs.replace(course, limits=order.limits)
            bench = Bench(Submission(order.name, order.files), limited, None if order.trusted else launcher, None,
                          order.seed)  # fmt: skip
            chosen = tuple(exercise for exercise in course.exercise if exercise.id in order.exercises)
            yield session.Job(bench, chosen, answer)

    try:
        session.grade_all(jobs(), course.exercise, warm=True)
    except Problem as problem:
        _write(answers, msgspec.msgpack.encode(Answer(problem=problem.what, help=problem.help)))
    finally:
        launcher.close()


if __name__ == "__main__":
    main()
