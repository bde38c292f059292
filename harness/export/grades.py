"""Which reports get a number, and which. Every target that exports grades takes them from here."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from decimal import Decimal

from harness import report as reports
from harness.outcome import UNDECIDED, Status
from harness.report import Report, Student

_CENT = Decimal("0.01")
_EXACT = decimal.Context(prec=60)


@dataclass(frozen=True)
class Grade:
    """What a student gets.

    Args:
        key: the name of the folder (or file) with the report, for messages.
        student: whose it is.
        report: what it comes from.
        points: rounded to two decimals, within 0 and `out_of`; None where no number may be given.
        out_of: the maximum; None if the report does not tell it.
        state: graded, missing, pending, grader_error or review.
        why: for people, where there is no number.
        clamped: the points that came out before they were limited to `out_of`, if they were above it.
    """

    key: str
    student: Student
    report: Report
    points: Decimal | None
    out_of: Decimal | None
    state: str = "graded"
    why: str = ""
    clamped: Decimal | None = None


def grade(key: str, student: Student, report: Report, *, out_of: Decimal | None = None, late: bool = True) -> Grade:
    """The grade of one report.

    Args:
        key: the name of the folder with the report.
        student: whose it is.
        report: what was judged.
        out_of: the maximum in the learning platform; the report's own possible points by default.
        late: whether the penalty for lateness counts.
    """
    state, why = undecided(report)
    possible = exact(report.score.possible)
    if not state and possible <= 0:
        state, why = "review", "nothing that counts was judged"
    maximum = out_of if out_of is not None else (possible if possible > 0 else None)
    if state or maximum is None:
        return Grade(key, student, report, None, maximum, state, why)
    points = scale(counted(report, late=late), possible, maximum)
    return Grade(key, student, report, min(points, maximum), maximum, clamped=points if points > maximum else None)


def undecided(report: Report) -> tuple[str, str]:
    """Why there is no number yet: (state, reason for people), or two empty texts."""
    if not report.exercises:
        note = report.submission.notes[0].text if report.submission.notes else ""
        return "missing", note or "handed in nothing"
    by_hand = {adjustment.check for adjustment in report.adjustments if adjustment.kind == "by-hand"} - {""}
    waiting: dict[Status, list[str]] = {}
    for exercise in report.exercises:
        for check in exercise.checks:
            decided = check.status not in UNDECIDED or check.id in by_hand or exercise.id in by_hand
            waiting.setdefault(check.status, [])
            if not decided:
                waiting[check.status].append(check.id)
    if waiting.get(Status.GRADER_ERROR):
        return "grader_error", f"a grader broke down: {_some(waiting[Status.GRADER_ERROR])}"
    if waiting.get(Status.PENDING):
        return "pending", f"waits for a person: {_some(waiting[Status.PENDING])}"
    if any(adjustment.kind == "outgrown" for adjustment in report.adjustments):
        return "review", "a mark by hand fits no check any more"
    if report.review and Status.GRADER_ERROR not in waiting:
        return "review", "the report is marked for review"
    return "", ""


def counted(report: Report, *, late: bool) -> Decimal:
    """The points that count, exact; without the penalty for lateness if `late` is false."""
    if late:
        return exact(report.score.final)
    others = [adjustment for adjustment in report.adjustments if adjustment.kind != "late"]
    return exact(reports.total(report.exercises, others).final)


def scale(points: Decimal, possible: Decimal, out_of: Decimal) -> Decimal:
    """`points` out of `possible` as points out of `out_of`, never below 0, rounded once: half a cent goes up."""
    scaled = _EXACT.divide(_EXACT.multiply(max(points, Decimal(0)), out_of), possible)
    return scaled.quantize(_CENT, decimal.ROUND_HALF_UP, _EXACT)


def exact(points: float) -> Decimal:
    """The decimal number that a float of the report stands for: 0.1 is a tenth."""
    return Decimal(repr(points))


def number(points: Decimal | None) -> str:
    """Plain decimals with a `.`, no exponent, no thousands separator, no needless zeros; "" for None."""
    if points is None:
        return ""
    text = f"{points:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
