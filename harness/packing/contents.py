"""What bundles are made of, and how one is written: the same content gives the same bytes, with a digest of each file.

A bundle unpacks to a folder that works like this repository: `grade.py` beside `harness/`, `graders/` and the rest,
with the course's folders in their usual places wherever they were taken from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from harness import files
from harness.course import ROOT, Course
from harness.export.archive import Archive
from harness.messages import message
from harness.problem import Problem

Content = dict[str, bytes]  # path in the bundle, with forward slashes -> bytes

MANIFEST = "MANIFEST.sha256"
_PROGRAM = ("grade.py", "pyproject.toml", "requirements.txt", "LICENSE")
_FOLDERS = ("graders", "reference", "student_template")
_LEFT_BEHIND = ("report.json",)  # what grading writes into a folder


def program() -> Content:
    """All that grades, without a course."""
    content = {name: (ROOT / name).read_bytes() for name in _PROGRAM}
    return content | beneath(ROOT / "harness") | beneath(ROOT / "schema")


def pages(names: Iterable[str] | None = None) -> Content:
    """The documentation, or some pages of it; one that is not here is left out, as in a bundle made from a bundle."""
    content = beneath(ROOT / "docs")
    return (
        content if names is None else {name: content[name] for name in map("docs/{}".format, names) if name in content}
    )


def whole_course(course: Course) -> Content:
    """The course with its answers: checks, reference, template, and right and wrong answers known in advance.

    Raises:
        Problem: it has none.
    """
    need_answers(course)
    content: Content = {}
    for name in _FOLDERS:
        content |= beneath(course.root / name)
    return content


def need_answers(course: Course) -> None:
    """Refuse a course that was unpacked from a student's bundle.

    Raises:
        Problem: it has no reference.
    """
    if not (course.root / "reference").is_dir():
        raise Problem(f"The course in {course.root} holds no answers.", "Pack it where its reference/ is.")


def beneath(folder: Path) -> Content:
    """The files of a folder, under its name; hidden ones, caches, links and reports are left out."""
    found: Content = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith((".", "__pycache__")) for part in parts)
        if path.is_file() and not path.is_symlink() and not hidden and path.name not in _LEFT_BEHIND:
            found["/".join([folder.name, *parts])] = path.read_bytes()
    return found


def write(out: Path, content: Mapping[str, bytes], executable: Collection[str] = ()) -> list[str]:
    """Write a bundle with its manifest.

    Args:
        out: the file to write.
        content: what is in it.
        executable: names of the files that are programs.

    Returns:
        The names of the files in it, in order.

    Raises:
        Problem: the file cannot be written.
    """
    listed = "".join(f"{hashlib.sha256(content[name]).hexdigest()}  {name}\n" for name in sorted(content))
    return write_zip(out, {**content, MANIFEST: listed.encode()}, executable)


def write_zip(out: Path, content: Mapping[str, bytes], executable: Collection[str] = ()) -> list[str]:
    """Write these files and nothing else: as `write`, without a manifest."""
    try:
        with files.replacing(out) as file, Archive(file) as archive:
            for name in sorted(content):
                archive.add(name, content[name], executable=name in executable)
    except OSError as error:
        said = message("problem.unwritten", path=str(out), problem=error.strerror or str(error))
        raise Problem(said, message("problem.unwritten.out")) from error
    return sorted(content)
