"""The real command on the smallest examples: what a person gets for the reference, the template, a wrong path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import ROOT, Command


def test_the_reference_gets_full_marks(command: Command, tmp_path: Path) -> None:
    done = command.run(ROOT / "reference", cwd=tmp_path)
    assert done.status == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["score"]["earned"] == report["score"]["possible"] > 0
    assert not report["review"]


def test_the_template_gets_nothing_and_says_where_to_start(command: Command) -> None:
    done = command.run(ROOT / "student_template")
    assert done.status == 1
    assert "Score 0 /" in done.stdout
    assert "Next: write CausalSelfAttention.__init__ in gpt.py" in done.stdout


@pytest.mark.slow
def test_a_terminal_that_cannot_show_a_check_mark_still_gets_its_report(tmp_path: Path) -> None:
    """As on Windows when the output is piped; with a Python of its own, as where nothing is forked from the tests."""
    done = Command(forks=False).run(ROOT / "reference", cwd=tmp_path, env={"PYTHONIOENCODING": "ascii"})
    assert done.status == 0, done.stderr
    assert "Score" in done.stdout and "✓" not in done.stdout
    assert (tmp_path / "report.json").is_file()


def test_a_path_that_is_not_there(command: Command) -> None:
    done = command.run("nowhere")
    assert done.status == 2
    assert done.stderr.startswith("grade.py: There is no nowhere.")
