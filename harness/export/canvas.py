"""Canvas: a gradebook CSV, filled in or new.

Canvas reads `Student,ID,[SIS User ID,SIS Login ID],Section,<title (assignment id)>`, names and order as here, and finds
students by ID, then SIS id, login, exact name (its lib/gradebook_importer.rb).
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import BinaryIO

from harness.export import texts
from harness.export.gradebook import Gradebook, IdColumn, Kind, fill, maximum
from harness.export.grades import Grade, number
from harness.export.sheet import Sheet, who
from harness.export.tables import identity, write_csv
from harness.problem import Problem
from harness.report import Student

ABOUT = "Canvas gradebook CSV"
TAKES = frozenset({"out_of", "item", "gradebook", "column", "id_columns", "roster"})
SINGLE = False

_POINTS_POSSIBLE = "    Points Possible"
_ASSIGNMENT = re.compile(r" \(\d+\)$")
# Canvas takes a column with such a title for one that it computes itself, and drops it without a word.
_DROPPED = re.compile(r"(Current|Final) (Score|Points|Grade)|^Override ")


def write(sheet: Sheet, out: BinaryIO) -> None:
    """Write the file that Canvas' gradebook imports.

    Raises:
        Problem: a check failed; what is in `out` must not be used.
    """
    if sheet.options.gradebook is None:
        _write_new(sheet, out)
        return
    book = Gradebook(sheet.options.gradebook)
    if book.delimiter == "\t" or book.header[0] != "Student" or "Section" not in book.header:
        raise Problem(
            f"{book.path} is not a gradebook that Canvas reads back.",
            "In Canvas: Grades, Export, Export Entire Gradebook. Do not save it from a spreadsheet.",
        )
    column = book.column(sheet.options.column) if sheet.options.column else _only_assignment(book)
    refuse_title(book.header[column])
    points = next((maximum(book, row, column) for row in book.rows() if _is_possible(book, row)), None)
    fill(book, sheet, _KIND, column, points)
    out.write(book.to_bytes())


def refuse_title(title: str) -> None:
    """Refuse titles of columns that Canvas would drop.

    Raises:
        Problem: this is one.
    """
    if _DROPPED.search(title):
        raise Problem(f"Canvas does not import a column called {title!r}: it computes those itself.",
                      "Use a title without Current or Final Score, Points or Grade, and without Override.")  # fmt: skip


def _write_new(sheet: Sheet, out: BinaryIO) -> None:
    records = []
    seen: dict[str, str] = {}
    out_of: Decimal | None = None
    for grade in sheet.grades():
        out_of = out_of or grade.out_of
        records.append(_record(grade, seen))
    title = texts.one_line(sheet.options.item or sheet.course_title)
    if not title or texts.starts_formula(title):
        raise Problem(f"{title!r} cannot be the title of a Canvas assignment.", "Name it with --item TITLE.")
    refuse_title(title)
    possible = [_POINTS_POSSIBLE, "", "", "", "", number(out_of)]
    write_csv(out, ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", title], [possible, *records])


def _record(grade: Grade, seen: dict[str, str]) -> list[str]:
    student = grade.student
    ids = [identity(student.ids.get(name, ""), grade.key) for name in ("canvas", "sis", "login")]
    if not any(ids):
        raise Problem(
            f"Nothing tells Canvas who {who(student)} ({grade.key}) is.",
            "Fill in the gradebook that Canvas exports (--gradebook FILE), or give a roster with a column canvas, sis "
            "or login (--roster FILE).",
        )
    for name, value in zip(("Canvas", "SIS", "login"), ids, strict=True):
        if value and seen.setdefault(f"{name} {value}", grade.key) != grade.key:
            raise Problem(f"{seen[f'{name} {value}']} and {grade.key} have the same {name} id {value}.",
                          "Correct the roster, or take one of the two results away.")  # fmt: skip
    name, section = texts.cell(student.name or student.id), texts.cell(student.section)
    return [name, *ids, section, number(grade.points)]


def _only_assignment(book: Gradebook) -> int:
    found = [title for title in book.header if _ASSIGNMENT.search(title)]
    if len(found) != 1:
        raise Problem(f"{book.path} has {len(found) or 'no'} assignments.",
                      f"Name the one that gets the grades, --column TITLE: {', '.join(found)}")  # fmt: skip
    return book.column(found[0])


def _is_possible(book: Gradebook, row: int) -> bool:
    return "Points Possible" in book.value(row, 0)


def _is_no_student(book: Gradebook, row: int) -> bool:
    """The rows with points and posting policies, and the test student that every course has."""
    named = [at for at, title in enumerate(book.header) if title in ("ID", "SIS User ID", "SIS Login ID")]
    return (
        _is_possible(book, row)
        or book.value(row, 0).strip() == "Student, Test"
        or not any(book.value(row, at).strip() for at in named)
    )


def _sis(student: Student) -> tuple[str, ...]:
    return (student.ids.get("sis") or student.id,)


def _login(student: Student) -> tuple[str, ...]:
    return (student.ids.get("login") or student.email or student.id,)


_KIND = Kind(
    ids=(
        IdColumn("ID", lambda student: (student.ids.get("canvas", ""),)),
        IdColumn("SIS User ID", _sis),
        IdColumn("SIS Login ID", _login),
    ),
    kept_values=("EX",),
    skipped=_is_no_student,
)
