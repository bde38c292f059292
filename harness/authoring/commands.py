"""The commands for authors that the students' command line does without: `translations`, `check-course`, `schema`."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from harness.cli import NOT_PASSED, PASSED, course_option, read_course_in
from harness.problem import Problem


@click.command()
def translations() -> int:
    """Bring the catalogues of the other languages up to date (for authors)."""
    try:
        from harness.authoring import translations
    except ModuleNotFoundError as error:
        raise Problem(f"{error.name} is not installed.", "python -m pip install -r requirements-dev.txt") from error
    from harness.course import ROOT

    for written in translations.update():
        click.echo(f"wrote {written.relative_to(ROOT)}")
    missing = translations.missing()
    for line in missing:
        click.echo(line)
    return NOT_PASSED if missing else PASSED


@click.command(name="check-course")
@click.option("--quick", is_flag=True, help="One seed instead of ten.")
@click.option("--exercise", metavar="ID,...", help="These exercises only.")
@click.option("--jobs", type=click.IntRange(1), help="How many judges; one a core by default.")
@click.option("--record", is_flag=True, help="Write down anew which checks each mistake fails.")
@course_option
def check_course(quick: bool, exercise: str | None, jobs: int | None, record: bool, course_folder: Path | None) -> int:
    """Prove the assignment: right answers pass, wrong ones are caught and named (for authors)."""
    from rich.progress import Progress

    from harness import terminal
    from harness.authoring import prove, tables
    from harness.authoring.variants import VariantError

    course = read_course_in(course_folder)
    wanted = {item.id for item in course.select(exercise)}
    try:
        chosen = [case for case in prove.cases(course) if case.exercise in wanted]
    except VariantError as error:
        raise Problem(f"A known answer does not fit the reference: {error}") from error
    seeds = [course.seed + i for i in range(1 if quick else 10)]
    console = terminal.console()
    written: list[Path] = []
    with prove.forgotten(course, wanted) if record else contextlib.nullcontext():
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("Proving the course", total=len(chosen) * len(seeds))
            verdicts = prove.prove(course, chosen, seeds, jobs=jobs or 0, done=lambda: bar.advance(task))
        if record:
            written = prove.record(course, verdicts)
    for path in written:
        click.echo(f"wrote {path.relative_to(course.root)}")
    tables.show_proof(course, verdicts, len(seeds), console)
    return NOT_PASSED if any(verdict.problems for verdict in verdicts) else PASSED


@click.command()
def schema() -> int:
    """Write the JSON Schema of the report to schema/report.schema.json (for authors)."""
    from harness import files, report
    from harness.course import ROOT

    files.write_atomically(ROOT / "schema" / "report.schema.json", report.schema())
    click.echo("wrote schema/report.schema.json")
    return PASSED
