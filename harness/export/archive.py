"""Zip files that come out the same, byte for byte, from the same content."""

from __future__ import annotations

import zipfile
from types import TracebackType
from typing import BinaryIO

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that the format knows


class Archive:
    """A zip file being written; a context manager.

    Args:
        out: where it goes. Speed before size: the texts are small.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1)

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def add(self, name: str, data: bytes, *, executable: bool = False) -> None:
        """Add a file under a path with forward slashes."""
        info = zipfile.ZipInfo(name, _EPOCH)
        info.create_system = 3  # else the bits of the next line are not read
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(info, data)
