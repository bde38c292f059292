"""The quiz: what is right, wrong, blank or for a person to read, and where the keys do not go."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from harness.authoring.quiz_cases import sheets
from harness.outcome import Status, Stop
from harness.problem import Problem
from harness.quiz import MOST_BYTES, SHEET, Question, judge, read_quiz, sheet
from tests.support.command import ROOT, Command

QUIZ = ROOT / "graders" / "quiz.toml"
QUESTIONS = read_quiz(QUIZ)
RIGHT = (ROOT / "reference" / SHEET).read_text(encoding="utf-8")
SHAPE = Question(id="shape", kind="choice", title="t", ask="a?", points=1, hint="h", choices={"a": "1", "b": "2"},
                 key="b", wrong={"a": "Not {that}."})  # fmt: skip
COUNT = Question(id="count", kind="number", title="t", ask="a?", points=1, hint="h", key=3168, wrong={"3072": "Bias."})
WHY = Question(id="why", kind="text", title="t", ask="a?", points=2, hint="h")


def ended(question: Question, text: str | bytes | None) -> Stop | None:
    """How judging a sheet of this text ends; None when the answer is right."""
    content = text.encode("utf-8") if isinstance(text, str) else text
    try:
        judge(question, {} if content is None else {SHEET: content})
    except Stop as stop:
        return stop
    return None


@pytest.mark.parametrize("answer", ['"b"', '" B "', "'b'", '"""\nb\n"""'])
def test_a_choice_is_a_letter(answer: str) -> None:
    assert ended(SHAPE, f"shape = {answer}") is None


@pytest.mark.parametrize("answer", ["3168", '"3168"', '" 3,168 "', "3168.0", "3_168", '"3.168e3"'])
def test_a_number_may_be_written_in_any_way(answer: str) -> None:
    assert ended(COUNT, f"count = {answer}") is None


def test_a_tolerance_is_kept() -> None:
    near = Question(id="n", kind="number", title="t", ask="a?", points=1, hint="h", key=0.5, tolerance=0.01)
    assert ended(near, "n = 0.505") is None
    assert ended(near, "n = 0.52") is not None


@pytest.mark.parametrize(
    ("question", "text", "status", "id"),
    [
        (SHAPE, 'shape = "a"', Status.FAILED, "quiz.wrong"),
        (SHAPE, 'shape = "c"', Status.FAILED, "quiz.no-choice"),
        (SHAPE, "shape = 2", Status.FAILED, "quiz.no-choice"),
        (SHAPE, 'shape = "  "', Status.NOT_STARTED, "quiz.blank"),
        (SHAPE, "", Status.NOT_STARTED, "quiz.blank"),
        (SHAPE, None, Status.MISSING, "quiz.no-sheet"),
        (SHAPE, "shape = b", Status.ERROR, "quiz.not-toml"),
        (SHAPE, b"shape = '\xff'", Status.ERROR, "quiz.not-toml"),
        (SHAPE, "shape = " + "[" * 20_000, Status.ERROR, "quiz.not-toml"),
        (SHAPE, "#" * (MOST_BYTES + 1), Status.ERROR, "quiz.too-big"),
        (COUNT, "count = 3167", Status.FAILED, "quiz.wrong"),
        (COUNT, 'count = "many"', Status.FAILED, "quiz.no-number"),
        (COUNT, "count = true", Status.FAILED, "quiz.no-number"),
        (COUNT, "count = nan", Status.FAILED, "quiz.no-number"),
        (COUNT, f"count = 1{'0' * 400}", Status.FAILED, "quiz.no-number"),
        (COUNT, f"count = 1{'0' * 5000}", Status.ERROR, "quiz.not-toml"),
        (WHY, 'why = "Because."', Status.PENDING, "quiz.pending"),
        (WHY, "why = 3", Status.FAILED, "quiz.no-text"),
        (WHY, 'why = """\n"""', Status.NOT_STARTED, "quiz.blank"),
    ],
)
def test_how_an_answer_can_end(question: Question, text: str | bytes | None, status: Status, id: str) -> None:
    stop = ended(question, text)
    assert stop is not None
    assert (stop.status, stop.message.id) == (status, id)


def test_a_typical_wrong_answer_is_named_and_the_key_is_not_told() -> None:
    for question, text, mistake in ((SHAPE, 'shape = "A"', "quiz.shape.a"), (COUNT, "count = 3072", "quiz.count.3072")):
        stop = ended(question, text)
        assert stop is not None and stop.hint is not None
        assert (stop.mistake, stop.hint.id) == (mistake, f"{mistake}.hint")
        assert stop.evidence is not None and stop.evidence.expected == ""
    assert stop.hint.render() == "Bias."
    shown = ended(SHAPE, 'shape = "a"')
    assert shown is not None and shown.hint is not None and shown.hint.render() == "Not {that}."
    other = ended(COUNT, "count = 5")
    assert other is not None and other.hint is None and other.mistake == ""


def test_without_a_key_the_answer_waits() -> None:
    keyless = Question(id="shape", kind="choice", title="t", ask="a?", points=1, hint="h", choices={"a": "1", "b": "2"})
    stop = ended(keyless, 'shape = "b"')
    assert stop is not None and stop.status is Status.PENDING


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('kind = "choice"\nkey = "z"\nchoices = { a = "1" }', "'z' is not among"),
        ('kind = "choice"', "choices belong"),
        ('kind = "number"\nkey = "3"', "without quotes"),
        ('kind = "number"\nkey = 3\nwrong = { "3.0" = "no" }', "it is the key"),
        ('kind = "text"\nkey = 3', "judged by a person"),
        ('kind = "essay"', "essay"),
    ],
)
def test_a_quiz_that_contradicts_itself_is_refused(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "quiz.toml"
    file.write_text(
        f'[[question]]\nid = "q"\ntitle = "t"\nask = "a?"\npoints = 1\nhint = "h"\n{line}\n', encoding="utf-8"
    )
    with pytest.raises(Problem, match=re.escape(said)):
        read_quiz(file)


def test_the_sheet_asks_all_and_tells_nothing() -> None:
    text = sheet(QUESTIONS)
    assert (ROOT / "student_template" / SHEET).read_text(encoding="utf-8") == text, "run `python grade.py template`"
    answers = tomllib.loads(text)
    assert list(answers) == [question.id for question in QUESTIONS]
    assert not any(answer.strip() for answer in answers.values())
    comments = " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))
    for question in QUESTIONS:
        assert question.ask in comments and all(choice in comments for choice in question.choices.values())
        for told in (question.hint, *question.wrong.values()):
            assert told not in comments
    assert "3168" not in text


def test_the_references_answers_are_right() -> None:
    for question in QUESTIONS:
        stop = ended(question, RIGHT)
        assert stop is None if question.kind != "text" else stop is not None and stop.status is Status.PENDING


def test_every_listed_wrong_answer_is_named_as_itself() -> None:
    for kind, id, files in sheets(QUESTIONS, RIGHT):
        outcomes = {question.id: ended(question, files[SHEET]) for question in QUESTIONS if question.kind != "text"}
        failed = {name: stop for name, stop in outcomes.items() if stop is not None}
        if kind == "accepted":
            assert not failed, id
        elif kind == "degenerate":
            assert len(failed) == len(outcomes), id
        else:
            assert [stop.mistake for stop in failed.values()] == [id]


def test_the_command_grades_a_sheet_without_its_keys_or_code(command: Command, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    text = RIGHT.replace('split-shape = "c"', 'split-shape = "b"')
    (tmp_path / "work" / SHEET).write_text(text, encoding="utf-8")
    done = command.run("grade", "work", "--exercise", "quiz", cwd=tmp_path)
    assert done.status == 1
    assert "time stands before the heads" in done.stdout and "waits for a person" in done.stdout
    assert '"c"' not in (tmp_path / "report.json").read_text(encoding="utf-8")
