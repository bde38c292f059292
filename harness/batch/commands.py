"""The commands `batch` and `summary`. Neither imports torch or pytest: judges do, in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click

from harness.batch.executor import Executor
from harness.batch.keys import Basis
from harness.batch.marks import Mark
from harness.batch.summary import Summary
from harness.batch.work import Plan
from harness.course import Course, files_of
from harness.intake.attempts import Work
from harness.problem import Problem

_FILE = click.Path(path_type=Path)
GRADED, LOOK = 0, 1
_MOST_NAMED = 10  # of what is nobody's work


@click.command()
@click.argument("submissions", type=_FILE)
@click.option("--out", type=_FILE, required=True, metavar="RESULTS", help="The folder of the results.")
@click.option("--roster", type=_FILE, metavar="FILE",
              help="CSV: id, name, email, section, group, due, ids in platforms.")  # fmt: skip
@click.option("--layout", metavar="NAME",
              help="canvas, moodle, gradescope, repos or folders, instead of a guess.")  # fmt: skip
@click.option("--attempt", type=click.Choice(["latest", "best"]), default="latest", show_default=True,
              help="Which of a student's attempts counts.")  # fmt: skip
@click.option("--marks", type=_FILE, metavar="FILE",
              help="CSV: id, check (or exercise), points, comment. Overrides the checks; without this option, marks "
              "given before stay.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 512), help="How many judges at once; one a core by default.")
@click.option("--cluster", metavar="ADDRESS", help="Let the workers of a Dask scheduler judge; see docs/cluster.md.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Draw other inputs than the course's.")
@click.option("--limit", "limits", metavar="NAME=VALUE", multiple=True,
              help="Change a limit of course.toml; may be given several times.")  # fmt: skip
@click.option("--isolation", type=click.Choice(["sandbox", "process"]), default="sandbox", show_default=True,
              help="process: without a sandbox, for work that you trust.")  # fmt: skip
@click.option("--regrade", metavar="ID,...", multiple=True, help="Judge these again, whatever is known of them.")
@click.option("--only-failed", is_flag=True,
              help="Judge only what timed out, crashed, could not be read or met a broken grader before.")  # fmt: skip
@click.option("--fresh", is_flag=True,
              help="Start over: nothing of earlier results in the folder is used, marks by hand neither, and what the "
              "new ones do not replace is deleted at the end.")  # fmt: skip
@click.option("--quiet", is_flag=True, help="Show nothing but problems.")
def batch(
    submissions: Path,
    out: Path,
    roster: Path | None,
    layout: str | None,
    attempt: str,
    marks: Path | None,
    jobs: int | None,
    cluster: str | None,
    seed: int | None,
    limits: tuple[str, ...],
    isolation: str,
    regrade: tuple[str, ...],
    only_failed: bool,
    fresh: bool,
    quiet: bool,
) -> int:
    """Grade all of SUBMISSIONS: a folder, or a zip as learning platforms make it.

    What is known already is not judged again. Exit status, over all results in the folder: 0 all work that was handed
    in has its final score, 1 some waits for a person (marks by hand, a review, a file that cannot be read), 2 nothing
    could be graded.
    """
    from harness import terminal
    from harness.batch import show
    from harness.batch.keys import basis
    from harness.batch.places import check_places
    from harness.batch.run import Run, Settings
    from harness.batch.store import Store
    from harness.batch.summary import rebuild
    from harness.batch.work import plan as make_plan
    from harness.course import read_course

    if fresh and only_failed:
        raise Problem("--fresh and --only-failed exclude each other.", "--fresh judges all; leave one of them out.")
    if only_failed and (marks is not None or regrade):
        raise Problem("--only-failed leaves all other results as they are.",
                      "Give --marks or --regrade in a run without it.")  # fmt: skip
    check_places(submissions, out)
    course = read_course().with_limits(limits)
    console = terminal.console()
    store = Store(out)
    work = _work(submissions, layout, roster, course, quiet=quiet)
    plan = make_plan(work, store.owners())
    settings = Settings(
        course=course,
        seed=course.seed if seed is None else seed,
        best=attempt == "best",
        marks=_marks(marks, plan, course),
        regrade=_known(regrade, plan),
        only_failed=only_failed,
        fresh=fresh,
    )
    depends = basis(course, settings.seed, isolation)
    with store.locked(), _executor(jobs, isolation, cluster, depends) as executor:
        with show.Display(console, len(plan.ids), quiet=quiet) as display:
            run = Run(settings, depends, store, executor, display)
            try:
                run.run(plan)
            except KeyboardInterrupt:
                # With --fresh once more, it would start over.
                same = "the same command without --fresh" if fresh else "the same command"
                click.echo(f"\nWhat is finished is kept; {same} goes on from there.", err=True)
                raise
        figures = rebuild(store)
        others = sorted(set(store.ids()) - plan.ids)
    _tell_left_out(figures, out)
    _tell_damaged(store.damaged, out)
    _tell_kept(run.left)
    if not quiet:
        with show.printing():
            console.print()
            show.show(figures, console)
            show.show_rest(others, out, console)
    return _status(figures)


@click.command()
@click.argument("results", type=_FILE)
def summary(results: Path) -> int:
    """Make scores.csv and summary.json anew from the reports in RESULTS, and show them.

    The exit status is that of `batch`.
    """
    from harness import terminal
    from harness.batch import show
    from harness.batch.store import Store
    from harness.batch.summary import rebuild

    store = Store(results)
    if not store.ids():
        raise Problem(f"There are no results in {results}.", "Give the folder that a batch wrote to.")
    with store.locked():
        figures = rebuild(store)
    _tell_left_out(figures, results)
    with show.printing():
        show.show(figures, terminal.console())
    return _status(figures)


def _tell_left_out(figures: Summary, results: Path) -> None:
    from harness.batch.store import REPORT

    for id, why in figures.left_out.items():
        _note(f"{results / id / REPORT} is left out of the figures. {why}")


def _tell_damaged(places: list[str], results: Path) -> None:
    for place in places:
        _note(f"{results / place}: the report there was damaged and was made anew. Marks by hand in it must be given "
              "again with --marks; it is kept beside the new one as report.damaged.json.")  # fmt: skip


def _tell_kept(ids: list[str]) -> None:
    """Name those whose work is gone from the submissions: the instructor may have given another folder."""
    from harness.text import some

    if ids:
        _note(f"of {len(ids)} on the roster nothing is among the submissions any more. Their earlier results were "
              f"left: {some(ids, _MOST_NAMED)}. Delete a result's folder to be rid of it.")  # fmt: skip


def _note(said: str) -> None:
    from harness.text import terminal_line

    click.echo(f"Note: {terminal_line(said)}", err=True)


def _status(figures: Summary) -> int:
    """What a batch or a summary of these figures ends with.

    Raises:
        Problem: of what was handed in, nothing could be graded.
    """
    if figures.unreadable and figures.results == len(figures.unreadable) + len(figures.nothing):
        raise Problem("Nothing was graded: no submission could be read.",
                      "What is wrong with each stands in summary.json, under `unreadable`.")  # fmt: skip
    waits = figures.review or figures.pending or figures.unreadable or figures.left_out
    return LOOK if waits else GRADED


def _work(submissions: Path, layout: str | None, roster: Path | None, course: Course, *, quiet: bool) -> Work:
    """Find the submissions and whose they are; say what is odd."""
    from harness.intake import read
    from harness.intake.attempts import arrange
    from harness.intake.roster import read_roster

    intake = read(submissions, layout=layout, expected=files_of(course.exercise))
    members = read_roster(roster, course.late.zone if course.late is not None else None) if roster is not None else None
    work = arrange(intake.attempts, members)
    said = [note.render() for note in intake.notes]
    said += [f"{entry.id} is not on the roster." for entry in work.unknown]
    for entry in work.ambiguous:
        fits = ", ".join(member.id for member in entry.match.candidates) if entry.match is not None else ""
        said.append(f"{entry.id} fits several on the roster ({fits}); add an id to the roster.")
    if intake.ignored and not quiet:
        said.append(_nobodys(intake.ignored))
    for line in said:
        _note(line)
    return work


def _nobodys(names: list[str]) -> str:
    """What lies among the submissions and was not taken for one: somebody's work may be misnamed."""
    from harness.text import some

    count = "1 thing" if len(names) == 1 else f"{len(names)} things"
    return (f"{count} among the submissions will not be graded: {some(names, _MOST_NAMED)}. If it is "
            "somebody's work, name it as the layout does, or say which layout it is with --layout.")  # fmt: skip


