"""JUnit XML: a test suite a student, a test case a check.

Within tests/schemas/junit-10.xsd, the schema of Jenkins' xUnit plugin. GitLab tells cases apart by name and class
name, Artemis by name: a check's id is its name.
"""

from __future__ import annotations

from typing import BinaryIO
from xml.etree import ElementTree as xml

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
        suite = _suite(grade)
        xml.indent(suite, "  ", 1)
        out.write(b"  " + xml.tostring(suite, encoding="utf-8") + b"\n")
    out.write(b"</testsuites>\n")


def write_one(grade: Grade, out: BinaryIO) -> None:
    """Write one submission's file."""
    write(Sheet.of(grade), out)


def _suite(grade: Grade) -> xml.Element:
    report = grade.report
    checks = [(exercise.id, check) for exercise in report.exercises for check in exercise.checks]
    statuses = [check.status for _, check in checks]
    undecided = sum(status in UNDECIDED for status in statuses)
    failures = sum(status in _FAILURES for status in statuses)
    passed = statuses.count(Status.PASSED)
    suite = xml.Element("testsuite", {
        "name": one_line(who(grade.student)),
        "tests": str(len(checks)),
        "failures": str(failures),
        "errors": str(len(checks) - passed - failures - undecided),
        "skipped": str(undecided),
        "time": _seconds(sum(check.seconds for _, check in checks)),
        "timestamp": report.started,
    })  # fmt: skip
    properties = xml.SubElement(suite, "properties")
    for name, value in (("points", number(grade.points)), ("maximum", number(grade.out_of)), ("state", grade.state)):
        xml.SubElement(properties, "property", {"name": name, "value": value})
    for exercise, check in checks:
        _case(suite, f"{one_line(grade.student.id)}.{exercise}", check)
    return suite


def _case(suite: xml.Element, class_name: str, check: CheckResult) -> None:
    case = xml.SubElement(
        suite, "testcase", {"name": check.id, "classname": class_name, "time": _seconds(check.seconds)}
    )
    if check.status is Status.PASSED:
        pass
    elif check.status in UNDECIDED:
        # Neither costs points, so neither may look like a failure.
        xml.SubElement(case, "skipped", {"type": check.status.value, "message": _first(check)})
    else:
        kind = "failure" if check.status in _FAILURES else "error"
        story = xml.SubElement(case, kind, {"type": check.status.value, "message": _first(check)})
        story.text = plain(f"{check.title}\n{explanation(check)}\n{_where(check)}").strip()
    xml.SubElement(case, "system-out").text = f"{check.points:g} / {check.possible:g} points"


def _first(check: CheckResult) -> str:
    return one_line(explanation(check).partition("\n")[0]) or one_line(check.title)


def _where(check: CheckResult) -> str:
    return "\n".join(f"{frame.file}:{frame.line} {frame.function}" for frame in check.trace)


def _seconds(seconds: float) -> str:
    return f"{max(0.0, seconds):.3f}"
