"""The one exception for people who run the tool: what is wrong, and what to do about it."""

from __future__ import annotations


class Problem(Exception):
    """Nothing could be graded. The command prints both lines on stderr and ends with status 2.

    Args:
        what: one line: what happened, where.
        help: what to do next.
    """

    def __init__(self, what: str, help: str = "") -> None:
        super().__init__(what)
        self.what, self.help = what, help
