"""What CI is told: escaping of workflow commands and Markdown, the size of the summary, the line of a failing check."""

from __future__ import annotations

import re

import msgspec
import pytest

from harness.ci import github, summary
from harness.ci.lines import Place, place_of
from harness.ci.results import Result, Verdict, reaches
from harness.outcome import Evidence, Frame, Status
from harness.report import CheckResult, Report, Text
from tests.support import classroom

SOURCE = b"""import torch


class Block:
    def forward(self, x):
        return x


class Attention:
    def __init__(self):
        self.qkv = 1

    @torch.no_grad()
    def forward(
        self, x
    ):
        return x


def loss(x):
    return x
"""


def check(**more: object) -> CheckResult:
    given = {"id": "a.b", "title": "t", "status": Status.FAILED, "points": 0, "possible": 1} | more
    return CheckResult(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("made", "place"), [
    (check(trace=[Frame("m.py", 5, "forward"), Frame("m.py", 18, "loss")]), Place("m.py", 18, 18)),
    (check(trace=[Frame("m.py", 6, "forward"), Frame("library.py", 900, "inner")]), Place("m.py", 6, 6)),
    (check(evidence=Evidence(what="loss(logits)")), Place("m.py", 20, 20)),
    (check(title="forward works", reproduce="from m import Attention"), Place("m.py", 14, 16)),
    (check(title="forward works"), Place("m.py", 5, 5)),
    (check(title="how many parameters", reproduce="from m import Attention"), Place("m.py", 9, 9)),
    (check(title="something else"), Place("m.py")),
])  # fmt: skip
def test_the_line_of_a_check(made: CheckResult, place: Place) -> None:
    assert place_of(made, {"m.py": SOURCE}, ("absent.py", "m.py")) == place


@pytest.mark.parametrize("content", [b"def loss(:\n", b"\x00", b"\xff\xfe", b"(" * 10_000, b"-" * 200_000 + b"1"])
def test_files_that_python_cannot_read_have_no_lines(content: bytes) -> None:
    assert place_of(check(title="loss"), {"m.py": content}, ("m.py",)) == Place("m.py")
    assert place_of(check(title="loss"), {}, ("m.py",)) is None


def test_what_stands_in_a_command_is_escaped() -> None:
    note = github.Annotation("a: b, c\n::error::", "100 %\r\n::debug::x\u202e", "w,x:%\n/é.py", 3, 4)
    assert note.command() == (
        "::error file=w%2Cx%3A%25%0A/é.py,line=3,endLine=4,title=a%3A b%2C c%0A%3A%3Aerror%3A%3A::100 %25%0A::debug::x"
    )
    assert github.Annotation("t", "x" * 5000).command() == f"::error title=t::{'x' * 1499}…"
    assert github.Annotation("t", "x", "\udcff.py").command() == "::error file=?.py,title=t::x"
    assert len(github.commands([note] * 30)) == github.MOST == 10


def test_a_cover_cannot_be_guessed_and_ends() -> None:
    first, second = (github.covered("::error::x\n").splitlines() for _ in range(2))
    assert first[1] == second[1] == "::error::x"
    assert first[0] != second[0] and first[2] == f"::{first[0].removeprefix('::stop-commands::')}::"


def test_nothing_becomes_markdown_or_html() -> None:
    line = summary.inline("a | b `c` <img> ![x](http://e.org) [y] *z* #1 @all www.e.org &amp; \\| $x$ :tada:\n## d")
    assert "\n" not in line
    assert not re.search(r"(?<!\\)(?:\\\\)*[`<>\[\]()*#|@$!&]", line)
    assert "www\\.e" in line and "\\:tada\\:" in line
    block = summary.preformatted("</pre><script>x</script>\n\n# head\x00\u202e" + "y" * 9000)
    assert block.startswith("<pre>&lt;/pre&gt;&lt;script&gt;") and block.endswith("…</pre>")
    assert block.count("<") == 2 and "\x00" not in block and "\u202e" not in block


def failing(words: str) -> Report:
    report = classroom.report(0, {})
    for exercise in report.exercises:
        exercise.checks = [
            msgspec.structs.replace(check, status=Status.FAILED, points=0, message=Text("m", words))
            for check in exercise.checks
        ]
    return report


def test_the_summary_fits_into_what_github_takes() -> None:
    results = tuple(Result(f"w/{i}", f"w/{i}", False, failing("山" * 3000)) for i in range(300))
    text = summary.markdown(Verdict("Course", 100, results))
    assert len(text.encode("utf-8")) <= summary.MOST_BYTES == 2**20
    assert "300 submissions" in text and text.rstrip().endswith("has all of it.")
    whole = summary.markdown(Verdict("Course", 100, results[:2]))
    assert "left out" not in whole and whole.count("### ") == 2


def test_of_a_notebook_the_lines_are_for_a_cell_and_empty_values_are_left_out() -> None:
    report = failing("m")
    shown = {"reproduce": "for i in range(3):\n    print(i)", "evidence": Evidence(actual="9.1")}
    report.exercises[0].checks[0] = msgspec.structs.replace(report.exercises[0].checks[0], **shown)
    texts = []
    for name in ("gpt.py", "work.ipynb"):
        named = msgspec.structs.replace(report.submission, files={name: "1" * 64})
        result = Result("w", "w", False, msgspec.structs.replace(report, submission=named))
        texts.append(summary.markdown(Verdict("Course", 100, (result,))))
    of_files, of_notebook = texts
    assert "prompt" in of_files and "  &gt;&gt;&gt; for i in range(3):" in of_files
    assert "prompt" not in of_notebook and "in a cell of the notebook:\n  for i in range(3):\n" in of_notebook
    assert all("actual    9.1" in text and "expected" not in text for text in texts)


def test_the_mark_is_reached_without_rounding_errors() -> None:
    report = classroom.report(0, {})
    score = msgspec.structs.replace(report.score, final=6.9, possible=10)
    report = msgspec.structs.replace(report, score=score)
    assert reaches(report, 69) and not reaches(report, 69.01)
