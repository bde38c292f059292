"""Exports: from the reports of a class to what learning platforms and CI read. One module a target.

A target's module has: ABOUT (one line for people), TAKES (the fields of Options that it uses, beside `late` and
`strict`), `write(sheet, out)`, SINGLE (whether it also makes sense for one submission) and, if so, `write_one(grade,
out)`.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from harness import files
from harness.export.grades import Grade, grade
from harness.export.sheet import Options, Row, Sheet, is_single, rows
from harness.problem import Problem
from harness.report import Report, Student

__all__ = ["TARGETS", "Options", "Row", "Sheet", "export", "export_one", "rows", "target"]

# What people type, and the module that does it.
TARGETS = {
    "gradescope": "gradescope",
    "canvas": "canvas",
    "moodle": "moodle",
    "moodle-worksheet": "moodle_worksheet",
    "moodle-feedback": "moodle_feedback",
    "lti": "lti",
    "junit": "junit",
    "ctrf": "ctrf",
    "json": "json",
    "csv": "csv",
}


class Target(Protocol):
    """What every target's module offers."""

    ABOUT: str
    TAKES: frozenset[str]
    SINGLE: bool

    @staticmethod
    def write(sheet: Sheet, out: BinaryIO) -> None: ...

    @staticmethod
    def write_one(grade: Grade, out: BinaryIO) -> None: ...


def target(name: str) -> Target:
    """The module of a target.

    Raises:
        Problem: there is no such target.
    """
    if name not in TARGETS:
        raise Problem(f"There is no target {name!r}.", f"There are: {', '.join(TARGETS)}.")
    return cast(Target, importlib.import_module(f"harness.export.{TARGETS[name]}"))


def export(name: str, results: Path | Iterator[Row], out: Path, options: Options) -> dict[str, list[str]]:
    """Write the reports of a class in a target's format; nothing is written if a check fails.

    Args:
        name: of the target.
        results: the folder of the results, or the rows themselves.
        out: the file to write.
        options: what was asked for.

    Returns:
        What was noticed, by kind: rows left blank, students unknown or absent, points above the maximum.

    Raises:
        Problem: a check failed, a file cannot be read or written, or the target does not take an option.
    """
    module = target(name)
    _refuse_unused(name, module, options)
    single = isinstance(results, Path) and is_single(results) and out.suffix.lower() != ".zip"
    sheet = Sheet(rows(results) if isinstance(results, Path) else results, options, single=single)
    try:
        with files.replacing(out) as file:
            module.write(sheet, file)
            sheet.check()
    except OSError as error:
        raise Problem(f"{out} could not be written: {error.strerror}.", "Name another file with --out.") from error
    return sheet.notices


def export_one(name: str, report: Report, out: BinaryIO, options: Options | None = None) -> None:
    """Write one report in a target's format.

    Raises:
        Problem: the target is for classes only.
    """
    module = target(name)
    options = options or Options()
    if not module.SINGLE:
        single = ", ".join(name for name in TARGETS if target(name).SINGLE)
        raise Problem(f"{name} is a format for a class: `grade.py export {name} RESULTS`.", f"For one: {single}.")
    student = report.student or Student(id=report.submission.name)
    one = grade(report.submission.name, student, report, out_of=options.out_of, late=options.late)
    module.write_one(one, out)


def _refuse_unused(name: str, module: Target, options: Options) -> None:
    """An option that would change nothing is a misunderstanding."""
    always = {"late", "strict", "now"}
    for field in dataclasses.fields(Options):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        given = getattr(options, field.name) != default
        if given and field.name not in always and field.name not in module.TAKES:
            flag = {"id_columns": "--id-column"}.get(field.name, "--" + field.name.replace("_", "-"))
            raise Problem(f"{name} takes no {flag}.", "Leave it away; `grade.py export --help` says what each is for.")
