"""One submission through pytest: checks run, outcomes become a report."""

from __future__ import annotations

import contextlib
import datetime
import gc
import io
import os
import platform
import time
from pathlib import Path
from typing import Any

import pytest
import pytest_jsonreport.plugin  # type: ignore[import-untyped]
import torch

from harness import VERSION, files, report
from harness.bench import Bench
from harness.course import ROOT, Course, Exercise
from harness.grading import CheckInfo
from harness.messages import message
from harness.outcome import Message, Status
from harness.plugin import GradingPlugin
from harness.problem import Problem
from harness.report import CheckResult, ExerciseResult, Report, Text
from harness.submission import Submission

# pytest plugins that graders do not need: each costs time in a process that holds torch.
_WITHOUT = ("cacheprovider", "doctest", "faulthandler", "junitxml", "logging", "pastebin", "stepwise",
            "threadexception", "unraisableexception", "warnings", "debugging", "setuponly", "setupplan")  # fmt: skip


def grade(bench: Bench, exercises: tuple[Exercise, ...], *, start_method: str) -> Report:
    """Judge a submission.

    Args:
        bench: the submission, its workers and the oracle.
        exercises: what to judge.
        start_method: how the workers are started, for the report.

    Raises:
        Problem: the graders themselves cannot be run.
        KeyboardInterrupt: the user stopped it.
    """
    began, started = time.monotonic(), datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    plugin = GradingPlugin(bench)
    try:
        record = run_pytest(plugin, [ROOT / "graders" / exercise.grader for exercise in exercises])
    finally:
        bench.close()
    tests = {test["metadata"]["check"]: test for test in record["tests"] if "metadata" in test}
    results = [_result(info, plugin, tests.get(info.id)) for info in plugin.checks]
    grouped = [_exercise(exercise, results) for exercise in exercises]
    launcher = bench.launcher
    return Report(
        submission=_submission(bench.submission),
        course=_course(bench.course),
        environment=report.Environment(
            headcheck=VERSION,
            python=platform.python_version(),
            torch=str(torch.__version__),
            platform=platform.platform(),
            isolation="none" if launcher is None else launcher.isolation,
            start_method="none" if launcher is None else start_method,
        ),
        seed=bench.seed,
        score=report.total(grouped),
        review=any(result.status is Status.GRADER_ERROR for result in results),
        exercises=grouped,
        started=started,
        seconds=round(time.monotonic() - began, 3),
    )


def run_pytest(plugin: GradingPlugin, paths: list[Path], *, collect_only: bool = False) -> dict[str, Any]:
    """Run the checks in `paths`; returns the record of pytest-json-report.

    Raises:
        Problem: a grader cannot be collected, or pytest itself failed.
        KeyboardInterrupt: the user stopped it.
    """
    recorder = pytest_jsonreport.plugin.JSONReport()
    arguments = ["-q", "-s", "--tb=short", f"--rootdir={ROOT}", f"--confcutdir={ROOT / 'graders'}", "-c",
                 str(ROOT / "pyproject.toml"), "-o", "addopts=", "--import-mode=importlib",
                 "-p", "pytest_jsonreport.plugin", "--json-report-file=none",
                 "--json-report-omit", "log", "streams", "keywords", "--"]  # fmt: skip
    arguments = [word for name in _WITHOUT for word in ("-p", f"no:{name}")] + arguments
    if collect_only:
        arguments.insert(0, "--collect-only")
    shown = io.StringIO()
    gc.collect()
    gc.freeze()  # pytest collects garbage several times; over torch's heap that takes longer than the checks
    with _quiet_environment(), contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        code = pytest.main([*arguments, *map(str, paths)], plugins=[recorder, plugin])
    if code == pytest.ExitCode.INTERRUPTED and not _broken_collectors(recorder.report):
        raise KeyboardInterrupt
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or recorder.report is None:
        raise Problem("The graders could not be run.", _broken_collectors(recorder.report) or shown.getvalue()[-4000:])
    record: dict[str, Any] = recorder.report
    return record


@contextlib.contextmanager
def _quiet_environment() -> Any:
    """pytest obeys variables of the environment; grades must not."""
    kept = {name: os.environ.pop(name) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS") if name in os.environ}
    autoload = os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        yield
    finally:
        os.environ.update(kept)
        os.environ.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
        if autoload is not None:
            os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = autoload


def _broken_collectors(record: dict[str, Any] | None) -> str:
    """What pytest said of grader files that it could not collect."""
    collectors = (record or {}).get("collectors", [])
    return "\n".join(str(item.get("longrepr", "")) for item in collectors if item["outcome"] == "failed")[-4000:]


def _result(info: CheckInfo, plugin: GradingPlugin, test: dict[str, Any] | None) -> CheckResult:
    """A check's result. It passed only if pytest recorded every stage, and each passed."""
    stages = [(test or {}).get(stage, {}) for stage in ("setup", "call", "teardown")]
    ended = plugin.ended.get(info.id)
    result = CheckResult(
        id=info.id,
        title=info.title,
        status=Status.GRADER_ERROR,
        points=0,
        possible=info.points,
        reproduce=info.reproduce,
        output=plugin.output.get(info.id, ""),
        seconds=round(sum(stage.get("duration", 0.0) for stage in stages), 4),
    )
    if ended is not None:
        result.status = ended.status
        result.message = as_text(ended.message)
        result.evidence, result.trace, result.detail = ended.evidence, list(ended.trace), ended.detail
        if ended.status is Status.FAILED:
            result.hint = Text(f"{info.id}.hint", info.hint)
    elif test is not None and test["outcome"] == "passed" and all(s.get("outcome") == "passed" for s in stages):
        result.status, result.points = Status.PASSED, info.points
    else:
        result.message = as_text(message("grader-error.lost"))
    return result


def collect(course: Course) -> list[CheckInfo]:
    """Every check of the course, in order, without running one."""
    plugin = GradingPlugin(None)
    run_pytest(plugin, [ROOT / "graders" / exercise.grader for exercise in course.exercise], collect_only=True)
    return plugin.checks


def as_text(message: Message) -> Text:
    return Text(message.id, message.render(), message.params)


def _exercise(exercise: Exercise, results: list[CheckResult]) -> ExerciseResult:
    checks = [result for result in results if result.id.partition(".")[0] == exercise.id]
    return ExerciseResult(
        id=exercise.id,
        title=exercise.title,
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


def _course(course: Course) -> report.CourseInfo:
    return report.CourseInfo(
        id=course.id,
        title=course.title,
        graders=files.digest(files.read_sources(ROOT / "graders")),
        reference=files.digest(files.read_sources(ROOT / "reference")),
    )
