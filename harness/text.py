"""Text that a submission had a hand in, made safe for wherever it ends: it is data, never an instruction.

Names of files and classes, messages, output, answers: each place that shows or stores them has characters that it
obeys. Whoever writes to such a place takes the function for it from here.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import Any

MAX_TEXT = 100_000  # characters of one text in a report
_CUT = " [cut]"
# What can move the cursor or change what was printed (C0 but line feed and tab, delete, C1), what turns the direction
# of writing, the line separators of Unicode, and halves of characters, which no encoding can write.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Spreadsheets take a cell that begins so for a formula, East Asian editions the wide forms too.
_FORMULA = tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20")
# How GitHub (at the start of a line, after blanks) and Azure, TeamCity (anywhere in it) know a command in a log.
_COMMAND = re.compile(r"\s*::")
_BRACKETED = re.compile(r"##(?=\w*\[)")


def utf8(text: str, limit: int | None = None) -> str:
    """The first `limit` characters (without one, all), with `?` for halves of characters (lone surrogates)."""
    return text[:limit].encode("utf-8", "replace").decode("utf-8")


def terminal(text: str) -> str:
    """For a terminal or a log: characters that could steer it are spelled out, as in `\\x1b`.

    A log may be read by a CI system: `##[` and its kind are broken up. For `::`, which counts at the start of a line
    only and is Python otherwise, see `ci_guard`.
    """
    return _BRACKETED.sub("# #", _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text))


def terminal_line(text: str) -> str:
    """For a line of a terminal or a log: as `terminal`, and a line break is spelled out, too."""
    return terminal(text).replace("\n", "\\n")


def some(names: Sequence[str], most: int) -> str:
    """The first names, with dots if there are more."""
    return ", ".join(names[:most]) + (" ..." if len(names) > most else "")


def ci_guard(line: str) -> str:
    """What to print before a line so that GitHub does not take it for a command: nothing, nearly always."""
    return "| " if _COMMAND.match(line) else ""


def ci_log(text: str) -> str:
    """For the log of a CI system: as for a terminal, and no line is a command (`::error::`, `##[error]`)."""
    return "\n".join(ci_guard(line) + line for line in terminal(text).split("\n"))


def json_ready(value: Any, *, named: bool = False) -> Any:
    """For JSON, which has no infinity, in UTF-8, which has no lone surrogates; texts are cut at `MAX_TEXT`.

    Args:
        value: plain data.
        named: a number that is not finite becomes its name, "nan" or "inf", instead of null; so it is among the
            parameters of a message.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value) if named else None
    if isinstance(value, str):
        kept = utf8(value, MAX_TEXT)
        return kept if len(value) <= MAX_TEXT else kept[: -len(_CUT)] + _CUT
    if isinstance(value, dict):
        return {json_ready(key): json_ready(item, named=named or key == "params") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item, named=named) for item in value]
    return value


def html_text(text: str) -> str:
    """For HTML, between tags or in a quoted attribute, where no template engine does it."""
    return html.escape(terminal(text), quote=True)


def cell(text: str) -> str:
    """For a cell of a table: one line, with an apostrophe before what a spreadsheet would take for a formula."""
    line = " ".join(terminal(text).split())
    return f"'{line}" if text.startswith(_FORMULA) or line.startswith(_FORMULA) else line
