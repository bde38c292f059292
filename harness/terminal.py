"""What a person sees: the report as a table, and for each check that did not pass, what to learn from it."""

from __future__ import annotations

import codeop
from typing import IO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.i18n import Translator
from harness.outcome import UNDECIDED, Frame, Status
from harness.report import CheckResult, ExerciseResult, Report, for_student, points, undecided
from harness.text import ci_guard, terminal
from harness.wrapping import Prose

WIDTH = 100  # of prose and tables, at most
IN_FULL = 3  # stories told with numbers and code; of the others, the hint
MESSAGE_LINES, MESSAGE_CHARACTERS = 10, 800

# Sign, its stand-in where a terminal knows ASCII only, style.
_MARKS = {Status.PASSED: ("✓", "+", "green"), Status.NOT_STARTED: ("·", "-", "dim"),
          Status.PENDING: ("…", ".", "yellow"), Status.GRADER_ERROR: ("!", "!", "yellow")}  # fmt: skip


def show(
    report: Report, console: Console, *, verbose: bool = False, words: Translator | None = None, notebook: bool = False
) -> None:
    """Print a report: exercises with their checks, then what did not pass, then the score and the next step.

    Args:
        report: what to show.
        console: plain when it is not a terminal or NO_COLOR is set; rich sees to that.
        verbose: with what the submission printed, and its whole tracebacks.
        words: in which language; English by default.
        notebook: lines of code are for a cell and not for a prompt.
    """
    words = words or Translator()
    say = _Teller(console, words, notebook)
    report = for_student(report)
    title = words.title(report.course.id, report.course.title)
    console.print(Prose.assemble(_text(title, "bold"), "  ", _text(report.submission.name)))
    for note in report.submission.notes:
        console.print(_text(words.ui("ui.note", text=words.text(note)), "yellow"))
    told = 0
    titles = {check.id: check.title for exercise in report.exercises for check in exercise.checks}
    before = None
    for exercise in report.exercises:
        if before is None or not (_untouched(before) and _untouched(exercise)):
            console.print()
        before = exercise
        console.print(_table(exercise, say))
        elsewhere = _told_elsewhere(exercise)
        if elsewhere:
            console.print()
            say.prose(_follow(elsewhere, titles, words), "dim")
        for group in [] if _left_out(exercise) else _stories(exercise):
            _tell(say, group, whole=_stopped(exercise), short=told >= IN_FULL and not verbose, verbose=verbose)
            told += 1
        if verbose:
            for check in exercise.checks:
                if check.output:
                    _printed(check, say)
    console.print()
    if told > IN_FULL and not verbose:
        console.print(_text(words.ui("ui.told-in-full", count=IN_FULL), "dim"))
    console.print(_isolation(report, words))
    console.print(_score(report, words))
    step = next_step(report, words)
    if step:
        gap = " " if words.language == "en" else ""  # a full-width colon brings its own
        console.print(Prose.assemble((words.ui("ui.next") + gap, "bold"), _text(_brief(step))))


def next_step(report: Report, words: Translator) -> str:
    """The first thing to do, in one sentence, or "" when every check passed."""
    for exercise in report.exercises:
        if _left_out(exercise):
            continue
        for check in exercise.checks:
            if check.status is Status.PASSED or check.status in UNDECIDED:
                continue
            if check.status is Status.NOT_STARTED and check.trace:
                frame = check.trace[-1]
                return words.ui("ui.next.write", function=frame.function, file=frame.file, line=frame.line)
            if check.message is not None and check.status is not Status.FAILED:
                return words.text(check.message)
            return words.ui("ui.next.look", title=words.title(check.id, check.title))
    return ""


