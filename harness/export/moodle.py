"""Moodle: the CSV for its gradebook's import, filled in or new.

Its headers are free: whoever imports maps one column to the user and one to the item. One bad row stops the whole
import, so everything is refused here that Moodle would refuse there.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from harness.export import feedback, texts
from harness.export.gradebook import Gradebook, IdColumn, Kind, fill
from harness.export.grades import Grade, number
from harness.export.sheet import Sheet, who
from harness.export.tables import identity, write_csv
from harness.problem import Problem
from harness.report import Student

ABOUT = "Moodle gradebook CSV"
TAKES = frozenset({"out_of", "item", "gradebook", "column", "id_columns", "comments", "roster"})
SINGLE = False


def _username(student: Student) -> str:
    return student.ids.get("username") or student.ids.get("login", "")


def _idnumber(student: Student) -> str:
    return student.ids.get("idnumber") or student.ids.get("sis", "")


# In the order in which they are preferred: an address is what Moodle always has.
_WAYS = {"Email address": lambda student: student.email, "Username": _username, "ID number": _idnumber}

_KIND = Kind(
    ids=(
        IdColumn("Email address", lambda student: (student.email,)),
        IdColumn("Username", lambda student: (_username(student),)),
        IdColumn("ID number", lambda student: (_idnumber(student) or student.id,)),
    ),
)


def write(sheet: Sheet, out: BinaryIO) -> None:
    """Write the file for Grades, Import, CSV file.

    Raises:
        Problem: a check failed; what is in `out` must not be used.
    """
    if sheet.options.gradebook is None:
        _write_new(sheet, out)
        return
    book = Gradebook(sheet.options.gradebook)
    column = book.column(sheet.options.column) if sheet.options.column else _only_item(book)
    if sheet.options.comments:
        raise Problem("A gradebook exported from Moodle has no column for comments.",
                      "Leave --gradebook away, or export to moodle-worksheet.")  # fmt: skip
    fill(book, sheet, _KIND, column, None)
    out.write(book.to_bytes())


def comment(grade: Grade) -> str:
    """The feedback in one line that Moodle reads back as it is."""
    return texts.moodle(feedback.text(grade.report, " | "))


def _write_new(sheet: Sheet, out: BinaryIO) -> None:
    # Without the reports: those of a large class would fill the memory.
    records = [
        (grade.student, grade.key, number(grade.points), comment(grade) if sheet.options.comments else "")
        for grade in sheet.grades()
    ]
    header = _common_way([student for student, *_ in records])
    title = texts.moodle(sheet.options.item or sheet.course_title)
    seen: dict[str, str] = {}
    rows = []
    for student, key, points, said in records:
        value = identity(_WAYS[header](student), key)
        if seen.setdefault(value.casefold(), key) != key:
            raise Problem(f"{seen[value.casefold()]} and {key} have the same {header} {value}; Moodle would let "
                          "the last one win.", "Correct the roster, or take one of the two results away.")  # fmt: skip
        if "\\" in value:
            raise Problem(f"The {header} {value} of {key} has a backslash; Moodle would misread the row.",
                          "Use another kind of id: --roster FILE.")  # fmt: skip
        row = [value, texts.moodle(student.name), points]
        rows.append(row + [said] * sheet.options.comments)
    write_csv(out, [header, "Name", title] + ["Feedback"] * sheet.options.comments, rows)


def _common_way(students: list[Student]) -> str:
    lacking = {}
    for header, value in _WAYS.items():
        lacking[header] = [who(student) for student in students if not value(student)]
        if not lacking[header]:
            return header
    fewest = min(lacking, key=lambda header: len(lacking[header]))
    raise Problem(
        f"No kind of id is known of every student; {fewest} is missing of {len(lacking[fewest])}: "
        f"{', '.join(lacking[fewest][:5])}.",
        "Give a roster with the columns id and email (or login, or sis): --roster FILE.",
    )


def _only_item(book: Gradebook) -> int:
    found = [title for title in book.header if re.search(r": .*\(Real\)$", title)]
    if len(found) != 1:
        raise Problem(f"{book.path} has {len(found) or 'no'} items with points.",
                      f"Name the column that gets the grades, --column TITLE: {', '.join(book.header)}")  # fmt: skip
    return book.column(found[0])
