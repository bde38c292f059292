"""JUnit XML: a test suite a student, a test case a check.

Within tests/schemas/junit-10.xsd, the schema of Jenkins' xUnit plugin. GitLab tells cases apart by name and class
name, Artemis by name: a check's id is its name.
"""

from __future__ import annotations

from html import escape  # what it escapes, and how, is XML too
from typing import BinaryIO

from harness.export.feedback import explanation
from harness.export.grades import Grade, number
from harness.export.sheet import Sheet, who
from harness.export.texts import one_line, plain
from harness.outcome import UNDECIDED, Status
from harness.report import CheckResult

ABOUT = "JUnit XML"
TAKES = frozenset({"out_of", "roster", "pseudonyms"})
SINGLE = True

# JUnit's two words: the answer was wrong, or there was none.
_FAILURES = (Status.FAILED, Status.NOT_STARTED, Status.MISSING)


def write(sheet: Sheet, out: BinaryIO) -> None:
    """Write the file, a suite at a time."""
    out.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="headcheck">\n')
    for grade in sheet.grades():
        out.write("\n".join(_suite(grade)).encode("utf-8") + b"\n")
    out.write(b"</testsuites>\n")


def write_one(grade: Grade, out: BinaryIO) -> None:
    """Write one submission's file."""
    write(Sheet.of(grade), out)


def _suite(grade: Grade) -> list[str]:
    """The lines of a student's suite."""
    report = grade.report
    checks = [(exercise.id, check) for exercise in report.exercises for check in exercise.checks]
    statuses = [check.status for _, check in checks]
    undecided = sum(status in UNDECIDED for status in statuses)
    failures = sum(status in _FAILURES for status in statuses)
    errors = len(checks) - statuses.count(Status.PASSED) - failures - undecided
    seconds = _seconds(sum(check.seconds for _, check in checks))
    name = escape(one_line(who(grade.student)))
    head = f'name="{name}" time="{seconds}" timestamp="{escape(report.started)}"'
    head += f' tests="{len(checks)}" failures="{failures}" errors="{errors}" skipped="{undecided}"'
    lines = [f"  <testsuite {head}>", "    <properties>"]
    for name, value in (("points", number(grade.points)), ("maximum", number(grade.out_of)), ("state", grade.state)):
        lines.append(f'      <property name="{name}" value="{value}"/>')
    lines.append("    </properties>")
    class_name = escape(one_line(grade.student.id))
    for exercise, check in checks:
        lines += _case(f"{class_name}.{exercise}", check)
    return [*lines, "  </testsuite>"]


def _case(class_name: str, check: CheckResult) -> list[str]:
    lines = [f'    <testcase name="{escape(check.id)}" classname="{class_name}" time="{_seconds(check.seconds)}">']
    if check.status is not Status.PASSED:
        lines.append(f"      {_outcome(check)}")
    lines.append(f"      <system-out>{check.points:g} / {check.possible:g} points</system-out>")
    return [*lines, "    </testcase>"]


def _outcome(check: CheckResult) -> str:
    said = explanation(check)
    first = one_line(said.partition("\n")[0]) or one_line(check.title)
    told = f'type="{check.status.value}" message="{escape(first)}"'
    if check.status in UNDECIDED:
        # Neither costs points, so neither may look like a failure.
        return f"<skipped {told}/>"
    kind = "failure" if check.status in _FAILURES else "error"
    story = escape(plain(f"{check.title}\n{said}\n{_where(check)}").strip())
    return f"<{kind} {told}>{story}</{kind}>"


def _where(check: CheckResult) -> str:
    return "\n".join(f"{frame.file}:{frame.line} {frame.function}" for frame in check.trace)


def _seconds(seconds: float) -> str:
    return f"{max(0.0, seconds):.3f}"
