"""Where results may go: never where they would overwrite work that was handed in, or be graded themselves."""

from __future__ import annotations

import os
from pathlib import Path

from harness.problem import Problem


def check_places(submissions: Path, results: Path) -> None:
    """Look at both places before anything is written.

    Args:
        submissions: a folder, or a zip, which may lie among the results.
        results: the folder to be written.

    Raises:
        Problem: the one is the other or lies in it, or the results would have to go into a file.
    """
    if _same(results, submissions):
        raise Problem(f"The results must not go where the submissions are: {results}.",
                      "They would overwrite students' files. Name another folder with --out.")  # fmt: skip
    if submissions.is_dir() and _within(results, submissions):
        raise Problem(f"{results} lies among the submissions in {submissions}.",
                      "The next run would grade it as a student's. Name a folder outside with --out.")  # fmt: skip
    if submissions.is_dir() and _within(submissions, results):
        raise Problem(f"The submissions in {submissions} lie within {results}, where the results are to go.",
                      "Results could overwrite them. Name another folder with --out.")  # fmt: skip
    there = next((place for place in (results, *results.parents) if place.exists()), None)
    if there is not None and not there.is_dir():
        raise Problem(f"The results cannot go to {results}: {there} is a file.", "Name another folder with --out.")


def _within(inner: Path, outer: Path) -> bool:
    return any(_same(folder, outer) for folder in _real(inner).parents)


def _same(one: Path, other: Path) -> bool:
    """Whether both are one place, by whatever links and spellings; the system knows of those that exist."""
    try:
        return one.samefile(other)
    except OSError:
        return _real(one) == _real(other)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve fails for links that go round in circles