def _marks(path: Path | None, plan: Plan, course: Course) -> Mapping[str, list[Mark]] | None:
    if path is None:
        return None
    from harness.batch.marks import read_marks

    return read_marks(path, plan, [exercise.id for exercise in course.exercise])


def _known(regrade: tuple[str, ...], plan: Plan) -> frozenset[str]:
    ids = frozenset(id.strip() for text in regrade for id in text.split(",") if id.strip())
    there = {target.id for task in plan.tasks for target in task.targets}
    if unknown := sorted(ids - there):
        raise Problem(f"--regrade: there is no work of {unknown[0]!r} among the submissions.",
                      "Ids are the names of the results' folders.")  # fmt: skip
    return ids


@contextmanager
def _executor(jobs: int | None, isolation: str, cluster: str | None, depends: Basis) -> Iterator[Executor]:
    """Judges, ended at once when something goes wrong."""
    executor = _make_executor(jobs, isolation, cluster, depends)
    ended = False
    try:
        yield executor
        ended = True
    finally:
        executor.close(now=not ended)


def _make_executor(jobs: int | None, isolation: str, cluster: str | None, depends: Basis) -> Executor:
    """Judges on this machine or, with an address, on a cluster, whose workers look at their own sandbox.

    Raises:
        Problem: this machine has no sandbox and nobody said that it may do without; or there is no cluster.
    """
    if cluster is not None:
        if jobs is not None:
            raise Problem("--jobs and --cluster exclude each other.", "Each worker of the cluster judges on its own.")
        from harness.batch.cluster import DaskExecutor

        return DaskExecutor(cluster, isolation, depends)
    from harness.batch.executor import LocalExecutor
    from harness.course import course_root
    from harness.judge import JudgeProcess
    from harness.worker import offer

    offered = offer.probe()
    if isolation == "sandbox" and offered.isolation != "sandbox":
        raise Problem(
            "This machine has no sandbox for the submissions: " + " ".join(offered.missing),
            "Use --isolation process only for work that you trust: it can read and write what you can.",
        )
    return LocalExecutor(jobs or offered.cores, isolation, partial(JudgeProcess, root=course_root()))
