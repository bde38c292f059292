"""Which files count where a notebook and the course's .py files were handed in together.

The .py files count, if one of them has been worked on. If all of them are as they were handed out, the notebook
counts. Notebooks as they were handed out never count beside anything else.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from harness.course import ROOT, read_course
from harness.messages import message
from harness.outcome import Message

SUFFIX = ".ipynb"


@functools.cache
def handed_out() -> dict[str, bytes]:
    """The template's files of code, by name, without what differs between systems."""
    folder = ROOT / "student_template"
    paths = [*folder.glob("*.py"), *folder.glob(f"*{SUFFIX}")]
    return {path.name: _plain(path.read_bytes()) for path in paths}


@functools.cache
def course_files() -> frozenset[str]:
    """The .py files that the course's exercises ask for."""
    return frozenset(name for exercise in read_course().exercise for name in exercise.files)


def notebook_of(files: Mapping[str, bytes]) -> str:
    """The notebook that stands for the course's modules, or "" where .py files do, or there is none."""
    found = [name for name in files if name.lower().endswith(SUFFIX)]
    if not found or any(name in course_files() for name in files):
        return ""
    changed = [name for name in found if not _is_handed_out(name, files[name])]
    return min(changed or found, key=lambda name: (name.count("/"), not name.startswith("lesson"), name))


def settle(files: dict[str, bytes]) -> tuple[dict[str, bytes], list[Message]]:
    """Apply the rule: the files without .py files that do not count, and what to tell about it."""
    notebooks = [name for name in files if name.lower().endswith(SUFFIX) and not _is_handed_out(name, files[name])]
    code = sorted(name for name in files if name in course_files())
    if not notebooks:
        return files, []
    if not all(_is_handed_out(name, files[name]) for name in code):
        return files, [message("notebook.files-count", files=", ".join(code), notebook=", ".join(sorted(notebooks)))]
    kept = {name: data for name, data in files.items() if name not in code}
    chosen = notebook_of(kept)
    notes = [message("notebook.notebook-counts", notebook=chosen)] if code else []
    notes += [message("notebook.several", notebook=chosen)] if len(notebooks) > 1 else []
    return kept, notes


def _is_handed_out(name: str, data: bytes) -> bool:
    return handed_out().get(name.rpartition("/")[2]) == _plain(data)


def _plain(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").strip()
