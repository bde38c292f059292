"""What a student's command says when it can do nothing is in the student's language; instructors' stay English."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest

from harness import cli, messages
from harness.course import ROOT
from harness.i18n import LANGUAGES, Translator
from harness.messages import message
from harness.problem import Problem
from harness.report import as_text

HELP = "problem.give-work"
# Command line -> the ids of both lines. The folder that it runs in is made by `place`.
CASES = {
    "nowhere": ("problem.no-path", HELP),
    "pack nowhere": ("problem.no-path", HELP),
    "notes.txt": ("problem.not-py", "problem.give-any"),
    "broken.zip": ("intake.not-zip", ""),
    "pack broken.zip": ("intake.not-zip", ""),
    "many": ("intake.too-many", "problem.whole-disk"),
    "work --exercise nothing": ("problem.no-exercise", "problem.exercises"),
    "work --exercise ,": ("problem.empty-exercise", "problem.exercises"),
    "work --feedback out.html": ("problem.no-notebook", "problem.no-notebook.help"),
    "show nowhere.json": ("problem.report-unreadable", "problem.report-unreadable.help"),
    "show notes.txt": ("problem.report-version", "problem.report-version.help"),
    "show newer.json": ("problem.report-newer", "problem.report-newer.help"),
    "show odd.json": ("problem.report-unknown", "problem.report-unknown.help"),
    "pack empty": ("ui.pack.nothing", "ui.pack.nothing.help"),
    "pack work": ("pack.missing", "ui.pack.help"),
    "pack work --anyway --out nowhere/out.zip": ("problem.unwritten", "problem.unwritten.out"),
    "work --sed 3": ("problem.no-option", "problem.usage.help"),
    "work --seed x": ("problem.bad-value", "problem.usage.help"),
}
FIFO = {"pipe": ("problem.special", "problem.give-any")} if hasattr(os, "mkfifo") else {}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with what the cases name; of the environment, no language."""
    monkeypatch.chdir(tmp_path)
    for name in ("LC_ALL", "LC_MESSAGES", "LANG", "HEADCHECK_COURSE"):
        monkeypatch.delenv(name, raising=False)
    for folder in ("work", "empty", "many"):
        (tmp_path / folder).mkdir()
    (tmp_path / "work" / "gpt.py").write_text("x = 1\n", encoding="utf-8")
    for number in range(501):
        (tmp_path / "many" / f"{number}.txt").touch()
    for name, text in {"notes.txt": "notes", "broken.zip": "PK", "newer.json": '{"schema_version": "99.0"}',
                       "odd.json": '{"schema_version": "draft"}'}.items():  # fmt: skip
        (tmp_path / name).write_text(text, encoding="utf-8")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
    return tmp_path


def as_pattern(id: str, words: Translator) -> str:
    """The sentence of that id in a language; whatever stands where a parameter does."""
    if not id:
        return ""
    template = messages.INTERFACE.get(id) or messages.ENGLISH[id]
    holes = {name: f"<{name}>" for name in re.findall(r"{(\w+)}", template)}
    shown = words.ui(id, **holes) if id in messages.INTERFACE else words.text(as_text(message(id, **holes)))
    return re.sub(r"<\w+>", ".+", re.escape(shown))


MISUSED = [line for line, ids in CASES.items() if "problem.usage.help" in ids]


@pytest.mark.parametrize(
    ("line", "language"),
    [(line, language) for line in [*CASES, *FIFO] for language in LANGUAGES if language != "en" or line not in MISUSED],
)
def test_both_lines_are_in_the_language(
    line: str, language: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([*line.split(), "--lang", language]) == 2
    err = capsys.readouterr().err
    what, help = (as_pattern(id, Translator(language)) for id in {**CASES, **FIFO}[line])
    assert re.fullmatch(f"grade.py: {what}(?:\n.+)*?" + (f"\n{help}" if help else "") + "\n", err), err


def test_english_says_what_click_says(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It knows more than we: which option may have been meant, which values there are."""
    told = {"work --sed 3": "--seed", "work --seed x": "integer"}
    assert list(told) == MISUSED
    for line, said in told.items():
        assert cli.run([*line.split(), "--lang", "en"]) == 2
        first, second = capsys.readouterr().err.splitlines()
        assert said in first and second == messages.ENGLISH["problem.usage.help"]


def test_the_locale_decides_without_an_option(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert cli.run(["nowhere"]) == 2
    assert capsys.readouterr().err.startswith("grade.py: 找不到 nowhere。")
    assert cli.run(["nowhere", "--lang", "xx"]) == 2  # which is no language: the locale's is the best there is
    assert capsys.readouterr().err.startswith("grade.py: --lang 不接受")


def test_instructors_commands_stay_english(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    for line, said in {"batch nowhere --out results": "There is no nowhere.", "export": "Missing argument",
                       "bundle instructor --out no/out.zip": "could not be written"}.items():  # fmt: skip
        assert cli.run(line.split()) == 2
        assert said in capsys.readouterr().err


def test_a_problem_reads_in_english_wherever_it_is_not_translated() -> None:
    problem = Problem(message("problem.no-path", path="{here}"), message("problem.give-work"))
    assert (problem.what, str(problem)) == ("There is no {here}.", "There is no {here}.")
    assert problem.help.startswith("Give the folder")
    assert (Problem("plain").what, Problem("plain").help) == ("plain", "")


def test_every_sentence_is_used() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "harness").rglob("*.py")
                     if path.name != "messages.py")  # fmt: skip
    assert not [id for id in messages.ENGLISH if id.startswith("problem.") and f'"{id}"' not in code]
