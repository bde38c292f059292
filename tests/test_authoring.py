"""A second course in a folder of its own, as docs/authoring.md builds it: the commands work there, and it is proved."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from harness.authoring.template import make_template
from harness.course import read_course
from harness.problem import Problem
from tests.support.command import ROOT, Command

COURSE = ROOT / "tests" / "courses" / "temperature"


@pytest.mark.slow
def test_the_example_is_proved(command: Command) -> None:
    done = command.run("check-course", "--course", COURSE, "--jobs", "1", env={"COLUMNS": "120"})
    assert done.status == 0, done.stdout + done.stderr
    kinds = ("reference", "accepted", "misconceptions", "degenerate")
    known = {kind: len(re.findall(r"^    id = ", _text(f"graders/{kind}/temperature.py"), re.M)) for kind in kinds[1:]}
    assert min(known.values()) >= 3
    counts = [f"{n} / {n}" for n in (1, 1, known["accepted"], known["misconceptions"], known["degenerate"])]
    assert re.search(r"temperature\s+" + r"\s+".join(counts), done.stdout)
    assert f"{sum(known.values()) + 2} answers on 10 seeds" in done.stdout


def test_the_proof_fails_where_the_graders_are_wrong(command: Command, tmp_path: Path) -> None:
    """Two checks lose the condition that keeps empty answers from points; the page tells of the first."""
    broken = _copy(tmp_path)
    grader = broken / "graders" / "test_temperature.py"
    text = grader.read_text(encoding="utf-8")
    weaker = text.replace("before[1:, 1:], after[1:, 1:]", "before[1:], after[1:]")
    lines = [line for line in weaker.splitlines() if "at 0.5 instead of" not in line and "cold, warm" not in line]
    assert weaker != text and len(lines) == len(text.splitlines()) - 2
    grader.write_text("\n".join(lines) + "\n", encoding="utf-8")
    shutil.rmtree(broken / "graders" / "misconceptions")
    shutil.rmtree(broken / "graders" / "accepted")
    done = command.run("check-course", "--course", broken, "--jobs", "1", "--quick")
    assert done.status == 1, done.stderr
    shown = "temperature.identity  temperature.rows gives 2 points\n"
    assert shown in done.stdout
    assert f"\n{shown}```" in (ROOT / "docs" / "authoring.md").read_text(encoding="utf-8")
    assert "temperature.always-refuses  temperature.refuses gives 2 points" in done.stdout


def test_a_quiz_that_is_code_is_proved_like_any_exercise(command: Command, tmp_path: Path) -> None:
    shutil.copytree(COURSE.parent / "pooling", tmp_path / "pooling", ignore=shutil.ignore_patterns("__pycache__"))
    done = command.run("check-course", "--course", tmp_path / "pooling", "--quick", "--jobs", "1")
    assert done.status == 0 and re.search(r"^quiz +1 / 1 ", done.stdout, re.M), done.stdout + done.stderr


def test_the_template_of_the_example_is_up_to_date(tmp_path: Path) -> None:
    make_template(COURSE / "reference", tmp_path)
    made = (tmp_path / "sampling.py").read_bytes()
    assert (COURSE / "student_template" / "sampling.py").read_bytes() == made


def test_a_mistake_in_another_course_is_named(command: Command, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    text = _text("reference/sampling.py")
    assert "logits / temperature  #" in text
    wrong = text.replace("logits / temperature  #", "logits * temperature  #")
    (work / "sampling.py").write_text(wrong, encoding="utf-8")
    done = command.run(work, "--course", COURSE, cwd=tmp_path)
    assert done.status == 1, done.stderr
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["course"]["id"] == "sampling"
    failed = [check for check in report["exercises"][0]["checks"] if check["status"] != "passed"]
    assert {check["misconception"] for check in failed} == {"temperature.multiplied"}


def test_the_course_can_be_named_by_a_variable(command: Command, tmp_path: Path) -> None:
    done = command.run(cwd=tmp_path, env={"HEADCHECK_COURSE": str(COURSE)})
    assert done.status == 1, done.stderr
    assert "Picking the next token" in done.stdout
    assert "Next: write temperature_softmax in sampling.py" in done.stdout


def test_a_course_cannot_say_where_it_lies(tmp_path: Path) -> None:
    course = _copy(tmp_path)
    settings = course / "graders" / "course.toml"
    assert read_course(course / "graders").root == course.resolve()
    settings.write_text('root = "/"\n' + settings.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(Problem, match="root"):
        read_course(course / "graders")


def _copy(folder: Path) -> Path:
    target = folder / "course"
    shutil.copytree(COURSE, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def _text(name: str) -> str:
    return (COURSE / name).read_text(encoding="utf-8")
