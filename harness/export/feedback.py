"""The report as a few lines of text for a comment field: the score, then each check that did not pass."""

from __future__ import annotations

from harness.export.texts import one_line
from harness.outcome import Status
from harness.report import CheckResult, Report

_LONGEST = 4000  # characters: comment fields are read on a phone


def lines(report: Report) -> list[str]:
    """What a student should read, a line each. Hidden checks show their hint only."""
    if not report.exercises:
        return [one_line(note.text) for note in report.submission.notes] or ["Nothing was handed in."]
    said = []
    for exercise in report.exercises:
        said.append(f"{exercise.title}: {exercise.earned:g} / {exercise.possible:g}")
        said += [_line(check) for check in exercise.checks if check.status is not Status.PASSED]
    said += [f"{adjustment.points:+g}: {one_line(adjustment.reason.text)}" for adjustment in report.adjustments]
    return said


def text(report: Report, separator: str = "\n") -> str:
    """`lines`, joined and cut where it gets too long."""
    whole = separator.join(lines(report))
    return whole if len(whole) <= _LONGEST else whole[: _LONGEST - 1] + "…"


def explanation(check: CheckResult) -> str:
    """What happened and what it means, as far as a student may see it."""
    parts = [check.hint.text if check.hint else ""]
    if not check.hidden or check.status is not Status.FAILED:
        parts.append(check.message.text if check.message else "")
    return "\n".join(part for part in parts if part)


def _line(check: CheckResult) -> str:
    if check.status is Status.PENDING:
        return f"- {check.title}: waits for a person"
    if check.status is Status.NOT_STARTED:
        return f"- {check.title}: not started"
    if check.caused_by:
        return f"- {check.title} (follows from {check.caused_by})"
    said = one_line(explanation(check))
    return f"- {one_line(check.title)}" + (f": {said}" if said else "")
