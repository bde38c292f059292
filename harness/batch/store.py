"""The folder of results: one writer at a time, each file whole, nothing lost by a crash.

RESULTS/<id>/report.json      the report
RESULTS/<id>/submission.zip   what was handed in
RESULTS/<id>/key.json         what the report was made from; written last: without it the result is made again
RESULTS/<id>/report.damaged.json  a report that could not be read, where one was
RESULTS/<id>/submission.earlier.zip  what was judged before, where what came after cannot be read
RESULTS/<id>/attempts/<n>/    the same of every attempt, where the best counts
RESULTS/scores.csv, summary.json
"""

from __future__ import annotations

import contextlib
import io
import itertools
import shutil
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from harness import files, report
from harness.batch.keys import Key
from harness.batch.unread import is_newer
from harness.intake.names import plain
from harness.problem import Problem
from harness.report import Report, Student

REPORT, KEY, ARCHIVE, ATTEMPTS = "report.json", "key.json", "submission.zip", "attempts"
EARLIER = "submission.earlier.zip"
DAMAGED = "report.damaged{}.json"
_LOCK = ".lock"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can tell: the same files give the same bytes


class _Owned(msgspec.Struct):
    student: Student | None = None


@dataclass(frozen=True)
class Stored:
    """A result as it was found; `key` is None if it is not finished."""

    report: Report
    key: Key | None


