"""Reads a git checkout without trusting what a pull request brought into it.

Only objects are read: nothing of the pull request is checked out, and no hook, pager, filter or file-system monitor of
the repository's settings is started.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.intake.archives import shown
from harness.intake.git import careful_environment
from harness.problem import Problem

SYMLINK, SUBMODULE = "120000", "160000"
_MOST_BYTES = 64 * 2**20  # of git's answers; 500,000 paths or more
_SECONDS = 120
_DEEPER = (
    "This clone is shallow: it lacks the history between the two. Check out with fetch-depth: 0 (GitHub) or "
    'GIT_DEPTH: "0" (GitLab), or run `git fetch --unshallow`.'
)


@dataclass(frozen=True)
class Entry:
    """A file of a commit: its path within the repository, its mode, its object, and its size in bytes."""

    path: str
    mode: str
    id: str
    size: int


class Repository:
    """A git checkout.

    Args:
        folder: the checkout, or a folder in it.

    Raises:
        Problem: it is none, or git is not installed or refuses to read it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        top = self._run("rev-parse", "--show-toplevel")
        if top is None:
            raise Problem(f"{folder} is not in a git checkout.", self._said or "Run this in the repository's folder.")
        self.folder = Path(os.fsdecode(top.removesuffix(b"\n"))).resolve()

    def commit(self, name: str) -> str:
        """The id of the commit that a branch, a tag or an id names.

        Raises:
            Problem: there is none here.
        """
        answer = None if name.startswith("-") else self._run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if answer is None:
            help = f"Fetch it first, as in `git fetch origin {shown(name)}`."
            raise Problem(f"There is no commit {shown(name)} in this clone.", _DEEPER if self._is_shallow() else help)
        return answer.decode("ascii").strip()

    def merge_base(self, base: str, head: str) -> str:
        """The commit from which `head` set out.

        Raises:
            Problem: they have no common history here.
        """
        answer = self._run("merge-base", base, head)
        if answer is None:
            help = _DEEPER if self._is_shallow() else "Is --base the branch that the pull request is for?"
            raise Problem(f"{base[:12]} and {head[:12]} have no common history in this clone.", help)
        return answer.decode("ascii").split()[0]

    def object_id(self, commit: str, path: str) -> str:
        """The id of a file or folder of a commit; "" if it has none of that name."""
        answer = self._run("rev-parse", "--verify", "--quiet", f"{commit}:{path}")
        return "" if answer is None else answer.decode("ascii").strip()

    def changed(self, old: str, new: str) -> list[str]:
        """The paths that differ between two commits, deleted ones included. A renamed file is two paths."""
        flags = ("-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        return [_text(path) for path in self._must("diff-tree", *flags, old, new).split(b"\0") if path]

    def files(self, commit: str) -> list[Entry]:
        """Everything in a commit but its folders: files, links and submodules."""
        found = []
        for line in self._must("ls-tree", "-r", "-z", "-l", "--full-tree", commit).split(b"\0"):
            if line:
                facts, _, path = line.partition(b"\t")
                mode, _kind, id, size = facts.decode("ascii").split()
                found.append(Entry(_text(path), mode, id, int(size) if size.isdigit() else 0))
        return found

    def contents(self, entries: Sequence[Entry]) -> list[bytes]:
        """What is in each of some files. Their sizes, which `files` told, are the caller's to limit.

        Raises:
            Problem: the clone lacks an object.
        """
        if not entries:
            return []
        asked = "".join(f"{entry.id}\n" for entry in entries).encode("ascii")
        answer = self._must("cat-file", "--batch", given=asked)
        found, place = [], 0
        for entry in entries:
            end = answer.index(b"\n", place)
            if answer[place:end].split()[1:] != [b"blob", b"%d" % entry.size]:
                raise Problem(f"This clone lacks {shown(entry.path)}.", "Clone without a filter.")
            found.append(answer[end + 1 : end + 1 + entry.size])
            place = end + 1 + entry.size + 1
        return found

    def _is_shallow(self) -> bool:
        return self._run("rev-parse", "--is-shallow-repository") == b"true\n"

    def _must(self, *words: str, given: bytes = b"") -> bytes:
        answer = self._run(*words, given=given)
        if answer is None:
            raise Problem(f"git {words[0]} failed: {self._said or 'it gave no reason'}.", "Is the clone complete?")
        return answer

    def _run(self, *words: str, given: bytes = b"") -> bytes | None:
        """What git answers, or None when it fails; `_said` then holds its first line of complaint.

        Raises:
            Problem: git is not installed, answers without end, or not at all.
        """
        settings = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.pager=cat", "core.quotePath=false")
        command = ["git", "-C", str(self.folder), "--no-pager", "--no-replace-objects", "--literal-pathspecs"]
        command += [word for setting in settings for word in ("-c", setting)]
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen([*command, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=errors, env=careful_environment())  # fmt: skip
            except FileNotFoundError:
                raise Problem("git is not installed.", "Install it, and run this in a checkout.") from None
            watchdog = threading.Timer(_SECONDS, process.kill)
            watchdog.daemon = True
            watchdog.start()
            with process:
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(given)  # at most 500 ids: a pipe holds them before git reads
                process.stdin.close()
                answer = process.stdout.read(_MOST_BYTES + 1)
                if len(answer) > _MOST_BYTES:
                    process.kill()
            if not watchdog.is_alive() and process.returncode != 0:
                raise Problem(f"git {words[0]} did not answer within {_SECONDS} seconds.", "Is the disk busy?")
            watchdog.cancel()
            if len(answer) > _MOST_BYTES:
                raise Problem(f"git {words[0]} answers with more than {_MOST_BYTES // 2**20} MiB.",
                              "A pull request with so many files is not graded.")  # fmt: skip
            errors.seek(0)
            complaint = errors.read(2000).decode("utf-8", "replace").strip().partition("\n")[0]
        self._said = complaint.removeprefix("fatal: ")
        return answer if process.returncode == 0 else None

    _said = ""


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
