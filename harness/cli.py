"""The commands. What they do lives elsewhere; here are options, messages and exit statuses.

Exit status: 0 every check passed, 1 graded and something did not pass, 2 nothing could be graded.
torch, pytest and the graders are imported inside the commands: `--help` and a wrong option answer at once, and a worker
is forked while this process holds nothing that a submission must not find.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import platform
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness import VERSION
from harness.messages import message
from harness.problem import Problem

if TYPE_CHECKING:
    from harness.bench import Bench
    from harness.course import Course
    from harness.i18n import Translator
    from harness.outcome import Message
    from harness.report import Report
    from harness.submission import Submission
    from harness.worker.launch import Launcher

PASSED, NOT_PASSED, NOT_GRADED = 0, 1, 2
CLOSED_PIPE = 141  # `... | head` reads no further: what a shell says of git then, which the signal SIGPIPE ends
_VERSION_LINE = f"%(prog)s %(version)s, Python {platform.python_version()}"
course_option = click.option(
    "--course", "course_folder", type=click.Path(path_type=Path), metavar="FOLDER",
    help="Another course: a folder with graders/ and reference/. HEADCHECK_COURSE names one for all commands.",
)  # fmt: skip


language_option = click.option(
    "--lang", type=click.Choice(["en", "ja", "zh"]), help="Language; that of your locale by default."
)

# Commands that live elsewhere, by the module that is imported when one is used.
_ELSEWHERE = {
    "translations": "harness.authoring.commands",
    "check-course": "harness.authoring.commands",
    "schema": "harness.authoring.commands",
    "ci": "harness.ci.commands",
    "batch": "harness.batch.commands",
    "summary": "harness.batch.commands",
    "replay": "harness.defend.commands",
    "diff": "harness.defend.commands",
    "export": "harness.export.commands",
    "validate": "harness.export.commands",
    "gradescope": "harness.export.commands",
    "pack": "harness.packing.commands",
    "bundle": "harness.packing.commands",
}


class _Commands(click.Group):
    """A group whose first word may be a path: `grade.py my_work` is `grade.py grade my_work`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own_options = {"--help", "-h", "--version"}
        if not args or (args[0] not in self.list_commands(ctx) and args[0] not in own_options):
            args = ["grade", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*self.commands, *_ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _ELSEWHERE:
            command: click.Command = getattr(importlib.import_module(_ELSEWHERE[cmd_name]), cmd_name.replace("-", "_"))
            return command
        return super().get_command(ctx, cmd_name)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[PATH] [OPTIONS]  |  COMMAND [OPTIONS]")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="headcheck", message=_VERSION_LINE)
def main() -> None:
    """Grade your work: what is right, what is not, and why.

    Without a command, PATH (a folder, a notebook or one .py file; student_template/ by default) is graded;
    `grade.py grade --help` lists the options.
    """


@main.command()
@click.argument("path", type=click.Path(path_type=Path), required=False)
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
@click.option("--format", "target", metavar="TARGET", help="Write gradescope, junit, ctrf, csv or json instead.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Where --format goes; else printed.")
@click.option("--feedback", type=click.Path(path_type=Path), metavar="FILE.html",
              help="Write a notebook with the results under its cells.")  # fmt: skip
@language_option
@course_option
def grade(
    path: Path | None,
    exercise: str | None,
    json_path: Path | None,
    seed: int | None,
    verbose: bool,
    isolation: str | None,
    limits: tuple[str, ...],
    start_method: str | None,
    target: str | None,
    out: Path | None,
    feedback: Path | None,
    lang: str | None,
    course_folder: Path | None,
) -> int:
    """Grade PATH: a folder, a notebook or one .py file; student_template/ by default."""
    if target is not None or out is not None:
        _exports().check_format(target, out)
    from harness.course import files_of
    from harness.submission import read_submission

    course = read_course_in(course_folder).with_limits(limits)
    words = translator(lang, course.root)
    chosen = course.select(exercise)
    expected = files_of(chosen)
    submission = read_submission(path or course.root / "student_template", expected, course.root)
    from harness.notebook import choose

    notebook = choose.notebook_of(submission.files, course.root)
    if feedback is not None and not notebook:
        raise Problem(message("problem.no-notebook"), message("problem.no-notebook.help"))
    if sys.stderr.isatty():
        click.echo(words.ui("ui.loading"), err=True)
    bench, aside = _bench(submission, course, seed, isolation, start_method, lanes=len(chosen))

    from harness import report, session, terminal

    try:
        result = session.grade(bench, chosen, aside)
    finally:
        for launcher in (aside, bench.launcher):
            if launcher is not None:
                launcher.close()
    written = json_path or (Path("report.json") if target is None else None)
    unwritten = None if written is None else _write(result, written)  # first: whoever reads may stop reading
    if target is None or out is not None:
        with contextlib.suppress(SystemExit):  # rich's way to stop when nobody reads on; the grade stays what it is
            terminal.show(result, terminal.console(), verbose=verbose, words=words, notebook=bool(notebook))
    if target is not None:
        _exports().deliver(result, target, out)
    if unwritten is not None:
        raise unwritten
    if feedback is not None:
        from harness.notebook import feedback as pages

        pages.write(feedback, submission.files[notebook], result, words, course.root)
    if written is not None:
        click.echo(words.ui("ui.report", file=str(written)), err=target is not None)
    if result.review:
        raise Problem(words.ui("ui.review"), words.ui("ui.review.help"))
    return PASSED if report.passed_everything(result) else NOT_PASSED


def _exports() -> Any:
    """The module of exports, which a plain grading does without."""
    return importlib.import_module("harness.export.commands")


def read_course_in(folder: Path | None) -> Course:
    """The course in `folder`, or the one that `harness.course.course_root` finds.

    Raises:
        Problem: there is none, or it is not valid.
    """
    from harness.course import read_course

    return read_course(None if folder is None else folder / "graders")


def _write(result: Report, path: Path) -> Problem | None:
    """Write the report; what went wrong, if anything did."""
    from harness import report

    try:
        report.write(result, path)
    except OSError as error:
        said = message("problem.report-unwritten", path=str(path), problem=error.strerror or str(error))
        return Problem(said, message("problem.report-unwritten.help"))
    return None


def _bench(
    submission: Submission,
    course: Course,
    seed: int | None,
    isolation: str | None,
    start_method: str | None,
    *,
    lanes: int,
) -> tuple[Bench, Launcher | None]:
    """Import torch, fork the zygotes, and only then the judging side; with a launcher for a second lane, if any."""
    launcher, aside, *_ = [*_make_launchers(isolation, start_method, lanes), None, None]
    from harness.bench import Bench

    return Bench(submission, course, launcher, None, course.seed if seed is None else seed), aside


def make_launcher(isolation: str | None, start_method: str | None) -> Launcher | None:
    """Import torch and make what starts the workers; None for isolation `none`, the best of this machine for None."""
    return next(iter(_make_launchers(isolation, start_method, 1)), None)


def _make_launchers(isolation: str | None, start_method: str | None, lanes: int) -> list[Launcher]:
    """Import torch and make what starts the workers: one launcher, or two if `lanes` and the machine allow it, or none
    for isolation `none`.

    Call it before pytest, the graders or the reference are imported: a forked worker inherits all that is there.
    """
    from harness.worker import offer
    from harness.worker.torch_import import import_torch

    best = offer.probe_aside() if isolation is None else offer.probe
    import_torch()
    if isolation == "none":
        return []
    from harness.worker import launch

    method = start_method or launch.best_start_method()
    count = 2 if method == "fork" and lanes > 1 and offer.cores() > 1 else 1
    return launch.launchers(method, isolation or best().isolation, count)


def translator(option: str | None, root: Path | None = None) -> Translator:
    """The language to speak. One that only the locale asks for must fit the encoding of the output."""
    from harness.i18n import Translator, pick_language

    language = pick_language(option, os.environ)
    if option is None:
        try:
            "あ汉".encode(sys.stdout.encoding or "ascii")
        except (UnicodeError, LookupError):
            language = "en"
    return Translator(language, root)


@main.command()
@click.argument("path", metavar="REPORT", type=click.Path(path_type=Path))
@click.option("-v", "--verbose", is_flag=True, help="Show what the code printed, and whole tracebacks.")
@language_option
def show(path: Path, verbose: bool, lang: str | None) -> int:
    """Show a stored REPORT (report.json) again, in any of the languages."""
    import msgspec

    from harness import report, terminal
    from harness.notebook import choose

    words = translator(lang)
    try:
        result = report.from_json(path.read_bytes())
    except OSError as error:
        said = message("problem.report-unreadable", path=str(path), problem=error.strerror or str(error))
        raise Problem(said, message("problem.report-unreadable.help")) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        said = message("problem.report-version", path=str(path), problem=str(error))
        raise Problem(said, message("problem.report-version.help")) from error
    in_a_cell = choose.counts(result.submission.files)
    terminal.show(result, terminal.console(), verbose=verbose, words=words, notebook=in_a_cell)
    return PASSED


@main.command(name="list")
@language_option
@course_option
def list_checks(lang: str | None, course_folder: Path | None) -> int:
    """Show the exercises, their checks and points."""
    course = read_course_in(course_folder)
    from harness import session, terminal
    from harness.authoring import tables

    tables.show_checks(course, session.collect(course), terminal.console(), translator(lang, course.root))
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
@course_option
def template(course_folder: Path | None) -> int:
    """Make student_template/ from reference/ (for authors)."""
    from harness import quiz
    from harness.authoring import lesson
    from harness.authoring.template import MarkerError, make_template

    root = read_course_in(course_folder).root
    try:
        more = lesson.notebooks(root / "reference", read_course_in(course_folder))
        questions = root / "graders" / "quiz.toml"
        if questions.is_file():
            more[quiz.SHEET] = quiz.sheet(quiz.read_quiz(questions)).encode("utf-8")
        written = make_template(root / "reference", root / "student_template", more)
    except (MarkerError, OSError, UnicodeDecodeError) as error:
        raise Problem(f"The template could not be made: {error}") from error
    for file in written:
        click.echo(f"wrote {file.relative_to(root)}")
    if not written:
        click.echo("student_template/ is up to date.")
    return PASSED


def run(arguments: list[str] | None = None) -> int:
    """Run a command line; returns the exit status. Every failure is one line on stderr, then what to do.

    Args:
        arguments: by default those of this process, which then ends: whoever presses Ctrl-C again has been heard.
    """
    try:
        try:
            return _run(arguments)
        finally:
            if arguments is None:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:  # a second one, while the first was told
        return 130


def _run(arguments: list[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if sys.stdout is None or sys.stderr is None:  # whoever started this closed it
        nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until this process ends
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a pipe on Windows, say, may know neither ✓ nor 山
            stream.reconfigure(errors="replace")
    try:
        status: Any = main.main(arguments, prog_name="grade.py", standalone_mode=False)
        sys.stdout.flush()  # here, where a full disk behind it can be told
    except Problem as problem:
        _tell(words, *problem.said)
        return NOT_GRADED
    except click.ClickException as error:
        _tell(words, error, message("problem.usage.help"))
        return NOT_GRADED
    except (BrokenPipeError, SystemExit):  # the latter is click's and rich's word for the same
        return CLOSED_PIPE
    except OSError as error:  # a full disk behind standard output, say
        what = f"{error.filename}: " if error.filename else ""
        click.echo(f"grade.py: {what}{error.strerror or error}", err=True)
        return NOT_GRADED
    except (KeyboardInterrupt, click.Abort):
        _tell(words, message("problem.stopped"))  # click has begun a line for it
        return 130
    return status if isinstance(status, int) else PASSED


def _tell(arguments: list[str], *lines: str | Message | click.ClickException) -> None:
    from harness import telling

    telling.tell(arguments, *lines)
