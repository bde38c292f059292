"""What a student handed in: a folder or one .py file, as a mapping of names to bytes."""

from __future__ import annotations

import hashlib
import io
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

from harness import files
from harness.messages import message
from harness.outcome import Message
from harness.problem import Problem

MAX_FILES = 500
MAX_BYTES = 50 * 2**20  # of all files together
_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "venv", "env", "site-packages"}


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


def read_submission(path: Path, expected: tuple[str, ...]) -> Submission:
    """Read a folder or a single .py file.

    Hidden files, caches and virtual environments are left out; links are not followed.

    Args:
        path: the folder or file.
        expected: the file names that the course asks for.

    Raises:
        Problem: there is nothing there that could be graded.
    """
    try:
        found, notes = _read(path)
    except OSError as error:
        raise Problem(f"{error.filename or path} could not be read: {error.strerror}.",
                      "Give the folder (or the .py file) that holds your work.") from error  # fmt: skip
    if not any(name in found for name in expected):
        notes.append(message("submission.nothing", files=", ".join(expected)))
    for name in expected:
        if (path / name).is_dir():
            notes.append(message("submission.folder", file=name))
        if name in found and (problem := _unreadable(found[name])):
            notes.append(message("submission.encoding", file=name, problem=problem))
    name = path.name or path.resolve().name
    return Submission(name, found, tuple(notes))


def _read(path: Path) -> tuple[dict[str, bytes], list[Message]]:
    if path.is_dir():
        return _read_folder(path)
    if path.is_file():
        if path.suffix != ".py":
            raise Problem(f"{path} is not a .py file.", "Give a folder, or one .py file.")
        return {path.name: path.read_bytes()}, []
    if path.exists():
        raise Problem(f"{path} is neither a folder nor a file.", "Give a folder, or one .py file.")
    raise Problem(f"There is no {path}.", "Give the folder (or the .py file) that holds your work.")


def _read_folder(path: Path) -> tuple[dict[str, bytes], list[Message]]:
    found: dict[str, bytes] = {}
    notes: list[Message] = []
    total = 0
    for item in sorted(_walk(path)):
        name = item.relative_to(path).as_posix()
        if item.is_symlink():
            notes.append(message("submission.link", file=name))
            continue
        if not item.is_file():
            continue
        total += item.stat().st_size
        if total > MAX_BYTES or len(found) == MAX_FILES:
            raise Problem(
                f"{path} holds more than {MAX_FILES} files or {MAX_BYTES // 2**20} MiB.",
                "Is this the folder of your work? Give the folder that holds gpt.py and the other files of the course.",
            )
        found[name] = item.read_bytes()
    return found, notes


def _walk(folder: Path) -> list[Path]:
    """Everything beneath `folder` but hidden files, caches and environments. Links are listed, not followed."""
    items: list[Path] = []
    for item in folder.iterdir():
        if item.name.startswith("."):
            continue
        if item.is_dir() and not item.is_symlink():
            if item.name not in _SKIPPED_FOLDERS:
                items += _walk(item)
        else:
            items.append(item)
        if len(items) > MAX_FILES + 1:
            break
    return items


def _unreadable(content: bytes) -> str:
    """Why Python cannot decode a source file, or ""."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError) as error:
        return str(error)
    return ""
