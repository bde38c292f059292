"""Keeps files that the documentation quotes from going stale.

A block like this holds a file of this repository, or lines of it that follow each other:

    <!-- file: graders/course.toml -->
    ```toml
    ...
    ```

    <!-- file: reference/rope.py, from "def apply_rope" to "    return" -->

`from` and `to` are beginnings of lines: the first such line, and the first such one from there; both are shown.
`python -m tests.support.excerpts` brings all blocks up to date; tests/test_excerpts.py fails when one is not.
"""

from __future__ import annotations

import re
import sys

from tests.support.command import ROOT
from tests.support.shown import documents

BLOCK = re.compile(
    r'(?P<head><!-- file: (?P<file>[\w./-]+)(?:, from "(?P<first>.*?)" to "(?P<last>.*?)")? -->\n```\w+\n)'
    r"(?P<body>.*?)(?P<foot>^```\n)",
    re.DOTALL | re.MULTILINE,
)


def up_to_date(text: str) -> str:
    """A page with what its files hold now.

    Raises:
        LookupError: a file has no line that begins as the page says.
    """

    def fill(block: re.Match[str]) -> str:
        lines = (ROOT / block["file"]).read_text(encoding="utf-8").splitlines()
        if block["first"] is not None:
            start = _line(lines, block["first"], block["file"])
            lines = lines[start : start + 1 + _line(lines[start:], block["last"], block["file"])]
        return block["head"] + "".join(f"{line}\n" for line in lines) + block["foot"]

    return BLOCK.sub(fill, text)


def _line(lines: list[str], beginning: str, name: str) -> int:
    found = [place for place, line in enumerate(lines) if line.startswith(beginning)]
    if not found:
        raise LookupError(f"{name} has no line that begins with {beginning!r}")
    return found[0]


def main() -> int:
    """Bring every page up to date."""
    for page in documents():
        old = page.read_text(encoding="utf-8")
        new = up_to_date(old)
        if new != old:
            page.write_text(new, encoding="utf-8", newline="\n")
            print(f"updated {page.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
