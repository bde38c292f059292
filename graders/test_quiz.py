"""The quiz: one check a question of quiz.toml. Nothing of the submission runs; its sheet of answers is read as data."""

from pathlib import Path

import pytest

from harness.grading import check
from harness.quiz import judge, read_quiz

QUESTIONS = read_quiz(Path(__file__).with_name("quiz.toml"))


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(q, id=q.id, marks=check(f"quiz.{q.id}", title=q.title, points=q.points, hint=q.hint))
        for q in QUESTIONS
    ],
)
def test_question(question, handed_in):
    judge(question, handed_in)
