"""Reading what an instructor has on disk: layouts of learning platforms, archives, the roster, attempts, lateness."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.intake.found import Found, Person, Piece, reads_like
from harness.intake.layouts import LAYOUTS, Place, is_work
from harness.intake.trees import Tree, open_tree
from harness.outcome import Message
from harness.problem import Problem
from harness.submission import Unreadable

__all__ = ["LAYOUTS", "Found", "Intake", "Person", "Piece", "read"]


@dataclass(frozen=True)
class Intake:
    """What was found.

    Args:
        layout: the guess, or the one that was asked for.
        attempts: in the order of their names; several may be the same student's.
        ignored: what lies there and was not taken for anybody's submission: "name (reason)". Hidden files, caches,
            tables such as lists of grades, and what is part of an export are not among it.
        notes: on what was left out of a zip of the whole class.
    """

    layout: str
    attempts: list[Found]
    ignored: list[str] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)


def read(path: Path, *, layout: str | None = None, expected: tuple[str, ...] = ()) -> Intake:
    """Find the attempts in a folder or a zip of submissions. Their files are not read yet.

    The layout is guessed by these rules, the first that fits:

    1. `gradescope`: submission_metadata.yml lies there, or at least half are folders named `submission_123`.
    2. `canvas`: at least half are files named `doejane_123_456_gpt.py` (or `doejane_LATE_...`, `anon_...`).
    3. `moodle`: one is named `Jane Doe_123_assignsubmission_file`, with or without more behind.
    4. `repos`: more than half of the folders hold a `.git`.
    5. `folders`: whatever else: a folder, .py file, notebook or .zip for each student.

    Where all lies in one folder, as in an export that was unpacked, the rules are tried there, too; for `folders` only
    if two things at least in that folder may be students' (folders, zips, .py files, notebooks) and none is a file that
    the course asks for: otherwise it is taken for a student's.

    Args:
        path: the folder or zip.
        layout: which layout it is, instead of a guess.
        expected: the file names that the course asks for.

    Raises:
        Problem: it cannot be read, holds no submissions, or does not look like the layout that was asked for.
    """
    if layout is not None and layout not in LAYOUTS:
        raise Problem(f"There is no layout {layout!r}.", f"Layouts are: {', '.join(LAYOUTS)}.")
    if not path.exists():
        raise Problem(f"There is no {path}.", "Give the folder or the zip of the submissions.")
    try:
        tree = open_tree(path)
    except Unreadable as error:
        raise Problem(error.what, error.help or "If it comes from a learning platform, download it again.") from error
    places = _places(tree)
    wanted = [layout] if layout else list(LAYOUTS)
    for name in wanted:
        for place in _places_for_folders(places, expected) if name == "folders" else places:
            found = LAYOUTS[name](place)
            if found is not None:
                if not found:
                    raise Problem(f"There are no submissions in {path}.", _help_nothing(place))
                return Intake(name, found, place.ignored, list(tree.notes))
    raise Problem(f"{path} does not look like the layout {layout!r}.", _help_layout(str(layout), places))


def _places(tree: Tree) -> list[Place]:
    """The top, and the folders that hold everything."""
    places = [Place(tree, "")]
    while len(places[-1].children) == 1 and places[-1].children[0].kind == "folder" and len(places) < 4:
        places.append(Place(tree, places[-1].inside(places[-1].children[0].name)))
    return places


def _places_for_folders(places: list[Place], expected: tuple[str, ...]) -> list[Place]:
    """Only the one whose folders and files are the students'."""
    for place in reversed(places[1:]):
        students = sum(is_work(child) for child in place.children) > 1
        own = any(reads_like(child.name, wanted) for child in place.children for wanted in expected)
        if students and not own:
            return [place]
    return places[:1]


def _help_nothing(place: Place) -> str:
    lies = [child.name for child in place.children[:5]]
    return f"It holds {', '.join(lies)}." if lies else "It is empty. Give the folder or the zip of the submissions."


def _help_layout(layout: str, places: list[Place]) -> str:
    doc = (LAYOUTS[layout].__doc__ or "").strip()
    fits = next(name for name, found in LAYOUTS.items() if any(found(place) is not None for place in places))
    lies = ", ".join(child.name for child in places[-1].children[:3]) or "nothing"
    return f"Expected: {doc} Found: {lies}. Without --layout it is read as {fits!r}."
