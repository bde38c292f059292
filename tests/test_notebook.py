"""Notebooks as submissions: every layout is graded, or gets a sentence that says why not."""

from __future__ import annotations

import html
import json
import linecache
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import nbconvert
import nbformat
import pytest
import torch

from harness import report
from harness.course import read_course
from harness.judge import JudgeProcess, Order
from harness.notebook import cells, choose, snippets
from harness.notebook.inline import as_notebook, grade_cells
from harness.notebook.link import MAX_LEFT_OUT, NotebookLink
from harness.notebook.magics import without_magics
from harness.outcome import Status, Stop
from harness.submission import MAX_BYTES, Unreadable, from_files, read_submission
from tests.support.command import ROOT, Command, Finished

GPT = (ROOT / "reference" / "gpt.py").read_text(encoding="utf-8")
HEADS = 50  # points of the exercise `heads`
ATTENTION = GPT.index("class CausalSelfAttention")
BLOCK = GPT.index("class Block")
PARTS = [GPT[:ATTENTION], GPT[ATTENTION:BLOCK], GPT[BLOCK:]]  # imports and configuration, attention, the model


def cell(source: str | list[str], kind: str = "code", **more: Any) -> dict[str, Any]:
    outputs = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source, **outputs, **more}


def document(*content: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(content), **more}).encode()


@pytest.fixture(scope="module")
def judge() -> Iterator[JudgeProcess]:
    """One process that judges all layouts, as in a batch."""
    process = JudgeProcess()
    yield process
    process.close()


def judged(judge: JudgeProcess, data: bytes, exercises: Sequence[str] = ("heads",), **limits: float) -> report.Report:
    course = read_course()
    order = Order(
        name="work", files={"work.ipynb": data}, exercises=list(exercises), seed=course.seed,
        limits=msgspec.structs.replace(course.limits, **limits),
    )  # fmt: skip
    result = judge.grade(order)
    assert not result.review
    return result


def said(result: report.Report) -> str:
    """What the first check that did not pass tells the student."""
    check = next(check for check in result.exercises[0].checks if check.status is not Status.PASSED)
    assert check.message is not None
    return check.message.text


def grade(command: Command, folder: Path, data: bytes, *arguments: str) -> tuple[Finished, report.Report]:
    file = folder / "work.ipynb"
    file.write_bytes(data)
    done = command.run("grade", file, "--exercise", "heads", *arguments, cwd=folder)
    assert done.stderr == "" and done.status in (0, 1), done.stderr
    result = report.from_json((folder / "report.json").read_bytes())
    assert not result.review
    return done, result


