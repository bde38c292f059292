"""Figures of a class: scores.csv and summary.json, made from the reports alone."""

from __future__ import annotations

import csv
import io
import statistics
from collections import Counter
from typing import Any

import msgspec

from harness import report as reports
from harness.batch.marks import BY_HAND, OUTGROWN, kept
from harness.batch.store import REPORT, Store
from harness.batch.unread import why_unread
from harness.outcome import UNDECIDED, Status
from harness.problem import Problem
from harness.report import CheckResult, Report, undecided
from harness.text import cell

SCORES, SUMMARY = "scores.csv", "summary.json"
_COLUMNS = ("id", "name", "email", "section", "state", "final", "possible", "earned", "bonus", "adjustments",
            "undecided", "attempt", "submitted", "late_seconds", "review")  # fmt: skip


class CheckFigures(msgspec.Struct, kw_only=True):
    """One check over the class.

    Args:
        judged: reports in which it was decided, by the grader or by a mark by hand for this check.
        passed: those in which it earned all of its points, such marks included.
        pass_rate: of those judged; None if there are none.
        statuses: what the grader said in all reports.
        discrimination: correlation of its points with the rest of the score, over those reports: near 0, it does not
            tell strong work from weak; below 0, look at the check. None where one of them is the same for everyone.
    """

    id: str
    title: str
    possible: float
    judged: int
    passed: int
    pass_rate: float | None
    statuses: dict[str, int]
    discrimination: float | None


class Scores(msgspec.Struct, kw_only=True):
    """Final scores of what was judged in full."""

    count: int
    possible: float
    mean: float
    median: float
    lowest: float
    highest: float
    deviation: float


class Misconception(msgspec.Struct, kw_only=True):
    """A known mistake: in how many submissions, and what those students are told."""

    id: str
    students: int
    hint: str
    checks: list[str]


class Summary(msgspec.Struct, kw_only=True):
    """A class. Lists hold the names of results' folders."""

    schema_version: str = "1"
    course: str
    title: str
    results: int
    scores: Scores | None
    checks: list[CheckFigures]
    misconceptions: list[Misconception]
    review: list[str]
    unreadable: dict[str, str]
    nothing: list[str]
    pending: list[str] = []  # a person's marks are missing; they are not among the scores
    left_out: dict[str, str] = {}  # the report cannot be read, and why: in no other figure


class Tally:
    """Adds up reports one by one; keeps numbers, not reports."""

    def __init__(self) -> None:
        self.results = 0
        self.course = self.title = ""
        self.finals: list[float] = []
        self.possible = 0.0
        self.checks: dict[str, _Check] = {}
        self.mistakes: Counter[str] = Counter()
        self.told: dict[str, tuple[str, set[str]]] = {}
        self.review: list[str] = []
        self.unreadable: dict[str, str] = {}
        self.nothing: list[str] = []
        self.pending: list[str] = []
        self.left_out: dict[str, str] = {}

    def add(self, id: str, report: Report) -> None:
        """Count a result."""
        self.results += 1
        self.course, self.title = report.course.id, report.course.title
        what = state(report)
        if what == "nothing":
            self.nothing.append(id)
        elif what == "unreadable":
            self.unreadable[id] = report.submission.notes[0].text if report.submission.notes else ""
        if not report.exercises:
            return
        if what == "review":
            self.review.append(id)
        elif what == "pending":
            self.pending.append(id)
        elif what == "graded":
            self.finals.append(report.score.final)
            self.possible = max(self.possible, report.score.possible)
        checks = [check for exercise in report.exercises for check in exercise.checks]
        marks = {mark.where: mark.points for mark in kept(report, (BY_HAND,))}
        total = reports.points(marks.get(check.id, check.points) for check in checks)
        for check in checks:
            self.checks.setdefault(check.id, _Check(check)).add(check, total, marks.get(check.id))
        for mistake in {check.misconception for check in checks if check.misconception}:
            self.mistakes[mistake] += 1
            hint, where = self.told.setdefault(mistake, ("", set()))
            own = [check for check in checks if check.misconception == mistake]
            hints = (check.hint.text for check in own if check.hint is not None and not check.caused_by)
            hint = hint or next(hints, "")
            self.told[mistake] = (hint, where | {check.id for check in own})

    def summary(self) -> Summary:
        """The figures so far."""
        return Summary(
            course=self.course,
            title=self.title,
            results=self.results,
            scores=_scores(self.finals, self.possible) if self.finals else None,
            checks=[check.figures() for check in self.checks.values()],
            misconceptions=[
                Misconception(id=id, students=count, hint=self.told[id][0], checks=sorted(self.told[id][1]))
                for id, count in sorted(self.mistakes.items(), key=lambda item: (-item[1], item[0]))
            ],
            review=self.review,
            unreadable=self.unreadable,
            nothing=self.nothing,
            pending=self.pending,
            left_out=self.left_out,
        )


