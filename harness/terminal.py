"""What a person sees: the report as a table, and for each check that did not pass, what to learn from it."""

from __future__ import annotations

import codeop

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.outcome import UNDECIDED, Frame, Status
from harness.report import CheckResult, ExerciseResult, Report
from harness.text import ci_guard, terminal

WIDTH = 100  # of prose and tables, at most
IN_FULL = 3  # stories told with numbers and code; of the others, the hint
MESSAGE_LINES, MESSAGE_CHARACTERS = 10, 800

# Sign, its stand-in where a terminal knows ASCII only, style.
_MARKS = {Status.PASSED: ("✓", "+", "green"), Status.NOT_STARTED: ("·", "-", "dim"),
          Status.PENDING: ("…", ".", "yellow"), Status.GRADER_ERROR: ("!", "!", "yellow")}  # fmt: skip
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
    console.print(Text.assemble((report.course.title, "bold"), "  ", _text(report.submission.name)))
    for note in report.submission.notes:
        console.print(_text(f"Note: {note.text}", "yellow"))
    told = 0
    for exercise in report.exercises:
        console.print()
        console.print(_table(exercise, console))
        for group in _stories(exercise):
            _tell(console, group, whole=_stopped(exercise), short=told >= IN_FULL and not verbose, verbose=verbose)
            told += 1
        if verbose:
            for check in exercise.checks:
                if check.output:
                    _printed(check, console)
    console.print()
    if told > IN_FULL and not verbose:
        console.print(Text(f"The first {IN_FULL} are told in full; -v tells all.", "dim"))
    console.print(_isolation(report))
    console.print(_score(report))
    step = next_step(report)
    if step:
        console.print(Text.assemble(("Next: ", "bold"), _text(_brief(step))))


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
            return f"look at “{check.title}”."
    return ""


def _table(exercise: ExerciseResult, console: Console) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False, width=min(console.width, WIDTH))
    table.add_column(width=1)
    table.add_column(ratio=1)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_row("", Text(exercise.title, "bold"), "", Text(f"{exercise.earned:g} / {exercise.possible:g}", "bold"))
    rows = [(check, check.title, check.points, check.possible) for check in exercise.checks]
    if _stopped(exercise):
        rows = [(exercise.checks[0], f"all {len(rows)} checks", exercise.earned, exercise.possible)]
    for check, title, earned, possible in rows:
        mark, plain, style = _MARKS.get(check.status, ("✗", "x", "red"))
        table.add_row(
            Text(plain if console.options.ascii_only else mark, style),
            _text(title),
            Text(_WORDS.get(check.status, ""), style),
            Text(f"{earned:g} / {possible:g}", "" if earned else "dim"),
        )
    return table


def _stopped(exercise: ExerciseResult) -> bool:
    """Whether all of its checks ended in the same way before there was an answer."""
    return len(exercise.checks) > 1 and all(_alike(exercise.checks[0], check) for check in exercise.checks)


def _alike(first: CheckResult, other: CheckResult) -> bool:
    """Whether one line can stand for both: neither is started, or the same thing stopped both."""
    if first.status is not other.status or first.status in (Status.PASSED, Status.FAILED):
        return False
    return first.status is Status.NOT_STARTED or first.message == other.message


def _stories(exercise: ExerciseResult) -> list[list[CheckResult]]:
    """The checks to talk about, those with the same cause together. Stubs need no story of their own."""
    told = [c for c in exercise.checks if c.status not in (Status.PASSED, Status.NOT_STARTED, Status.PENDING)]
    groups: dict[str, list[CheckResult]] = {}
    for check in told:
        key = check.caused_by or check.id
        if check.status is not Status.FAILED and check.message is not None and not check.caused_by:
            key = next(
                (id for id, (first, *_) in groups.items() if _alike(first, check)),
                check.id,
            )
        groups.setdefault(key, []).append(check)
    return list(groups.values())


