"""Which submissions a pull request changes.

Every folder that directly holds a file of the course is a submission. Its files are all those beneath it, but for those
in a folder within that is a submission itself. The course's own folders, hidden folders, caches and environments hold
none. A pull request is graded for each submission in which it changes a file; the rest that it changes is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.ci.git import SUBMODULE, SYMLINK, Entry, Repository
from harness.course import ROOT, Course
from harness.intake.archives import clean_name, settle, shown
from harness.messages import message
from harness.outcome import Message
from harness.problem import Problem
from harness.submission import Budget, Submission, from_files, is_kept

# What judges, by where it lies: beside this program, and beside the course.
_PROGRAM = ("harness", "grade.py", "pyproject.toml")
_GRADERS = ("graders", "reference")
_NO_SUBMISSIONS = ("harness", "tests", "benchmarks", "docs", "schema")


@dataclass(frozen=True)
class Folder:
    """A submission as the head commit holds it: its folder ("" for the repository's top) and what lies beneath."""

    path: str
    entries: tuple[Entry, ...]

    @property
    def name(self) -> str:
        """How reports call it."""
        return shown(self.path, len(self.path)) if self.path else "."


@dataclass(frozen=True)
class Changes:
    """What a pull request changed.

    Args:
        head: id of its last commit.
        folders: the submissions to grade.
        removed: folders that were submissions, and are none any more.
        misplaced: changed files of the course outside the folder that was asked for.
        ignored: what else it changed: it was not used.
    """

    head: str
    folders: tuple[Folder, ...]
    removed: tuple[str, ...]
    misplaced: tuple[str, ...]
    ignored: tuple[str, ...]


def find(repository: Repository, base: str, head: str, course: Course, under: str | None = None) -> Changes:
    """Look at what `head` changed since it set out from `base`.

    Args:
        repository: the checkout.
        base: the branch or commit that the pull request is for.
        head: its last commit.
        course: names the files of the course.
        under: grade only here; a path within the repository, with forward slashes.

    Raises:
        Problem: a commit is not in this clone, or what would judge is the pull request's.
    """
    first, last = repository.commit(base), repository.commit(head)
    start = repository.merge_base(first, last)
    own = _own_folders(repository, course)
    _check_judges(repository, own, (first, start))
    expected = {name for exercise in course.exercise for name in exercise.files}
    place = _Place(expected, tuple(own[1]), None if under is None else _folder(under))
    entries = repository.files(last)
    now = place.submissions(entry.path for entry in entries)
    before = place.submissions(entry.path for entry in repository.files(start))
    touched: set[str] = set()
    removed: set[str] = set()
    misplaced, ignored = [], []
    for path in repository.changed(start, last):
        owner, former = _owner(path, now), _owner(path, before)
        if owner is not None and place.belongs(path, owner):
            touched.add(owner)
        elif former is not None and owner is None and place.belongs(path, former):
            removed.add(former)
        elif under is not None and path.rpartition("/")[2] in expected and not place.is_own(path):
            misplaced.append(path)
        else:
            ignored.append(path)
    # A folder that lost its last file of the course, but not all files, is graded as it is: it was somebody's work.
    left = {folder for folder in removed if any(_is_beneath(entry.path, folder) for entry in entries)}
    members: dict[str, list[Entry]] = {folder: [] for folder in touched | left}
    for entry in entries:
        owner = _owner(entry.path, now | left)
        if owner in members and not place.is_own(entry.path):
            members[owner].append(entry)
    folders = [Folder(path, tuple(found)) for path, found in sorted(members.items())]
    return Changes(last, tuple(folders), tuple(sorted(removed - left)), tuple(misplaced), tuple(ignored))


def read(repository: Repository, folder: Folder, expected: tuple[str, ...], root: Path | None = None) -> Submission:
    """The files of a submission. Links and submodules are not followed, names that no system should see are left out.

    Raises:
        Unreadable: there are too many files, or too large ones; nothing was read then.
        Problem: the clone lacks an object.
    """
    notes: list[Message] = []
    wanted: dict[str, Entry] = {}
    budget = Budget(folder.name)
    for entry in folder.entries:
        raw = _beneath(entry.path, folder.path)
        name = clean_name(raw)
        if name is None:
            notes.append(message("intake.name", file=shown(raw)))
        elif not is_kept(name):
            continue
        elif entry.mode == SYMLINK:
            notes.append(message("submission.link", file=name))
        elif entry.mode == SUBMODULE:
            notes.append(message("intake.special-entry", file=name))
        else:
            budget.spend(files=1, size=entry.size)
            wanted[name] = entry
    contents = repository.contents(list(wanted.values()))
    files, more = settle(dict(zip(wanted, contents, strict=True)), expected)
    return from_files(folder.name, files, expected, [*notes, *more][:50], root)


@dataclass(frozen=True)
class _Place:
    """Where submissions may lie."""

    expected: set[str]
    own: tuple[str, ...]
    under: str | None

    def submissions(self, paths: Iterable[str]) -> set[str]:
        """The folders that directly hold a file of the course."""
        found = set()
        for path in paths:
            folder, _, name = path.rpartition("/")
            asked = self.under is None or _is_beneath(path, self.under)
            if name in self.expected and asked and is_kept(path) and not self.is_own(path):
                found.add(folder)
        return found

    def belongs(self, path: str, folder: str) -> bool:
        """Whether a file beneath a submission's folder is part of it."""
        return is_kept(_beneath(path, folder)) and not self.is_own(path)

    def is_own(self, path: str) -> bool:
        """Whether it is the course's or the program's."""
        return any(_is_beneath(path, folder) for folder in self.own)


def _own_folders(repository: Repository, course: Course) -> tuple[list[str], list[str]]:
    """What judges, as far as it lies in this repository: (files and folders, folders that hold no submissions)."""
    judging: list[str] = []
    closed: list[str] = []
    for root, names, without in ((ROOT, _PROGRAM, _NO_SUBMISSIONS), (course.root, _GRADERS, _GRADERS)):
        if root.resolve().is_relative_to(repository.folder):
            inside = root.resolve().relative_to(repository.folder).as_posix()
            prefix = "" if inside == "." else f"{inside}/"
            judging += [f"{prefix}{name}" for name in names]
            closed += [f"{prefix}{name}" for name in without]
    return judging, closed


def _check_judges(repository: Repository, own: tuple[list[str], list[str]], allowed: tuple[str, ...]) -> None:
    """Refuse to run with graders of the pull request's.

    Raises:
        Problem: the checkout holds others than the base does.
    """
    here = repository.commit("HEAD")
    for path in own[0]:
        if repository.object_id(here, path) not in {repository.object_id(commit, path) for commit in allowed}:
            raise Problem(
                f"{path} in this checkout is not that of the base, so it must not judge.",
                f"Check out the base first: git checkout --detach {allowed[0][:12]}",
            )


def _folder(under: str) -> str:
    cleaned = clean_name(under.rstrip("/")) if under.strip("./") else ""
    if cleaned is None:
        raise Problem(f"--path {shown(under)} is not a folder of this repository.", "Give it as git does: work/anna")
    return cleaned


def _owner(path: str, folders: set[str]) -> str | None:
    """The innermost of `folders` that holds `path`."""
    return next((folder for folder in _above(path) if folder in folders), None)


def _above(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path


def _is_beneath(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _beneath(path: str, folder: str) -> str:
    return path[len(folder) + 1 :] if folder else path
