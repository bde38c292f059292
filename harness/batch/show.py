"""What a batch shows: progress while it runs, and the class in a table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from harness.batch import compose
from harness.batch.run import How
from harness.batch.summary import Summary, state
from harness.outcome import Status
from harness.problem import Problem
from harness.report import Report
from harness.text import some, terminal_line

_MOST_SHOWN = 5


class Display:
    """A bar on a terminal, a line for each result elsewhere.

    Args:
        console: where to.
        total: how many results are to be made.
        quiet: show nothing.
    """

    def __init__(self, console: Console, total: int, *, quiet: bool = False) -> None:
        self.console, self.total, self.quiet = console, total, quiet
        self.done = self.trouble = self.reused = 0
        self.began = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(), TextColumn("{task.fields[trouble]}", style="yellow"),
            console=console, disable=quiet or not console.is_terminal,
        )  # fmt: skip
        self._task: TaskID = self._bar.add_task("Grading", total=total, rate="", trouble="")

    def __enter__(self) -> Display:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def finished(self, id: str, report: Report, how: How) -> None:
        self.done += 1
        self.reused += how == "reused"
        what = outcome(report)
        self.trouble += what != ""
        judged = self.done - self.reused
        rate = judged / max(time.monotonic() - self.began, 1e-9)
        self._bar.update(
            self._task, completed=self.done, rate=f"{rate:.1f}/s" if judged else "",
            trouble=f"{self.trouble} with trouble" if self.trouble else "",
        )  # fmt: skip
        if not self._bar.disable or self.quiet or how == "reused":
            return
        score = f"{report.score.final:g} / {report.score.possible:g}" if report.exercises else ""
        self._line(f"{self.done}/{self.total}  {id}  {'  '.join(filter(None, (score, what)))}")

    def postponed(self, id: str, why: str) -> None:
        if self._bar.disable and not self.quiet:
            self._line(f"{id} will be judged once more, alone ({why}).")

    def alone(self, count: int) -> None:
        self._bar.update(self._task, description="Grading, one by one")
        if self._bar.disable and not self.quiet:
            self._line(f"{count} to be judged once more, one by one.")

    def _line(self, text: str) -> None:
        with printing():
            self.console.print(harmless(text), soft_wrap=True)


@contextmanager
def printing() -> Iterator[None]:
    """Say what to do when nothing more can be printed: into a file on a full disk, say.

    Raises:
        Problem: instead of an OSError; a reader that went away is none.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Problem(f"The progress cannot be printed: {error.strerror or error}.",
                      "Results that were finished are kept; run the command again.") from error  # fmt: skip


def harmless(text: str, style: str = "") -> Text:
    """A line to print as it is. Names of files are in most of them: they are no markup, and steer no terminal."""
    return Text(terminal_line(text), style)


def outcome(report: Report) -> str:
    """What kept a submission from being judged in full, in a few words; "" for nothing."""
    what = state(report)
    if what in ("nothing", "unreadable"):
        return report.submission.notes[0].text if report.submission.notes else what
    found = compose.statuses(report)
    if Status.GRADER_ERROR in found:
        return "a grader broke down"
    return ", ".join(sorted(status.replace("_", " ") for status in found & compose.SHAKY))


def show(summary: Summary, console: Console) -> None:
    """Print a class: scores, hardest checks, most frequent mistakes, and what a person should look at."""
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    scores = summary.scores
    table.add_row("Results", str(summary.results))
    table.add_row("Graded in full", str(scores.count if scores is not None else 0))
    if summary.pending:
        table.add_row("Waiting for marks", f"{len(summary.pending)}, not among the scores")
    if scores is not None:
        table.add_row("Score", f"mean {scores.mean:g}, median {scores.median:g}, {scores.lowest:g} to "
                      f"{scores.highest:g} of {scores.possible:g}")  # fmt: skip
    hardest = sorted((check for check in summary.checks if check.pass_rate is not None and check.pass_rate < 1),
                     key=lambda check: check.pass_rate or 0.0)  # fmt: skip
    for label, lines in (
        ("Hardest checks", [f"{(c.pass_rate or 0) * 100:3.0f} % of {c.judged} pass  {c.id}" for c in hardest]),
        ("Mistakes", [f"{m.students} x  {m.id}" for m in summary.misconceptions]),
        ("For review", summary.review),
        ("Marks wanted for", summary.pending),
        ("Not readable", [f"{id}: {why}" for id, why in summary.unreadable.items()]),
        ("Nothing handed in", summary.nothing),
        ("Left out", list(summary.left_out)),
    ):
        shown = lines[:_MOST_SHOWN] + ([f"and {len(lines) - _MOST_SHOWN} more"] if len(lines) > _MOST_SHOWN else [])
        for number, line in enumerate(shown):
            table.add_row("" if number else label, harmless(line))
    console.print(harmless(summary.title, "bold"))
    console.print(table)


def show_rest(others: list[str], out: Path, console: Console) -> None:
    """Print where the results are, and which of them are of nobody in this run."""
    if others:
        console.print(harmless(f"{len(others)} results are of nobody in this run and were left: "
                               f"{some(others, _MOST_SHOWN)}"), soft_wrap=True)  # fmt: skip
    console.print(harmless(f"Results: {out}"), soft_wrap=True)
