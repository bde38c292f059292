"""Defending a mark: replay one check, compare two gradings, keep hidden checks hidden, give follow-up points back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.authoring.variants import load_variants
from harness.defend.changes import Change, Difference
from harness.defend.tables import show_difference
from tests.support.command import ROOT, Command


def write_mistake(folder: Path, identity: str) -> Path:
    """A submission with one known mistake."""
    files = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "reference").glob("*.py")}
    variant = next(v for v in load_variants(ROOT / "graders" / "misconceptions") if v.id == identity)
    folder.mkdir()
    for name, text in variant.apply(files).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def graded(command: Command, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A wrong submission and its report."""
    place = tmp_path_factory.mktemp("graded")
    work = write_mistake(place / "work", "heads.no-scale")
    done = command.run(work, "--json", place / "report.json", "--exercise", "heads")
    assert done.status == 1
    return work, place / "report.json"


def test_replay_shows_inputs_expected_and_actual(command: Command, graded: tuple[Path, Path]) -> None:
    work, report = graded
    done = command.run("replay", report, "heads.weights", "--submission", work)
    assert done.status == 0, done.stderr
    for shown in ("reference  normal(...)", "student  CausalSelfAttention.attention_weights(...)",
                  "reference  CausalSelfAttention.attention_weights(...)", "tensor (1, 4, 5, 5) float64"):  # fmt: skip
        assert shown in done.stdout
    evidence = next(
        check["evidence"]
        for check in json.loads(report.read_text(encoding="utf-8"))["exercises"][0]["checks"]
        if check["id"] == "heads.weights"
    )
    # Once for the report and once for the run of now.
    assert done.stdout.count(evidence["expected"]) >= 2 and done.stdout.count(evidence["actual"]) >= 2


def test_replay_refuses_other_files(command: Command, graded: tuple[Path, Path]) -> None:
    _, report = graded
    done = command.run("replay", report, "heads.weights", "--submission", ROOT / "reference")
    assert done.status == 2
    assert "not the files that were judged" in done.stderr


def test_replay_of_an_unknown_check(command: Command, graded: tuple[Path, Path]) -> None:
    work, report = graded
    done = command.run("replay", report, "heads.nothing", "--submission", work)
    assert done.status == 2
    assert "no check 'heads.nothing'" in done.stderr and "heads.weights" in done.stderr


def test_ids_in_reports_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show_difference(Difference([Change("[red]", "a[/b]:smile:\x1b[2J", None, None)], {"[red]": (None, 1.0)}))
    said = capsys.readouterr().out
    assert "a[/b]:smile:\\x1b[2J" in said and said.count("[red]") == 2


def test_diff_lists_whose_marks_changed(command: Command, graded: tuple[Path, Path], tmp_path: Path) -> None:
    _, report = graded
    for results, (first, second) in {"old": (report, report), "new": (report, None)}.items():
        for who, source in (("ada", first), ("bo", second)):
            folder = tmp_path / results / who
            folder.mkdir(parents=True)
            if source is not None:
                shutil.copy(source, folder / "report.json")
    done = command.run(ROOT / "reference", "--json", tmp_path / "new" / "bo" / "report.json", "--exercise", "heads")
    assert done.status == 0
    done = command.run("diff", tmp_path / "old", tmp_path / "new")
    assert done.status == 1
    assert "bo: 33 -> 50" in done.stdout
    changed = [line for line in done.stdout.splitlines() if line.startswith("bo ")]
    assert any("heads.weights " in line and "failed (heads.no-scale)" in line and "+5" in line for line in changed)
    assert not any(line.startswith("ada") for line in done.stdout.splitlines())
    assert command.run("diff", tmp_path / "old", tmp_path / "old").status == 0


@pytest.fixture(scope="module")
def strict_course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """The command of a course with a hidden check, which gives follow-up points back."""
    root = tmp_path_factory.mktemp("course")
    for name in ("harness", "graders", "reference", "student_template", "tests/support"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "grade.py", "tests/__init__.py"):
        shutil.copy(ROOT / name, root / name)
    course = root / "graders" / "course.toml"
    settings = 'hidden = ["heads.weights"]\nfollow_through = true\n'
    course.write_text(settings + course.read_text(encoding="utf-8"), encoding="utf-8")
    server = Command(root)
    yield server
    server.close()


def test_hidden_checks_show_hint_and_points_only(
    command: Command, strict_course: Command, graded: tuple[Path, Path]
) -> None:
    work, open_report = graded
    openly = command.run(work, "--exercise", "heads", "-v")
    shown = strict_course.run(work, "--exercise", "heads", "-v")
    evidence = next(
        check["evidence"]
        for check in json.loads(open_report.read_text(encoding="utf-8"))["exercises"][0]["checks"]
        if check["id"] == "heads.weights"
    )
    assert "attention_weights: softmax" in shown.stdout
    assert evidence["expected"] in openly.stdout and evidence["actual"] in openly.stdout
    assert evidence["expected"] not in shown.stdout and evidence["actual"] not in shown.stdout


def test_follow_through_is_a_visible_adjustment(
    strict_course: Command, graded: tuple[Path, Path], tmp_path: Path
) -> None:
    work, _ = graded
    strict_course.run(work, "--exercise", "heads", cwd=tmp_path)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    checks = report["exercises"][0]["checks"]
    explained = [check for check in checks if check["caused_by"]]
    assert explained and all(check["status"] == "failed" and check["points"] == 0 for check in explained)
    assert [adjustment["check"] for adjustment in report["adjustments"]] == [check["id"] for check in explained]
    given = sum(adjustment["points"] for adjustment in report["adjustments"])
    assert report["score"]["final"] == report["score"]["earned"] + given
    assert report["score"]["final"] == 50 - 5  # only the check that tells the mistake costs points
