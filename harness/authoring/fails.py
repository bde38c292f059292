"""Which checks each known mistake fails: written down, so that most mistakes need not be tried on a submission.

graders/misconceptions/<exercise>.toml has a line for each mistake, both without the name of the exercise:

    view-without-transpose = ["split-shape", "forward"]

`check-course` proves it along with the verdicts. A course may do without such files: then every mistake is tried.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

from harness.problem import Problem

_HEAD = """\
# The checks that each known mistake fails. Made by `python grade.py check-course --record`; never edited by hand.
"""
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def path_of(graders: Path, exercise: str) -> Path:
    """Where a course keeps what the mistakes of an exercise fail."""
    return graders / "misconceptions" / f"{exercise}.toml"


def text_of(exercise: str, failing: Mapping[str, Collection[str]]) -> str:
    """The file of an exercise: mistake -> ids of the checks that it fails, both in the order given."""
    return _HEAD + "".join(
        f"{_key(_short(id, exercise))} = {json.dumps([_short(check, exercise) for check in checks])}\n"
        for id, checks in failing.items()
    )


def read(graders: Path, exercise: str) -> dict[str, frozenset[str]]:
    """The ids of the checks that each mistake of an exercise fails; empty when the course does not say.

    Raises:
        Problem: the file is not what `text_of` writes.
    """
    path = path_of(graders, exercise)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Problem(f"{path} cannot be read: {error}", _HELP) from error
    failing: dict[str, frozenset[str]] = {}
    for id, checks in found.items():
        if not (isinstance(checks, list) and all(isinstance(check, str) for check in checks)):
            raise Problem(f"{path}: {id} should be a list of checks.", _HELP)
        failing[f"{exercise}.{id}"] = frozenset(f"{exercise}.{check}" for check in checks)
    return failing


_HELP = "Make it anew: python grade.py check-course --record"


def _short(id: str, exercise: str) -> str:
    return id.removeprefix(f"{exercise}.")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)
