"""A gradebook exported from a learning platform, filled in and otherwise kept byte for byte.

The `csv` module would read it and write something equal, not the same: quotes, line ends and empty lines would change,
and importers are picky. Here a cell that is not set keeps its bytes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from harness.export.grades import Grade, number
from harness.export.sheet import ABSENT, EMPTIED, KEPT, UNKNOWN, Sheet, who
from harness.export.texts import one_line
from harness.problem import Problem
from harness.report import Student

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_QUOTED = r'"[^"]*(?:""[^"]*)*"'


class Gradebook:
    """The cells of a CSV file.

    Args:
        path: the file.

    Raises:
        Problem: it cannot be read as CSV.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            data = path.read_bytes()
        except OSError as error:
            raise Problem(f"The gradebook {path} cannot be read: {error.strerror}.") from None
        self.bom, self.encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", "utf-8"))
        try:
            text = data[len(self.bom) :].decode(self.encoding)
        except UnicodeDecodeError:
            # Some older national encoding: taken byte for byte, since what is matched are ids.
            self.encoding = "latin-1"
            text = data[len(self.bom) :].decode(self.encoding)
        self.delimiter = _delimiter(text)
        self.cells: list[list[str]] = []  # as they stand in the file, quotes included
        self.ends: list[str] = []  # of each row
        self._parse(text)
        if not self.cells:
            raise Problem(f"The gradebook {path} is empty.", "Export it from the learning platform again.")
        self.header = [self.value(0, column) for column in range(len(self.cells[0]))]

    def _parse(self, text: str) -> None:
        stop = re.escape(self.delimiter) + r"\r\n"
        token = re.compile(rf'((?:{_QUOTED}|[^"{stop}])[^{stop}]*|)({re.escape(self.delimiter)}|\r\n|\r|\n|\Z)')
        row: list[str] = []
        position = 0
        while position < len(text) or row:
            match = token.match(text, position)
            if match is None:
                raise Problem(f"Row {len(self.cells) + 1} of {self.path} opens a quote that is never closed.",
                              "Was the file edited? Export it from the learning platform again.")  # fmt: skip
            row.append(match[1])
            position = match.end()
            if match[2] != self.delimiter:
                self.cells.append(row)
                self.ends.append(match[2])
                row = []

    def value(self, row: int, column: int) -> str:
        """What a cell says; "" beyond the end of its row."""
        if column >= len(self.cells[row]):
            return ""
        raw = self.cells[row][column]
        match = re.match(_QUOTED, raw)
        return raw if match is None else match[0][1:-1].replace('""', '"') + raw[match.end() :]

    def put(self, row: int, column: int, text: str) -> None:
        """Set a cell; quoted only where it must be.

        Raises:
            Problem: the row is too short to have it, or the file's encoding has no such character.
        """
        if column >= len(self.cells[row]):
            raise Problem(
                f"Row {row + 1} of {self.path} has {len(self.cells[row])} cells; its first row has {len(self.header)}.",
                "Was the file edited? Export it from the learning platform again.",
            )
        if re.search(rf'["\r\n{re.escape(self.delimiter)}]', text):
            text = '"' + text.replace('"', '""') + '"'
        self.cells[row][column] = text

    def rows(self) -> Iterator[int]:
        """The numbers of the rows below the header that are not blank."""
        return (row for row in range(1, len(self.cells)) if any(self.cells[row]))

    def column(self, title: str) -> int:
        """The column with that title.

        Raises:
            Problem: there is none, or more than one.
        """
        found = [index for index, name in enumerate(self.header) if name.strip() == title.strip()]
        if len(found) != 1:
            raise Problem(
                f"{self.path} has {len(found) or 'no'} column{'s' * (len(found) > 1)} with the title {title!r}.",
                f"Its columns are: {', '.join(name for name in self.header if name)}. Name one with --column TITLE.",
            )
        return found[0]

    def to_bytes(self) -> bytes:
        """The file."""
        text = "".join(self.delimiter.join(row) + end for row, end in zip(self.cells, self.ends, strict=True))
        return self.bom + text.encode(self.encoding, "replace")


def _delimiter(text: str) -> str:
    first = re.sub(_QUOTED, "", text[:100_000]).splitlines()[:1] or [""]
    return max(",;\t", key=first[0].count)


@dataclass(frozen=True)
class IdColumn:
    """A column that tells whose a row is.

    Args:
        header: its title.
        of: the values that it may have for a student; those that are "" do not count.
        read: what of a cell is compared.
    """

    header: str
    of: Callable[[Student], tuple[str, ...]]
    read: Callable[[str], str] = str.strip


