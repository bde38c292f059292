"""CTRF, the Common Test Report Format (ctrf.io): a test a check, a suite a student."""

from __future__ import annotations

import datetime
from typing import BinaryIO

import msgspec

from harness import VERSION
from harness.export.feedback import explanation
from harness.export.grades import Grade
from harness.export.sheet import Sheet, who
from harness.export.texts import one_line, plain
from harness.outcome import Status
from harness.report import CheckResult, ExerciseResult

ABOUT = "CTRF JSON (Common Test Report Format)"
TAKES = frozenset({"out_of", "roster", "pseudonyms"})
SINGLE = True

_SPEC = "0.0.0"  # the only published schema
_WORDS = {Status.PASSED: "passed", Status.PENDING: "pending", Status.GRADER_ERROR: "other"}


def write(sheet: Sheet, out: BinaryIO) -> None:
    """Write the file, a student at a time; the summary comes last, when it is known."""
    counts = dict.fromkeys(("passed", "failed", "skipped", "pending", "other"), 0)
    start, stop, suites = 0, 0, 0
    tool = msgspec.json.encode({"name": "headcheck", "version": VERSION})
    out.write(b'{"reportFormat":"CTRF","specVersion":"%s","results":{"tool":%s,"tests":[' % (_SPEC.encode(), tool))
    separator = b"\n"
    for grade in sheet.grades():
        began = _milliseconds(grade.report.started)
        ended = began + round(grade.report.seconds * 1000)
        start, stop, suites = min(start or began, began), max(stop, ended), suites + 1
        tests = [_test(grade, exercise, check) for exercise in grade.report.exercises for check in exercise.checks]
        for test in tests:
            counts[str(test["status"])] += 1
        if tests:
            out.write(separator + msgspec.json.encode(tests)[1:-1])  # without the brackets of the list
            separator = b",\n"
    summary = {"tests": sum(counts.values()), **counts, "suites": suites, "start": start, "stop": stop}
    out.write(b'\n],"summary":%s}}\n' % msgspec.json.encode(summary))


def write_one(grade: Grade, out: BinaryIO) -> None:
    """Write one submission's file."""
    write(Sheet.of(grade), out)


def _test(grade: Grade, exercise: ExerciseResult, check: CheckResult) -> dict[str, object]:
    test: dict[str, object] = {
        "testId": check.id,
        "name": one_line(check.title) or check.id,
        "status": _WORDS.get(check.status, "failed"),
        "rawStatus": check.status.value,
        "duration": round(check.seconds * 1000),
        "suite": [one_line(who(grade.student)) or grade.key, one_line(exercise.title) or exercise.id],
        "extra": {"points": check.points, "possible": check.possible},
    }
    if check.status is not Status.PASSED:
        test["message"] = plain(explanation(check))
    if check.trace:
        test["filePath"], test["line"] = check.trace[-1].file, check.trace[-1].line
        test["trace"] = plain("\n".join(f"{frame.file}:{frame.line} {frame.function}" for frame in check.trace))
    return test


def _milliseconds(started: str) -> int:
    return round(datetime.datetime.fromisoformat(started).timestamp() * 1000)