def _tell(console: Console, checks: list[CheckResult], *, whole: bool, short: bool, verbose: bool) -> None:
    """One story: what a student most likely got wrong, then what was expected and what came, then how to see it.

    Args:
        console: where to.
        checks: the one that is told, and those with the same cause.
        whole: these are all checks of their exercise, and nothing of it could run.
        short: leave it at the hint.
        verbose: leave nothing out.
    """
    first, *others = checks
    say = _Teller(console)
    console.print()
    if not whole:
        say.prose(first.title, "bold red")
    if first.hint is not None:
        say.prose(first.hint.text)
    if short:
        return
    if first.message is not None:
        say.prose(first.message.text if verbose else _brief(first.message.text))
    evidence = first.evidence
    if evidence is not None:
        say.prose(f"  expected  {evidence.expected}")
        say.prose(f"  actual    {evidence.actual}")
        if evidence.error is not None and evidence.tolerance is not None:
            say.prose(f"  largest difference {evidence.error:.3g}, allowed {evidence.tolerance:.3g}", "dim")
    if first.status is not Status.FAILED:
        for frame in first.trace if verbose else first.trace[-1:]:
            _tell_frame(say, frame)
    if first.detail and verbose:
        say.prose(first.detail, "dim")
    if first.reproduce and first.status is Status.FAILED:
        say.prose("See it yourself, at a Python prompt in the folder of your work:", "dim")
        for line in at_a_prompt(first.reproduce):
            say.code(line)
    if others and verbose and not whole:
        say.prose("The same is behind:", "dim")
        for other in others:
            say.prose(f"  {other.title}", "dim")
    elif others and not whole:
        checks_fail = "1 other check fails" if len(others) == 1 else f"{len(others)} other checks fail"
        say.prose(f"{checks_fail} for the same reason.", "dim")


def _tell_frame(say: _Teller, frame: Frame) -> None:
    where = f", in {frame.function}" if frame.function else ""
    say.prose(f"  {frame.file}, line {frame.line}{where}", "dim")
    if frame.source:
        say.code(frame.source.strip())
    if frame.column:
        indent = len(frame.source) - len(frame.source.lstrip())
        say.code(" " * max(0, min(frame.column, len(frame.source) + 1) - 1 - indent) + "^", "red")


class _Teller:
    """Prints prose that wraps, and code that does not, both indented."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def prose(self, text: str, style: str = "") -> None:
        for line in _text(text, style).wrap(self.console, min(self.console.width, WIDTH) - 2):
            self.console.print(Text("  " + ci_guard(line.plain)).append_text(line))

    def code(self, text: str, style: str = "") -> None:
        self.console.print(_text(f"    {ci_guard(text)}{text}", style), soft_wrap=True)  # so that it can be copied


def at_a_prompt(source: str) -> list[str]:
    """Lines of code as they stand at Python's prompt: `>>>`, and `...` within a block and to end it."""
    shown: list[str] = []
    block: list[str] = []
    for line in source.splitlines():
        if block and not _is_open([*block, line]):
            shown.append("...")  # what follows is no part of the block
            block = []
        shown.append(f"... {line}" if block else f">>> {line}")
        block.append(line)
        if not _is_open(block):
            block = []
    return [*shown, "..."] if block else shown


def _is_open(lines: list[str]) -> bool:
    """Whether Python's prompt would ask for more after these lines."""
    try:
        return codeop.compile_command("\n".join(lines)) is None
    except (SyntaxError, ValueError, OverflowError):
        return False


def _brief(text: str) -> str:
    """A message that a submission wrote can be long; `-v` shows all of it."""
    lines = text.splitlines()
    cut = "\n".join(lines[:MESSAGE_LINES])[:MESSAGE_CHARACTERS]
    return cut if cut == text else f"{cut} ..."


def _text(text: str, style: str = "") -> Text:
    """Most of what is shown was written by a submission."""
    return Text(terminal(text), style)


def _printed(check: CheckResult, console: Console) -> None:
    console.print()
    say = _Teller(console)
    say.prose(f"Printed during “{check.title}”:", "dim")
    for line in check.output.rstrip("\n").split("\n"):
        say.code(line)


def _isolation(report: Report) -> Text:
    kind = report.environment.isolation
    why = "" if kind == "sandbox" else " (`python grade.py doctor` says what this machine offers)"
    return Text(f"Isolation: {kind}{why}", "dim")


def _score(report: Report) -> Text:
    score = report.score
    text = Text.assemble(("Score ", "bold"), (f"{score.earned:g} / {score.possible:g}", "bold"))
    if score.undecided:
        text.append(f"  ({score.undecided:g} points not decided yet)", "yellow")
    return text
