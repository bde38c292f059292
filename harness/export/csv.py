"""CSV with chosen columns; presets for Brightspace, Sakai and Open edX."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from harness.export import feedback, texts
from harness.export.grades import Grade, exact, number
from harness.export.sheet import Sheet, who
from harness.export.tables import identity, write_csv
from harness.problem import Problem

ABOUT = "CSV with --columns"
TAKES = frozenset({"out_of", "item", "columns", "course_id", "roster", "pseudonyms"})
SINGLE = True

DEFAULT = "id,name,email,section,grade,out_of,state,attempt,submitted"

_Value = Callable[[Grade], str]
_FIELDS: dict[str, _Value] = {
    "id": lambda grade: identity(grade.student.id, grade.key),
    "name": lambda grade: texts.cell(grade.student.name or grade.student.id),
    "email": lambda grade: identity(grade.student.email, grade.key),
    "section": lambda grade: texts.cell(grade.student.section),
    "grade": lambda grade: number(grade.points),
    "out_of": lambda grade: number(grade.out_of),
    "state": lambda grade: grade.state,
    "why": lambda grade: texts.cell(grade.why),
    "earned": lambda grade: _raw(grade, grade.report.score.earned),
    "possible": lambda grade: _raw(grade, grade.report.score.possible),
    "bonus": lambda grade: _raw(grade, grade.report.score.bonus),
    "adjustments": lambda grade: _raw(grade, sum(item.points for item in grade.report.adjustments)),
    "attempt": lambda grade: str(grade.report.attempt.number) if grade.report.attempt else "",
    "submitted": lambda grade: (grade.report.attempt.submitted or "") if grade.report.attempt else "",
    "comment": lambda grade: texts.cell(feedback.text(grade.report, " | ")),
}


def write(sheet: Sheet, out: BinaryIO) -> None:
    """Write the table.

    Raises:
        Problem: there is no such column, or a cell that may not stand in one.
    """
    preset = _PRESETS.get(sheet.options.columns)
    columns = preset(sheet) if preset else _chosen(sheet.options.columns or DEFAULT)
    records = []
    out_of = ""
    for grade in sheet.grades():
        out_of = out_of or number(grade.out_of)
        records.append([value(grade) for _, value in columns])
    item = texts.cell(sheet.options.item or sheet.course_title)
    header = [title.replace("{item}", item).replace("{out_of}", out_of) for title, _ in columns]
    if len(set(header)) < len(header):
        raise Problem(f"--columns names a column twice: {', '.join(header)}.", "Name each once.")
    write_csv(out, header, records)


def write_one(grade: Grade, out: BinaryIO) -> None:
    """Write a table of one row."""
    write(Sheet.of(grade), out)


def _chosen(columns: str) -> list[tuple[str, _Value]]:
    names = [name.strip() for name in columns.split(",") if name.strip()]
    return [(name, _field(name)) for name in names]


def _field(name: str) -> _Value:
    kind, _, rest = name.partition(":")
    if kind == "id" and rest:
        return lambda grade: identity(grade.student.ids.get(rest, ""), grade.key)
    if kind == "exercise" and rest:
        return lambda grade: next((_raw(grade, item.earned) for item in grade.report.exercises if item.id == rest), "")
    if name not in _FIELDS:
        raise Problem(
            f"There is no column {name!r}.",
            f"There are: {', '.join(_FIELDS)}, id:NAME for an id of the roster, exercise:ID for an exercise's "
            f"points; or one of the presets {', '.join(_PRESETS)}.",
        )
    return _FIELDS[name]


def _raw(grade: Grade, points: float) -> str:
    """Points as they were judged, and nothing where no number may be given."""
    return "" if grade.points is None else number(exact(round(float(points), 2)))


def _brightspace(sheet: Sheet) -> list[tuple[str, _Value]]:
    return [
        ("OrgDefinedId", lambda grade: identity(grade.student.ids.get("sis") or grade.student.id, grade.key)),
        ("Username", lambda grade: identity(grade.student.ids.get("login", ""), grade.key)),
        ("{item} Points Grade", _FIELDS["grade"]),
        ("End-of-Line Indicator", lambda grade: "#"),
    ]


def _sakai(sheet: Sheet) -> list[tuple[str, _Value]]:
    return [
        ("Student ID", lambda grade: identity(grade.student.ids.get("login") or grade.student.id, grade.key)),
        ("Name", _FIELDS["name"]),
        ("{item} [{out_of}]", _FIELDS["grade"]),
        ("* {item}", _FIELDS["comment"]),
    ]


def _openedx(sheet: Sheet) -> list[tuple[str, _Value]]:
    course, block = sheet.options.course_id, sheet.options.item
    if not course or not block:
        raise Problem("Open edX needs to know the course and the block.",
                      "Give --course-id course-v1:... and --item with the block's id, as in the columns "
                      "new_override-<block> of the file that Open edX exports.")  # fmt: skip
    return [
        ("user_id", lambda grade: _needed(grade, "openedx")),
        ("username", lambda grade: identity(grade.student.ids.get("login", ""), grade.key)),
        ("course_id", lambda grade: course),
        ("new_override-{item}", _FIELDS["grade"]),
    ]


def _needed(grade: Grade, name: str) -> str:
    value = grade.student.ids.get(name, "")
    if not value:
        raise Problem(f"The {name} id of {who(grade.student)} ({grade.key}) is not known.",
                      f"Give a roster with the columns id and {name}: --roster FILE.")  # fmt: skip
    return identity(value, grade.key)


_PRESETS: dict[str, Callable[[Sheet], list[tuple[str, _Value]]]] = {
    "brightspace": _brightspace,
    "sakai": _sakai,
    "openedx": _openedx,
}
