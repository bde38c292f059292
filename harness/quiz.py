"""Questions on paper: choices and numbers are judged at once, free text waits for a person.

The questions, with their keys, stand in `quiz.toml` beside the graders; a student answers in a sheet that is made from
it without them. The sheet is read as data in the judge, so that no key is ever where the student's code runs.
"""

from __future__ import annotations

import math
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from harness.messages import message
from harness.outcome import Evidence, Message, Status, Stop
from harness.problem import Problem

SHEET = "quiz_answers.toml"
MOST_BYTES = 64 * 1024  # of a sheet; ours has 5 KiB without answers
MOST_SHOWN = 4000  # characters of a free text in the report
WIDTH = 100  # of the sheet's comments, which are prose


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question.

    Args:
        id: lower case with hyphens; its check is `quiz.<id>`.
        kind: `choice` (a letter of `choices`), `number`, or `text` (for a person to read).
        title: one line for the report.
        ask: the question.
        points: for the right answer.
        hint: for wrong answers without a hint of their own; for `text`, what a person looks for.
        choices: letter -> text.
        key: the right letter or number. A copy for students has none: the answer waits for a person there.
        tolerance: how far a number may be off.
        wrong: a wrong answer that is typical -> what to tell the student.
    """

    id: str
    kind: Literal["choice", "number", "text"]
    title: str
    ask: str
    points: float
    hint: str
    choices: dict[str, str] = {}
    key: str | float | None = None
    tolerance: float = 0.0
    wrong: dict[str, str] = {}

    def __post_init__(self) -> None:
        if (self.kind == "choice") != bool(self.choices):
            raise ValueError(f"{self.id}: choices belong to questions of the kind choice, and to all of them")
        if self.kind == "text" and (self.key is not None or self.wrong):
            raise ValueError(f"{self.id}: a text is judged by a person; it has no key and no wrong answers")
        if self.kind == "number" and isinstance(self.key, str):
            raise ValueError(f"{self.id}: the key of a number is a number, without quotes")
        if self.kind == "choice" and self.key is not None and self.key not in self.choices:
            raise ValueError(f"{self.id}: the key {self.key!r} is not among the choices {', '.join(self.choices)}")
        for answer in self.wrong:
            if self.is_right(self.read(answer)):
                raise ValueError(f"{self.id}: {answer!r} is listed as wrong, but it is the key")

    def read(self, answer: object) -> str | float:
        """What a student wrote, as this question's kind of answer.

        Raises:
            ValueError: it is none.
        """
        if self.kind == "number":
            if isinstance(answer, bool) or not isinstance(answer, int | float | str):
                raise ValueError
            number = float(answer.strip().replace(",", "").replace(" ", "") if isinstance(answer, str) else answer)
            if not math.isfinite(number):
                raise ValueError
            return number
        if not isinstance(answer, str):
            raise ValueError
        letter = answer.strip().lower()
        if self.kind == "choice" and letter not in self.choices:
            raise ValueError
        return letter

    def is_right(self, answer: str | float) -> bool:
        """Whether this answer, as `read` gives it, is the key."""
        if isinstance(self.key, int | float) and isinstance(answer, float):
            return abs(answer - self.key) <= self.tolerance
        return answer == self.key

    def mistake(self, answer: str | float) -> str:
        """Which of the typical wrong answers this is, or ""."""
        return next((wrong for wrong in self.wrong if self.read(wrong) == answer), "")


class _Quiz(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    question: tuple[Question, ...]


def read_quiz(path: Path) -> tuple[Question, ...]:
    """The questions of a quiz.toml.

    Raises:
        Problem: it is missing or not valid; the text names the question.
    """
    try:
        questions = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _Quiz).question
    except FileNotFoundError:
        raise Problem(f"There is no {path}.", "It lists the questions of the quiz.") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise Problem(f"{path} is not valid: {error}") from None
    if len({question.id for question in questions}) < len(questions):
        raise Problem(f"{path} has two questions of one id.")
    return questions


def judge(question: Question, handed_in: Mapping[str, bytes]) -> None:
    """Returns quietly when the sheet answers the question rightly.

    Raises:
        Stop: MISSING (no sheet), ERROR (not a sheet), NOT_STARTED (no answer), FAILED, or PENDING for a text, and
            for any answer where there is no key.
    """
    answer = _answers(handed_in).get(question.id, "")
    if isinstance(answer, str) and not answer.strip():
        raise Stop(Status.NOT_STARTED, message("quiz.blank", question=question.id, file=SHEET))
    shown = str(answer)[:MOST_SHOWN]
    evidence = Evidence(what=question.id, actual=shown)
    try:
        given = question.read(answer)
    except (ValueError, OverflowError):
        said = message(f"quiz.no-{question.kind}", question=question.id, actual=shown[:60],
                       letters=", ".join(question.choices))  # fmt: skip
        raise Stop(Status.FAILED, said, evidence=evidence) from None
    if question.key is None:
        raise Stop(Status.PENDING, message("quiz.pending"), evidence=evidence)
    if not question.is_right(given):
        said = message("quiz.wrong", question=question.id, actual=shown[:60])
        mistake = question.mistake(given)
        if not mistake:
            raise Stop(Status.FAILED, said, evidence=evidence)
        name = f"quiz.{question.id}.{mistake}"
        hint = Message(f"{name}.hint", question.wrong[mistake])
        raise Stop(Status.FAILED, said, evidence=evidence, hint=hint, mistake=name)


def _answers(handed_in: Mapping[str, bytes]) -> dict[str, object]:
    content = handed_in.get(SHEET)
    if content is None:
        raise Stop(Status.MISSING, message("quiz.no-sheet", file=SHEET))
    if len(content) > MOST_BYTES:
        raise Stop(Status.ERROR, message("quiz.too-big", file=SHEET, limit=MOST_BYTES // 1024))
    try:
        return tomllib.loads(content.decode("utf-8-sig").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:  # what tomllib and the decoding raise are ValueErrors
        problem = "values nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise Stop(Status.ERROR, message("quiz.not-toml", file=SHEET, problem=problem)) from None


def sheet(questions: Sequence[Question]) -> str:
    """The sheet for students, without keys and hints."""
    lines = [
        "# The quiz: write your answers between the quotes. A choice is a letter; a text may have several lines.",
        "# (Course authors: this is generated by `python grade.py template` from graders/quiz.toml.)",
    ]
    for number, question in enumerate(questions, start=1):
        points = f"{question.points:g} {'point' if question.points == 1 else 'points'}"
        lines += ["", *_comment(f"{number}. ({points}) {question.ask}", "   ")]
        for letter, text in question.choices.items():
            lines += _comment(f"   {letter}) {text}", "      ")
        blank = '"""\n"""' if question.kind == "text" else '""'
        lines.append(f"{question.id} = {blank}{'  # a number' if question.kind == 'number' else ''}")
    return "\n".join(lines) + "\n"


def _comment(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent=f"# {indent}")