WHOLE = [cell(part) for part in PARTS]
COLAB = {
    "colab": {"provenance": [], "gpuType": "T4"},
    "accelerator": "GPU",
    "kernelspec": {"name": "python3", "display_name": "Python 3"},
    "language_info": {"name": "python"},
}
WORKING = {
    "cells": document(*WHOLE),
    "lines-as-lists": document(*(cell(part.splitlines(keepends=True)) for part in PARTS)),
    "minor-0": document(*WHOLE, nbformat_minor=0),
    "minor-1": document(*WHOLE, nbformat_minor=1),
    "minor-2": document(*WHOLE, nbformat_minor=2),
    "minor-3": document(*WHOLE, nbformat_minor=3),
    "minor-4": document(*WHOLE, nbformat_minor=4),
    "minor-5-with-ids": document(*(cell(part, id=f"c{i}") for i, part in enumerate(PARTS))),
    "minor-of-the-future": document(*WHOLE, nbformat_minor=99),
    "same-id-twice": document(*(cell(part, id="c") for part in PARTS)),
    "byte-order-mark": b"\xef\xbb\xbf" + document(*WHOLE),
    "duplicated": document(*WHOLE, *WHOLE),
    "explained": document(cell("# Heads\n<script>x</script>", "markdown"), cell("\\n", "raw"), *WHOLE),
    "colab": document(
        cell("!pip install -q torch einops\nfrom google.colab import drive\ndrive.mount('/content/drive')"),
        cell("%cd /content/drive/MyDrive"), *WHOLE, metadata=COLAB,
    ),
    "other-kernel": document(*WHOLE, metadata={"kernelspec": {"name": "conda-env-x", "language": "Python 3"}}),
    "metadata-of-any-kind": document(*WHOLE, metadata=["what", {"is": None}]),
    "no-metadata": json.dumps({"nbformat": 4, "cells": WHOLE}).encode(),
    "magics": document(cell("%matplotlib inline\n%load_ext autoreload\n!nvidia-smi\nx = !ls\ntorch?"), *WHOLE),
    "timed-cell": document(*WHOLE[:1], cell("%%time\n" + PARTS[1]), *WHOLE[2:]),
    "written-to-a-file": document(cell("%%writefile gpt.py\n" + GPT)),
    "imports-itself": document(*WHOLE[:2], cell("from gpt import CausalSelfAttention as A\nassert A"), *WHOLE[2:]),
    "missing-package": document(cell("import seaborn_of_the_future as sns\nimport torch\n" + PARTS[0]), *WHOLE[1:]),
    "draws": document(
        *WHOLE[:1],
        cell("%matplotlib notebook\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n" + PARTS[1]),
        *WHOLE[2:],
    ),
    "asks": document(cell("name = input('Who are you?')"), *WHOLE),
    "broken-elsewhere": document(*WHOLE, cell("def broken(:"), cell("1 / 0"), cell("raise SystemExit")),
    "main-block": document(*WHOLE, cell("if __name__ == '__main__':\n    raise RuntimeError")),
    "checks": document(*WHOLE, cell("from harness.notebook import check\ncheck('heads')")),
    "large-output": document(
        *WHOLE, cell("1", outputs=[{"output_type": "stream", "name": "stdout", "text": "x" * (20 * 2**20)}])
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WORKING)
def test_graded_in_full(name: str, judge: JudgeProcess) -> None:
    result = judged(judge, WORKING[name])
    assert result.score.earned == HEADS, said(result)


DAMAGED = {
    "empty": (b"", "is empty"),
    "truncated": (document(*WHOLE)[:-500], "damaged"),
    "not-json": (b"print('hello')", "damaged"),
    "not-utf-8": (document(*WHOLE).replace(b"GPT", b"\xff\xfe"), "damaged"),
    "deep": (b'{"nbformat": 4, "cells": ' + b"[" * 100_000, "damaged"),
    "a-list": (b"[]", "is not a notebook"),
    "other-json": (b'{"a": 1}', "is not a notebook"),
    "cells-of-a-kind": (b'{"nbformat": 4, "cells": "all"}', "is not a notebook"),
    "version-3": (json.dumps({"nbformat": 3, "worksheets": [{"cells": []}]}).encode(), "format 3"),
    "version-5": (document(*WHOLE, nbformat=5), "newer format"),
    "another-language": (document(cell("x <- 1"), metadata={"kernelspec": {"language": "R"}}), "not a notebook for Py"),
    "too-many-cells": (document(*[cell("x = 1")] * (cells.MAX_CELLS + 1)), "more code than"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_clear_message(name: str, judge: JudgeProcess) -> None:
    data, text = DAMAGED[name]
    result = judged(judge, data)
    assert result.score.earned == 0
    assert {check.status for check in result.exercises[0].checks} == {Status.ERROR}
    assert text in said(result) and said(result).startswith("work.ipynb")


STRICTER = {"no-metadata", "metadata-of-any-kind", "other-kernel", "byte-order-mark"}  # nbconvert refuses these


@pytest.mark.parametrize("name", sorted(WORKING.keys() - STRICTER))
@pytest.mark.filterwarnings("ignore")  # of ids that are missing or there twice
def test_cells_are_those_that_nbconvert_exports(name: str) -> None:
    """The worker reads notebooks with a parser of its own, for time and memory: it finds what the library finds."""
    exporter = nbconvert.exporters.ScriptExporter(exclude_markdown=True, exclude_raw=True)  # type: ignore[no-untyped-call]
    notebook = nbformat.reads(WORKING[name].decode("utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    exported, _ = exporter.from_notebook_node(notebook)
    found = cells.read_cells(WORKING[name])
    assert found == [c.source for c in notebook.cells if c.cell_type == "code"]
    for source in found:
        if not re.search(r"(?m)^\s*[%!]|\?\s*$|= *!", source):  # nbconvert rewrites magics
            assert source.strip() in exported


def test_reading_has_a_bound_on_memory(judge: JudgeProcess) -> None:
    """Ten megabytes of empty cells become hundreds in memory. The worker is stopped, and the judge goes on."""
    many = b'{"nbformat": 4, "cells": [' + b",".join([b'{"cell_type":"raw"}'] * 500_000) + b"]}"
    result = judged(judge, many, memory_bytes=32 * 2**20)
    assert {check.status for check in result.exercises[0].checks} <= {Status.ERROR, Status.OUT_OF_MEMORY}
    assert result.score.earned == 0 and said(result)
    assert judged(judge, WORKING["cells"]).score.earned == HEADS


def test_a_name_that_input_was_to_give_tells_so(judge: JudgeProcess) -> None:
    """What a cell lacks because it asks somebody is told with the cell and the reason."""
    result = judged(judge, document(WHOLE[0], cell("size = int(input('How many?'))\n" + PARTS[1]), WHOLE[2]))
    assert result.score.earned == 0
    assert "nobody can answer input()" in said(result) and "(cell 2, line 1)" in said(result)


SMALL = ROOT / "tests" / "courses" / "pooling"


def test_in_a_batch_a_notebook_counts_like_its_files(command: Command, tmp_path: Path) -> None:
    wrong = "def mean_pool(x, lengths):\n    return x.mean(1)\n"
    handed_in = tmp_path / "in"
    for name, file, data in (
        ("ada", "pooling.py", wrong.encode()),
        ("ben", "work.ipynb", document(cell("1 / 0"), cell(wrong))),
        ("cleo", "work.ipynb", b'{"cells": ['),
    ):
        (handed_in / name).mkdir(parents=True)
        (handed_in / name / file).write_bytes(data)
    out = tmp_path / "out"
    words = ("batch", handed_in, "--out", out, "--jobs", "1")
    done = command.run(*words, cwd=tmp_path, env={"HEADCHECK_COURSE": str(SMALL)})
    assert done.status == 0, done.stderr
    ada, ben, cleo = (report.from_json((out / n / "report.json").read_bytes()) for n in ("ada", "ben", "cleo"))
    verdicts = [[(c.status, c.points, c.misconception, c.message) for c in r.exercises[0].checks] for r in (ada, ben)]
    assert verdicts[0] == verdicts[1] and ada.score.earned == 3
    assert ben.exercises[0].checks[1].misconception == "pool.padding-counted"
    assert "damaged" in said(cleo) and cleo.score.earned == 0


def test_outputs_of_100_mb_are_refused_with_a_remedy(tmp_path: Path) -> None:
    file = tmp_path / "work.ipynb"
    with file.open("wb") as stream:
        stream.truncate(100 * 10**6)
    assert file.stat().st_size > MAX_BYTES
    with pytest.raises(Unreadable, match="Clear the outputs"):
        read_submission(file, ("gpt.py",))


def test_a_broken_cell_costs_only_what_it_defines(judge: JudgeProcess) -> None:
    """Without `Block`, attention is as good as ever; without attention, its own error is told."""
    other = judged(judge, document(*WHOLE[:2], cell(PARTS[2].replace("x = x + self", "x = = x + self"))))
    assert other.score.earned == HEADS
    broken = PARTS[1].replace("def merge_heads(self, x: Tensor) -> Tensor:", "def merge_heads(self, x: Tensor) -> :")
    result = judged(judge, document(WHOLE[0], cell("# %% mine\n" + broken), cell("kept = 1")))
    assert result.score.earned == 0
    line = broken[: broken.index("-> :")].count("\n") + 2
    assert said(result).startswith(f"Python cannot read cell 2, line {line}: ")
    check = result.exercises[0].checks[0]
    assert check.status is Status.ERROR and (check.trace[0].file, check.trace[0].line) == ("cell 2", line)


def test_an_error_names_cell_and_line(command: Command, tmp_path: Path) -> None:
    wrong = PARTS[1].replace("B, T, C = x.shape", "B, T = x.shape")
    line = wrong[: wrong.index("B, T = x.shape")].count("\n") + 1
    done, result = grade(command, tmp_path, document(cell("# About", "markdown"), WHOLE[0], cell(wrong), WHOLE[2]))
    assert done.status == 1 and 0 < result.score.earned < HEADS
    assert f"(cell 2, line {line})" in " ".join(done.stdout.split())


def test_a_cell_that_never_ends_is_left_out_and_the_rest_counts(judge: JudgeProcess) -> None:
    looping = cell("while True:\n    pass\nlooped = 1")
    assert judged(judge, document(looping, *WHOLE, looping), import_seconds=1).score.earned == HEADS


def test_too_many_cells_that_never_end_are_given_up(judge: JudgeProcess) -> None:
    data = document(*[cell("import os\nos._exit(1)")] * (MAX_LEFT_OUT + 1), *WHOLE)
    result = judged(judge, data)
    assert {check.status for check in result.exercises[0].checks} == {Status.CRASHED}


def test_cells_use_up_the_time_of_the_submission(judge: JudgeProcess) -> None:
    """They run anew for each exercise, and all of that counts together, as with files."""
    slow = cell("import time\nend = time.process_time() + 4\nwhile time.process_time() < end:\n    pass")
    result = judged(judge, document(slow, *WHOLE), exercises=["heads", "order"], submission_seconds=6)
    assert result.score.earned == HEADS
    assert {check.status for check in result.exercises[1].checks} == {Status.TIMEOUT}


@pytest.mark.parametrize(
    ("stop", "status"), [("while True:\n    pass\n", Status.TIMEOUT), ("import os\nos._exit(0)\n", Status.CRASHED)]
)
def test_what_a_stopped_cell_defines_is_lost_with_its_reason(stop: str, status: Status, judge: JudgeProcess) -> None:
    result = judged(judge, document(WHOLE[0], cell(stop + PARTS[1]), cell("kept = 1")), import_seconds=1)
    assert {check.status for check in result.exercises[0].checks} == {status}
    assert "cell 2" in said(result).lower() and "left out" in said(result)


def test_reordered_cells_fail_where_their_order_matters(judge: JudgeProcess) -> None:
    """Cells run from top to bottom; one that uses what comes later is told so."""
    result = judged(judge, document(WHOLE[1], WHOLE[0], WHOLE[2]))
    assert result.score.earned == 0
    assert "NameError" in said(result) and "(cell 1, line 1)" in said(result)
    assert judged(judge, document(WHOLE[0], WHOLE[2], WHOLE[1])).score.earned == HEADS


def test_the_template_as_a_notebook_is_not_started(command: Command, tmp_path: Path) -> None:
    stub = (ROOT / "student_template" / "gpt.py").read_text(encoding="utf-8")
    done, result = grade(command, tmp_path, document(cell(stub)))
    assert {check.status for check in result.exercises[0].checks} == {Status.NOT_STARTED}
    assert "write CausalSelfAttention.__init__ in cell 1" in done.stdout


STUB = (ROOT / "student_template" / "gpt.py").read_bytes()
NOTEBOOK = as_notebook([GPT])


@pytest.mark.parametrize(
    ("files", "graded", "notes"),
    [
        ({"a.ipynb": NOTEBOOK}, "a.ipynb", []),
        ({"hw/a.ipynb": NOTEBOOK, "hw/data.csv": b""}, "hw/a.ipynb", []),
        ({"gpt.py": GPT.encode(), "a.ipynb": NOTEBOOK}, "", ["notebook.files-count"]),
        ({"gpt.py": STUB, "a.ipynb": NOTEBOOK}, "a.ipynb", ["notebook.notebook-counts"]),
        ({"gpt.py": STUB.replace(b"\n", b"\r\n"), "a.ipynb": NOTEBOOK}, "a.ipynb", ["notebook.notebook-counts"]),
        ({"gpt.py": STUB}, "", []),
        ({"a.ipynb": NOTEBOOK, "lesson.ipynb": NOTEBOOK}, "lesson.ipynb", ["notebook.several"]),
        ({"helper.py": b"x = 1", "a.ipynb": NOTEBOOK}, "a.ipynb", []),
    ],
)
def test_which_files_count(files: dict[str, bytes], graded: str, notes: list[str]) -> None:
    submission = from_files("work", files, ("gpt.py",))
    assert choose.notebook_of(submission.files) == graded
    assert [note.id for note in submission.notes] == notes


def test_which_files_count_is_a_matter_of_the_course() -> None:
    stub = (SMALL / "student_template" / "pooling.py").read_bytes()
    for code, note in ((stub, "notebook.notebook-counts"), (b"def mean_pool(): ...", "notebook.files-count")):
        files = {"pooling.py": code, "a.ipynb": NOTEBOOK}
        submission = from_files("work", files, ("pooling.py",), root=SMALL)
        assert [said.id for said in submission.notes] == [note]
        assert choose.notebook_of(submission.files, SMALL) == ("a.ipynb" if code is stub else "")


def test_the_rule_is_shown(command: Command, tmp_path: Path) -> None:
    (tmp_path / "gpt.py").write_text(GPT, encoding="utf-8")
    done, _ = grade(command, tmp_path, document(cell("1 / 0")))
    folder = command.run("grade", tmp_path, "--exercise", "heads")
    assert "Note: gpt.py were graded, work.ipynb was not" in folder.stdout
    assert "50 / 50" in folder.stdout and "50 / 50" not in done.stdout


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("x = 1", "x = 1"),
        ("%time\nx = 1", "pass\nx = 1"),
        ("if x:\n    !ls\n    y = 1", "if x:\n    pass\n    y = 1"),
        ("files = !ls", "files = None"),
        ("a, b = %magic x", "a, b = None"),
        ("!pip install \\\n  torch\nx = 1", "pass\n\nx = 1"),
        ("x = 7\\\n  % 2", "x = 7\\\n  % 2"),
        ('s = """\n%d items\n!\n"""', 's = """\n%d items\n!\n"""'),
        ("y = (x\n % 2)", "y = (x\n % 2)"),
        ("torch.nn?", "pass"),
        ("?torch", "pass"),
        ("%%time\nx = 1", "\nx = 1"),
        ("%%bash\nrm -rf x", ""),
        ("%%writefile notes.txt\nhello", ""),
        ("# 100 %\nx = 1  # really?", "# 100 %\nx = 1  # really?"),
    ],
)
def test_magics_are_taken_out_line_by_line(source: str, python: str) -> None:
    assert without_magics(source) == python


def test_any_word_for_python_is_python() -> None:
    for name in ("python", "Python 3", "ipython", "python3.11", ""):
        assert cells.read_cells(document(cell("x"), metadata={"language_info": {"name": name}})) == ["x"]


def test_feedback_stands_under_the_cells_concerned_and_the_students_html_is_inert(
    command: Command, tmp_path: Path
) -> None:
    wrong = PARTS[1].replace(
        "return x.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)",
        "return x.view(B, self.n_head, T, C // self.n_head)",
    )
    evil = "# Hi <script>alert(1)</script> <img src=x onerror=alert(2)> [x](javascript:alert(3))"
    page = tmp_path / "feedback.html"
    data = document(
        cell(evil, "markdown"), WHOLE[0], cell(wrong + "\n# </pre><script>alert(4)</script>"), WHOLE[2],
        cell("y = 1", outputs=[{"output_type": "display_data", "metadata": {}, "data": {"text/html": "<b>OUTPUT"}}]),
    )  # fmt: skip
    done, result = grade(command, tmp_path, data, "--feedback", str(page))
    assert done.status == 1
    html = page.read_text(encoding="utf-8")
    hint = next(check.hint for check in result.exercises[0].checks if check.hint is not None)
    lowered = html.lower()
    assert "<script" not in lowered and "<img" not in lowered and 'href="javascript' not in lowered
    assert "<h1>Hi " in html and "&lt;p&gt;" not in html and "&lt;section" not in html
    assert "OUTPUT" not in html and "Content-Security-Policy" in html
    for attribute in re.findall(r"<[^>]*>", lowered):
        assert not re.search(r"\son\w+\s*=", attribute), attribute
    told = html.index(hint.text[:40].replace("'", "&#39;"))
    assert html.index("CausalSelfAttention") < told < html.rindex("y</span>")


def test_feedback_is_for_notebooks(command: Command, tmp_path: Path) -> None:
    done = command.run("grade", ROOT / "reference", "--feedback", tmp_path / "x.html")
    assert done.status == 2 and "for notebooks" in done.stderr


@pytest.fixture
def as_a_worker() -> Iterator[None]:
    """Undoes what a notebook does to the process that it is run in."""
    with mock.patch.dict(sys.modules), mock.patch.dict(os.environ):
        yield


@pytest.mark.usefixtures("as_a_worker")
def test_workers_hand_on_what_the_first_has_compiled(tmp_path: Path) -> None:
    """The cells are compiled once, and the file is read again only for the text of a cell.

    A cell that is no Python is told about by each worker.
    """
    (tmp_path / "work.ipynb").write_bytes(document(cell("%cd x\ndef one():\n    return 1"), cell("two = = 2")))
    first = cells.Notebook(tmp_path, "work.ipynb", ["gpt"], [])
    made = first.compiled(first.cells([]))
    assert made is not None
    later = cells.Notebook(tmp_path, "work.ipynb", ["gpt"], [], made)
    assert later.cells([]) == [1, 2] and later.codes == first.codes and 1 in later.codes
    with mock.patch.object(cells, "read_cells", side_effect=AssertionError):
        later.run(1)
        assert later.names["one"]() == 1
    later.run_all([2])
    assert isinstance(later.failed["two"][0], SyntaxError)
    assert linecache.getlines("<notebook>/cell 1")[1:] == ["def one():\n", "    return 1\n"]


@pytest.mark.usefixtures("as_a_worker")
def test_a_file_that_is_gone_makes_no_names(tmp_path: Path) -> None:
    """Cells that came compiled still run; only the text of the others, and of their lines, cannot be read."""
    (tmp_path / "work.ipynb").write_bytes(document(cell("one = 1"), cell("two = = 2")))
    first = cells.Notebook(tmp_path, "work.ipynb", ["gpt"], [])
    made = first.compiled([1, 2])
    (tmp_path / "work.ipynb").write_bytes(b"[]")
    assert made is not None
    later = cells.Notebook(tmp_path, "work.ipynb", ["gpt"], [], made)
    later.run_all([1, 2])
    assert later.names["one"] == 1 and "two" not in later.names
    assert linecache.getlines("<notebook>/cell 1") == []


@pytest.mark.usefixtures("as_a_worker")
def test_what_is_too_large_to_hand_on_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "work.ipynb").write_bytes(document(cell(f"text = '{'x' * (cells.MAX_SOURCE - 100)}'[:1]")))
    notebook = cells.Notebook(tmp_path, "work.ipynb", ["gpt"], [])
    assert notebook.compiled([1]) is None
    notebook.run(1)
    assert notebook.names["text"] == "x"


@pytest.mark.parametrize("forged", [[1], "code", torch.ones(3), torch.zeros(cells.MAX_COMPILED + 1, dtype=torch.uint8)])
def test_what_workers_hand_on_is_bounded_bytes(forged: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NotebookLink, "_ask", lambda self, request: forged)
    link = NotebookLink.__new__(NotebookLink)
    with pytest.raises(Stop, match="compiled cells were expected") as stopped:
        link._compile([1])
    assert stopped.value.status is Status.BLOCKED


# A broken cell, and what is told where a name of its is missing.

UNREADABLE = PARTS[1].replace("def merge_heads(self, x: Tensor) -> Tensor:", "def merge_heads(self, x: Tensor) -> :")
_LINE = UNREADABLE[: UNREADABLE.index("-> :")].count("\n") + 1
UNREAD = f"Python cannot read cell 2, line {_LINE}: "
USES_AT_ONCE = "class Attention(CausalSelfAttention):\n    pass\n\nCausalSelfAttention = Attention"
USES_WHEN_CALLED = "def make(config):\n    return CausalSelfAttention(config)\n\nCausalSelfAttention_ = make"
BROKEN = {
    "asked-for": ([PARTS[0], UNREADABLE], UNREAD),
    "used-by-a-later-cell": ([PARTS[0], UNREADABLE, USES_AT_ONCE], UNREAD),
    "imported-by-a-later-cell": (
        [PARTS[0], UNREADABLE, "from gpt import CausalSelfAttention"],
        UNREAD,
    ),
    "imports-in-a-cell-that-cannot-be-read": (
        [f"import math = 3\n{PARTS[0]}", *PARTS[1:]], "Python cannot read cell 1, line 1: ",
    ),
    "raised": (
        ["1 / 0\n" + PARTS[0], *PARTS[1:]],
        "ZeroDivisionError (cell 1, line 1): division by zero. The cell broke there, and ",
    ),
    "raised-through-two-cells": (
        [PARTS[0], "base = {}['nn']", "parent = base", "class Layer(parent):\n    pass\n\nCausalSelfAttention = Layer"],
        "KeyError (cell 2, line 1): 'nn'. The cell broke there, and ",
    ),
    "used-in-a-function": (
        [PARTS[0], "heads = [1][2]", PARTS[1].replace("B, T, C = x.shape", "B, T, C = x.shape; heads", 1), PARTS[2]],
        "IndexError (cell 2, line 1): list index out of range. The cell broke there, and ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_a_broken_cell_left_out_is_told_with_that_cell(name: str, judge: JudgeProcess) -> None:
    sources, lead = BROKEN[name]
    result = judged(judge, document(*map(cell, sources)))
    assert result.score.earned < HEADS
    told = said(result)
    assert told.startswith(lead) and "NameError" not in told, told


def test_a_cell_that_needs_one_that_was_left_out_is_told_so(judge: JudgeProcess) -> None:
    data = document(WHOLE[0], cell("while True:\n    pass\n" + PARTS[1]), cell(USES_AT_ONCE))
    result = judged(judge, data, import_seconds=1)
    assert {check.status for check in result.exercises[0].checks} == {Status.TIMEOUT}
    assert said(result).startswith("Cell 2 did not end within")


def test_a_name_that_no_cell_was_to_define_stays_a_name_error(judge: JudgeProcess) -> None:
    wrong = PARTS[1].replace("B, T, C = x.shape", "B, T, C = shape", 1)
    told = said(judged(judge, document(WHOLE[0], cell("1 / 0"), cell(wrong), WHOLE[2])))
    assert "NameError: name 'shape' is not defined (cell 3, line" in told


def test_what_a_cell_cannot_import_costs_its_names_alone(judge: JudgeProcess) -> None:
    """Its annotations stay text, in this cell and in those after it, as in Jupyter."""
    first = "from __future__ import annotations\nimport seaborn_of_the_future as sns\n" + PARTS[0]
    assert "from __future__" not in GPT
    later = PARTS[1].replace("def split_heads(self, x: Tensor)", "def split_heads(self, x: OfLaterCells)")
    assert later != PARTS[1]
    note = "\n\ndef note(x: NotThereYet) -> None: ..."
    result = judged(judge, document(cell(first + note), cell(later), WHOLE[2]))
    assert result.score.earned == HEADS, said(result)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a.b, c as d\nfrom e import (\n    f,\n    g as h,\n)\nx = = 1", {"a", "d", "f", "h", "x"}),
        ("y: int = 3\nz, w = 1, 2\n)\ndef f(:\n    inner = 1\n@deco\nclass K(", {"y", "z", "w", "f", "K"}),
        ("if x = 1:\n    hidden = 2\nx == y\nasync def g() -> :", {"g"}),
    ],
)
def test_names_of_a_cell_that_cannot_be_read(source: str, names: set[str]) -> None:
    assert cells.names_defined(source) == names


# Lines that show a failure.

MODULES = ("gpt", "rope")


@pytest.mark.parametrize(
    ("source", "in_a_cell"),
    [
        ("import torch; from gpt import *\nprint(1)", "import torch\nprint(1)"),
        ("from rope import rope_frequencies\nprint(rope_frequencies(4))  # 1", "print(rope_frequencies(4))  # 1"),
        ("from gpt import GPT as G; from rope import *  # 山\nG()", "G = GPT  # 山\nG()"),
        ("x = 1; from gpt import (\n  GPT,\n)\nx", "x = 1\nx"),
        ("from math import pi; from gpt import *; print('；', pi)", "from math import pi; print('；', pi)"),
        ("from torch import *\nprint(", "from torch import *\nprint("),
        ("from torch import nn", "from torch import nn"),
        ("", ""),
    ],
)
def test_lines_for_a_cell_import_nothing_of_the_course(source: str, in_a_cell: str) -> None:
    assert snippets.for_a_cell(source, MODULES) == in_a_cell


def test_lines_that_show_a_failure_run_in_the_notebook(command: Command, tmp_path: Path) -> None:
    """In the report, on the terminal, in the page and under `check`: each time what can be pasted into a cell."""
    wrong = GPT.replace("/ D**0.5", "* D**0.5")
    assert wrong != GPT
    done, result = grade(command, tmp_path, document(cell(wrong)), "--feedback", str(tmp_path / "page.html"))
    (failed,) = [c for c in result.exercises[0].checks if c.id == "heads.weights"]
    assert failed.status is Status.FAILED and failed.reproduce and "from gpt" not in failed.reproduce
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(compile(wrong, "cell", "exec", dont_inherit=True), namespace)
    exec(compile(failed.reproduce, "cell", "exec", dont_inherit=True), namespace)
    lines = failed.reproduce.splitlines()
    again = command.run("show", tmp_path / "report.json")
    for shown in (done.stdout, grade_cells(["heads"], [wrong]), again.stdout):
        assert "in a new cell" in shown and ">>>" not in shown and "from gpt import" not in shown
        assert all(line in shown for line in lines)
    page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "in a new cell" in page and all(line in page for line in lines)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "gpt.py").write_text(wrong, encoding="utf-8")
    beside = command.run("grade", tmp_path / "files", "--exercise", "heads", cwd=tmp_path)
    assert ">>> import torch; from gpt import" in beside.stdout


def test_the_file_of_answers_beside_a_running_notebook_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert re.search(r"missing +0 / ", grade_cells(["quiz"], ["1"]))
    (tmp_path / "quiz_answers.toml").write_text('split-shape = "c"\n', encoding="utf-8")
    (tmp_path / "notes.toml").write_text("[", encoding="utf-8")
    shown = grade_cells(["quiz"], ["1"])
    assert re.search(r"(?m)^\W+The shape after the channels are cut into heads +1 / 1$", shown), shown


def test_in_a_batch_they_run_in_the_notebook_too(judge: JudgeProcess) -> None:
    wrong = GPT.replace("/ D**0.5", "* D**0.5")
    shown = [c.reproduce for c in judged(judge, document(cell(wrong))).exercises[0].checks if c.reproduce]
    assert shown and not any("from gpt" in source for source in shown)