def _table(exercise: ExerciseResult, say: _Teller) -> Table:
    console, words = say.console, say.words
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False, width=min(console.width, WIDTH))
    table.add_column(width=1)
    table.add_column(ratio=1)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    title = words.title(exercise.id, exercise.title)
    heading = _text(words.ui("ui.bonus", title=title) if exercise.bonus else title, "bold")
    out_of = f"{exercise.earned:g} / {exercise.possible:g}"
    if _untouched(exercise):  # one line: what is still to come is no failure
        mark, plain, style = _MARKS[Status.NOT_STARTED]
        mark = plain if console.options.ascii_only else mark
        word = words.ui(f"ui.status.{_telling(exercise)[0].status}")
        table.add_row(Text(mark, style), heading, Text(word, style), Text(out_of, "dim"))
        return table
    table.add_row("", heading, "", Text(out_of, "bold"))
    rows = [(check, words.title(check.id, check.title), check.points, check.possible) for check in exercise.checks]
    if _stopped(exercise):
        rows = [(exercise.checks[0], words.ui("ui.all-checks", count=len(rows)), exercise.earned, exercise.possible)]
    for check, title, earned, possible in rows:
        mark, plain, style = _MARKS.get(check.status, ("✗", "x", "red"))
        table.add_row(
            Text(plain if console.options.ascii_only else mark, style),
            _text(title),
            Text("" if check.status is Status.PASSED else words.ui(f"ui.status.{check.status}"), style),
            Text(f"{earned:g} / {possible:g}", "" if earned else "dim"),
        )
    return table


def _stopped(exercise: ExerciseResult) -> bool:
    """Whether all of its checks ended in the same way before there was an answer."""
    return len(exercise.checks) > 1 and all(_alike(exercise.checks[0], check) for check in exercise.checks)


def _untouched(exercise: ExerciseResult) -> bool:
    """Whether nothing of it has been written yet."""
    checks = _telling(exercise)
    return (bool(checks) and all(check.status is Status.NOT_STARTED for check in checks)) or _left_out(exercise)


def _left_out(exercise: ExerciseResult) -> bool:
    """Whether it is a bonus whose file was not handed in, as whoever does not want it will do."""
    messages = {check.message.id if check.message is not None else "" for check in _telling(exercise)}
    return exercise.bonus and messages in ({"missing.module"}, {"quiz.no-sheet"})


def _telling(exercise: ExerciseResult) -> list[CheckResult]:
    """The checks that tell whether something is written: one that is worth nothing and passes does not."""
    return [check for check in exercise.checks if check.possible or check.status is not Status.PASSED]


def _alike(first: CheckResult, other: CheckResult) -> bool:
    """Whether one line can stand for both: neither is started, or the same thing stopped both."""
    if first.status is not other.status or first.status in (Status.PASSED, Status.FAILED):
        return False
    return first.status is Status.NOT_STARTED or first.message == other.message


def _told_elsewhere(exercise: ExerciseResult) -> list[CheckResult]:
    """Checks that failed because of something in another exercise."""
    own = {check.id for check in exercise.checks}
    return [check for check in exercise.checks if check.caused_by and check.caused_by not in own]


def _follow(checks: list[CheckResult], titles: dict[str, str], words: Translator) -> str:
    causes = [words.title(cause, titles.get(cause, cause)) for cause in dict.fromkeys(c.caused_by for c in checks)]
    named = words.ui("ui.and").join(words.ui("ui.quoted", text=cause) for cause in causes)
    if len(checks) == 1:
        return words.ui("ui.follows.one", causes=named)
    return words.ui("ui.follows.many", count=len(checks), causes=named)


def _stories(exercise: ExerciseResult) -> list[list[CheckResult]]:
    """The checks to talk about, those with the same cause together. Stubs need no story of their own."""
    silent = (Status.PASSED, Status.NOT_STARTED, Status.PENDING)
    elsewhere = _told_elsewhere(exercise)
    told = [check for check in exercise.checks if check.status not in silent and check not in elsewhere]
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


