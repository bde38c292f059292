"""One check again, in the open: every request with what came back, from the student's code and from the reference."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import torch

from harness import files, session
from harness.bench import Bench
from harness.course import Course
from harness.problem import Problem
from harness.report import CheckResult, Report
from harness.submission import Submission, read_submission
from harness.worker.client import Step
from harness.worker.launch import Launcher

KEPT = "submission.zip"  # what a batch keeps beside each report


@dataclass(frozen=True)
class Replay:
    """A check that was run again: its result, and everything that was asked on the way."""

    result: CheckResult
    steps: list[Step]


def find_check(report: Report, check: str) -> CheckResult:
    """The check's result in the report.

    Raises:
        Problem: the report has no such check.
    """
    known = [result for exercise in report.exercises for result in exercise.checks]
    for result in known:
        if result.id == check:
            return result
    raise Problem(f"The report has no check {check!r}.", f"It has: {', '.join(result.id for result in known)}.")


def kept_submission(report: Report, path: Path, given: Path | None, expected: tuple[str, ...]) -> Submission:
    """The very bytes that were judged: beside the report, or where the user says they are.

    Args:
        report: names their digest.
        path: of the report.
        given: a folder or file that the user names, or None.
        expected: the file names that the course asks for.

    Raises:
        Problem: they are not there, or are not those that were judged.
    """
    kept = path.parent / KEPT
    if given is not None:
        submission = read_submission(given, expected)
    elif kept.is_file():
        try:
            with zipfile.ZipFile(kept) as archive:
                found = {name: archive.read(name) for name in archive.namelist()}
        except (OSError, zipfile.BadZipFile) as error:
            raise Problem(f"{kept} cannot be read: {error}.") from error
        submission = Submission(report.submission.name, found)
    else:
        raise Problem(f"There is no {KEPT} beside {path}.", "Name the submission with --submission PATH.")
    if files.digest(submission.files) != report.submission.digest:
        raise Problem("These are not the files that were judged: their digest is another one.",
                      f"The report is about {', '.join(report.submission.files)}.")  # fmt: skip
    return submission


def replay(report: Report, check: str, submission: Submission, course: Course, launcher: Launcher | None) -> Replay:
    """Run one check of a report again, on the report's seed.

    Args:
        report: the grading to repeat.
        check: id of the check.
        submission: the bytes that were judged.
        course: as it is now.
        launcher: makes the worker.

    Raises:
        Problem: the check is not in the course any more, or the graders cannot be run.
    """
    if report.seed is None:
        raise Problem("This is a student's copy of a report: it does not hold the seed.",
                      "Use the instructor's report.json.")  # fmt: skip
    exercise = tuple(item for item in course.exercise if item.id == check.partition(".")[0])
    bench = Bench(submission, course, launcher, None, report.seed, journal=[])
    reports: list[Report] = []
    session.grade_all([session.Job(bench, exercise, reports.append, only=check)], exercise, root=course.root)
    if not reports[0].exercises or not reports[0].exercises[0].checks:
        raise Problem(f"The course has no check {check!r} any more.")
    assert bench.journal is not None
    return Replay(reports[0].exercises[0].checks[0], bench.journal)


def show_value(value: object) -> str:
    """A value of a step as text; tensors whole while they are small."""
    if isinstance(value, torch.Tensor):
        head = f"tensor {tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
        return f"{head}\n{value}" if value.numel() else head
    if isinstance(value, dict):
        return "\n".join(f"{key}: {show_value(item)}" for key, item in value.items())
    if isinstance(value, tuple | list):
        return "\n".join(f"[{i}] {show_value(item)}" for i, item in enumerate(value))
    return repr(value)
