"""GitHub's workflow commands: annotations, and a cover for output that could hold such commands.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions; what is escaped is what the runner
undoes (actions/runner, ActionCommand.cs).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from harness.export.texts import plain

MOST = 10  # the annotations of a kind that GitHub shows for a step
_LONGEST = 1500  # characters of one message


@dataclass(frozen=True)
class Annotation:
    """A note at lines of a file of the repository.

    Args:
        title: in bold.
        text: below it.
        file: path within the repository; "" for none.
        line: the first line, from 1; None for none.
        end_line: the last.
        level: error, warning or notice.
    """

    title: str
    text: str
    file: str = ""
    line: int | None = None
    end_line: int | None = None
    level: str = "error"

    def command(self) -> str:
        """The line to print."""
        where = {"file": self.file, "line": self.line, "endLine": self.end_line, "title": plain(self.title)}
        given = [f"{name}={_property(str(value))}" for name, value in where.items() if value not in ("", None)]
        text = plain(self.text)
        cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        return f"::{self.level} {','.join(given)}::{_data(cut)}"


def covered(text: str) -> str:
    """`text` between commands that keep the runner from obeying what looks like a command in it.

    The word that ends the cover is random, and drawn after the text is known.
    """
    token = secrets.token_hex(16)
    while token in text:
        token = secrets.token_hex(16)
    return f"::stop-commands::{token}\n{text.rstrip()}\n::{token}::"


def commands(annotations: Sequence[Annotation]) -> list[str]:
    """The lines to print for the first `MOST`."""
    return [annotation.command() for annotation in annotations[:MOST]]


def _data(text: str) -> str:
    return _printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _printable(text: str) -> str:
    """Names of files may be no valid Unicode."""
    return text.encode("utf-8", "replace").decode("utf-8")
