"""The versioned report of one submission. Everything that is shown or exported derives from it.

The structs below are the format; `schema/report.schema.json` is made from them (`python grade.py schema`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from harness import files, text
from harness.messages import message
from harness.outcome import UNDECIDED, Evidence, Frame, Message, Scalar, Status
from harness.problem import Problem

SCHEMA_VERSION = "1"


class Text(msgspec.Struct, frozen=True):
    """A sentence: `id` and `params` for translations, `text` in English, filled in."""

    id: str
    text: str
    params: dict[str, Scalar] = {}


class CheckResult(msgspec.Struct, kw_only=True):
    """One check. `points` were earned out of `possible`."""

    id: str
    title: str
    status: Status
    points: float
    possible: float
    message: Text | None = None  # what happened, when it did not pass
    hint: Text | None = None  # what the student most likely got wrong
    evidence: Evidence | None = None
    trace: list[Frame] = []
    reproduce: str = ""  # lines for a Python prompt
    output: str = ""  # what the submission printed during the check, capped
    misconception: str = ""  # id of the known mistake that reproduces this answer
    caused_by: str = ""  # id of the check whose mistake explains this one's
    hidden: bool = False  # a student's copy shows hint and points only
    detail: str = ""  # for instructors: the grader's own traceback, when it is at fault
    seconds: float = 0.0


class ExerciseResult(msgspec.Struct, kw_only=True):
    id: str
    title: str
    earned: float
    possible: float
    bonus: bool = False
    checks: list[CheckResult]


class Score(msgspec.Struct, kw_only=True):
    """The points of a submission.

    `earned` out of `possible` in the exercises that are no bonus; `bonus` earned in those that are. `undecided` points,
    within `possible`, belong to checks that wait for a person or could not be judged. `final` is what counts: earned,
    bonus and adjustments together.
    """

    earned: float
    possible: float
    bonus: float = 0.0
    undecided: float = 0.0
    final: float


class Adjustment(msgspec.Struct, kw_only=True):
    """Points given or taken beside the checks, with a reason that can be shown: kind is `late`, `by-hand`,
    `outgrown` (a mark by hand that fits no check any more) or `follow-through`."""

    kind: str
    points: float
    reason: Text
    check: str = ""  # or exercise, if it concerns one


class Student(msgspec.Struct, kw_only=True):
    """Whose submission it is, as the roster or the layout of the submissions says."""

    id: str
    name: str = ""
    email: str = ""
    section: str = ""
    ids: dict[str, str] = {}  # in learning platforms: canvas, sis, login, moodle, gradescope, ...


class Attempt(msgspec.Struct, kw_only=True):
    """Which of a student's attempts was judged."""

    number: int = 1
    submitted: str | None = None  # ISO 8601 with offset
    late_seconds: float = 0.0
    others: list[str] = []  # names of attempts that do not count


class SubmissionInfo(msgspec.Struct, kw_only=True):
    name: str
    digest: str
    files: dict[str, str]  # name -> SHA-256
    notes: list[Text] = []


class CourseInfo(msgspec.Struct, kw_only=True):
    id: str
    title: str
    graders: str  # digests
    reference: str


class Environment(msgspec.Struct, kw_only=True):
    headcheck: str
    python: str
    torch: str
    platform: str
    isolation: str  # sandbox, process or none
    start_method: str  # fork, spawn or none


class Report(msgspec.Struct, kw_only=True):
    schema_version: str = SCHEMA_VERSION
    submission: SubmissionInfo
    course: CourseInfo
    environment: Environment
    seed: int | None  # None in a student's copy when the seed is private
    score: Score
    adjustments: list[Adjustment] = []
    student: Student | None = None
    attempt: Attempt | None = None
    review: bool  # a grader was at fault: a person should look
    exercises: list[ExerciseResult]
    started: str  # ISO 8601 with offset
    seconds: float


def total(exercises: list[ExerciseResult], adjustments: Iterable[Adjustment] = ()) -> Score:
    """The score over exercises and adjustments, never below 0. Points are rounded to two decimals once, here.

    What was marked by hand is decided.
    """
    adjustments = list(adjustments)
    core = [check for exercise in exercises if not exercise.bonus for check in exercise.checks]
    bonus = [check for exercise in exercises if exercise.bonus for check in exercise.checks]
    everything = [check.points for check in core + bonus] + [adjustment.points for adjustment in adjustments]
    return Score(
        earned=points(check.points for check in core),
        possible=points(check.possible for check in core),
        bonus=points(check.points for check in bonus),
        undecided=points(
            check.possible
            for check in undecided([exercise for exercise in exercises if not exercise.bonus], adjustments)
        ),
        final=max(0.0, points(everything)),
    )


