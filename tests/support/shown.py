"""Keeps the terminal output in the documentation real.

A block of documentation like this holds what the command prints, in whole or in part:

    <!-- output of: python grade.py reference (first 5 and last 2 lines) -->
    ```text
    ...
    ```

`python -m tests.support.shown` brings all of them up to date; tests/test_docs.py fails when one is not.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.command import ROOT, Command

WIDTH = "100"  # columns of the terminal that the documentation shows
BLOCK = re.compile(
    r"(?P<head><!-- output of: python grade\.py (?P<words>.*?)"
    r"(?: \((?:first (?P<first>\d+))?(?: and )?(?:last (?P<last>\d+))? lines\))? -->\n```text\n)"
    r"(?P<body>.*?)(?P<foot>```\n)",
    re.DOTALL,
)
# The mistake that the documentation shows: the right shape, made by a view that mixes positions and channels.
MISTAKE = (
    "return x.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
    "return x.reshape(B, self.n_head, T, C // self.n_head)",
)


def documents() -> list[Path]:
    """Every page of the documentation."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    return sorted(pages)


def up_to_date(text: str, command: Command) -> str:
    """A page with what its commands print now."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Path(folder)
        for name in ("reference", "student_template"):
            shutil.copytree(ROOT / name, desk / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(desk / "reference", desk / "my_work")
        right = (desk / "my_work" / "gpt.py").read_text(encoding="utf-8")
        if MISTAKE[0] not in right:
            raise LookupError("split_heads in reference/gpt.py has changed: say in MISTAKE how to get it wrong now")
        (desk / "my_work" / "gpt.py").write_text(right.replace(*MISTAKE), encoding="utf-8")

        def fill(block: re.Match[str]) -> str:
            done = command.run(*block["words"].split(), cwd=desk, env={"COLUMNS": WIDTH})
            lines = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
            first, last = int(block["first"] or 0), int(block["last"] or 0)
            if (first or last) and first + last < len(lines):
                lines = [*lines[:first], "...", *(lines[-last:] if last else [])]
            return block["head"] + "".join(f"{line}\n" for line in lines) + block["foot"]

        return BLOCK.sub(fill, text)


def main() -> int:
    """Bring every page up to date."""
    command = Command()
    for page in documents():
        old = page.read_text(encoding="utf-8")
        new = up_to_date(old, command)
        if new != old:
            page.write_text(new, encoding="utf-8", newline="\n")
            print(f"updated {page.relative_to(ROOT)}")
    command.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
