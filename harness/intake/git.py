"""When a cloned repository was last committed to, asked of git without trusting the repository."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
from pathlib import Path

from harness.messages import message
from harness.outcome import Message

_MAX_COMMIT = 2**20  # bytes; a commit is a few hundred and its message
_ABOUT = "%(objecttype) %(objectsize) %(objectname)"
_COMMITTER = re.compile(rb"^committer .*> (\d{1,11}) ([+-])(\d{2})(\d{2})$", re.MULTILINE)


def careful_environment() -> dict[str, str]:
    """The environment for a git that looks at a repository of somebody else's.

    Nothing that GIT_* variables of ours say holds there, and git neither fetches what a partial clone lacks, nor asks
    for a password, nor writes.
    """
    quiet = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_TERMINAL_PROMPT": "0",
             "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}  # fmt: skip
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | quiet


def is_repository(folder: Path) -> bool:
    """Whether a folder holds a `.git`."""
    try:
        return (folder / ".git").exists()
    except OSError:  # it may not be looked into
        return False


def last_commit(repository: Path) -> datetime.datetime | Message:
    """The committer's time of HEAD, as the student's computer gave it; or why it is not known.

    A repository's own settings can name programs that `git log` starts. `cat-file` starts none, and git is kept from
    fetching what a partial clone lacks, and from reading another commit in place of the last (`refs/replace`).
    """
    what = repository.name
    inner = repository / ".git"
    if not is_repository(repository):
        return message("intake.no-time.no-repository", what=what)
    if inner.is_symlink() or not inner.is_dir():
        return message("intake.no-time.git-folder", what=what)
    try:
        # Neither git nor we shall hold a message of gigabytes: its size is asked for first, and that reads no object.
        about = _ask(inner, f"--batch-check={_ABOUT}", said=b"HEAD\n").split()
        if len(about) != 3 or about[0] != b"commit":
            return message("intake.no-time.no-commit", what=what)
        if int(about[1]) > _MAX_COMMIT:
            return message("intake.no-time.large-commit", what=what, limit=_MAX_COMMIT // 1024)
        commit = _ask(inner, "commit", about[2].decode())
    except FileNotFoundError:
        return message("intake.no-time.git-missing", what=what)
    except subprocess.TimeoutExpired:
        return message("intake.no-time.git-silent", what=what)
    except (subprocess.CalledProcessError, OSError):
        return message("intake.no-time.no-commit", what=what)
    header = commit.partition(b"\n\n")[0]
    if not (match := _COMMITTER.search(header)):
        return message("intake.no-time.undated", what=what)
    seconds, sign, hours, minutes = match.groups()
    offset = datetime.timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == b"-" else 1)
    try:
        zone = datetime.timezone(offset)
        return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).astimezone(zone)
    except (ValueError, OverflowError, OSError):
        return message("intake.no-time.range", what=what)


def _ask(git_dir: Path, *words: str, said: bytes = b"") -> bytes:
    """What `git cat-file` answers of a repository."""
    command = ["git", "--no-replace-objects", f"--git-dir={git_dir}", "-c", "core.fsmonitor=false", "cat-file", *words]
    done = subprocess.run(command, input=said, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          timeout=20, check=True, env=careful_environment())  # fmt: skip
    return done.stdout
