"""What a student handed in: a folder, one .py file, a notebook or a .zip, as a mapping of names to bytes."""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from harness import files
from harness.messages import message
from harness.outcome import Message
from harness.problem import Problem
from harness.text import utf8

MAX_FILES = 500
MAX_BYTES = 50 * 2**20  # of all files together
_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "venv", "env", "site-packages", "__MACOSX"}


@dataclass(frozen=True)
class Submission:
    """The submitted files.

    Args:
        name: how the report calls it.
        files: path within the submission, with forward slashes, to content.
        notes: what was left out or looks wrong, for the student.
    """

    name: str
    files: dict[str, bytes]
    notes: tuple[Message, ...] = field(default=())

    @property
    def digest(self) -> str:
        return files.digest(self.files)

    def file_digests(self) -> dict[str, str]:
        """SHA-256 of each file."""
        return {name: hashlib.sha256(content).hexdigest() for name, content in sorted(self.files.items())}


class Unreadable(Problem):
    """What was handed in cannot be read. `message` says why; in a batch it is that student's result.

    Args:
        said: what is wrong.
        help: what to do next, at a command line.
    """

    def __init__(self, said: Message, help: str | Message = "") -> None:
        super().__init__(said, help)
        self.message = said


class Budget:
    """How many files and bytes a submission may still have. Bytes are counted as they are read.

    Args:
        what: the submission, for the error.
    """

    def __init__(self, what: str) -> None:
        self.what, self.files, self.bytes = what, MAX_FILES, MAX_BYTES

    def spend(self, *, files: int = 0, size: int = 0) -> None:
        """Take files and bytes off the budget.

        Raises:
            Unreadable: it is used up.
        """
        self.files -= files
        self.bytes -= size
        help = message("problem.whole-disk")
        if self.files < 0:
            raise Unreadable(message("intake.too-many", what=self.what, limit=MAX_FILES), help)
        if self.bytes < 0:
            raise Unreadable(message("intake.too-big", what=self.what, limit=MAX_BYTES // 2**20), help)


def read_submission(path: Path, expected: tuple[str, ...], root: Path | None = None) -> Submission:
    """Read a folder, a single .py file, a notebook or a .zip.

    Hidden files, caches and virtual environments are left out; links are not followed.

    Args:
        path: the folder or file.
        expected: the file names that the course asks for.
        root: of the course; by default as `course_root` says.

    Raises:
        Problem: there is nothing there that could be graded.
    """
    name = path.name or path.resolve().name
    try:
        found, notes = _read(path, name, expected)
    except OSError as error:
        raise unread(path, error) from error
    return from_files(name, found, expected, notes, root)


def unread(path: Path, error: OSError) -> Problem:
    """What to say of a path that the system does not let us read."""
    what, problem = str(error.filename or path), error.strerror or str(error)
    return Problem(message("problem.unreadable", path=what, problem=problem), message("problem.give-work"))


def _read(path: Path, name: str, expected: tuple[str, ...]) -> tuple[dict[str, bytes], list[Message]]:
    notes: list[Message] = []
    if path.is_dir():
        found, notes = read_folder(path, Budget(str(path)))
        notes += [message("submission.folder", file=name) for name in expected if (path / name).is_dir()]
    elif path.is_file() and path.suffix.lower() == ".zip":
        from harness.intake import archives  # it needs this module

        found, notes = archives.read_zip(path, name, expected)
    elif path.is_file():
        if path.suffix not in (".py", ".ipynb"):
            raise Problem(message("problem.not-py", path=str(path)), message("problem.give-any"))
        if path.stat().st_size > MAX_BYTES:
            raise too_big(path.name)
        found = {path.name: path.read_bytes()}
    elif path.exists():
        raise Problem(message("problem.special", path=str(path)), message("problem.give-any"))
    else:
        raise Problem(message("problem.no-path", path=str(path)), message("problem.give-work"))
    return found, notes


def from_files(
    name: str,
    found: dict[str, bytes],
    expected: tuple[str, ...],
    notes: Iterable[Message] = (),
    root: Path | None = None,
) -> Submission:
    """A submission of these files, with notes on what is missing or cannot be decoded.

    Args:
        name: how the report calls it.
        found: path within the submission, with forward slashes, to content.
        expected: the file names that the course asks for.
        notes: what is known about it already.
        root: of the course; by default as `course_root` says.
    """
    from harness.notebook import choose  # most submissions have none

    misnamed = [file for file in found if utf8(file) != file]  # an old disk's or archive's encoding
    found = {file: content for file, content in found.items() if file not in misnamed}
    found, settled = choose.settle(found, root)
    notes = [*notes, *settled, *(message("submission.name", file=utf8(file)) for file in misnamed)]
    if not choose.notebook_of(found, root) and not any(name in found for name in expected):
        notes.append(message("submission.nothing", files=", ".join(expected)))
    for file in expected:
        if file in found and (problem := _unreadable(found[file])):
            notes.append(message("submission.encoding", file=file, problem=problem))
    return Submission(utf8(name), found, tuple(notes))


def too_big(file: str) -> Unreadable:
    """What to say of a single file that is larger than a submission may be."""
    said = "notebook.too-big" if file.lower().endswith(".ipynb") else "intake.too-big"
    return Unreadable(message(said, file=file, what=file, limit=MAX_BYTES // 2**20))


def is_kept(name: str) -> bool:
    """Whether a path within a submission belongs to it: hidden files, caches and environments do not."""
    *folders, last = name.split("/")
    return not last.startswith(".") and not any(_is_skipped(folder) for folder in folders)


def read_folder(path: Path, budget: Budget) -> tuple[dict[str, bytes], list[Message]]:
    """The files beneath a folder by their relative names, and notes on links, which are not followed.

    Raises:
        Unreadable: the budget is used up, or a file cannot be read.
    """
    found: dict[str, bytes] = {}
    notes: list[Message] = []
    try:
        for item in sorted(_walk(path)):
            name = item.relative_to(path).as_posix()
            if item.is_symlink():
                notes.append(message("submission.link", file=name))
            elif item.is_file():
                budget.spend(files=1, size=item.stat().st_size)
                found[name] = item.read_bytes()
    except OSError as error:
        what = Path(error.filename or path).name
        raise Unreadable(message("intake.unreadable", what=what, problem=error.strerror or str(error))) from error
    return found, notes


def _walk(folder: Path) -> list[Path]:
    """Everything beneath `folder` but hidden files, caches and environments. Links are listed, not followed."""
    items: list[Path] = []
    waiting = [folder]  # no recursion: a hostile folder may be nested deeper than Python's stack
    while waiting and len(items) <= MAX_FILES + 1:
        for item in waiting.pop().iterdir():
            if item.name.startswith("."):
                continue
            if not item.is_dir() or item.is_symlink():
                items.append(item)
            elif not _is_skipped(item.name):
                waiting.append(item)
    return items


def _is_skipped(folder: str) -> bool:
    return folder.startswith(".") or folder in _SKIPPED_FOLDERS


def _unreadable(content: bytes) -> str:
    """Why Python cannot decode a source file, or ""."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError) as error:
        return str(error)
    return ""
