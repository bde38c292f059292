"""How a check can end, and the one exception that carries why.

A check earns its points only if it ran to the end and passed. Everything else has a name (`Status`), a sentence
for the student (`Message`) and, where values were compared, what was expected, what came, and how far apart
they were (`Evidence`).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Status(StrEnum):
    """What became of a check. Only `PASSED` earns points; `GRADER_ERROR` and `PENDING` never cost any."""

    PASSED = "passed"
    FAILED = "failed"  # ran, and the answer was wrong
    NOT_STARTED = "not_started"  # a stub of the template is still in place
    MISSING = "missing"  # no such file, class, function or parameter
    ERROR = "error"  # the student's code raised
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"  # the worker process ended
    BLOCKED = "blocked"  # the code tried what a submission may not do
    PENDING = "pending"  # waits for a person
    GRADER_ERROR = "grader_error"  # our fault: the report is marked for review


UNDECIDED = frozenset({Status.PENDING, Status.GRADER_ERROR})

Scalar = str | int | float | bool


class Message(msgspec.Struct, frozen=True):
    """One sentence for a person: an id that translations key on, its parameters, and the English text.

    `text` is a `str.format` template over `params`; `render()` fills it in.
    """

    id: str
    text: str
    params: dict[str, Scalar] = {}

    def render(self) -> str:
        return self.text.format(**self.params) if self.params else self.text


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a comparison saw. Values are short texts, fit to be shown; numbers are plain floats."""

    what: str = ""  # the expression that was compared, as a student would write it
    expected: str = ""
    actual: str = ""
    tolerance: float | None = None  # largest absolute difference that still passes
    error: float | None = None  # largest absolute difference measured
    where: str = ""  # index of the first element that differs

    @property
    def compared(self) -> list[tuple[str, str]]:
        """`expected` and `actual`, by name; one that is empty has nothing to show."""
        return [pair for pair in (("expected", self.expected), ("actual", self.actual)) if pair[1]]


class Frame(msgspec.Struct, frozen=True):
    """One line of a student's traceback. `file` is relative to the submission."""

    file: str
    line: int
    function: str
    source: str = ""
    column: int = 0  # of a syntax error, from 1


class Stop(Exception):
    """Ends a check without its points.

    Args:
        status: the name of what happened.
        message: what the student should read first.
        evidence: what was compared, if anything was.
        trace: where in the submission it happened, outermost frame first.
        hint: instead of the check's own, when the check itself knows what went wrong: the mistake of the id `mistake`.
    """

    def __init__(
        self,
        status: Status,
        message: Message,
        *,
        evidence: Evidence | None = None,
        trace: tuple[Frame, ...] = (),
        hint: Message | None = None,
        mistake: str = "",
    ) -> None:
        super().__init__(message.render())
        self.status = status
        self.message = message
        self.evidence = evidence
        self.trace = trace
        self.hint = hint
        self.mistake = mistake


class StudentError(Stop):
    """The submission raised. `kinds` are the names of the exception's classes, most derived first."""

    def __init__(
        self,
        status: Status,
        message: Message,
        *,
        kinds: tuple[str, ...],
        said: str,
        trace: tuple[Frame, ...] = (),
    ) -> None:
        super().__init__(status, message, trace=trace)
        self.kinds = kinds
        self.said = said
