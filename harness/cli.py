"""The commands. What they do lives elsewhere; here are options, messages and exit statuses.

Exit status: 0 every check passed, 1 graded and something did not pass, 2 nothing could be graded.
torch, pytest and the graders are imported inside the commands: `--help` and a wrong option answer at once, and a worker
is forked while this process holds nothing that a submission must not find.
"""

from __future__ import annotations

import io
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness import VERSION
from harness.problem import Problem

if TYPE_CHECKING:
    from harness.bench import Bench
    from harness.course import Course
    from harness.submission import Submission

DEFAULT_PATH = Path(__file__).resolve().parents[1] / "student_template"
PASSED, NOT_PASSED, NOT_GRADED = 0, 1, 2
_VERSION_LINE = f"%(prog)s %(version)s, Python {platform.python_version()}"


class _Commands(click.Group):
    """A group whose first word may be a path: `grade.py my_work` is `grade.py grade my_work`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own_options = {"--help", "-h", "--version"}
        if not args or (args[0] not in self.commands and args[0] not in own_options):
            args = ["grade", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[PATH] [OPTIONS]  |  COMMAND [OPTIONS]")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="headcheck", message=_VERSION_LINE)
def main() -> None:
    """Grade your work: what is right, what is not, and why.

    Without a command, PATH (a folder or one .py file; student_template/ by default) is graded; `grade.py grade --help`
    lists the options.
    """


@main.command()
@click.argument("path", type=click.Path(path_type=Path), default=DEFAULT_PATH)
@click.option("--exercise", metavar="ID,...", help="Grade these exercises only.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), metavar="FILE",
              help="Where the report goes; report.json in the current folder by default.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Draw other inputs than the course's.")
@click.option("-v", "--verbose", is_flag=True, help="Show what your code printed, and whole tracebacks.")
@click.option("--isolation", type=click.Choice(["sandbox", "process", "none"]),
              help="How your code is kept apart; by default the best that this machine offers. none: in this process, "
              "for authors under a debugger.")  # fmt: skip
@click.option("--limit", "limits", metavar="NAME=VALUE", multiple=True,
              help="Change a limit of course.toml, as call_seconds=60; may be given several times.")  # fmt: skip
@click.option("--start-method", type=click.Choice(["fork", "spawn"]), help="How the worker process starts.")
def grade(
    path: Path,
    exercise: str | None,
    json_path: Path | None,
    seed: int | None,
    verbose: bool,
    isolation: str | None,
    limits: tuple[str, ...],
    start_method: str | None,
) -> int:
    """Grade PATH: a folder or one .py file; student_template/ by default."""
    from harness.course import read_course
    from harness.submission import read_submission

    course = read_course().with_limits(limits)
    chosen = course.select(exercise)
    expected = tuple(dict.fromkeys(name for item in chosen for name in item.files))
    submission = read_submission(path, expected)
    if sys.stderr.isatty():
        click.echo("Loading PyTorch ...", err=True)
    bench = _bench(submission, course, seed, isolation, start_method)

    from rich.console import Console

    from harness import report, session, terminal

    try:
        result = session.grade(bench, chosen)
    finally:
        if bench.launcher is not None:
            bench.launcher.close()
    target = json_path or Path("report.json")
    problem: OSError | None = None
    try:
        report.write(result, target)  # before anything is shown: whoever reads may stop reading
    except OSError as error:
        problem = error
    terminal.show(result, Console(highlight=False), verbose=verbose)
    if problem is not None:
        raise Problem(f"The report could not be written to {target}: {problem.strerror}.",
                      "Name another place with --json FILE.")  # fmt: skip
    click.echo(f"Report: {target}")
    if result.review:
        raise Problem("A grader broke down; the report is marked for review.",
                      "Run again with -v and send the report to your instructor.")  # fmt: skip
    return PASSED if report.passed_everything(result) else NOT_PASSED


def _bench(
    submission: Submission, course: Course, seed: int | None, isolation: str | None, start_method: str | None
) -> Bench:
    """Import torch, fork the zygote, and only then the judging side."""
    from harness.worker import serve

    serve.single_thread()
    import torch

    torch.set_num_threads(1)
    from harness.worker import launch

    if isolation is None:
        from harness.worker import offer

        isolation = offer.probe().isolation
    launcher = None
    if isolation != "none":
        launcher = launch.launcher(start_method or launch.best_start_method(), isolation)
    from harness.bench import Bench

    return Bench(submission, course, launcher, None, course.seed if seed is None else seed)


@main.command(name="list")
def list_checks() -> int:
    """Show the exercises, their checks and points."""
    from harness.course import read_course

    course = read_course()
    from rich.console import Console

    from harness import session
    from harness.authoring import tables

    tables.show_checks(course, session.collect(course), Console(highlight=False))
    return PASSED


@main.command()
def doctor() -> int:
    """Show what this machine offers for keeping submissions apart; status 0 when there is a sandbox, else 1."""
    from harness import doctor as words
    from harness.worker import offer

    found = offer.probe()
    for line in words.lines(found):
        click.echo(line)
    return PASSED if found.isolation == "sandbox" else NOT_PASSED


@main.command()
def template() -> int:
    """Make student_template/ from reference/ (for authors)."""
    from harness.authoring.template import MarkerError, make_template
    from harness.course import ROOT

    try:
        written = make_template(ROOT / "reference", ROOT / "student_template")
    except (MarkerError, OSError, UnicodeDecodeError) as error:
        raise Problem(f"The template could not be made: {error}") from error
    for file in written:
        click.echo(f"wrote {file.relative_to(ROOT)}")
    if not written:
        click.echo("student_template/ is up to date.")
    return PASSED


@main.command(name="check-course")
@click.option("--quick", is_flag=True, help="One seed instead of ten.")
@click.option("--exercise", metavar="ID,...", help="These exercises only.")
@click.option("--jobs", type=click.IntRange(1), help="How many judges; one a core by default.")
def check_course(quick: bool, exercise: str | None, jobs: int | None) -> int:
    """Prove the assignment: right answers pass, wrong ones are caught and named (for authors)."""
    from rich.console import Console
    from rich.progress import Progress

    from harness.authoring import prove, tables
    from harness.authoring.variants import VariantError
    from harness.course import read_course

    course = read_course()
    wanted = {item.id for item in course.select(exercise)}
    try:
        chosen = [case for case in prove.cases(course) if case.exercise in wanted]
    except VariantError as error:
        raise Problem(f"A known answer does not fit the reference: {error}") from error
    seeds = [course.seed + i for i in range(1 if quick else 10)]
    console = Console(highlight=False)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("Proving the course", total=len(chosen))
        verdicts = prove.prove(course, chosen, seeds, jobs=jobs or 0, done=lambda: bar.advance(task))
    tables.show_proof(course, verdicts, len(seeds), console)
    return NOT_PASSED if any(verdict.problems for verdict in verdicts) else PASSED


@main.command()
def schema() -> int:
    """Write the JSON Schema of the report to schema/report.schema.json (for authors)."""
    from harness import files, report
    from harness.course import ROOT

    files.write_atomically(ROOT / "schema" / "report.schema.json", report.schema())
    click.echo("wrote schema/report.schema.json")
    return PASSED


def run(arguments: list[str] | None = None) -> int:
    """Run a command line; returns the exit status. Every failure is one line on stderr, then what to do."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a pipe on Windows, say, may know neither ✓ nor 山
            stream.reconfigure(errors="replace")
    try:
        status: Any = main.main(arguments, prog_name="grade.py", standalone_mode=False)
    except Problem as problem:
        click.echo(f"grade.py: {problem.what}", err=True)
        if problem.help:
            click.echo(problem.help, err=True)
        return NOT_GRADED
    except click.ClickException as error:
        click.echo(f"grade.py: {error.format_message()}", err=True)
        click.echo("`python grade.py grade --help` shows what can be asked.", err=True)
        return NOT_GRADED
    except (KeyboardInterrupt, click.Abort):
        click.echo("\ngrade.py: stopped.", err=True)
        return 130
    return status if isinstance(status, int) else PASSED
