"""The roster as an export needs it: who takes part, and their ids in the learning platform."""

from __future__ import annotations

import csv
from pathlib import Path

from harness.problem import Problem
from harness.report import Student

_OWN = ("id", "name", "email", "section")
_NOT_IDS = ("due", "group")


def read_roster(path: Path) -> dict[str, Student]:
    """Students by id, from a CSV with the columns id, name, email, section; every other column is an id by its name.

    Raises:
        Problem: it cannot be read, or names nobody or somebody twice; the text says which row.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Problem(f"The roster {path} cannot be read: {reason}.", "It should be a CSV file in UTF-8.") from None
    first = text.partition("\n")[0]
    reader = csv.DictReader(
        text.splitlines(keepends=True), delimiter=";" if first.count(";") > first.count(",") else ","
    )
    if "id" not in (reader.fieldnames or ()):
        raise Problem(f"The roster {path} has no column id.", "Its first row should name the columns: id, name, email.")
    students: dict[str, Student] = {}
    for line, row in enumerate(reader, 2):
        values = {name: (value or "").strip() for name, value in row.items() if name and isinstance(value, str)}
        identity = values.get("id", "")
        if not identity:
            raise Problem(f"The roster {path} has no id in row {line}.", "Give every student an id.")
        if identity in students:
            raise Problem(f"The roster {path} has {identity} again in row {line}.", "Take one of the two rows away.")
        ids = {name: value for name, value in values.items() if value and name not in (*_OWN, *_NOT_IDS)}
        students[identity] = Student(**{name: values.get(name, "") for name in _OWN}, ids=ids)
    return students
