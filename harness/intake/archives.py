"""Zip archives from strangers, read in memory: nothing is unpacked to disk, no size is believed that was not measured.

Only zip is read, and in it only files that are stored or deflated. What could lead astray is left out with a note
(names that leave the submission, links, devices); what makes the archive as a whole doubtful (a password, damage, a
bomb) raises `Unreadable` with the reason.
"""

from __future__ import annotations

import io
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from pathlib import Path
from typing import IO

from harness.messages import message
from harness.outcome import Message
from harness.submission import Budget, Unreadable, is_kept

MAX_RATIO = 250  # unpacked to packed; source code reaches 10, a long log of equal lines 100
MAX_DIRECTORY = 2**20  # bytes of a submission's table of contents: some 10,000 entries
_RATIO_FROM = 2**20  # small files may be as repetitive as they like
_CHUNK = 2**16
_MAX_NAME = 255  # bytes of one part of a path, on every common file system
_MAX_PATH = 1000  # characters
_MAX_DEPTH = 50  # folders in folders
_DRIVE = re.compile(r"[A-Za-z]:")
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # make gpt.py look like yp.tpg
_KINDS = {b"Rar!": "RAR", b"7z\xbc\xaf": "7-Zip", b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
ARCHIVE_SUFFIXES = (".zip", ".rar", ".7z", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".whl", ".egg")
# What zipfile is known to raise on damaged archives.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, NotImplementedError, RuntimeError,
           OverflowError, IndexError, KeyError)  # fmt: skip


class Archive:
    """An opened zip. Only its table of contents has been read.

    Attributes:
        entries: ordinary files by name; names have forward slashes, stay inside, and are in Unicode's form C.
        notes: what was left out.

    Args:
        source: a path, or the bytes of the archive.
        what: how messages call it.
        max_directory: bytes of the table of contents.

    Raises:
        Unreadable: it is no zip, or a damaged one.
    """

    def __init__(self, source: Path | bytes, what: str, max_directory: int = MAX_DIRECTORY) -> None:
        self.what = what
        try:
            self._file: IO[bytes] = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
        except OSError as error:
            raise unreadable(what, error) from error
        try:
            capped = _Capped(self._file, what, max_directory)  # has all that zipfile asks of a file
            self._zip = zipfile.ZipFile(capped)
            capped.cap = None
        except _DAMAGE as error:
            raise Unreadable(_not_a_zip(self._file, what)) from error
        except OSError as error:
            raise unreadable(what, error) from error
        finally:
            if not hasattr(self, "_zip"):
                self._file.close()
        self.entries: dict[str, zipfile.ZipInfo] = {}
        self.notes: list[Message] = []
        for info in self._zip.infolist():
            self._add(info)

    def _add(self, info: zipfile.ZipInfo) -> None:
        raw = original_name(info)
        if raw.replace("\\", "/").endswith("/"):
            return
        name = clean_name(raw)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if name is None:
            self.notes.append(message("intake.name", file=shown(raw)))
        elif not is_kept(name):
            return
        elif kind == stat.S_IFLNK:
            self.notes.append(message("submission.link", file=name))
        elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            self.notes.append(message("intake.special-entry", file=name))
        elif kind != stat.S_IFDIR:
            if name in self.entries:
                self.notes.append(message("intake.duplicate", file=name))
            self.entries[name] = info

    def read(self, name: str, budget: Budget) -> bytes:
        """The content of one entry.

        Raises:
            Unreadable: it is locked or damaged, grows too much, or the budget is used up.
        """
        info = self.entries[name]
        file = {"what": self.what, "file": name}
        if info.flag_bits & 0x1:
            raise Unreadable(message("intake.encrypted", **file))
        # bzip2 and LZMA give out a whole block at a time, gigabytes in the worst case; zlib can be held to a chunk.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Unreadable(message("intake.method", **file))
        budget.spend(files=1)
        content = bytearray()
        try:
            with self._zip.open(info) as stream:
                while chunk := stream.read(_CHUNK):
                    content += chunk
                    budget.spend(size=len(chunk))
                    if len(content) > max(_RATIO_FROM, MAX_RATIO * info.compress_size):
                        raise Unreadable(message("intake.bomb", ratio=MAX_RATIO, **file))
        except _DAMAGE as error:
            raise Unreadable(message("intake.corrupt-file", problem=_reason(error), **file)) from error
        except OSError as error:
            raise unreadable(self.what, error) from error
        return bytes(content)

    def close(self) -> None:
        """Close the file."""
        self._zip.close()
        self._file.close()


def read_zip(
    source: Path | bytes, what: str, expected: tuple[str, ...], budget: Budget | None = None
) -> tuple[dict[str, bytes], list[Message]]:
    """The files of a submission that was handed in as a zip, and notes on what was left out.

    Folders around the course's files are unwrapped (`unwrap`), names that collide are settled (`settle`).

    Args:
        source: a path, or the bytes of the archive.
        what: how messages call it.
        expected: the file names that the course asks for.
        budget: of the submission that it is a part of; by default it is all of one.

    Raises:
        Unreadable: the archive cannot be read.
    """
    archive = Archive(source, what)
    try:
        budget = budget or Budget(what)
        found = {name: archive.read(name, budget) for name in archive.entries}
    finally:
        archive.close()
    found = unwrap(found, expected)
    found, notes = settle(found, expected)
    notes += [message("intake.nested", file=name) for name in found if name.lower().endswith(ARCHIVE_SUFFIXES)]
    return found, archive.notes + notes


