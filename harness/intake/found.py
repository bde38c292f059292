"""One attempt as a layout gives it: whose it is, when it came, and how to read it."""

from __future__ import annotations

import datetime
import functools
import re
from dataclasses import dataclass, field
from pathlib import Path

from harness.intake import archives
from harness.intake.trees import open_tree
from harness.messages import message
from harness.outcome import Message
from harness.submission import Budget, Submission, Unreadable, from_files, too_big


@dataclass(frozen=True)
class Person:
    """What a layout tells of a student.

    Args:
        name: as the layout spells it, which may be `doejane`.
        email: if it is told.
        ids: by platform: `canvas`, `moodle` (the participant's number within the assignment), `gradescope` (the SID),
            `folder` (the name of a folder, file or repository, which may be any id, an email or a name).
    """

    name: str = ""
    email: str = ""
    ids: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Piece:
    """A file or folder of an attempt: `inside` the folder or zip `root`.

    Args:
        root: the instructor's folder or zip.
        inside: where in it, with forward slashes.
        name: what the student called the file; "" for a folder, whose files keep their names.
    """

    root: Path
    inside: str
    name: str = ""


@dataclass(frozen=True)
class Found:
    """One attempt. It is plain data and can be sent to another process; files are read by `load`.

    Args:
        key: the student, or the group, within this input; attempts of the same key are the same student's.
        source: name within the input, for messages.
        people: who handed it in: more than one for a group, none where the layout does not tell.
        submitted: when, with its time zone: Gradescope tells, and a repository's last commit, whose time is the
            student's word. Canvas, Moodle and folders do not; the times of files are those of packing and unpacking.
        late: whether the layout calls it late.
        pieces: what it consists of.
        problem: why it cannot be read, where that is known already.
        notes: for the instructor.
    """

    key: str
    source: str
    people: tuple[Person, ...] = ()
    submitted: datetime.datetime | None = None
    late: bool = False
    pieces: tuple[Piece, ...] = ()
    problem: Message | None = None
    notes: tuple[Message, ...] = ()

    def load(self, expected: tuple[str, ...]) -> Submission | Message:
        """Read the files.

        A zip that was handed in is opened where no course file lies beside it. Folders around the course's files are
        taken off. `gpt-1.py` and `gpt (1).py`, as platforms and browsers call a second upload, are read as `gpt.py`
        if there is no such file; so is a single file whose name ends with `_gpt.py`, or which has any name if the
        course asks for one file only.

        Args:
            expected: the file names that the course asks for.

        Returns:
            The submission, or why there is none: that is this attempt's result.
        """
        if self.problem is not None:
            return self.problem
        try:
            budget = Budget(self.source)  # one for all, or twenty zips would hold twenty times as much
            files, notes = self._read(budget)
            files, more = _open_zips(files, expected, budget)
        except Unreadable as error:
            file = self.pieces[0].name if len(self.pieces) == 1 else ""
            return too_big(file).message if file and error.message.id == "intake.too-big" else error.message
        files, settled = archives.settle(archives.unwrap(files, expected), expected)
        alone = len(self.pieces) == 1 and self.pieces[0].name.endswith(".py")
        files, renamed = _rename(files, expected, alone)
        return from_files(self.source, files, expected, notes + more + settled + renamed)

    def _read(self, budget: Budget) -> tuple[dict[str, bytes], list[Message]]:
        files: dict[str, bytes] = {}
        notes: list[Message] = []
        for piece in self.pieces:
            tree = open_tree(piece.root)
            if piece.name:
                found = {piece.name: tree.file(piece.inside, budget)}
            else:
                found, left_out = tree.beneath(piece.inside, budget)
                notes += left_out
            files = _merge(files, found, notes)
        return files, notes


def _open_zips(
    files: dict[str, bytes], expected: tuple[str, ...], budget: Budget
) -> tuple[dict[str, bytes], list[Message]]:
    """Replace archives that were handed in by their files, unless a course file lies beside them."""
    notes: list[Message] = []
    handed_in = [name for name in files if "/" not in name and name.lower().endswith(archives.ARCHIVE_SUFFIXES)]
    unwrapped = archives.unwrap(files, expected)
    if any(name in unwrapped for name in expected):
        return files, [message("intake.nested", file=name) for name in handed_in]
    rest = {name: content for name, content in files.items() if name not in handed_in}
    for name in handed_in:
        if not name.lower().endswith(".zip"):
            kind = archives.kind_of(files[name]) or name.rpartition(".")[2]
            raise Unreadable(message("intake.archive-kind", what=name, kind=kind))
        budget.spend(files=-1, size=-len(files[name]))  # its files take its place
        found, more = archives.read_zip(files[name], name, expected, budget)
        notes += more
        rest = _merge(rest, found, notes)
    return rest, notes


def _merge(files: dict[str, bytes], more: dict[str, bytes], notes: list[Message]) -> dict[str, bytes]:
    notes += [message("intake.duplicate", file=name) for name in more if name in files]
    return files | more


def reads_like(name: str, wanted: str, alone: bool = False) -> bool:
    """Whether a file's name is that of a course file but for case and a number: `gpt-1.py`, `gpt (1).py`.

    `alone`: it is all that was handed in, so that something may stand before the name: `nova_gpt.py`.
    """
    return _pattern(wanted, alone).fullmatch(name) is not None


@functools.cache  # a class asks for the same few names thousands of times
def _pattern(wanted: str, alone: bool) -> re.Pattern[str]:
    stem, dot, suffix = wanted.rpartition(".")
    prefix = r"(?:.+[-_ ])?" if alone else ""
    return re.compile(rf"{prefix}{re.escape(stem)}(?:-\d+| ?\(\d+\))?{re.escape(dot + suffix)}", re.IGNORECASE)


def _rename(files: dict[str, bytes], expected: tuple[str, ...], alone: bool) -> tuple[dict[str, bytes], list[Message]]:
    """Give course files their names back. `alone`: a single file was handed in, so its name may say whose it is."""
    notes: list[Message] = []
    for wanted in expected:
        like = [name for name in files if reads_like(name, wanted, alone)]
        if alone and len(expected) == 1:
            like = list(files)
        if wanted not in files and len(like) == 1 and like[0] not in expected:
            notes.append(message("intake.renamed", file=like[0], name=wanted))
            files = {wanted if name == like[0] else name: content for name, content in files.items()}
    return files, notes
