"""Outcomes of checks become a report."""

from __future__ import annotations

import platform
from typing import Any

import torch

from harness import VERSION, files, report
from harness.bench import Bench
from harness.course import Course, Exercise
from harness.grading import CheckInfo
from harness.messages import message
from harness.outcome import Status
from harness.plugin import GradingPlugin
from harness.report import CheckResult, CourseInfo, ExerciseResult, Report, Text, as_text
from harness.submission import Submission


def result_of(info: CheckInfo, plugin: GradingPlugin, test: dict[str, Any] | None, known: float | None) -> CheckResult:
    """A check's result: passed only if pytest recorded every stage, and each passed.

    Args:
        info: the check.
        plugin: what it noted of this check.
        test: pytest-json-report's record.
        known: the seconds it took to learn that the check passes by a known dialogue; None when it was run.
    """
    stages = [(test or {}).get(stage, {}) for stage in ("setup", "call", "teardown")]
    ended = plugin.ended.get(info.id)
    result = CheckResult(
        id=info.id,
        title=info.title,
        status=Status.GRADER_ERROR,
        points=0,
        possible=info.points,
        hidden=info.id in plugin.bench.course.hidden,
        reproduce=info.reproduce,
        output=plugin.output.get(info.id, ""),
        seconds=round(sum(stage.get("duration", 0.0) for stage in stages), 4),
    )
    if known is not None:
        result.status, result.points, result.seconds = Status.PASSED, info.points, round(known, 4)
    elif ended is not None:
        result.status = ended.status
        result.message = as_text(ended.message)
        result.evidence, result.trace, result.detail = ended.evidence, list(ended.trace), ended.detail
        if ended.status is Status.FAILED:
            result.hint = as_text(ended.hint) if ended.hint else Text(f"{info.id}.hint", info.hint)
            result.misconception = ended.mistake
    elif test is not None and test["outcome"] == "passed" and all(s.get("outcome") == "passed" for s in stages):
        result.status, result.points = Status.PASSED, info.points
    else:
        result.message = as_text(message("grader-error.lost"))
    return result


def report_of(bench: Bench, course: CourseInfo, grouped: list[ExerciseResult], started: str, seconds: float) -> Report:
    """A submission's report.

    Args:
        bench: with what it was judged.
        course: what is said of the course.
        grouped: the results.
        started: when, as ISO 8601.
        seconds: how long it took by the clock.
    """
    adjustments = _follow_through(grouped) if bench.course.follow_through else []
    return Report(
        submission=_submission(bench.submission),
        course=course,
        environment=report.Environment(
            headcheck=VERSION,
            python=platform.python_version(),
            torch=str(torch.__version__),
            platform=platform.platform(),
            isolation="none" if bench.launcher is None else bench.launcher.isolation,
            start_method="none" if bench.launcher is None else bench.launcher.method,
        ),
        seed=bench.seed,
        score=report.total(grouped, adjustments),
        adjustments=adjustments,
        review=any(check.status is Status.GRADER_ERROR for exercise in grouped for check in exercise.checks),
        exercises=grouped,
        started=started,
        seconds=round(seconds, 3),
    )


def _follow_through(grouped: list[ExerciseResult]) -> list[report.Adjustment]:
    """The points of checks that failed only because of an earlier mistake, given back where all can see it."""
    checks = {check.id: check for exercise in grouped for check in exercise.checks}
    return [
        report.Adjustment(
            kind="follow-through",
            points=check.possible,
            reason=_given_back(check, checks[check.caused_by]),
            check=check.id,
        )
        for check in checks.values()
        if check.caused_by and check.status is Status.FAILED and check.possible
    ]


def _given_back(check: CheckResult, cause: CheckResult) -> Text:
    """Why its points are given back. Parameters that are ids are shown as titles, in any language."""
    said = message("follow-through", check=check.title, cause=cause.title)
    return Text(said.id, said.render(), {"check": check.id, "cause": cause.id})


def exercise_of(exercise: Exercise, results: list[CheckResult]) -> ExerciseResult:
    """The results of one exercise, with its points."""
    checks = [result for result in results if result.id.partition(".")[0] == exercise.id]
    return ExerciseResult(
        id=exercise.id,
        title=exercise.title,
        bonus=exercise.bonus,
        earned=report.points(check.points for check in checks),
        possible=report.points(check.possible for check in checks),
        checks=checks,
    )


def _submission(submission: Submission) -> report.SubmissionInfo:
    return report.SubmissionInfo(
        name=submission.name,
        digest=submission.digest,
        files=submission.file_digests(),
        notes=[as_text(note) for note in submission.notes],
    )


def course_of(course: Course) -> CourseInfo:
    """What a report says of its course; the digests are of the files as they are now."""
    return CourseInfo(
        id=course.id,
        title=course.title,
        graders=files.digest(files.read_sources(course.root / "graders")),
        reference=files.digest(files.read_sources(course.root / "reference")),
    )
