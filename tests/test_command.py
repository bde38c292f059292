"""The real command on the smallest examples: what a person gets for the reference, the template, a wrong path."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
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
    assert done.stdout.count("not started") == 10  # one line an exercise


def test_bonus_exercises_that_are_not_handed_in_have_one_line_each(command: Command, tmp_path: Path) -> None:
    for name in ("gpt.py", "heads_positions.py", "rope.py"):
        shutil.copy(ROOT / "reference" / name, tmp_path)
    done = command.run(tmp_path)
    assert done.stdout.count("missing") == 7
    assert "Score 100 / 100  bonus 0 / 76" in done.stdout
    assert "Next:" not in done.stdout


def test_what_waits_for_a_person_is_said_beside_the_score(command: Command) -> None:
    done = command.run(ROOT / "reference", "--exercise", "quiz")
    assert done.status == 0
    assert "bonus 8 / 14  (6 points not decided yet)" in done.stdout


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


# A command that is interrupted, and once more at the moment that is marked.
INTERRUPTED_TWICE = """
import atexit, os, signal, sys, threading
import click
from harness import cli

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit "ignore"
interrupt = lambda: signal.raise_signal(signal.SIGINT)
moment, sys.argv[1:] = sys.argv[1], ["interrupted"]
if moment == "when it is told":
    say = click.echo
    click.echo = lambda *args, **kwargs: (say(*args, **kwargs), interrupt())
if moment == "at the very end":
    atexit.register(interrupt)

@cli.main.command()
def interrupted():
    try:
        interrupt()
    finally:
        if moment == "while it ends":
            interrupt()

sys.exit(cli.run())
"""


@pytest.mark.parametrize("moment", ["never", "while it ends", "when it is told", "at the very end"])
def test_ctrl_c_twice_is_as_quiet_as_once(moment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_TWICE, moment], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "grade.py: stopped.")