def _tell(say: _Teller, checks: list[CheckResult], *, whole: bool, short: bool, verbose: bool) -> None:
    """One story: what a student most likely got wrong, then what was expected and what came, then how to see it.

    Args:
        say: where to, and in which language.
        checks: the one that is told, and those with the same cause.
        whole: these are all checks of their exercise, and nothing of it could run.
        short: leave it at the hint, where there is one.
        verbose: leave nothing out.
    """
    first, *others = checks
    words = say.words
    say.console.print()
    if not whole:
        say.prose(words.title(first.id, first.title), "bold red")
    if first.hint is not None:
        say.prose(words.text(first.hint))
    if short and first.hint is not None:
        return
    if first.message is not None:
        text = words.text(first.message)
        say.prose(text if verbose else _brief(text))
    evidence = first.evidence
    if evidence is not None:
        wide = max(cell_len(words.ui(f"ui.{name}")) for name in ("expected", "actual"))
        for name, value in evidence.compared:
            say.prose(f"  {set_cell_size(words.ui(f'ui.{name}'), wide)}  {value}")
        if evidence.error is not None and evidence.tolerance is not None:
            error, allowed = f"{evidence.error:.3g}", f"{evidence.tolerance:.3g}"
            say.prose("  " + words.ui("ui.difference", error=error, tolerance=allowed), "dim")
    if first.status is not Status.FAILED:
        for frame in first.trace if verbose else first.trace[-1:]:
            _tell_frame(say, frame)
    if first.detail and verbose:
        say.prose(first.detail, "dim")
    if first.reproduce and first.status is Status.FAILED:
        code = words.code(first.reproduce)
        say.prose(words.ui("ui.see-it.notebook" if say.notebook else "ui.see-it"), "dim")
        for line in code.splitlines() if say.notebook else at_a_prompt(code):
            say.code(line)
    if others and verbose and not whole:
        say.prose(words.ui("ui.same-behind"), "dim")
        for other in others:
            say.prose("  " + words.title(other.id, other.title), "dim")
    elif others and not whole:
        one = len(others) == 1
        say.prose(words.ui("ui.same-reason.one") if one else words.ui("ui.same-reason.many", count=len(others)), "dim")


def _tell_frame(say: _Teller, frame: Frame) -> None:
    if frame.function:
        where = say.words.ui("ui.frame.function", file=frame.file, line=frame.line, function=frame.function)
    else:
        where = say.words.ui("ui.frame", file=frame.file, line=frame.line)
    say.prose(f"  {where}", "dim")
    if frame.source:
        say.code(frame.source.strip())
    if frame.column:
        indent = len(frame.source) - len(frame.source.lstrip())
        say.code(" " * max(0, min(frame.column, len(frame.source) + 1) - 1 - indent) + "^", "red")


class _Teller:
    """Prints prose that wraps, and code that does not, both indented.

    Args:
        console: where to.
        words: in which language.
        notebook: lines of code are for a cell.
    """

    def __init__(self, console: Console, words: Translator, notebook: bool = False) -> None:
        self.console, self.words, self.notebook = console, words, notebook

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


def console(file: IO[str] | None = None, *, width: int | None = None, no_color: bool | None = None) -> Console:
    """Where all commands print: nothing in a text is markup, an emoji's name or worth a colour of its own.

    Args:
        file: standard output by default.
        width: that of the terminal by default.
        no_color: by default as NO_COLOR says.
    """
    return Console(file=file, width=width, no_color=no_color, markup=False, emoji=False, highlight=False)


def plain(text: str) -> Text:
    """Text that a submission may have written, harmless for a terminal."""
    return _text(text)


def _text(text: str, style: str = "") -> Prose:
    """Most of what is shown was written by a submission."""
    return Prose(terminal(text), style)


def _printed(check: CheckResult, say: _Teller) -> None:
    say.console.print()
    say.prose(say.words.ui("ui.printed", title=say.words.title(check.id, check.title)), "dim")
    for line in check.output.rstrip("\n").split("\n"):
        say.code(line)


def _isolation(report: Report, words: Translator) -> Prose:
    kind = report.environment.isolation
    return _text(words.ui("ui.isolation" if kind == "sandbox" else "ui.isolation.less", isolation=kind), "dim")


def _score(report: Report, words: Translator) -> Text:
    score = report.score
    text = Text(words.ui("ui.score", earned=f"{score.earned:g}", possible=f"{score.possible:g}"), "bold")
    bonus = points(exercise.possible for exercise in report.exercises if exercise.bonus)
    if bonus:
        extra = words.ui("ui.score.bonus", earned=f"{score.bonus:g}", possible=f"{bonus:g}")
        text = Text.assemble(text, "  ", (extra, "bold" if score.bonus else "dim"))
    waiting = points(check.possible for check in undecided(report.exercises, report.adjustments))
    if waiting:
        return Text.assemble(text, "  ", (words.ui("ui.undecided", points=f"{waiting:g}"), "yellow"))
    return text
