"""The documentation: its commands are the ones that run, its output is real, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import msgspec
import pytest

from harness import cli
from harness.course import Limits
from tests.support.command import ROOT, Command
from tests.support.shown import BLOCK, documents, up_to_date

PAGES = documents()
TEST_COMMAND = "python -m pip install -r requirements-dev.txt && python -m pytest"
GRADE_COMMAND = "python -m pip install -r requirements.txt && python grade.py reference"


def read(name: str | Path) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """A page without the output that it shows."""
    return BLOCK.sub("", read(page))


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert f"\n{TEST_COMMAND}\n" in read("README.md")
    assert f"\nstep '{TEST_COMMAND}'\n" in read(".ci/run")
    assert f"run: {TEST_COMMAND}\n" in read(".github/workflows/ci.yml")


def test_the_readme_grades_with_one_command() -> None:
    assert f"\n{GRADE_COMMAND}\n" in read("README.md")


def test_ci_and_the_workflow_run_the_same_checks() -> None:
    steps = re.findall(r"^step '(.*)'$", read(".ci/run"), re.MULTILINE)
    assert len(steps) == 6
    workflow = re.findall(r"run: (.*)$", read(".github/workflows/ci.yml"), re.MULTILINE)
    assert set(steps) <= set(workflow)


def test_the_workflow_may_only_read_and_pins_what_it_uses() -> None:
    text = read(".github/workflows/ci.yml")
    assert re.search(r"^permissions:\n  contents: read\n\n", text, re.MULTILINE)
    used = re.findall(r"uses: (\S+)", text)
    assert used and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in used)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page_id(page)} links to {target}"
        if heading:
            assert heading in headings(file), f"{page_id(page)} links to {target}"


def headings(page: Path) -> set[str]:
    """The anchors that a page's headings get on GitHub."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_repository_has_what_a_page_names(page: Path) -> None:
    """A path in code quotes that begins with a folder of this repository is there."""
    folders = "benchmarks|docs|graders|harness|reference|schema|student_template|tests"
    for name in re.findall(rf"`((?:{folders})/[\w./-]*)`", prose(page)):
        assert (ROOT / name).exists(), f"{page_id(page)} names {name}"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_and_options_exist(page: Path) -> None:
    """Every `python grade.py ...` of a page names a command and options that the command line has."""
    for line in re.findall(r"python grade\.py([^`\n|&]*)", read(page)):
        words = [word for word in _words(line) if word not in ("...", "-->")]
        known = {option for parameter in cli.main.params for option in parameter.opts} | {"-h", "--help"}
        for option in known | _options(cli.main, words):
            words = [word for word in words if word.partition("=")[0] != option]
        unknown = [word for word in words if word.startswith("-")]
        assert not unknown, f"{page_id(page)}: python grade.py{line} has {unknown}"


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # prose in brackets after the command
        return shlex.split(line.partition(" (")[0], comments=True)


def _options(group: click.Group, words: list[str]) -> set[str]:
    """The options of the command that the words name; `grade` is what a path stands for."""
    context = click.Context(group)
    command = group.get_command(context, words[0]) if words else None
    if command is None:
        command = group.get_command(context, "grade")
    elif isinstance(command, click.Group):
        return _options(command, words[1:])
    assert command is not None
    return {option for parameter in command.params for option in parameter.opts}


def test_the_limits_shown_are_those_of_the_code() -> None:
    section = read("docs/instructors.md").partition("## Limits")[2]
    shown = {name: float(value) for name, value in re.findall(r"^\| `(\w+)` \| (\d+) \|", section, re.MULTILINE)}
    assert shown == msgspec.structs.asdict(Limits())


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(read(page))], ids=page_id)
def test_the_output_shown_is_real(page: Path, command: Command) -> None:
    text = read(page)
    assert up_to_date(text, command) == text, "run `python -m tests.support.shown` and look at what changed"