class Store:
    """A folder of results.

    Args:
        path: the folder; it is made by `locked`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged: list[str] = []  # places where a report was that could not be read

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder and keep other batches out of it. The system frees the lock when this process ends.

        Raises:
            Problem: another batch is at work there, or the folder cannot be written.
        """
        with self.guarded():
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / _LOCK)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise Problem(f"Another batch is writing to {self.path}.",
                              "Wait until it has ended, or name another folder with --out.") from None  # fmt: skip
        try:
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Say in a sentence what the system refuses.

        Raises:
            Problem: instead of an OSError.
        """
        try:
            yield
        except OSError as error:
            raise Problem(
                f"The results could not be written to {self.path}: {error.strerror or error}.",
                "What was finished before is kept. Make room, or see to the permissions, then run the same command "
                "again.",
            ) from error

    def ids(self) -> list[str]:
        """The folders that hold a report, by name."""
        if not self.path.is_dir():
            return []
        return sorted(item.name for item in self.path.iterdir() if (item / REPORT).is_file())

    def read(self, place: str) -> Stored | None:
        """A result, or None if there is none that can be read: then it is made again.

        Args:
            place: its folder, relative.

        Raises:
            Problem: it is of a newer version, and must not be written over.
        """
        folder = self.path / place
        try:
            found = report.from_json((folder / REPORT).read_bytes())
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        except Problem as problem:
            if is_newer(problem):
                raise Problem(f"{folder / REPORT}: {problem.what}", problem.help) from None
            return None
        try:
            key = msgspec.json.decode((folder / KEY).read_bytes(), type=Key)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            key = None
        if key is not None and key.submission != found.submission.digest:
            key = None
        return Stored(found, key)

    def _is_damaged(self, place: str) -> bool:
        try:
            return self.read(place) is None
        except Problem:  # of a newer version; who writes over it was asked to
            return False

    def owners(self) -> dict[str, Student]:
        """Whose results lie in which folders, as far as reports can be read."""
        found: dict[str, Student] = {}
        for id in self.ids():
            with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                student = msgspec.json.decode((self.path / id / REPORT).read_bytes(), type=_Owned).student
                if student is not None:
                    found[id] = student
        return found

    def find(self, id: str, submission: str) -> Stored | None:
        """A finished result of these very files: the one that counts, or one of another attempt.

        Args:
            id: the student's folder.
            submission: digest of the files.
        """
        others = self.path / id / ATTEMPTS
        names = sorted(item.name for item in others.iterdir()) if others.is_dir() else []
        for place in (id, *(f"{id}/{ATTEMPTS}/{name}" for name in names)):
            stored = self.read(place)
            if stored is not None and stored.key is not None and stored.key.submission == submission:
                return stored
        return None

    def save(self, place: str, made: Report, key: Key, submitted: Mapping[str, bytes] | None) -> None:
        """Write a result, whole or not at all, and only what differs from what is there.

        Args:
            place: its folder, relative.
            made: the report.
            key: what it was made from.
            submitted: the files, or None if there are none that could be read.

        Raises:
            Problem: the folder cannot be written, or is full.
        """
        folder = self.path / place
        wanted = {REPORT: report.to_json(made), KEY: msgspec.json.format(msgspec.json.encode(key), indent=1) + b"\n"}
        with self.guarded():
            new = not folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True)
            if new:
                files.sync_folder(folder.parent)
            archive = folder / ARCHIVE
            kept = archive.is_file() == (submitted is not None)
            if kept and all(_content(folder / name) == data for name, data in wanted.items()):
                return
            # From here on until the key is written, the result counts as not finished.
            (folder / KEY).unlink(missing_ok=True)
            if (folder / REPORT).exists() and self._is_damaged(place):  # marks by hand may be nowhere else
                (folder / REPORT).replace(_unused(folder, DAMAGED))
                self.damaged.append(place)
            if submitted is None:
                with contextlib.suppress(FileNotFoundError):
                    archive.replace(folder / EARLIER)
            else:
                (folder / EARLIER).unlink(missing_ok=True)
                packed = pack(submitted)
                if _content(archive) != packed:
                    files.write_atomically(archive, packed)
            _finish(folder, wanted[REPORT], wanted[KEY])

    def rewrite(self, place: str, made: Report) -> None:
        """Write another report of what was judged before: same files, same key.

        Raises:
            Problem: the folder cannot be written, or is full.
        """
        folder, data = self.path / place, report.to_json(made)
        with self.guarded():
            key = _content(folder / KEY)
            if _content(folder / REPORT) == data or key is None:
                return
            (folder / KEY).unlink()
            _finish(folder, data, key)

    def forget(self, kept: Collection[str] = ()) -> None:
        """Delete results, and nothing else that may lie in their folders.

        Args:
            kept: places, of results and of attempts, that stay.

        Raises:
            Problem: the folder cannot be written.
        """
        stay = {plain(place) for place in kept}  # a folder may be there already under another spelling of its name
        with self.guarded():
            for id in self.ids():
                folder = self.path / id
                attempts = folder / ATTEMPTS
                for attempt in attempts.iterdir() if attempts.is_dir() else ():
                    if plain(f"{id}/{ATTEMPTS}/{attempt.name}") not in stay and attempt.is_dir():
                        shutil.rmtree(attempt)
                with contextlib.suppress(OSError):  # some stay, or there are none
                    attempts.rmdir()
                if plain(id) in stay:
                    continue
                for name in (KEY, REPORT, ARCHIVE, EARLIER):
                    (folder / name).unlink(missing_ok=True)
                for damaged in folder.glob(DAMAGED.format("*")):
                    damaged.unlink()
                with contextlib.suppress(OSError):  # somebody keeps something else in it
                    folder.rmdir()

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the whole class.

        Raises:
            Problem: the folder cannot be written, or is full.
        """
        with self.guarded():
            if _content(self.path / name) != data:
                files.write_atomically(self.path / name, data)
                files.sync_folder(self.path)


def pack(submitted: Mapping[str, bytes]) -> bytes:
    """The files as a zip; the same files give the same bytes. Names that are no Unicode are spelled out."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(submitted.items()):
            info = zipfile.ZipInfo(name.encode("utf-8", "backslashreplace").decode("utf-8"), _EPOCH)
            info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(info, content)
    return target.getvalue()


def _finish(folder: Path, made: bytes, key: bytes) -> None:
    """Write the report and, only when that is safe on the disk, the key, by which the result counts as finished."""
    for name, data in ((REPORT, made), (KEY, key)):
        files.write_atomically(folder / name, data)
        files.sync_folder(folder)


def _unused(folder: Path, name: str) -> Path:
    """`name` with the first number for which there is no file yet; the first is without."""
    numbers = itertools.chain([""], map(str, itertools.count(2)))
    return next(path for number in numbers if not (path := folder / name.format(number)).exists())


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
