"""The lines that show a failure, made to run in a cell of the student's notebook: there are no modules beside it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterable
from pathlib import Path

from harness.notebook import choose
from harness.report import Report


def fit(report: Report, root: Path) -> None:
    """Where a notebook was graded, take the imports of the course's modules out of the report's lines of code.

    Args:
        report: changed in place.
        root: of the course.
    """
    if choose.counts(report.submission.files, root):
        for exercise in report.exercises:
            for check in exercise.checks:
                check.reproduce = for_a_cell(check.reproduce, _modules(root))


def for_a_cell(source: str, modules: Collection[str]) -> str:
    """Lines of Python without `from gpt import ...`: in a cell the names are there already. Comments stay.

    Args:
        source: what is no Python stays as it is.
        modules: whose names a cell has.
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return source
    lines: list[str | None] = list(source.split("\n"))
    for node in body:
        if _is_of(node, modules):
            row = node.lineno - 1
            same_line = [other for other in body if other.lineno <= node.lineno <= (other.end_lineno or 0)]
            lines[row : node.end_lineno] = [None] * ((node.end_lineno or 0) - row)
            lines[row] = _line(source.split("\n"), same_line, modules)
    return "\n".join(line for line in lines if line is not None)


def _is_of(node: ast.stmt, modules: Collection[str]) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module in modules


def _line(lines: list[str], statements: list[ast.stmt], modules: Collection[str]) -> str | None:
    """What is left of the statements that share a line with an import, and of the comment behind them."""
    kept: list[str] = []
    for node in statements:
        if not _is_of(node, modules):
            kept.append(ast.get_source_segment("\n".join(lines), node) or "")
        elif isinstance(node, ast.ImportFrom):
            kept += [f"{alias.asname} = {alias.name}" for alias in node.names if alias.asname]
    last = statements[-1]
    ending = lines[(last.end_lineno or 1) - 1].encode()[last.end_col_offset :].decode().lstrip("; ")
    if not kept and not ending:
        return None
    return "  ".join(part for part in ("; ".join(kept), ending) if part)


@functools.cache
def _modules(root: Path) -> frozenset[str]:
    files: Iterable[str] = (*choose.course_files(root), *choose.handed_out(root))
    return frozenset(name.removesuffix(".py") for name in files if name.endswith(".py"))
