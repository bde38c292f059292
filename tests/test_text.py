"""Text of submissions, wherever it ends: nothing in it is obeyed, and all that is harmless stays."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import math
import re
import unicodedata

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from harness import text

ANY = st.text(st.characters())  # lone surrogates among them
HARMLESS = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "))
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY,
    lambda inner: st.lists(inner) | st.dictionaries(ANY, inner),
)


@given(ANY)
def test_a_terminal_gets_no_control_characters(value: str) -> None:
    shown = text.terminal(value)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in "\n\t"]
    assert not [c for c in shown if unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI")]
    shown.encode("utf-8")


@given(HARMLESS)
def test_harmless_text_stays(value: str) -> None:
    assert text.terminal(value) == value
    assert text.json_ready(value) == value
    assert text.utf8(value, len(value)) == value


def test_what_is_spelled_out() -> None:
    assert text.terminal("a\x1b[2J\r\u202eb\ud800\n\tc") == "a\\x1b[2J\\r\\u202eb\\ud800\n\tc"


@given(DATA)
def test_json_is_valid(value: object) -> None:
    encoded = msgspec.json.encode(text.json_ready(value))
    json.loads(encoded, parse_constant=lambda name: (_ for _ in ()).throw(AssertionError(name)))
    assert encoded == msgspec.json.encode(text.json_ready(msgspec.json.decode(encoded)))


def test_json_is_bounded_and_says_so() -> None:
    cut = text.json_ready("x" * (text.MAX_TEXT + 1))
    assert len(cut) == text.MAX_TEXT and cut.endswith("[cut]")
    assert text.json_ready("x" * text.MAX_TEXT) == "x" * text.MAX_TEXT
    assert text.json_ready({"params": {"n": math.inf}, "n": math.nan}) == {"params": {"n": "inf"}, "n": None}


class _Reader(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(ANY | st.sampled_from(["<script>alert(1)</script>", "\"><img src=x onerror='a'>", "<!--", "&lt;b&gt;"]))
def test_html_is_text_only(value: str) -> None:
    reader = _Reader()
    reader.feed(f'<p title="{text.html_text(value)}">{text.html_text(value)}</p>')
    reader.close()
    assert [tag for tag, _ in reader.tags] == ["p"]
    assert [name for name, _ in reader.tags[0][1]] == ["title"]
    assert reader.text == text.terminal(value)


@given(st.sampled_from(["", " ", "\t", "\r\n", "\n"]), st.sampled_from(["=", "+", "-", "@", "", "\uff1d"]), ANY)
def test_a_cell_is_no_formula_and_one_cell(blank: str, sign: str, rest: str) -> None:
    cell = text.cell(blank + sign + rest)
    assert not cell.lstrip().startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"))
    target = io.StringIO()
    csv.writer(target).writerow([cell, "end"])
    assert len(target.getvalue().splitlines()) == 1
    assert next(csv.reader(io.StringIO(target.getvalue()))) == [cell, "end"]


@given(
    st.lists(st.sampled_from(["::error::x", "##[error]", "##vso[task", "##teamcity[", " ", "\n", "\r", "x", "\u2028"]))
)
def test_a_ci_log_holds_no_command(parts: list[str]) -> None:
    log = text.ci_log("".join(parts))
    for line in re.split(r"[\r\n\u2028\u2029]", log):
        assert not line.strip().startswith("::")
        assert not re.search(r"##\w*\[", line)


def test_a_guard_is_rare() -> None:
    assert text.ci_guard("x[::2] is every other one") == ""
    assert text.ci_guard("  ::error::x") == "| "
    assert text.terminal("a ##[error] b") == "a # #[error] b"
