"""Which files count where a notebook and the course's .py files were handed in together.

The .py files count, if one of them has been worked on. If all of them are as they were handed out, the notebook
counts. Notebooks as they were handed out never count beside anything else.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from pathlib import Path

from harness.course import course_root, read_course
from harness.messages import message
from harness.outcome import Message

SUFFIX = ".ipynb"


@functools.cache
def handed_out(root: Path) -> dict[str, bytes]:
    """The template's files of code, by name, without what differs between systems."""
    folder = root / "student_template"
    paths = [*folder.glob("*.py"), *folder.glob(f"*{SUFFIX}")]
    return {path.name: plain(path.read_bytes()) for path in paths}


@functools.cache
def course_files(root: Path) -> frozenset[str]:
    """The .py files that the course's exercises ask for."""
    course = read_course(root / "graders")
    return frozenset(name for exercise in course.exercise for name in exercise.files if name.endswith(".py"))


def notebook_of(files: Mapping[str, bytes], root: Path | None = None) -> str:
    """The notebook that stands for the course's modules, or "" where .py files do, or there is none.

    Args:
        files: of the submission.
        root: of the course; by default as `course_root` says.
    """
    root = root or course_root()
    found = [name for name in files if name.lower().endswith(SUFFIX)]
    if not counts(files, root):
        return ""
    changed = [name for name in found if not _is_handed_out(name, files[name], root)]
    return min(changed or found, key=lambda name: (name.count("/"), not name.startswith("lesson"), name))


def counts(names: Collection[str], root: Path | None = None) -> bool:
    """Whether a notebook stands for the course's modules.

    Args:
        names: of the submission's files.
        root: of the course; by default as `course_root` says.
    """
    code = course_files(root or course_root())
    return any(name.lower().endswith(SUFFIX) for name in names) and not any(name in code for name in names)


def settle(files: dict[str, bytes], root: Path | None = None) -> tuple[dict[str, bytes], list[Message]]:
    """Apply the rule: the files without .py files that do not count, and what to tell about it.

    Args:
        files: of the submission.
        root: of the course; by default as `course_root` says.
    """
    root = root or course_root()
    notebooks = [
        name for name in files if name.lower().endswith(SUFFIX) and not _is_handed_out(name, files[name], root)
    ]
    code = sorted(name for name in files if name in course_files(root))
    if not notebooks:
        return files, []
    if not all(_is_handed_out(name, files[name], root) for name in code):
        return files, [message("notebook.files-count", files=", ".join(code), notebook=", ".join(sorted(notebooks)))]
    kept = {name: data for name, data in files.items() if name not in code}
    chosen = notebook_of(kept, root)
    notes = [message("notebook.notebook-counts", notebook=chosen)] if code else []
    notes += [message("notebook.several", notebook=chosen)] if len(notebooks) > 1 else []
    return kept, notes


def _is_handed_out(name: str, data: bytes, root: Path) -> bool:
    return handed_out(root).get(name.rpartition("/")[2]) == plain(data)


def plain(data: bytes) -> bytes:
    """A file without what some systems and editors change: the ends of its lines, and blanks at its own ends."""
    return data.replace(b"\r\n", b"\n").strip()
