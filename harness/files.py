"""Files that must not be lost or half-written, and digests."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a crash leaves the old file or the new one, never a part.

    Raises:
        OSError: the folder cannot be written, or the disk is full; `path` is untouched then.
    """
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new binary file that takes the place of `path` when the block ends; after an exception `path` is untouched.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(OSError):  # mkstemp makes it private; give it what a new file gets
            umask = os.umask(0)
            os.umask(umask)
            Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over names and contents, in the order of the names."""
    total = hashlib.sha256()
    for name, content in sorted(files.items()):
        encoded = name.encode("utf-8", "surrogateescape")
        total.update(b"%d:%s%d:" % (len(encoded), encoded, len(content)))
        total.update(content)
    return total.hexdigest()


def read_sources(folder: Path, patterns: tuple[str, ...] = ("*.py", "*.toml", "*.safetensors")) -> dict[str, bytes]:
    """The files beneath `folder` that match, by relative name: what a digest of graders or reference covers."""
    found: dict[str, bytes] = {}
    for pattern in patterns:
        for path in sorted(folder.rglob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def sync_folder(folder: Path) -> None:
    """Have the system write down which files a folder holds: a new name survives a power cut only then.

    Windows has nothing of the kind, and does not need it.

    Raises:
        OSError: the folder is not there, or the disk is full.
    """
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
