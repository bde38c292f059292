"""The line of a submission that a failing check is about."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.report import CheckResult

_MOST_BYTES = 2**20  # of a file that is looked through
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Place:
    """Lines of a file of the submission, counted from 1; no lines where only the file is known."""

    file: str
    line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True)
class _Definition:
    name: str
    owner: str  # the class that it is in, or ""
    place: Place
    is_class: bool


def place_of(check: CheckResult, submission: Mapping[str, bytes], files: tuple[str, ...]) -> Place | None:
    """Where to show what became of a check.

    The innermost line of the trace in a file of the submission. Without one, the head of the function that the check
    is about: the first name in what was compared, in the check's title, then in the lines that show it again, that is
    defined in the submission; of methods of that name, the one in a class which these texts name. Else that class,
    else only the file.

    Args:
        check: one that did not pass.
        submission: its files.
        files: those of the check's exercise.
    """
    for frame in reversed(check.trace):
        if frame.file in submission and frame.line >= 1:
            return Place(frame.file, frame.line, frame.line)
    known = [one for file in files if file in submission for one in _definitions(file, submission[file])]
    what = check.evidence.what if check.evidence is not None else ""
    said = " ".join(str(value) for value in check.message.params.values()) if check.message is not None else ""
    words = _NAME.findall(f"{what} {check.title} {said} {check.reproduce}")
    classes = [one for word in words for one in known if one.is_class and one.name == word]
    owners = {one.name for one in classes}
    for word in words:
        named = [one for one in known if not one.is_class and one.name == word]
        if named:
            return next((one for one in named if one.owner in owners), named[0]).place
    if classes:
        return classes[0].place
    return next((Place(file) for file in files if file in submission), None)


def _definitions(file: str, content: bytes) -> Iterator[_Definition]:
    """The functions and classes at the top of a file and in its classes; none where Python cannot read it."""
    if len(content) > _MOST_BYTES:
        return
    try:
        body = ast.parse(content).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield _Definition(node.name, "", _head(file, node), isinstance(node, ast.ClassDef))
        if isinstance(node, ast.ClassDef):
            for child in node.body:
                if isinstance(child, ast.FunctionDef):
                    yield _Definition(child.name, node.name, _head(file, child), False)


def _head(file: str, node: ast.ClassDef | ast.FunctionDef) -> Place:
    """From `def` to the line before the body."""
    return Place(file, node.lineno, max(node.lineno, node.body[0].lineno - 1))
