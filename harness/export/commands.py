"""The commands `export`, `validate` and `gradescope`. None of them imports torch."""

from __future__ import annotations

import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path

import click

from harness import export as exports
from harness.export.sheet import ABSENT, BLANK, CLAMPED, EMPTIED, KEPT, UNKNOWN, Options
from harness.problem import Problem
from harness.report import Report

_FILE = click.Path(path_type=Path)


class Points(click.ParamType[Decimal]):
    """A number of points, taken exactly as it is written."""

    name = "points"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        try:
            points = Decimal(str(value))
        except InvalidOperation:
            self.fail(f"{value!r} is not a number", param, ctx)
        if not points.is_finite() or points <= 0 or points > 1_000_000:
            self.fail(f"{value} is not a number of points above 0", param, ctx)
        return points


@click.command()
@click.argument("target", type=click.Choice(list(exports.TARGETS)))
@click.argument("results", type=_FILE)
@click.option("--out", type=_FILE, required=True, metavar="FILE", help="The file to write.")
@click.option("--gradebook", type=_FILE, metavar="FILE",
              help="Fill in this file, exported from Canvas or Moodle; nothing else in it changes.")  # fmt: skip
@click.option("--column", default="", metavar="TITLE", help="Its column for the grades.")
@click.option("--id-column", "id_columns", multiple=True, metavar="TITLE=ID",
              help="Its column with ids, in another language; ID: id, email, login, sis, canvas, moodle.")  # fmt: skip
@click.option("--comments", is_flag=True, help="Write feedback too.")
@click.option("--item", default="", metavar="TITLE", help="The item's title (Open edX: the block) in the platform.")
@click.option("--course-id", default="", metavar="ID", help="The course in the platform (Open edX).")
@click.option("--columns", default="", metavar="NAME,...",
              help="Columns of a CSV, or brightspace, sakai or openedx.")  # fmt: skip
@click.option("--roster", type=_FILE, metavar="FILE", help="CSV with id, name, email, section and further ids.")
@click.option("--out-of", type=Points(), help="The item's maximum in the platform.")
@click.option("--no-late", is_flag=True, help="Leave the penalty for lateness to the platform.")
@click.option("--strict", is_flag=True, help="Write nothing while a row is blank or a student unknown or absent.")
@click.option("--pseudonyms", type=_FILE, metavar="FILE",
              help="CSV with id and pseudonym; made, and added to, where somebody is missing.")  # fmt: skip
def export(
    target: str, results: Path, out: Path, gradebook: Path | None, column: str, id_columns: tuple[str, ...],
    comments: bool, item: str, course_id: str, columns: str, roster: Path | None, out_of: Decimal | None,
    no_late: bool, strict: bool, pseudonyms: Path | None,
) -> int:  # fmt: skip
    """Write the RESULTS of a class for TARGET. Nothing is written if a check fails."""
    options = Options(
        out_of=out_of, late=not no_late, strict=strict, item=item, gradebook=gradebook, column=column,
        id_columns=_pairs(id_columns), comments=comments, columns=columns, course_id=course_id, roster=roster,
        pseudonyms=pseudonyms,
    )  # fmt: skip
    notices = exports.export(target, results, out, options)
    for kind in (BLANK, UNKNOWN, ABSENT, CLAMPED, KEPT, EMPTIED):
        found = notices.get(kind, [])
        if found:
            click.echo(f"{len(found)} {kind}:", err=True)
            for line in found:
                click.echo(f"  {line}", err=True)
    click.echo(f"wrote {out}")
    return 0


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for word in words:
        title, separator, name = word.rpartition("=")
        if not (separator and title and name):
            raise Problem(f"--id-column {word} is not TITLE=ID.", 'For example: --id-column "ID number=id".')
        pairs[title] = name
    return pairs


@click.command()
@click.argument("file", type=_FILE)
def validate(file: Path) -> int:
    """Check that FILE is a report (or an array of reports) that this program can read, and adds up."""
    from harness.export.validate import check_file

    checked, faults = check_file(file)
    for fault in faults:
        click.echo(fault, err=True)
    if faults:
        return 1
    click.echo(f"{file}: {checked}")
    return 0


def check_format(name: str | None, out: Path | None) -> None:
    """Refuse a wrong `--format` before anything is graded.

    Raises:
        Problem: there is no such format, it is for classes only, or --out stands without it.
    """
    if name is None and out is not None:
        raise Problem("--out needs --format.", f"For example: --format junit --out {out}")
    if name is not None and not exports.target(name).SINGLE:
        raise Problem(f"{name} is a format for a class.", f"Use `grade.py export {name} RESULTS --out FILE`.")


def deliver(report: Report, name: str, out: Path | None) -> None:
    """Write one report in a format, to a file or to standard output.

    Raises:
        Problem: the file cannot be written.
    """
    from harness import files

    if out is None:
        exports.export_one(name, report, sys.stdout.buffer)
        sys.stdout.flush()
        return
    try:
        with files.replacing(out) as file:
            exports.export_one(name, report, file)
    except OSError as error:
        raise Problem(f"{out} could not be written: {error.strerror}.", "Name another file with --out.") from error
    click.echo(f"wrote {out}", err=True)


@click.command()
@click.option("--submission", type=_FILE, default=Path("/autograder/submission"), show_default=True)
@click.option("--metadata", type=_FILE, default=Path("/autograder/submission_metadata.json"), show_default=True)
@click.option("--out", type=_FILE, default=Path("/autograder/results/results.json"), show_default=True)
@click.option("--out-of", type=Points(), help="The autograder's points in the assignment.")
@click.option("--isolation", type=click.Choice(["sandbox", "process"]), help="The best there is by default.")
@click.option("--seconds", type=click.IntRange(1), default=540, show_default=True,
              help="When to give up; below the platform's own limit, which would leave no results.")  # fmt: skip
def gradescope(
    submission: Path, metadata: Path, out: Path, out_of: Decimal | None, isolation: str | None, seconds: int
) -> int:
    """Grade inside a Gradescope container and write its results.json, whatever happens."""
    from harness.export.gradescope_run import run

    return run(submission, metadata, out, Options(out_of=out_of), isolation, seconds)
