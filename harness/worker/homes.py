"""A worker's private folders: the submission's files, and a scratch folder, the only place it may write."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

SUBMISSION, SCRATCH = "submission", "scratch"
UNCONFINED = 86  # exit status of a worker that could not be confined


def make(files: Mapping[str, bytes]) -> Path:
    """A fresh folder with `submission`, holding `files`, and `scratch`.

    The scratch folder is where the code runs and may write. Data files lie there too, so that `open("poem.txt")` finds
    beside it what it finds on the student's machine.
    """
    for name in files:
        if Path(name).is_absolute() or ".." in Path(name).parts:  # the intake lets none through
            raise ValueError(f"the name {name!r} leaves the submission")
    home = Path(tempfile.mkdtemp(prefix="headcheck-")).resolve()
    try:
        (home / SCRATCH).mkdir()
        (home / SUBMISSION).mkdir()
        for name, content in files.items():
            for folder in (SUBMISSION,) if name.endswith((".py", ".ipynb")) else (SUBMISSION, SCRATCH):
                target = home / folder / name
                if "/" in name:
                    target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
    except BaseException:  # the disk is full, say: what is half made would keep it so for the next one
        remove(home)
        raise
    return home


def used(home: Path, most_files: int) -> tuple[int, int]:
    """Bytes on disk and number of files beneath the scratch folder; counting stops beyond `most_files`.

    A folder that cannot be listed (without permissions, or deeper than the longest path) counts as one file too many:
    what is in it could be anything.
    """
    size = count = 0
    folders = [str(home / SCRATCH)]
    while folders and count <= most_files:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    count += 1
                    if count > most_files:
                        break
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                        size += _on_disk(entry.stat(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            count = most_files + 1
    return size, count


def _on_disk(status: os.stat_result) -> int:
    blocks: int = getattr(status, "st_blocks", 0)  # a sparse file takes less than its length; Windows does not tell
    return 512 * blocks if hasattr(status, "st_blocks") else status.st_size


def remove(home: Path) -> None:
    """Remove a worker's folders, whatever it left there: no permissions, or a tree deeper than Python recurses."""
    with contextlib.suppress(RecursionError, OSError):
        shutil.rmtree(home, onerror=_allow)
    if home.exists() and os.name == "posix":
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(home)], stderr=subprocess.DEVNULL, check=False)


def _allow(function: Callable[[str], object], path: str, error: object) -> None:
    """Try again what failed for want of permissions on the folder or the file."""
    for place in (Path(path).parent, Path(path)):
        if not place.is_symlink():  # what it points to is not ours
            with contextlib.suppress(OSError):
                place.chmod(0o700)
    with contextlib.suppress(OSError, RecursionError):
        if Path(path).is_dir() and not Path(path).is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            function(path)
