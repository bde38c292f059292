"""What a person sees: the report as a table, and for each check that did not pass, what to learn from it."""

from __future__ import annotations

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.course import Course
from harness.grading import CheckInfo
from harness.outcome import UNDECIDED, Status
from harness.report import CheckResult, ExerciseResult, Report, points

_MARKS = {Status.PASSED: ("✓", "green"), Status.NOT_STARTED: ("·", "dim"), Status.PENDING: ("…", "yellow")}
_WORDS = {
    Status.FAILED: "failed",
    Status.NOT_STARTED: "not started",
    Status.MISSING: "missing",
    Status.ERROR: "error",
    Status.TIMEOUT: "time-out",
    Status.OUT_OF_MEMORY: "out of memory",
    Status.CRASHED: "crashed",
    Status.BLOCKED: "blocked",
    Status.PENDING: "waits for a person",
    Status.GRADER_ERROR: "grader at fault",
}


def show(report: Report, console: Console, *, verbose: bool = False) -> None:
    """Print a report: exercises with their checks, then what did not pass, then the score and the next step.

    Args:
        report: what to show.
        console: plain when it is not a terminal or NO_COLOR is set; rich sees to that.
        verbose: with what the submission printed, and its whole tracebacks.
    """
    console.print(Text.assemble((report.course.title, "bold"), f"  {report.submission.name}"))
    for note in report.submission.notes:
        console.print(Text(f"Note: {note.text}", "yellow"))
    for exercise in report.exercises:
        console.print()
        console.print(_table(exercise))
        for group in _stories(exercise):
            console.print(Padding(_story(group, verbose), (1, 0, 0, 2)))
        if verbose:
            for check in exercise.checks:
                if check.output:
                    console.print(Padding(_printed(check), (1, 0, 0, 2)))
    console.print()
    console.print(_score(report))
    step = next_step(report)
    if step:
        console.print(Text.assemble(("Next: ", "bold"), step))


def show_checks(course: Course, checks: list[CheckInfo], console: Console) -> None:
    """Print the exercises with their checks and points."""
    for exercise in course.exercise:
        own = [check for check in checks if check.exercise == exercise.id]
        table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1)
        table.add_column(justify="right")
        total = points(check.points for check in own)
        table.add_row(Text(exercise.id, "bold"), Text(exercise.title, "bold"), Text(f"{total:g}", "bold"))
        for check in own:
            table.add_row(check.id, Text(check.title), f"{check.points:g}")
        console.print(table)
        console.print()
    console.print(Text(f"{points(check.points for check in checks):g} points"))


def next_step(report: Report) -> str:
    """The first thing to do, in one sentence, or "" when every check passed."""
    for exercise in report.exercises:
        for check in exercise.checks:
            if check.status is Status.PASSED or check.status in UNDECIDED:
                continue
            if check.status is Status.NOT_STARTED and check.trace:
                frame = check.trace[-1]
                return f"write {frame.function} in {frame.file}, line {frame.line}."
            if check.message is not None and check.status is not Status.FAILED:
                return check.message.text
            return f"{exercise.title}: {check.title}."
    return ""


def _table(exercise: ExerciseResult) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(width=1)
    table.add_column(ratio=1)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("", Text(exercise.title, "bold"), "", Text(f"{exercise.earned:g} / {exercise.possible:g}", "bold"))
    for check in exercise.checks:
        mark, style = _MARKS.get(check.status, ("✗", "red"))
        table.add_row(
            Text(mark, style),
            Text(check.title),
            Text(_WORDS.get(check.status, ""), style),
            Text(f"{check.points:g} / {check.possible:g}", "" if check.points else "dim"),
        )
    return table


def _stories(exercise: ExerciseResult) -> list[list[CheckResult]]:
    """The checks to talk about, those with the same cause together. Stubs need no story of their own."""
    groups: dict[str, list[CheckResult]] = {}
    for check in exercise.checks:
        if check.status in (Status.PASSED, Status.NOT_STARTED, Status.PENDING):
            continue
        failed = check.status is Status.FAILED or check.message is None
        key = check.id if failed or check.message is None else f"{check.status}:{check.message.text}"
        groups.setdefault(key, []).append(check)
    return list(groups.values())


def _story(checks: list[CheckResult], verbose: bool) -> Group:
    first = checks[0]
    lines: list[Text | Padding] = [Text(f"{first.title}", "bold red")]
    lines += [Text(f"{other.title}", "bold red") for other in checks[1:]]
    if first.hint is not None:
        lines.append(Text(first.hint.text))
    if first.message is not None:
        lines.append(Text(first.message.text))
    evidence = first.evidence
    if evidence is not None:
        lines.append(Text(f"  expected  {evidence.expected}"))
        lines.append(Text(f"  actual    {evidence.actual}"))
        if evidence.error is not None and evidence.tolerance is not None:
            lines.append(Text(f"  largest difference {evidence.error:.3g}, allowed {evidence.tolerance:.3g}", "dim"))
    frames = first.trace if verbose else first.trace[-1:]
    for frame in frames if first.status is not Status.FAILED else []:
        where = f", in {frame.function}" if frame.function else ""
        lines.append(Text(f"  {frame.file}, line {frame.line}{where}", "dim"))
        if frame.source:
            lines.append(Text(f"    {frame.source.strip()}"))
        if frame.column:
            indent = len(frame.source) - len(frame.source.lstrip())
            lines.append(Text(f"    {' ' * max(0, frame.column - 1 - indent)}^", "red"))
    if first.detail and verbose:
        lines.append(Text(first.detail, "dim"))
    if first.reproduce and first.status is Status.FAILED:
        lines.append(Text("See it yourself, at a Python prompt in the folder of your work:", "dim"))
        lines += [Text(f"  >>> {line}") for line in first.reproduce.splitlines()]
    return Group(*lines)


def _printed(check: CheckResult) -> Group:
    return Group(
        Text(f"Printed during “{check.title}”:", "dim"), Padding(Text(check.output.rstrip("\n")), (0, 0, 0, 2))
    )


def _score(report: Report) -> Text:
    score = report.score
    text = Text.assemble(("Score ", "bold"), (f"{score.earned:g} / {score.possible:g}", "bold"))
    if score.undecided:
        text.append(f"  ({score.undecided:g} points not decided yet)", "yellow")
    return text
