"""The reports themselves, as a JSON array; a single one as it is."""

from __future__ import annotations

from typing import BinaryIO

import msgspec

from harness import report as reports
from harness.export.grades import Grade
from harness.export.sheet import Sheet

ABOUT = "the reports, as a JSON array"
TAKES = frozenset({"roster", "pseudonyms"})
SINGLE = True


def write(sheet: Sheet, out: BinaryIO) -> None:
    """Write `[report, ...]`, a report a line."""
    out.write(b"[")
    separator = b"\n"
    for grade in sheet.grades():
        report = msgspec.structs.replace(grade.report, student=grade.student)
        out.write(separator + msgspec.json.encode(report))
        separator = b",\n"
    out.write(b"\n]\n")


def write_one(grade: Grade, out: BinaryIO) -> None:
    """Write one report."""
    out.write(reports.to_json(grade.report))