def unwrap(found: dict[str, bytes], expected: tuple[str, ...]) -> dict[str, bytes]:
    """Take off a single top-level folder, and another beneath it, while course files lie deeper and none on top."""
    while not any(name in found for name in expected):
        tops = {name.partition("/")[0] for name in found}
        beneath = {name.rpartition("/")[2] for name in found if "/" in name}
        if len(tops) != 1 or not all("/" in name for name in found) or beneath.isdisjoint(expected):
            break
        found = {name.partition("/")[2]: content for name, content in found.items()}
    return found


def settle(found: dict[str, bytes], expected: tuple[str, ...]) -> tuple[dict[str, bytes], list[Message]]:
    """Make the names fit for every computer: none differ by case alone, none is both a file and a folder.

    Of names that differ by case, the course's own spelling counts, or else the last.
    """
    notes: list[Message] = []
    by_fold: dict[str, str] = {}
    for name in found:
        fold = unicodedata.normalize("NFC", name.casefold())
        other = by_fold.get(fold)
        kept, dropped = (other, name) if other in expected else (name, other)
        if dropped is not None:
            notes.append(message("intake.same-name", file=dropped, kept=str(kept)))
        by_fold[fold] = str(kept)
    for fold, name in list(by_fold.items()):
        parts = fold.split("/")
        for end in range(1, len(parts)):
            if (file := by_fold.get("/".join(parts[:end]))) is not None:
                notes.append(message("intake.inside-file", file=name, kept=file))
                del by_fold[fold]
                break
    return {name: found[name] for name in by_fold.values()}, notes


def original_name(info: zipfile.ZipInfo) -> str:
    """The name as its writer meant it.

    Without the UTF-8 flag a name's encoding is not known, and zipfile takes cp437, which loses nothing: the bytes can
    be had back. UTF-8 is taken if they are valid UTF-8 (macOS, Linux), then GBK if most of what that gives is common
    Chinese (Windows in China), else cp437.
    """
    name = info.orig_filename
    if info.flag_bits & 0x800 or name.isascii():
        return name
    raw = name.encode("cp437")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        chinese = raw.decode("gbk")
    except UnicodeDecodeError:
        return name
    letters = [character for character in chinese if not character.isascii()]
    common = sum(_is_common_chinese(character) for character in letters)
    return chinese if 2 * common > len(letters) else name


def _is_common_chinese(character: str) -> bool:
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


def clean_name(raw: str) -> str | None:
    """A name within a submission: forward slashes, Unicode's form C; None if it cannot be one.

    It cannot be one when it is absolute, has a drive letter or a `..`, control or direction characters, or is too long
    or too deep.
    """
    text = unicodedata.normalize("NFC", raw.replace("\\", "/"))
    if text.startswith("/") or _DRIVE.match(text) or len(text) > _MAX_PATH:
        return None
    if any(unicodedata.category(character) in ("Cc", "Cs") or character in _BIDI for character in text):
        return None
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if not 0 < len(parts) <= _MAX_DEPTH or ".." in parts or any(len(part.encode()) > _MAX_NAME for part in parts):
        return None
    return "/".join(parts)


def shown(raw: str, most: int = 100) -> str:
    """A hostile name, fit to be printed: at most `most` characters, control characters escaped."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in raw[:most])
    return text if len(raw) <= most else f"{text}..."


def kind_of(start: bytes) -> str:
    """Which other archive a file's first bytes belong to, or ""."""
    return next((kind for magic, kind in _KINDS.items() if start.startswith(magic)), "")


class _Capped:
    """A file for zipfile that refuses to read more than `cap` bytes at once.

    zipfile reads a table of contents in one piece, of whatever size the archive announces.
    """

    def __init__(self, file: IO[bytes], what: str, cap: int) -> None:
        self.file, self.what = file, what
        self.cap: int | None = cap
        self.seek, self.tell, self.seekable, self.close = file.seek, file.tell, file.seekable, file.close

    def read(self, size: int = -1) -> bytes:
        if self.cap is not None and size > self.cap:
            raise Unreadable(message("intake.directory", what=self.what, limit=self.cap // 1024))
        return self.file.read(size)


def _not_a_zip(file: IO[bytes], what: str) -> Message:
    """Says what a file that zipfile refuses is instead."""
    file.seek(0)
    start = file.read(8)
    if not start:
        return message("intake.empty", what=what)
    if kind := kind_of(start):
        return message("intake.archive-kind", what=what, kind=kind)
    return message("intake.not-zip", what=what)


def unreadable(what: str, error: OSError) -> Unreadable:
    """What an error of the operating system means for a submission."""
    if isinstance(error, FileNotFoundError):
        return Unreadable(message("intake.missing", what=what))
    return Unreadable(message("intake.unreadable", what=what, problem=error.strerror or str(error)))


def _reason(error: Exception) -> str:
    return shown(str(error)) or type(error).__name__
