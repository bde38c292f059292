"""What an author sees: the checks of a course, and the proof of its graders."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.authoring.prove import Verdict
from harness.course import Course
from harness.grading import CheckInfo
from harness.i18n import Translator
from harness.report import points
from harness.terminal import plain
from harness.wrapping import Prose


def show_checks(course: Course, checks: list[CheckInfo], console: Console, words: Translator) -> None:
    """Print the exercises with their checks and points."""
    for exercise in course.exercise:
        own = [check for check in checks if check.exercise == exercise.id]
        table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1)
        table.add_column(justify="right")
        total = points(check.points for check in own)
        title = words.title(exercise.id, exercise.title)
        table.add_row(
            Text(exercise.id, "bold"),
            Prose(words.ui("ui.bonus", title=title) if exercise.bonus else title, "bold"),
            Text(f"{total:g}", "bold"),
        )
        for check in own:
            table.add_row(Text(check.id), Prose(words.title(check.id, check.title)), f"{check.points:g}")
        console.print(table)
        console.print()
    bonus = {exercise.id for exercise in course.exercise if exercise.bonus}
    text = f"{points(check.points for check in checks if check.exercise not in bonus):g} points"
    if bonus:
        text += f", and {points(check.points for check in checks if check.exercise in bonus):g} bonus points"
    console.print(Text(text))


def show_proof(course: Course, verdicts: Sequence[Verdict], seeds: int, console: Console) -> None:
    """Print what the self-proof of a course found: a table of counts, then every exception."""
    must = {
        "reference": "all points",
        "template": "no points",
        "accepted": "all points",
        "misconception": "loses points, is named",
        "degenerate": "no points",
    }
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    table.add_column("exercise")
    for kind, meaning in must.items():
        table.add_column(f"{kind}\n{meaning}", justify="right")
    for exercise in course.exercise:
        row = []
        for kind in must:
            own = [verdict for verdict in verdicts if (verdict.case.exercise, verdict.case.kind) == (exercise.id, kind)]
            good = sum(not verdict.problems for verdict in own)
            row.append(Text(f"{good} / {len(own)}", "green" if good == len(own) else "red"))
        table.add_row(Text(exercise.id), *row)
    console.print(table)
    console.print(Text(f"{len(verdicts)} answers on {seeds} seed{'s' if seeds > 1 else ''}"))
    for verdict in verdicts:
        for problem in verdict.problems:
            console.print(Text.assemble((verdict.case.id, "bold red"), "  ", plain(problem)))
