"""`python grade.py ci`."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness import files
from harness.problem import Problem

if TYPE_CHECKING:
    from harness.ci.results import Verdict
    from harness.course import Course

_FILE = click.Path(path_type=Path)
_PASSED, _NOT_PASSED, _NOT_GRADED = 0, 1, 2


@click.command()
@click.option("--base", required=True, metavar="REF", help="The commit that the pull request is for.")
@click.option("--head", required=True, metavar="REF", help="The pull request's last commit.")
@click.option("--path", "under", metavar="FOLDER", help="Grade only in this folder of the repository.")
@click.option("--exercise", metavar="ID,...", help="Grade these exercises only.")
@click.option("--pass-mark", type=click.FloatRange(0, 100), default=100, show_default=True, metavar="PERCENT",
              help="How much of the possible points each submission needs.")  # fmt: skip
@click.option("--summary", type=_FILE, metavar="FILE", envvar="GITHUB_STEP_SUMMARY",
              help="Write a summary in Markdown; GitHub names the file by itself.")  # fmt: skip
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML.")
@click.option("--json", "json_path", type=_FILE, metavar="FILE", help="Write the reports as a JSON array.")
@click.option("--isolation", type=click.Choice(["sandbox", "process"]), default="sandbox", show_default=True,
              help="process: only for work that you trust.")  # fmt: skip
@click.option("--course", "course_folder", type=_FILE, metavar="FOLDER", help="Another course.")
def ci(
    base: str, head: str, under: str | None, exercise: str | None, pass_mark: float, summary: Path | None,
    junit: Path | None, json_path: Path | None, isolation: str, course_folder: Path | None,
) -> int:  # fmt: skip
    """Grade what a pull request changed.

    Run it in a checkout of the base: its graders judge, and of the pull request only the submissions' files are read.
    The exit status is 0 when every submission has the points that it needs, 1 when one has not, 2 when nothing could
    be graded.
    """
    on_github = os.environ.get("GITHUB_ACTIONS") == "true"
    try:
        from harness.ci import run
        from harness.cli import read_course_in

        run.check_isolation(isolation)
        course = read_course_in(course_folder)
        verdict = _verdict(base, head, under, exercise, pass_mark, isolation, course)
        _say(verdict, course, on_github)
        _write(verdict, summary, junit, json_path)
        if verdict.review:
            raise Problem("A grader broke down; the report is marked for review.", "That is no fault of the work's.")
    except Problem as problem:
        if not on_github:
            raise
        from harness.ci.github import Annotation

        click.echo(Annotation("headcheck", f"{problem.what}\n{problem.help}".strip()).command())
        return _NOT_GRADED
    return _PASSED if verdict.passed else _NOT_PASSED


def _verdict(
    base: str, head: str, under: str | None, exercise: str | None, mark: float, isolation: str, course: Course
) -> Verdict:
    """Find what changed, and grade it.

    Raises:
        Problem: a commit is missing, the checkout is not the base's, or the graders cannot be run.
    """
    from harness.ci import changes, run
    from harness.ci.git import Repository
    from harness.ci.results import Result, Verdict
    from harness.cli import make_launcher

    chosen = course.select(exercise)
    repository = Repository(Path.cwd())
    found = changes.find(repository, base, head, course, under)
    results: list[Result] = []
    if found.folders:
        launcher = make_launcher(isolation, None)
        try:
            results = run.grade(repository, found.folders, course, chosen, launcher, mark)
        finally:
            if launcher is not None:
                launcher.close()
    return Verdict(course.title, mark, tuple(results), found.removed, found.misplaced, found.ignored)


def _say(verdict: Verdict, course: Course, on_github: bool) -> None:
    """Print what a person reads in the log and, on GitHub, an annotation a failing check."""
    from harness import terminal
    from harness.ci import github
    from harness.intake.archives import shown

    text = io.StringIO()
    console = terminal.console(text, width=terminal.WIDTH, no_color=True)
    for result in verdict.results:
        if result.report is not None:
            terminal.show(result.report, console)
        else:
            console.print(terminal.plain(f"{result.name}: {result.problem}"))
        console.print()
    for head, paths in verdict.lists:
        if paths:
            console.print(head)
            for path in paths[:20]:
                console.print(terminal.plain(f"  {shown(path)}"), soft_wrap=True)
            if len(paths) > 20:
                console.print(f"  and {len(paths) - 20} more")
    console.print(verdict.sentence)
    click.echo(github.covered(text.getvalue()) if on_github else text.getvalue().rstrip())
    if on_github:
        notes = [note for result in verdict.results for note in result.annotations(course)]
        notes += [github.Annotation("Not graded", "This file is not in the folder that is graded.", path)
                  for path in verdict.misplaced]  # fmt: skip
        for command in github.commands(notes):
            click.echo(command)


def _write(verdict: Verdict, summary: Path | None, junit: Path | None, json_path: Path | None) -> None:
    """Write the files that were asked for.

    Raises:
        Problem: one cannot be written.
    """
    from harness import export
    from harness.ci.summary import markdown

    if summary is not None:
        try:
            files.write_atomically(summary, markdown(verdict).encode("utf-8"))
        except OSError as error:
            raise Problem(
                f"{summary} could not be written: {error.strerror}.", "Name another with --summary."
            ) from error
    for target, path in (("junit", junit), ("json", json_path)):
        if path is not None:
            rows = (export.Row(result.name, result.report) for result in verdict.results if result.report is not None)
            export.export(target, rows, path, export.Options())