@dataclass(frozen=True)
class Kind:
    """What is particular to the gradebooks of one platform.

    Args:
        ids: columns that are there in some exports; the first that a student is found by counts.
        kept_values: cells with these values are a person's decision and stay.
        skipped: rows that are no student's.
        locked: why a row may not be changed, or "".
    """

    ids: tuple[IdColumn, ...]
    kept_values: tuple[str, ...] = ()
    skipped: Callable[[Gradebook, int], bool] = lambda book, row: False
    locked: Callable[[Gradebook, int], str] = lambda book, row: ""


def fill(
    book: Gradebook, sheet: Sheet, kind: Kind, column: int, out_of: Decimal | None,
    comment: tuple[int, Callable[[Grade], str]] | None = None,
) -> None:  # fmt: skip
    """Put each grade into `column` of the row of its student; "" where there is no number.

    Args:
        book: changed in place.
        sheet: the grades; what is noticed goes there.
        kind: of gradebook.
        column: of the grades.
        out_of: the maximum that the gradebook states.
        comment: a column for comments and what to put there.

    Raises:
        Problem: no column tells whose the rows are; two students in one row, or one in two.
    """
    columns = _id_columns(book, sheet.options.id_columns) or [
        (book.column(known.header), known) for known in kind.ids if known.header in book.header
    ]
    if not columns:
        raise Problem(
            f"No column of {book.path} tells whose its rows are.",
            f"There should be one of: {', '.join(known.header for known in kind.ids)}. In another language, name it: "
            "--id-column HEADER=id (or login, email, ...).",
        )
    students = [row for row in book.rows() if not kind.skipped(book, row)]
    index = [_index(book, at, known, students) for at, known in columns]
    taken: dict[int, Student] = {}  # without their reports: they would fill the memory
    for grade in sheet.grades(out_of):
        row = _find(book, columns, index, grade.student)
        if row is None:
            sheet.notice(UNKNOWN, f"{who(grade.student)} ({grade.key}) is not in {book.path.name}")
            continue
        if row in taken:
            raise Problem(f"{who(taken[row])} and {who(grade.student)} are both row {row + 1} of {book.path}.",
                          "Correct their ids in the roster, or take one of the two results away.")  # fmt: skip
        taken[row] = grade.student
        before = book.value(row, column).strip()
        reason = kind.locked(book, row)
        if before in kind.kept_values or reason:
            sheet.notice(KEPT, f"row {row + 1}, {who(grade.student)}: {reason or before}")
            continue
        if grade.points is None and before not in ("", "-"):
            sheet.notice(EMPTIED, f"row {row + 1}, {who(grade.student)}: {one_line(before)}")
        book.put(row, column, number(grade.points))
        if comment is not None:
            book.put(row, comment[0], comment[1](grade))
    for row in students:
        if row not in taken:
            label = next((one_line(book.value(row, at)) for at, _ in columns if book.value(row, at)), "")
            sheet.notice(ABSENT, f"row {row + 1} of {book.path.name}, {label}")


def maximum(book: Gradebook, row: int, column: int) -> Decimal | None:
    """The number in a cell, if there is one above 0."""
    try:
        value = Decimal(book.value(row, column).strip().replace(",", "."))
    except InvalidOperation:
        return None
    return value if value.is_finite() and value > 0 else None


def _id_columns(book: Gradebook, asked: dict[str, str]) -> list[tuple[int, IdColumn]]:
    return [(book.column(header), IdColumn(header, _by_name(name))) for header, name in asked.items()]


def _by_name(name: str) -> Callable[[Student], tuple[str, ...]]:
    if name in ("id", "email"):
        return lambda student: (getattr(student, name),)
    return lambda student: (student.ids.get(name, ""),)


def _index(book: Gradebook, at: int, known: IdColumn, rows: list[int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows:
        value = known.read(book.value(row, at)).casefold()
        if value:
            found.setdefault(value, []).append(row)
    return found


def _find(
    book: Gradebook, columns: list[tuple[int, IdColumn]], index: list[dict[str, list[int]]], student: Student
) -> int | None:
    """The one row of a student.

    Raises:
        Problem: the ids point to more than one.
    """
    found: dict[int, str] = {}
    for (_, known), values in zip(columns, index, strict=True):
        for value in known.of(student):
            for row in values.get(value.strip().casefold(), []) if value.strip() else []:
                found.setdefault(row, f"row {row + 1} by {known.header}")
    if len(found) > 1:
        raise Problem(f"{who(student)} is found more than once in {book.path}: {', '.join(found.values())}.",
                      "Correct the ids in the roster, or export the gradebook again.")  # fmt: skip
    return next(iter(found), None)
