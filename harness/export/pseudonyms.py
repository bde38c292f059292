"""Names that replace the real ones in what leaves the machine; who is who stays in a file of the instructor's."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from harness import files
from harness.export.grades import Grade
from harness.problem import Problem
from harness.report import Student

# Ours, never a student's words.
_KEPT = frozenset({"id", "kind", "status", "title", "misconception", "caused_by", "digest", "submitted"})
_HEADER = ["id", "pseudonym"]
_T = TypeVar("_T")


class Pseudonyms:
    """The pairs in a CSV file with the columns id and pseudonym; who is not in it yet gets a random one.

    Args:
        path: the file; it need not exist.

    Raises:
        Problem: it cannot be read, or gives two students the same pseudonym.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: dict[str, str] = {}
        self.changed = False
        if not path.exists():
            return
        try:
            records = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise Problem(f"The pseudonyms {path} cannot be read: {error}.") from None
        if not records or records[0] != _HEADER or any(len(record) != 2 for record in records):
            raise Problem(
                f"{path} is no list of pseudonyms.", "Its first row is `id,pseudonym`, then one row a student."
            )
        self.names = {identity: name for identity, name in records[1:]}
        if len(set(self.names.values())) < len(records) - 1:
            raise Problem(f"{path} has a student or a pseudonym twice.", "Each may stand in one row only.")

    def replace(self, grade: Grade) -> Grade:
        """The same grade under another name: no name, address or id of the student is left in it or its report."""
        real = grade.student
        if real.id not in self.names:
            self.names[real.id] = f"student-{secrets.token_hex(4)}"
            self.changed = True
        name = self.names[real.id]
        hide = _hider(
            {real.id, real.name, real.email, *real.ids.values(), grade.report.submission.name, grade.key}, name
        )
        report = grade.report
        report = msgspec.structs.replace(
            report,
            student=None if report.student is None else Student(id=name),
            submission=msgspec.structs.replace(_walk(report.submission, hide), name=name),
            adjustments=_walk(report.adjustments, hide),
            exercises=_walk(report.exercises, hide),
            attempt=_walk(report.attempt, hide),
        )
        return dataclasses.replace(grade, key=name, student=Student(id=name), report=report, why=hide(grade.why))

    def save(self) -> None:
        """Write the file, if somebody was added."""
        if not self.changed:
            return
        text = io.StringIO(newline="")
        csv.writer(text).writerows([_HEADER, *self.names.items()])
        files.write_atomically(self.path, text.getvalue().encode("utf-8"))


def _hider(secret: set[str], pseudonym: str) -> Callable[[str], str]:
    """A function that puts the pseudonym in the place of each secret, and of each longer word of one.

    Words of Latin script are matched as words ("Li" is not in "Linear"); other scripts do not separate words.
    """
    words = {word for text in secret for word in [text, *re.split(r"[\s@.,_-]+", text)]}
    patterns = []
    for word in sorted(words, key=len, reverse=True):
        if word.isascii() and len(word) > 2:
            patterns.append(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])")
        elif not word.isascii() and len(word) > 1:
            patterns.append(re.escape(word))
    if not patterns:
        return lambda text: text
    pattern = re.compile("|".join(patterns), re.IGNORECASE)
    return lambda text: pattern.sub(pseudonym, text)


def _walk(value: _T, hide: Callable[[str], str]) -> _T:
    """The same value with `hide` applied to every text that is not ours."""
    found: object = value
    if isinstance(value, str) and not hasattr(value, "value"):  # an enum's member is ours
        found = hide(value)
    elif isinstance(value, list):
        found = [_walk(item, hide) for item in value]
    elif isinstance(value, dict):
        # File names are the student's; names of parameters are ours.
        found = {key if key.isidentifier() else hide(key): _walk(item, hide) for key, item in value.items()}
    elif isinstance(value, msgspec.Struct):
        fields = {name: _walk(getattr(value, name), hide) for name in value.__struct_fields__ if name not in _KEPT}
        found = msgspec.structs.replace(value, **fields)
    return found  # type: ignore[return-value]
