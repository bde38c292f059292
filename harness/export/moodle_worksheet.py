"""Moodle: the offline grading worksheet of an assignment, filled in."""

from __future__ import annotations

import re
from typing import BinaryIO

from harness.export.gradebook import Gradebook, IdColumn, Kind, fill, maximum
from harness.export.moodle import comment
from harness.export.sheet import Sheet
from harness.problem import Problem

ABOUT = "Moodle offline grading worksheet, filled in"
TAKES = frozenset({"out_of", "gradebook", "column", "id_columns", "comments", "roster"})
SINGLE = False

_NO = ("no", "false", "0")


def write(sheet: Sheet, out: BinaryIO) -> None:
    """Write the worksheet for Upload grading worksheet.

    Raises:
        Problem: a check failed; what is in `out` must not be used.
    """
    if sheet.options.gradebook is None:
        raise Problem(
            "A worksheet can only be filled in.",
            "In Moodle: View all submissions, Download grading worksheet; then --gradebook FILE.",
        )
    book = Gradebook(sheet.options.gradebook)
    column = book.column(sheet.options.column or "Grade")
    out_of = next((maximum(book, row, book.column("Maximum Grade")) for row in book.rows()), None) if (
        "Maximum Grade" in book.header) else None  # fmt: skip
    said = (book.column("Feedback comments"), comment) if sheet.options.comments else None
    fill(book, sheet, _KIND, column, out_of, said)
    out.write(book.to_bytes())


def _participant(cell: str) -> str:
    """The number at the end of `Participant 17`, whatever the language."""
    match = re.search(r"(\d+)\s*$", cell)
    return match[1] if match else ""


def _locked(book: Gradebook, row: int) -> str:
    title = "Grade can be changed"
    if title in book.header and book.value(row, book.column(title)).strip().casefold() in _NO:
        return "Moodle says that this grade cannot be changed"
    return ""


_KIND = Kind(
    ids=(
        IdColumn("Identifier", lambda student: (student.ids.get("moodle", ""),), _participant),
        IdColumn("Email address", lambda student: (student.email,)),
    ),
    locked=_locked,
)
