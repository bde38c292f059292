"""The commands `pack` and `bundle`. Only `bundle student` imports torch, to record."""

from __future__ import annotations

import os
import sys
from decimal import Decimal
from pathlib import Path

import click

from harness.cli import course_option, language_option, read_course_in, translator
from harness.export.commands import Points
from harness.messages import message
from harness.problem import Problem

_FILE = click.Path(path_type=Path)
_out_option = click.option("--out", type=_FILE, required=True, metavar="FILE.zip", help="The file to write.")


@click.command()
@click.argument("path", type=_FILE, required=False)
@click.option("--out", type=_FILE, metavar="FILE.zip", help="The file to write.")
@click.option("--anyway", is_flag=True, help="Pack although something is missing or cannot be read.")
@language_option
@course_option
def pack(path: Path | None, out: Path | None, anyway: bool, lang: str | None, course_folder: Path | None) -> int:
    """Make the one file to hand in from PATH, after checking that all that is needed is in it."""
    from harness.packing import hand_in
    from harness.report import as_text

    course = read_course_in(course_folder)
    words = translator(lang, course.root)
    target = out or Path(f"{course.id}.zip")
    packed = hand_in.pack(path or course.root / "student_template", target, course, words, anyway=anyway)
    for said in (*packed.troubles, *packed.notes):
        click.echo(words.text(as_text(said)))
    click.echo(words.ui("ui.pack.wrote", file=str(target), names=", ".join(packed.names)))
    return 0


@click.group()
def bundle() -> None:
    """Pack what another machine needs (for instructors)."""


@bundle.command(name="student")
@_out_option
@course_option
def bundle_student(out: Path, course_folder: Path | None) -> int:
    """Pack what students get: template, checks, and a recording in place of the answers."""
    from harness.packing import student

    _check_folder(out)
    if sys.stderr.isatty():
        click.echo("Running every known mistake to record what it gives; this takes minutes.", err=True)
    return _wrote(out, student.pack(out, read_course_in(course_folder)))


@bundle.command(name="instructor")
@_out_option
@course_option
def bundle_instructor(out: Path, course_folder: Path | None) -> int:
    """Pack the program and the course with its answers, for another instructor."""
    from harness.packing import instructor

    return _wrote(out, instructor.pack(out, read_course_in(course_folder)))


@bundle.command(name="gradescope")
@_out_option
@click.option("--out-of", type=Points(), help="The autograder's points in the assignment.")
@click.option("--torch-index", default="", metavar="URL",
              help="The index of CPU builds of PyTorch that its installation page names.")  # fmt: skip
@course_option
def bundle_gradescope(out: Path, out_of: Decimal | None, torch_index: str, course_folder: Path | None) -> int:
    """Pack the autograder of the course for Gradescope: setup.sh, run_autograder, graders and reference."""
    from harness.packing import gradescope

    return _wrote(out, gradescope.pack(out, read_course_in(course_folder), out_of, torch_index))


def _check_folder(out: Path) -> None:
    """Better now than after minutes of work."""
    if not os.access(out.absolute().parent, os.W_OK):
        said = message("problem.unwritten", path=str(out), problem="its folder is not there, or may not be written to")
        raise Problem(said, message("problem.unwritten.out"))


def _wrote(out: Path, names: list[str]) -> int:
    click.echo(f"wrote {out}: {len(names)} files")
    return 0
