"""Sheets of answers to the quiz whose verdict is known: every wrong answer that quiz.toml lists, and empty sheets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.quiz import SHEET, Question, sheet


def sheets(questions: Sequence[Question], right: str) -> Iterator[tuple[str, str, dict[str, bytes]]]:
    """Kind, id and files of each.

    Args:
        questions: of the quiz.
        right: a sheet with right answers.

    Raises:
        ValueError: a question is not answered in it.
    """
    for question in questions:
        for wrong in question.wrong:
            text = _answer(right, question, wrong)
            yield "misconception", f"quiz.{question.id}.{wrong}", {SHEET: text.encode("utf-8")}
    shouted = grouped = right
    for question in questions:
        if question.kind != "text":
            shouted = _answer(shouted, question, f" {question.key} ".upper())
        if question.kind == "number":
            grouped = _answer(grouped, question, f"{question.key:,g}")
    yield "accepted", "quiz.capitals-and-quotes", {SHEET: shouted.replace("\n", "\r\n").encode("utf-8-sig")}
    yield "accepted", "quiz.numbers-with-commas", {SHEET: grouped.encode("utf-8")}
    blank = sheet(questions)
    yield "degenerate", "quiz.blank-lines", {SHEET: _fill(blank, '"  "')}
    yield "degenerate", "quiz.question-marks", {SHEET: _fill(blank, '"?"')}
    yield "degenerate", "quiz.not-toml", {SHEET: _fill(blank, "dunno")}
    yield "degenerate", "quiz.emptied", {SHEET: b""}


def _fill(blank: str, answer: str) -> bytes:
    """The blank sheet with the same answer to every question that is not a text."""
    return re.sub(r'^(\S+ = )""(?!")', lambda line: line[1] + answer, blank, flags=re.MULTILINE).encode("utf-8")


def _answer(text: str, question: Question, answer: str) -> str:
    """The sheet with another answer to one question of the kind choice or number."""
    changed, count = re.subn(rf"^{question.id} = .*$", f'{question.id} = "{answer}"', text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"{question.id} is answered {count} times in the sheet; it should be once")
    return changed