class _Check:
    def __init__(self, check: CheckResult) -> None:
        self.id, self.title, self.possible = check.id, check.title, check.possible
        self.statuses: Counter[str] = Counter()
        self.passed = 0
        self.own: list[float] = []
        self.rest: list[float] = []

    def add(self, check: CheckResult, total: float, mark: float | None) -> None:
        """Count a result. A mark by hand for the check decides it; one for its whole exercise says nothing of it."""
        self.statuses[check.status] += 1
        if mark is None and check.status in UNDECIDED:
            return
        points = check.points if mark is None else mark
        self.passed += check.status is Status.PASSED if mark is None else mark >= check.possible
        self.own.append(points)
        self.rest.append(total - points)

    def figures(self) -> CheckFigures:
        judged = len(self.own)
        try:
            discrimination = round(statistics.correlation(self.own, self.rest), 3)
        except statistics.StatisticsError:  # fewer than two, or all alike
            discrimination = None
        return CheckFigures(
            id=self.id,
            title=self.title,
            possible=self.possible,
            judged=judged,
            passed=self.passed,
            pass_rate=round(self.passed / judged, 4) if judged else None,
            statuses=dict(sorted(self.statuses.items())),
            discrimination=discrimination,
        )


def state(report: Report) -> str:
    """`graded`, `nothing`, `unreadable`, `pending` (waits for a person) or `review`.

    To be reviewed: a grader was at fault, or a mark by hand fits no check any more.
    """
    if not report.exercises:
        return "unreadable" if report.submission.name else "nothing"
    if any(item.kind == OUTGROWN for item in report.adjustments):
        return "review"
    if undecided(report.exercises, report.adjustments):
        return "review" if report.review else "pending"
    return "graded"


def rebuild(store: Store) -> Summary:
    """Make scores.csv and summary.json anew from all reports of a folder, and return the figures.

    Raises:
        Problem: the folder cannot be written.
    """
    tally = Tally()
    rows: list[dict[str, str]] = []
    exercises: dict[str, None] = {}
    for id in store.ids():
        try:
            stored = store.read(id)
        except Problem:
            stored = None
        if stored is None:
            tally.left_out[id] = why_unread(store.path / id / REPORT) or "It changed meanwhile. Run `summary` again."
            rows.append({"id": cell(id), "state": "left out"})
            continue
        tally.add(id, stored.report)
        exercises |= dict.fromkeys(exercise.id for exercise in stored.report.exercises)
        rows.append(_row(id, stored.report))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [*_COLUMNS, *exercises], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    summary = tally.summary()
    store.write(SCORES, text.getvalue().encode("utf-8", "replace"))
    store.write(SUMMARY, msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
    return summary


def _row(id: str, report: Report) -> dict[str, str]:
    student, attempt, score = report.student, report.attempt, report.score
    values: dict[str, Any] = {
        "id": student.id if student is not None else id,
        "name": student.name if student is not None else "",
        "email": student.email if student is not None else "",
        "section": student.section if student is not None else "",
        "state": state(report),
    }
    if report.exercises:
        values |= {"final": score.final, "possible": score.possible, "earned": score.earned, "bonus": score.bonus,
                   "adjustments": reports.points(item.points for item in report.adjustments),
                   "undecided": score.undecided, "review": "yes" if report.review else ""}  # fmt: skip
        values |= {exercise.id: exercise.earned for exercise in report.exercises}
    if attempt is not None:
        values |= {"attempt": attempt.number, "submitted": attempt.submitted, "late_seconds": attempt.late_seconds}
    return {name: _cell(value) for name, value in values.items()}


def _cell(value: object) -> str:
    """Numbers without a needless `.0`; text on one line, harmless for spreadsheets and terminals."""
    if isinstance(value, int | float):
        return f"{value:.10g}"
    return "" if value is None else cell(str(value))


def _scores(finals: list[float], possible: float) -> Scores:
    return Scores(
        count=len(finals),
        possible=possible,
        mean=round(statistics.fmean(finals), 2),
        median=round(statistics.median(finals), 2),
        lowest=min(finals),
        highest=max(finals),
        deviation=round(statistics.pstdev(finals), 2),
    )
