"""What `replay` and `diff` print."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from harness.defend.changes import Difference
from harness.defend.replay import Replay, show_value
from harness.report import CheckResult
from harness.terminal import console as new_console
from harness.terminal import plain


def show_replay(before: CheckResult, again: Replay) -> None:
    """Every step of a check with its value, then the verdict beside the report's."""
    console = new_console()
    console.print(plain(f"{before.id}  {before.title}"))
    for step in again.steps:
        console.print()
        style = "cyan" if step.side == "student" else "green"
        console.print(Text.assemble((f"{step.side}  ", style), plain(step.what)))
        console.print(plain(show_value(step.value)), soft_wrap=True)
    console.print()
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    for heading in ("", "status", "points", "expected", "actual", "allowed", "measured"):
        table.add_column(heading)
    for name, result in (("report", before), ("now", again.result)):
        evidence = result.evidence
        cells = [""] * 4
        if evidence is not None:
            cells = [evidence.expected, evidence.actual, _figure(evidence.tolerance), _figure(evidence.error)]
        table.add_row(name, result.status, f"{result.points:g} / {result.possible:g}", *map(plain, cells))
    console.print(table)
    if again.result.message is not None:
        console.print(plain(again.result.message.text))


def show_difference(difference: Difference) -> None:
    """A line a changed check, then whose final score changed."""
    console = new_console()
    if not difference.changes and not difference.scores:
        console.print("No mark differs.")
        return
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    for heading in ("who", "check", "before", "after", "points"):
        table.add_column(heading)
    for change in difference.changes:
        table.add_row(plain(change.who), plain(change.check), _verdict(change.before), _verdict(change.after),
                      f"{change.points:+g}" if change.points else "")  # fmt: skip
    console.print(table)
    console.print()
    for who, (before, after) in difference.scores.items():
        console.print(plain(f"{who or 'score'}: {_score(before)} -> {_score(after)}"))
    console.print(Text(f"{len(difference.scores)} scores and {len(difference.changes)} checks differ."))


def _verdict(check: CheckResult | None) -> Text:
    if check is None:
        return Text("not judged")
    return plain(f"{check.status} ({check.misconception})" if check.misconception else str(check.status))


def _score(value: float | None) -> str:
    return "not graded" if value is None else f"{value:g}"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
