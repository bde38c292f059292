"""The job summary: what the pull request's submissions got, in Markdown.

GitHub takes at most 1 MiB. Nothing that a submission wrote becomes Markdown or HTML: it stands escaped in a line, or
as preformatted text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from harness.ci.results import Result, Verdict
from harness.export.texts import one_line, plain
from harness.notebook import choose
from harness.outcome import Status
from harness.report import CheckResult, ExerciseResult, Report
from harness.terminal import at_a_prompt

MOST_BYTES = 2**20
_RESERVE = 2000  # for the last lines
_STORY = 4000  # characters of what is told of one check
_LISTED = 20
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&:@])")
_SIGNS = {Status.PASSED: "✅", Status.NOT_STARTED: "⬜", Status.PENDING: "⏳", Status.GRADER_ERROR: "⚠️"}
_JSON = "The rest is left out here: the summary may have 1 MiB. The report in JSON has all of it."


def markdown(verdict: Verdict) -> str:
    """The whole summary, at most `MOST_BYTES` of UTF-8."""
    size = 0
    kept: list[str] = []
    for block in _blocks(verdict):
        size += len(block.encode("utf-8", "replace")) + 2
        if size > MOST_BYTES - _RESERVE:
            kept.append(_JSON)
            break
        kept.append(block)
    return "\n\n".join(kept).encode("utf-8", "replace").decode("utf-8") + "\n"


def inline(text: str) -> str:
    """Text of anybody's within a line of Markdown, shown as it is."""
    line = _PUNCTUATION.sub(r"\\\1", one_line(text))
    return re.sub(r"(?i)\bwww\.", r"www\\.", line)  # GitHub makes links of these by itself


def preformatted(text: str) -> str:
    """Text of anybody's as a block of its own. Escaped, it cannot hold the tag that ends the block."""
    cut = text if len(text) <= _STORY else text[: _STORY - 1] + "…"
    return f"<pre>{escape(plain(cut).strip())}</pre>"


def _blocks(verdict: Verdict) -> Iterator[str]:
    yield f"## {inline(verdict.course)}"
    yield verdict.sentence
    if verdict.results:
        lines = ["| | Submission | Points |", "|---|---|---:|"]
        lines += [f"| {_light(result)} | {inline(result.name)} | {_points(result)} |" for result in verdict.results]
        yield "\n".join(lines)
    for result in verdict.results:
        yield from _submission(result)
    yield from _lists(verdict)


def _light(result: Result) -> str:
    if result.report is not None and result.report.review:
        return _SIGNS[Status.GRADER_ERROR]
    return _SIGNS[Status.PASSED] if result.passed else "❌"


def _points(result: Result) -> str:
    if result.report is None:
        return "not graded"
    score = result.report.score
    return f"{score.final:g} / {score.possible:g}"


def _submission(result: Result) -> Iterator[str]:
    yield f"### {inline(result.name)}"
    if result.report is None:
        yield inline(result.problem)
        return
    for note in result.report.submission.notes:
        yield f"Note: {inline(note.text)}"
    for exercise in result.report.exercises:
        yield _table(exercise)
        yield from _stories(exercise, result.report)


def _table(exercise: ExerciseResult) -> str:
    """All checks of an exercise, folded away."""
    head = f"{escape(one_line(exercise.title))}: {exercise.earned:g} / {exercise.possible:g}"
    lines = ["| | Check | Points |", "|---|---|---:|"]
    for check in exercise.checks:
        sign = _SIGNS.get(check.status, "❌")
        word = "" if check.status is Status.PASSED else f" ({check.status.value.replace('_', ' ')})"
        lines.append(f"| {sign} | {inline(check.title)}{word} | {check.points:g} / {check.possible:g} |")
    return f"<details><summary>{head}</summary>\n\n" + "\n".join(lines) + "\n\n</details>"


def _stories(exercise: ExerciseResult, report: Report) -> Iterator[str]:
    """What to learn from each check that did not pass; those with the same cause once."""
    titles = {check.id: check.title for item in report.exercises for check in item.checks}
    notebook = choose.counts(report.submission.files)
    silent = (Status.PASSED, Status.NOT_STARTED, Status.PENDING)
    told = [check for check in exercise.checks if check.status not in silent]
    own = {check.id for check in told}
    for check in told:
        if check.caused_by in own:
            continue
        yield f"**{inline(check.title)}**"
        if check.caused_by:
            yield f"Fails because of “{inline(titles.get(check.caused_by, check.caused_by))}”; mend that first."
            continue
        if check.hint is not None:
            yield inline(check.hint.text)
        if numbers := _numbers(check, notebook=notebook):
            yield preformatted(numbers)
        others = sum(other.caused_by == check.id for other in told)
        if others:
            yield f"{others} other check{'s fail' if others > 1 else ' fails'} for the same reason."


def _numbers(check: CheckResult, *, notebook: bool) -> str:
    """What happened, what was compared, where, and how to see it; of hidden checks the report holds only the hint."""
    lines = [check.message.text] if check.message is not None else []
    evidence = check.evidence
    if evidence is not None:
        lines += [f"  {name:<8}  {value}" for name, value in evidence.compared]
        if evidence.error is not None and evidence.tolerance is not None:
            lines.append(f"  largest difference {evidence.error:.3g}, allowed {evidence.tolerance:.3g}")
    lines += [f"  {frame.file}, line {frame.line}, in {frame.function}" for frame in check.trace[-1:]]
    if check.reproduce and check.status is Status.FAILED:
        where = "in a cell of the notebook" if notebook else "at a Python prompt in the folder of the work"
        lines += [f"See it yourself, {where}:"]
        lines += [f"  {line}" for line in (check.reproduce.splitlines() if notebook else at_a_prompt(check.reproduce))]
    return "\n".join(line for line in lines if line)


def _lists(verdict: Verdict) -> Iterator[str]:
    for head, paths in verdict.lists:
        if paths:
            shown = [f"- {inline(path)}" for path in paths[:_LISTED]]
            shown += [f"- and {len(paths) - _LISTED} more"] if len(paths) > _LISTED else []
            yield f"{head}\n\n" + "\n".join(shown)
