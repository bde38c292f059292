"""Zip archives for tests, well-behaved and hostile."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Mapping


def make_zip(files: Mapping[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip with these files."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def zip_of(*entries: tuple[str, bytes], mode: int | None = None) -> bytes:
    """A zip with these entries in this order, names repeated if asked to; `mode` is given to each (a link, a pipe)."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            info.external_attr = (mode if mode is not None else stat.S_IFREG | 0o644) << 16
            archive.writestr(info, content)
    return target.getvalue()


def with_raw_name(data: bytes, placeholder: bytes, raw: bytes) -> bytes:
    """Replace a name by bytes of the same length, as a writer in another encoding would have written them."""
    assert len(placeholder) == len(raw) and placeholder in data
    return data.replace(placeholder, raw)


def locked(data: bytes) -> bytes:
    """The same archive with the flag of encryption on every entry."""
    out = bytearray(data)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = out.find(signature)
        while at >= 0:
            out[at + offset] |= 1
            at = out.find(signature, at + 4)
    return bytes(out)
