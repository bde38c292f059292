"""Gradescope's results.json of one report; of a class, a zip with one for each student.

Where no number may be given (a grader broke down, a check waits for a person), the file says so and holds no score at
all: a missing score costs nothing, a 0 would.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import msgspec

from harness.export import texts
from harness.export.archive import Archive
from harness.export.feedback import explanation
from harness.export.grades import Grade
from harness.export.sheet import Sheet
from harness.outcome import UNDECIDED, Status
from harness.problem import Problem
from harness.report import CheckResult

ABOUT = "Gradescope results.json; of a class, a zip of them"
TAKES = frozenset({"out_of", "roster", "pseudonyms"})
SINGLE = True


def write(sheet: Sheet, out: BinaryIO) -> None:
    """Write a zip with `<folder>/results.json` for each student; of a single report, results.json.

    Raises:
        Problem: whose single report it is, is not in the class.
    """
    if sheet.single:
        for grade in sheet.grades():
            write_one(grade, out)
            return
        raise Problem("The report is of nobody in the roster.", "Leave --roster away, or add the student to it.")
    seen: set[str] = set()
    with Archive(out) as archive:
        for grade in sheet.grades():
            name = texts.file_name(grade.key)
            if name.casefold() in seen:  # two folders whose names differ only in what a zip had better not have
                name = f"{name} ({len(seen) + 1})"
            seen.add(name.casefold())
            archive.add(f"{name}/results.json", msgspec.json.encode(results(grade)))


def write_one(grade: Grade, out: BinaryIO) -> None:
    """Write one results.json."""
    out.write(encode(results(grade)))


def encode(document: dict[str, Any]) -> bytes:
    """JSON, indented for people."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def failed(what: str) -> dict[str, Any]:
    """A results.json for a run that could not grade: the reason, and no score."""
    said = ("This submission could not be graded. That is not your fault, and it costs no points: "
            f"your instructor has to look at it.\n\n{texts.plain(what)}")  # fmt: skip
    return {"output": said, "output_format": "text", "visibility": "visible", "tests": []}


def results(grade: Grade) -> dict[str, Any]:
    """The results.json of one report."""
    report = grade.report
    numbered = [
        (f"{place}.{inner}", exercise.id, check)
        for place, exercise in enumerate(report.exercises, 1)
        for inner, check in enumerate(exercise.checks, 1)
    ]
    scored = grade.points is not None
    said = [note.text for note in report.submission.notes]
    said += [f"{adjustment.points:+g}: {adjustment.reason.text}" for adjustment in report.adjustments]
    if grade.points is None:
        said.insert(0, f"No score yet: {grade.why}. This costs no points.")
    document: dict[str, Any] = {
        "output": texts.plain("\n".join(said)),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "execution_time": max(0, round(report.seconds)),
        "extra_data": {"digest": report.submission.digest, "headcheck": report.environment.headcheck,
                       "isolation": report.environment.isolation, "state": grade.state},
        "tests": [_test(place, exercise, check, scored=scored) for place, exercise, check in numbered],
    }  # fmt: skip
    if grade.points is not None:  # not `scored`: for the type checker
        document["score"] = float(grade.points)
    return document


def _test(number: str, exercise: str, check: CheckResult, *, scored: bool) -> dict[str, Any]:
    passed = check.status is Status.PASSED
    test: dict[str, Any] = {
        "number": number,
        "name": texts.one_line(check.title),
        "tags": [exercise],
        "output": "" if passed else texts.plain(_story(check)),
        "visibility": "visible",
    }
    if scored:
        test["score"], test["max_score"] = check.points, check.possible
    if check.status not in UNDECIDED:
        test["status"] = "passed" if passed else "failed"
    return test


def _story(check: CheckResult) -> str:
    parts = [explanation(check)]
    if check.status is Status.NOT_STARTED:
        parts = ["Not started yet."]
    evidence = check.evidence
    if evidence is not None and not check.hidden:
        parts += [f"{name:<8}  {value}" for name, value in evidence.compared]
    if check.trace and not check.hidden:
        frame = check.trace[-1]
        parts.append(f"{frame.file}, line {frame.line}")
    return "\n".join(part for part in parts if part)
