"""Which checks each known mistake fails: written down, so that most mistakes need not be tried on a submission.

graders/misconceptions/<exercise>.toml has a line for each mistake: the checks of its exercise that it fails, and the id
of what each says then. Mistake and checks stand without the name of the exercise:

    view-without-transpose = { split = "close.differs", forward = "close.differs" }

`check-course` proves it along with the verdicts. A course may do without such files: then every mistake is tried.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from harness.problem import Problem

Fails = Mapping[str, str]  # id of a check -> id of what it says

RECORD = "python grade.py check-course --quick --record"
_HEAD = f"# What each known mistake fails, and what is said. Made by `{RECORD}`; never edited by hand.\n"
_HELP = f"Make it anew: {RECORD}"
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def path_of(graders: Path, exercise: str) -> Path:
    """Where a course keeps what the mistakes of an exercise fail."""
    return graders / "misconceptions" / f"{exercise}.toml"


def text_of(exercise: str, failing: Mapping[str, Fails]) -> str:
    """The file of an exercise, from what each of its mistakes fails. Mistakes and checks stay in the order given."""
    lines = []
    for id, fails in failing.items():
        pairs = ", ".join(f"{_key(check, exercise)} = {json.dumps(said)}" for check, said in fails.items())
        lines.append(f"{_key(id, exercise)} = {{ {pairs} }}\n")
    return _HEAD + "".join(lines)


def read(graders: Path, exercise: str) -> dict[str, Fails]:
    """What each mistake of an exercise fails; empty when the course does not say.

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
    failing: dict[str, Fails] = {}
    for id, fails in found.items():
        if not (isinstance(fails, dict) and all(isinstance(said, str) for said in fails.values())):
            raise Problem(f"{path}: {id} should name checks, each with the id of what it says.", _HELP)
        failing[f"{exercise}.{id}"] = {f"{exercise}.{check}": said for check, said in fails.items()}
    return failing


def _key(id: str, exercise: str) -> str:
    name = id.removeprefix(f"{exercise}.")
    return name if _BARE.fullmatch(name) else json.dumps(name)
