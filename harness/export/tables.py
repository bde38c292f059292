"""Writing CSV, one way for all targets: UTF-8 without a mark, CRLF, quotes where they are needed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from harness.export.texts import one_line, starts_formula
from harness.problem import Problem


def write_csv(out: BinaryIO, header: Sequence[str], records: Iterable[Sequence[str]]) -> None:
    """Write a header and records; every cell must be safe already."""
    text = io.TextIOWrapper(out, encoding="utf-8", newline="")
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(records)
    text.flush()
    text.detach()  # else it would close `out`


def identity(value: str, key: str) -> str:
    """An id as it is: changed, it would match nobody.

    Raises:
        Problem: it would run as a formula in a spreadsheet, or break its row.
    """
    if starts_formula(value) or value != one_line(value):
        raise Problem(f"The id {value!r} of {key} cannot go into a table: spreadsheets would run or break it.",
                      "Give this student another id in the roster.")  # fmt: skip
    return value
