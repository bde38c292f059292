"""A folder or a zip of submissions, looked at in the same way: what lies in it, and the files beneath a place in it."""

from __future__ import annotations

import functools
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.intake.archives import Archive, unreadable
from harness.messages import message
from harness.outcome import Message
from harness.submission import Budget, Unreadable, is_kept, read_folder

_MAX_DIRECTORY = 2**26  # bytes of the table of contents of a whole class: over 500,000 files


@dataclass(frozen=True)
class Child:
    """Something that lies directly in a folder: `kind` is `folder`, `file`, `link` or `other` (a pipe)."""

    name: str
    kind: str


class Tree(Protocol):
    """Names are relative to its root, with forward slashes; "" is the root."""

    root: Path
    notes: list[Message]  # what was left out

    def children(self, folder: str) -> list[Child]:
        """What lies in a folder, by name, without hidden files and caches."""

    def file(self, name: str, budget: Budget) -> bytes:
        """The content of a file.

        Raises:
            Unreadable: it cannot be read, or the budget is used up.
        """

    def beneath(self, folder: str, budget: Budget) -> tuple[dict[str, bytes], list[Message]]:
        """All files beneath a folder, by name relative to it, and notes on what was left out.

        Raises:
            Unreadable: they cannot be read, or the budget is used up.
        """


class FolderTree:
    """A folder on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.notes: list[Message] = []

    def children(self, folder: str) -> list[Child]:
        try:
            with os.scandir(self.root / folder) as entries:
                found = [Child(entry.name, _kind(entry)) for entry in entries]
        except OSError as error:
            raise unreadable(folder or str(self.root), error) from error
        return sorted((child for child in found if _shows(child)), key=lambda child: child.name)

    def file(self, name: str, budget: Budget) -> bytes:
        try:
            status = (self.root / name).lstat()
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable(message("intake.special", what=name))
            budget.spend(files=1, size=status.st_size)
            return (self.root / name).read_bytes()
        except OSError as error:
            raise unreadable(name, error) from error

    def beneath(self, folder: str, budget: Budget) -> tuple[dict[str, bytes], list[Message]]:
        if not (self.root / folder).is_dir():
            raise Unreadable(message("intake.missing", what=folder))
        return read_folder(self.root / folder, budget)


class ZipTree:
    """A zip that is never unpacked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._archive = Archive(root, root.name, _MAX_DIRECTORY)
        self.notes = self._archive.notes
        self._children: dict[str, dict[str, Child]] = {"": {}}
        for name in self._archive.entries:
            self._place(name, "file")

    def _place(self, name: str, kind: str) -> None:
        parent, _, last = name.rpartition("/")
        if parent not in self._children:
            self._children[parent] = {}
            self._place(parent, "folder")
        self._children[parent][last] = Child(last, kind)

    def children(self, folder: str) -> list[Child]:
        return sorted(self._children.get(folder, {}).values(), key=lambda child: child.name)

    def file(self, name: str, budget: Budget) -> bytes:
        if name not in self._archive.entries:
            raise Unreadable(message("intake.missing", what=name))
        return self._archive.read(name, budget)

    def beneath(self, folder: str, budget: Budget) -> tuple[dict[str, bytes], list[Message]]:
        found: dict[str, bytes] = {}
        for child in self.children(folder):
            name = f"{folder}/{child.name}" if folder else child.name
            if name in self._archive.entries:
                found[child.name] = self.file(name, budget)
            else:
                below, _ = self.beneath(name, budget)
                found |= {f"{child.name}/{rest}": content for rest, content in below.items()}
        return found, []


def open_tree(path: Path) -> Tree:
    """The folder or zip at `path`. A zip stays open for the next call from this process.

    Raises:
        Unreadable: it is neither, or cannot be read.
    """
    if path.is_dir():
        return FolderTree(path)
    try:
        status = path.stat()
    except OSError as error:
        raise unreadable(str(path), error) from error
    if not path.is_file():
        raise Unreadable(message("intake.special", what=str(path)), "Give the folder or the zip of the submissions.")
    # A forked process shares its parent's place in an open file, so that both would read nonsense.
    return _zip_tree(path, status.st_mtime_ns, status.st_size, os.getpid())


@functools.lru_cache(maxsize=2)
def _zip_tree(path: Path, _changed: int, _size: int, _process: int) -> ZipTree:
    return ZipTree(path)


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    if entry.is_symlink():
        return "link"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _shows(child: Child) -> bool:
    return is_kept(f"{child.name}/x" if child.kind == "folder" else child.name)
