"""Marks by hand: marks.csv, and what becomes of it in a report."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import report as reports
from harness.batch.work import Plan, Target
from harness.intake.names import plain
from harness.messages import message
from harness.outcome import Scalar
from harness.problem import Problem
from harness.report import Adjustment, Report, as_text

BY_HAND = "by-hand"
OUTGROWN = "outgrown"  # a mark by hand that fits no check any more
_COLUMNS = ("id", "check", "points", "comment")
_MOST_SHOWN = 10
_SURPLUS = ""  # what a row holds beyond its columns


@dataclass(frozen=True)
class Mark:
    """What a person decided: so many points count for a check or an exercise, whatever the checks say.

    Args:
        where: id of the check or exercise.
        points: at least 0, at most two decimals.
        comment: for the student.
        row: line of the file, for messages; 0 for a mark that was kept from an earlier run.
    """

    where: str
    points: float
    comment: str = ""
    row: int = 0

    def adjustment(self, judged: Report) -> Adjustment:
        """The difference to what was earned, with its reason.

        Args:
            judged: the report, with points that the judge gave back for what follows from an earlier mistake.

        A mark of an earlier run that the course has outgrown counts nothing, and is kept for a person to look at.

        Raises:
            Problem: there is no such check or exercise, or it has fewer points, in a mark that was given now.
        """
        checks = [check for exercise in judged.exercises for check in exercise.checks
                  if self.where in (check.id, exercise.id)]  # fmt: skip
        possible = reports.points(check.possible for check in checks)
        if not self.row and (not checks or self.points > possible):
            unfit = message("marks.unfit", points=_short(self.points), where=self.where, comment=self.comment)
            return Adjustment(kind=OUTGROWN, points=0.0, reason=as_text(unfit), check=self.where)
        which = f"Row {self.row} of the marks"
        if not checks:
            raise Problem(f"{which}: there is no check or exercise {self.where!r}.",
                          "`python grade.py list` shows them all.")  # fmt: skip
        if self.points > possible:
            raise Problem(f"{which}: {self.where} has {possible:g} points at most, not {self.points:g}.",
                          "Correct the number of points.")  # fmt: skip
        ids = {check.id for check in checks}
        given = [item.points for item in judged.adjustments if item.check in ids]
        earned = reports.points([check.points for check in checks] + given)
        params: dict[str, Scalar] = {"points": _short(self.points), "earned": _short(earned)}
        said = message("marks.by-hand", **params)
        if self.comment:
            said = message("marks.by-hand-comment", comment=self.comment, **params)
        return Adjustment(
            kind=BY_HAND, points=reports.points([self.points, -earned]), reason=as_text(said), check=self.where
        )


def kept(stored: Report | None, kinds: Collection[str] = (BY_HAND, OUTGROWN)) -> list[Mark]:
    """The marks that a report holds already: without a new list of marks they stay."""
    return [
        Mark(item.check, float(item.reason.params["points"]), str(item.reason.params.get("comment", "")))
        for item in (stored.adjustments if stored is not None else [])
        if item.kind in kinds and isinstance(item.reason.params.get("points"), int | float)
    ]


def read_marks(path: Path, plan: Plan, exercises: Collection[str]) -> Mapping[str, list[Mark]]:
    """Read marks by hand: CSV in UTF-8 with the columns `id`, `check` (or `exercise`), `points` and `comment`.

    `id` is a student's id or the name of a result's folder. `check` is the id of a check, or of an exercise for all
    of its checks together.

    Args:
        path: the file.
        plan: who may be marked.
        exercises: ids of the course's exercises.

    Returns:
        The marks for each folder of results.

    Raises:
        Problem: the file cannot be read, or rows are wrong; each is named.
    """
    fitting_of = _index([target for task in plan.tasks for target in task.targets] + list(plan.absent))
    wrong: list[str] = []
    found: dict[str, list[Mark]] = {}
    for line, cells in _rows(path):
        fitting = fitting_of(cells["id"])
        folder = fitting[0] if len(fitting) == 1 else ""
        points = _points(cells["points"])
        where = cells["check"]
        if cells[_SURPLUS]:
            wrong.append(f"Row {line} has more cells than the first line: put a text or number with a comma in quotes.")
        elif not fitting:
            wrong.append(f"Row {line}: there is no student {cells['id']!r} in this batch.")
        elif not folder:
            wrong.append(f"Row {line}: {cells['id']!r} fits several results: {', '.join(fitting)}.")
        elif where.partition(".")[0] not in exercises:
            wrong.append(f"Row {line}: there is no check or exercise {where!r}.")
        elif points is None:
            wrong.append(f"Row {line}: {cells['points']!r} is not a number of points (at least 0, two decimals).")
        elif clash := next((mark for mark in found.get(folder, []) if _overlap(mark.where, where)), None):
            wrong.append(f"Row {line}: row {clash.row} marks {clash.where} of {cells['id']} already.")
        else:
            found.setdefault(folder, []).append(Mark(where, points, cells["comment"], line))
    _refuse(f"{path} cannot be used.", wrong)
    return found


def compare(marks: Mapping[str, list[Mark]], judged: Report) -> None:
    """See that there is what marks are about, before anything is done with one of them.

    Args:
        marks: for each folder of results.
        judged: a report with all checks, of whatever submission.

    Raises:
        Problem: marks do not fit the checks; each is named.
    """
    wrong: list[str] = []
    for mark in sorted((mark for own in marks.values() for mark in own), key=lambda mark: mark.row):
        try:
            mark.adjustment(judged)
        except Problem as problem:
            wrong.append(problem.what)
    _refuse("The marks cannot be used.", wrong)


def _refuse(what: str, wrong: Sequence[str]) -> None:
    if wrong:
        more = [f"... and {len(wrong) - _MOST_SHOWN} more."] if len(wrong) > _MOST_SHOWN else []
        raise Problem(what, "\n".join([*wrong[:_MOST_SHOWN], *more]))


def _index(targets: Sequence[Target]) -> Callable[[str], list[str]]:
    """Folders of the results that an id may mean: a student's before a folder's, as it is written before any case."""
    ways: list[tuple[Callable[[str], str], dict[str, list[str]]]] = []
    for same in (str, plain):
        by_student: dict[str, list[str]] = {}
        by_folder: dict[str, list[str]] = {}
        for target in targets:
            by_student.setdefault(same(target.student.id), []).append(target.id)
            by_folder.setdefault(same(target.id), []).append(target.id)
        ways += [(same, by_student), (same, by_folder)]
    return lambda id: next((found[same(id)] for same, found in ways if same(id) in found), [])


def _overlap(one: str, other: str) -> bool:
    return one == other or one == other.partition(".")[0] or other == one.partition(".")[0]


def _short(points: float) -> float | int:
    return int(points) if points == int(points) else points


def _points(text: str) -> float | None:
    try:
        points = float(text.replace(",", "."))
    except ValueError:
        return None
    return points if math.isfinite(points) and points >= 0 and round(points, 2) == points else None


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}.", "Give the marks as a CSV file.") from error
    except UnicodeDecodeError:
        raise Problem(f"{path} is not UTF-8 text.", "Save it as CSV UTF-8 from your spreadsheet.") from None
    first = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";" if first.count(";") > first.count(",") else ",",
                        strict=True)  # fmt: skip
    rows: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            rows.append((reader.line_num, [cell.strip() for cell in cells]))
    except csv.Error as error:
        raise Problem(f"{path}, row {reader.line_num}: {error}.", "Check the quotes of that row.") from None
    header = [cell.lower() for cell in rows[0][1]] if rows else []
    header = ["check" if cell in ("exercise", "exercise or check", "check or exercise") else cell for cell in header]
    if not {"id", "check", "points"} <= set(header) <= set(_COLUMNS) or len(set(header)) < len(header):
        raise Problem(f"{path} must have the columns {', '.join(_COLUMNS)}; it has {', '.join(header) or 'none'}.",
                      "Name them in the first line.")  # fmt: skip
    blank = dict.fromkeys(_COLUMNS, "")
    return [
        (line, blank | dict(zip(header, cells, strict=False)) | {_SURPLUS: "".join(cells[len(header) :])})
        for line, cells in rows[1:]
        if any(cells)
    ]
