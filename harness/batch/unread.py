"""Why a stored report cannot be read, and what to do about it: nobody may go missing from the figures unsaid."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness import report
from harness.problem import Problem

_ANEW = (
    "The next `batch` makes it anew, and keeps this one beside it as report.damaged.json; marks by hand in it must be "
    "given again with --marks."
)


class _Environment(msgspec.Struct):
    headcheck: str = ""


class _Maker(msgspec.Struct):
    environment: _Environment


def why_unread(path: Path) -> str:
    """What keeps this report from being read, in a line, and the next step; "" if it can be read after all."""
    try:
        data = path.read_bytes()
        report.from_json(data)
    except OSError as error:
        return f"It cannot be read: {error.strerror or error}. See to its permissions."
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"It is damaged ({error}). {_ANEW}"
    except Problem as error:
        return f"{error.what} {_needed(data) or error.help if is_newer(error) else _ANEW}"
    return ""


def is_newer(error: Problem) -> bool:
    """Whether a report could not be read because a newer version wrote it."""
    said = error.said[0]
    return not isinstance(said, str) and said.id == "problem.report-newer"


def _needed(data: bytes) -> str:
    """Which headcheck reads it, if it says which wrote it."""
    try:
        version = msgspec.json.decode(data, type=_Maker).environment.headcheck[:40]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return f"Use the headcheck that wrote it, {version}, or a newer one." if version else ""