def undecided(exercises: Iterable[ExerciseResult], adjustments: Iterable[Adjustment] = ()) -> list[CheckResult]:
    """The checks that wait for a person or could not be judged, and that nobody has marked by hand."""
    marked = {adjustment.check for adjustment in adjustments if adjustment.kind == "by-hand"}
    return [
        check
        for exercise in exercises
        for check in exercise.checks
        if check.status in UNDECIDED and not {check.id, exercise.id} & marked
    ]


def points(values: Iterable[float]) -> float:
    """A sum of points, exact to two decimals."""
    return round(math.fsum(values), 2)


def as_text(said: Message) -> Text:
    """A message as the report stores it."""
    return Text(said.id, said.render(), said.params)


def for_student(report: Report, *, private_seed: bool = False) -> Report:
    """The copy that a student may have: of hidden checks only title, hint and points, and no private seed."""
    hide = msgspec.structs.replace
    exercises = [
        hide(
            exercise,
            checks=[
                hide(check, message=None, evidence=None, trace=[], reproduce="", output="", detail="")
                if check.hidden and check.status is not Status.NOT_STARTED
                else check
                for check in exercise.checks
            ],
        )
        for exercise in report.exercises
    ]
    return hide(report, exercises=exercises, seed=None if private_seed else report.seed)


def passed_everything(report: Report) -> bool:
    """Whether every check passed, but for those that wait for a person."""
    return all(
        check.status in (Status.PASSED, Status.PENDING) for exercise in report.exercises for check in exercise.checks
    )


def to_json(report: Report) -> bytes:
    """The report as UTF-8 JSON, indented for people. All numbers are finite, all text is valid Unicode."""
    return msgspec.json.format(msgspec.json.encode(text.json_ready(msgspec.to_builtins(report))), indent=2) + b"\n"


class _Version(msgspec.Struct):
    schema_version: str


def from_json(data: bytes) -> Report:
    """Read a report back; one of an older version is upgraded.

    Raises:
        msgspec.DecodeError: it is not JSON, or not a report.
        Problem: it is of a newer version, or of one that never was.
    """
    try:
        report = msgspec.json.decode(data, type=Report)
        if report.schema_version == SCHEMA_VERSION:
            return report
    except msgspec.ValidationError:
        version = msgspec.json.decode(data, type=_Version).schema_version
        if version == SCHEMA_VERSION:
            raise
    else:
        version = report.schema_version
    document = msgspec.json.decode(data)
    while version in _UPGRADES:
        document = _UPGRADES[version](document)
        version = document["schema_version"]
    if version != SCHEMA_VERSION:
        raise _foreign(version)
    return msgspec.convert(document, Report)


def _foreign(version: str) -> Problem:
    number = re.match(r"\d+", version)
    if number is not None and int(number[0]) > int(SCHEMA_VERSION):
        said = message("problem.report-newer", version=version[:40], newest=SCHEMA_VERSION)
        return Problem(said, message("problem.report-newer.help"))
    said = message("problem.report-unknown", version=repr(version[:40]))
    return Problem(said, message("problem.report-unknown.help"))


def _from_draft(document: dict[str, Any]) -> dict[str, Any]:
    """Drafts had no bonus, no adjustments and no `final` at first: what was earned is what counted."""
    score = document.get("score")
    if isinstance(score, dict) and "final" not in score and isinstance(score.get("earned"), int | float):
        score = {**score, "final": score["earned"]}
    return {**document, "score": score, "schema_version": "1"}


# From each older version to the next.
_UPGRADES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"1-draft": _from_draft}


def write(report: Report, path: Path) -> None:
    """Write the report as JSON, atomically."""
    files.write_atomically(path, to_json(report))


def schema() -> bytes:
    """The JSON Schema of the report, as it is kept in schema/report.schema.json."""
    document = msgspec.json.schema(Report)
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "headcheck report", **document}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
