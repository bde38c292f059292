"""What the documentation quotes of files stands in those files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import ROOT
from tests.support.excerpts import BLOCK, up_to_date
from tests.support.shown import documents

PAGES = [page for page in documents() if "<!-- file:" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_is_quoted_is_what_the_files_hold(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(BLOCK.findall(text)) == text.count("<!-- file:"), (
        "a block is not written as tests/support/excerpts.py says"
    )
    assert up_to_date(text) == text, "run `python -m tests.support.excerpts` and look at what changed"


def test_there_is_something_to_compare() -> None:
    assert {page.name for page in PAGES} >= {"ci.md", "authoring.md"}


def test_a_stale_block_is_noticed() -> None:
    page = '<!-- file: graders/course.toml, from "id =" to "title" -->\n```toml\nid = "other"\n```\n'
    fresh = up_to_date(page)
    assert fresh != page and 'id = "other"' not in fresh and fresh.count("\n") == 5
    with pytest.raises(LookupError, match="nowhere"):
        up_to_date(page.replace('to "title"', 'to "nowhere"'))
