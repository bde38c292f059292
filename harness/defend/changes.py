"""What changed between two gradings of the same people: whose marks, and by which check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.problem import Problem
from harness.report import CheckResult, Report, from_json


@dataclass(frozen=True)
class Change:
    """One check of one submission that is judged otherwise; `before` or `after` is None where it was not judged."""

    who: str
    check: str
    before: CheckResult | None
    after: CheckResult | None

    @property
    def points(self) -> float:
        """How many points more there are now."""
        return round((self.after.points if self.after else 0) - (self.before.points if self.before else 0), 2)


@dataclass(frozen=True)
class Difference:
    """All changes, and the final scores of everybody whose score changed: (before, after), None where not graded."""

    changes: list[Change]
    scores: dict[str, tuple[float | None, float | None]]


def read_results(path: Path) -> dict[str, Report]:
    """Reports by the name of their folder: a results folder, or one report.

    Raises:
        Problem: nothing there is a report.
    """
    found = [path] if path.is_file() else sorted(path.glob("*/report.json"))
    if not found:
        raise Problem(f"{path} holds no reports.", "Give a report.json, or the folder that `batch` wrote.")
    reports = {}
    for file in found:
        try:
            reports[file.parent.name if path.is_dir() else ""] = from_json(file.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            raise Problem(f"{file} is not a report: {error}") from error
    return reports


def compare(old: dict[str, Report], new: dict[str, Report]) -> Difference:
    """What is judged otherwise in `new`: another status, other points, or another named mistake."""
    changes: list[Change] = []
    scores: dict[str, tuple[float | None, float | None]] = {}
    for who in sorted(old.keys() | new.keys()):
        before, after = old.get(who), new.get(who)
        changes += _changes(who, before, after)
        figures = (before.score.final if before else None, after.score.final if after else None)
        if figures[0] != figures[1]:
            scores[who] = figures
    return Difference(changes, scores)


def _changes(who: str, before: Report | None, after: Report | None) -> Iterator[Change]:
    first, second = _checks(before), _checks(after)
    for check in dict.fromkeys([*first, *second]):
        one, other = first.get(check), second.get(check)
        if one is None or other is None or _verdict(one) != _verdict(other):
            yield Change(who, check, one, other)


def _checks(report: Report | None) -> dict[str, CheckResult]:
    return {check.id: check for exercise in report.exercises for check in exercise.checks} if report else {}


def _verdict(check: CheckResult) -> tuple[str, float, float, str]:
    return (check.status, check.points, check.possible, check.misconception)
