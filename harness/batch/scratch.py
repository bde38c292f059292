"""Where the workers of a batch get their folders, and what becomes of them when the batch is killed."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from pathlib import Path

from filelock import FileLock, Timeout

from harness.worker import homes

_PREFIX, _LOCK = "headcheck-batch-", ".lock"
_YOUNG = 60.0  # seconds: so new a folder may be one whose batch is just about to lock it
_OLD = 86_400.0  # seconds: so old a folder without a lock was being removed, or made, when its batch was killed


class Scratch:
    """A folder for temporary files, locked as long as this process lives."""

    def __init__(self) -> None:
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = FileLock(self.path / _LOCK, thread_local=False)  # any thread may remove it
        self._lock.acquire(timeout=0)

    def remove(self) -> None:
        """Remove the folder and all in it."""
        self._lock.release()
        homes.remove(self.path)


def remove_abandoned() -> None:
    """Remove folders of this user's batches that ended without doing so; the system has freed their locks.

    A judge of such a batch may still be at work there: nobody waits for its answer any more.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, Timeout):
            locked = _has_lock(folder)
            if locked is None or time.time() - folder.stat().st_mtime < (_YOUNG if locked else _OLD):
                continue
            if locked:
                lock = FileLock(folder / _LOCK)
                lock.acquire(timeout=0)
                lock.release()
            homes.remove(folder)


def _has_lock(folder: Path) -> bool | None:
    """Whether there is a lock in it; None unless it is a real folder of this user with, at most, a real lock: anybody
    may write to the place where it lies."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or (os.name == "posix" and found.st_uid != os.getuid()):
        return None
    try:
        return True if stat.S_ISREG((folder / _LOCK).lstat().st_mode) else None
    except FileNotFoundError:
        return False
