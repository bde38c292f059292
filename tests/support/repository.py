"""Real git repositories for tests: an upstream with a course, and pull requests to it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.command import ROOT

COURSE = ROOT / "tests" / "courses" / "temperature"
_WHO = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A Student"), ("EMAIL", "student@example.org"), ("DATE", "2026-03-01T12:00:00+01:00"))
}


class Upstream:
    """A repository that holds the small course at its top, with one student's work on branch `main`.

    Args:
        folder: where to make it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "--initial-branch=main")
        for name in ("graders", "reference", "student_template"):
            shutil.copytree(COURSE / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "README.md").write_text("A course.\n", encoding="utf-8")
        self.commit({"work/anna/sampling.py": template(), "work/ben/sampling.py": template()})

    def git(self, *words: str, given: bytes | None = None) -> str:
        """Run git here; what it prints."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment = inherited | _WHO | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(["git", "-C", str(self.folder), *words], input=given, capture_output=True, check=False,
                              env=environment)  # fmt: skip
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def commit(self, files: Mapping[str, str | None]) -> str:
        """Write files (None: delete), commit everything, and give the commit's id."""
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        self.git("add", "-A")
        self.git("commit", "-q", "--no-verify", "-m", "work")
        return self.git("rev-parse", "HEAD")

    def pull_request(self, files: Mapping[str, str | None]) -> str:
        """A branch `pr` off `main` with one commit; its id. `main` stays checked out, as in CI."""
        self.git("checkout", "-q", "-b", "pr")
        head = self.commit(files)
        self.git("checkout", "-q", "main")
        return head

    def raw_pull_request(self, entries: Mapping[bytes, tuple[str, bytes]]) -> str:
        """A branch `pr` with entries that no file system need hold: path to (mode, content or a submodule's id)."""
        lines = []
        for path, (mode, content) in entries.items():
            id = content.decode() if mode == "160000" else self.git("hash-object", "-w", "--stdin", given=content)
            lines.append(f"{mode} {id}\t".encode() + path)
        self.git("update-index", "-z", "--add", "--index-info", given=b"".join(line + b"\0" for line in lines))
        tree = self.git("write-tree")
        head = self.git("commit-tree", tree, "-p", "main", "-m", "work")
        self.git("update-ref", "refs/heads/pr", head)
        self.git("reset", "-q", "--hard", "main")
        return head


def template() -> str:
    """sampling.py before anything is written."""
    return (COURSE / "student_template" / "sampling.py").read_text(encoding="utf-8")


def answer(wrong: bool = False) -> str:
    """sampling.py, right, or with a mistake that has a name."""
    text = (COURSE / "reference" / "sampling.py").read_text(encoding="utf-8")
    assert "logits / temperature  #" in text
    return text.replace("logits / temperature  #", "logits * temperature  #") if wrong else text
