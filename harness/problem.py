"""The one exception for people who run the tool: what is wrong, and what to do about it."""

from __future__ import annotations

from harness.outcome import Message


class Problem(Exception):
    """Nothing could be graded. The command prints both lines on stderr and ends with status 2.

    What students meet is a Message, which the command says in their language; the rest is English.

    Args:
        what: one line: what happened, where.
        help: what to do next.
    """

    def __init__(self, what: str | Message, help: str | Message = "") -> None:
        self.said = (what, help)
        self.what, self.help = (part.render() if isinstance(part, Message) else part for part in self.said)
        super().__init__(self.what)
