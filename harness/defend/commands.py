"""`python grade.py replay` and `python grade.py diff`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from harness.problem import Problem


@click.command()
@click.argument("report_file", metavar="REPORT", type=click.Path(path_type=Path))
@click.argument("check")
@click.option("--submission", type=click.Path(path_type=Path), metavar="PATH",
              help="The files that were judged, when they are not kept beside the report.")  # fmt: skip
def replay(report_file: Path, check: str, submission: Path | None) -> int:
    """Run one CHECK of a REPORT again, and show its inputs, what was expected and what came."""
    from harness import report
    from harness.course import read_course

    try:
        before = report.from_json(report_file.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise Problem(f"{report_file} is not a report: {error}") from error
    course = read_course()
    from harness.cli import make_launcher

    launcher = make_launcher(None, None)
    from harness.defend import replay as replaying
    from harness.defend import tables

    old = replaying.find_check(before, check)
    expected = tuple(name for exercise in course.exercise for name in exercise.files)
    kept = replaying.kept_submission(before, report_file, submission, expected)
    try:
        again = replaying.replay(before, check, kept, course, launcher)
    finally:
        if launcher is not None:
            launcher.close()
    tables.show_replay(old, again)
    return 0 if (old.status, old.points) == (again.result.status, again.result.points) else 1


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
def diff(old: Path, new: Path) -> int:
    """List whose marks differ between two results, OLD and NEW, and by which check."""
    from harness.defend import changes, tables

    difference = changes.compare(changes.read_results(old), changes.read_results(new))
    tables.show_difference(difference)
    return 1 if difference.changes or difference.scores else 0
