"""The command's options, exit statuses and messages; the pytest way in; reports that repeat."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT, Command

REFERENCE, TEMPLATE = ROOT / "reference", ROOT / "student_template"


def report_in(folder: Path, name: str = "report.json") -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return loaded


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    return {check["id"]: check["status"] for exercise in report["exercises"] for check in exercise["checks"]}


def without_times(report: dict[str, Any]) -> dict[str, Any]:
    for key in ("started", "seconds"):
        del report[key]
    for exercise in report["exercises"]:
        for check in exercise["checks"]:
            del check["seconds"]
    return report


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission with a mistake in one helper."""
    folder = tmp_path_factory.mktemp("wrong") / "work"
    shutil.copytree(REFERENCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / "gpt.py").read_text(encoding="utf-8")
    right = "return x.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)"
    assert text.count(right) == 1
    text = text.replace(right, "return x.view(B, self.n_head, T, C // self.n_head)")
    (folder / "gpt.py").write_text(text.replace("self.qkv(x).chunk(3, dim=-1)", "self.qkv(x).chunk(3, -1)"), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "There is no nowhere."),
        (["a" * 300], "File name too long"),
        ([__file__.removesuffix(".py") + ".txt"], "There is no"),
        ([ROOT / "pyproject.toml"], "is not a .py file"),
        ([REFERENCE, TEMPLATE], "unexpected extra argument"),
        ([REFERENCE, "--frobnicate"], "--frobnicate"),
        ([REFERENCE, "--exercise", "nonsense"], "There is no exercise 'nonsense'."),
        ([REFERENCE, "--exercise", ","], "--exercise names no exercise"),
        ([REFERENCE, "--exercise"], "requires an argument"),
        ([REFERENCE, "--seed", "-1"], "--seed"),
        ([REFERENCE, "--seed", "one"], "--seed"),
        ([REFERENCE, "--isolation", "some"], "--isolation"),
        ([REFERENCE, "--limit", "call_seconds=soon"], "--limit"),
        ([REFERENCE, "--limit", "patience=3"], "There is no limit 'patience'."),
        (["grade", REFERENCE, "--start-method", "hope"], "--start-method"),
        (["list", "more"], "unexpected extra argument"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value[-1])[-12:],
)
def test_what_cannot_be_graded_is_one_clear_line(command: Command, arguments: list[str | Path], words: str) -> None:
    done = command.run(*arguments)
    assert (done.status, done.stdout) == (2, "")
    what, *then = done.stderr.splitlines()
    assert what.startswith("grade.py: ") and words in what
    assert len(then) == 1, done.stderr  # what to do next
    assert "Traceback" not in done.stderr


def test_help_and_version_answer_without_torch() -> None:
    """In processes of their own: torch takes seconds, and the words must come without it."""
    script = "import sys; from harness.cli import run; status = run(sys.argv[1:]); assert 'torch' not in sys.modules"
    for arguments, words in (
        (["--help"], "student_template/ by default"),
        (["-h"], "student_template/ by default"),
        (["grade", "--help"], "--exercise"),
        (["-v", "--help"], "--exercise"),
        (["--version"], "headcheck "),
        (["nowhere"], ""),
    ):
        command = [sys.executable, "-c", script, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        assert words in " ".join(done.stdout.split())


def test_exercise_takes_a_list(command: Command, tmp_path: Path) -> None:
    done = command.run(REFERENCE, "--exercise", " heads,", cwd=tmp_path)
    assert done.status == 0
    assert [exercise["id"] for exercise in report_in(tmp_path)["exercises"]] == ["heads"]


def test_json_names_the_report(command: Command, tmp_path: Path) -> None:
    done = command.run(TEMPLATE, "--json", "mine.json", cwd=tmp_path)
    assert done.status == 1
    assert "Report: mine.json" in done.stdout
    assert report_in(tmp_path, "mine.json")["score"]["earned"] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.json"]


@pytest.mark.parametrize("target", ["no/such/folder/report.json", "folder"])
def test_a_report_that_cannot_be_written(command: Command, tmp_path: Path, target: str) -> None:
    (tmp_path / "folder").mkdir()
    done = command.run(TEMPLATE, "--json", target, cwd=tmp_path)
    assert done.status == 2
    assert "Score 0 /" in done.stdout  # the work was not for nothing
    assert done.stderr.startswith(f"grade.py: The report could not be written to {target}")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_another_seed_gives_the_same_verdicts_from_other_inputs(command: Command, wrong: Path, tmp_path: Path) -> None:
    reports = []
    for name, more in (("course.json", []), ("other.json", ["--seed", "7"])):
        command.run(wrong, "--exercise", "heads", "--json", name, *more, cwd=tmp_path)
        reports.append(report_in(tmp_path, name))
    first, second = reports
    assert second["seed"] == 7 != first["seed"]
    assert verdicts(first) == verdicts(second)
    assert "failed" in verdicts(first).values()
    evidence = [
        next(check["evidence"]["actual"] for check in report["exercises"][0]["checks"] if check["status"] == "failed")
        for report in reports
    ]
    assert evidence[0] != evidence[1]


@pytest.mark.parametrize(
    "methods", [("fork", "fork"), pytest.param(("fork", "spawn"), marks=pytest.mark.slow)], ids=str
)
def test_the_same_work_gives_the_same_report_but_for_times(
    command: Command, wrong: Path, tmp_path: Path, methods: tuple[str, str]
) -> None:
    texts = []
    for number, method in enumerate(methods):
        command.run(wrong, "--start-method", method, "--json", f"{number}.json", cwd=tmp_path)
        report = without_times(report_in(tmp_path, f"{number}.json"))
        assert report["environment"].pop("start_method") == method
        texts.append(json.dumps(report))
    assert texts[0] == texts[1]
    assert str(ROOT) not in texts[0]


def test_isolation_none_judges_the_same_and_shows_what_is_printed(
    command: Command, wrong: Path, tmp_path: Path
) -> None:
    talking = tmp_path / "talking"
    shutil.copytree(wrong, talking)
    with (talking / "gpt.py").open("a", encoding="utf-8") as file:
        file.write("\nprint('here we are')\n")
    command.run(wrong, "--exercise", "heads", "--isolation", "process", "--json", "process.json", cwd=tmp_path)
    done = command.run(talking, "--exercise", "heads", "--isolation", "none", "--json", "none.json", cwd=tmp_path)
    assert done.status == 1
    assert "here we are\n" in done.stdout
    process, none = report_in(tmp_path, "process.json"), report_in(tmp_path, "none.json")
    assert (process["environment"]["isolation"], none["environment"]["isolation"]) == ("process", "none")
    assert verdicts(process) == verdicts(none)
    traces = [[c["trace"] for c in report["exercises"][0]["checks"]] for report in (process, none)]
    assert traces[0] == traces[1]
    assert any(traces[0])


def test_verbose_shows_whole_tracebacks(command: Command, wrong: Path) -> None:
    short, whole = (command.run(wrong, "--exercise", "heads", *more).stdout for more in ([], ["-v"]))
    assert ", in CausalSelfAttention.split_heads" in short and ", in CausalSelfAttention.forward" not in short
    assert ", in CausalSelfAttention.split_heads" in whole and ", in CausalSelfAttention.forward" in whole


def test_an_error_is_shown_however_many_mistakes_come_before_it(command: Command, tmp_path: Path) -> None:
    """Later mistakes are told by their hint alone, and an error has none."""
    work = tmp_path / "work"
    shutil.copytree(REFERENCE, work)
    for name, right, wrong in (
        ("heads_positions.py", ".abs().max().item()", ".abs().max().item() * 2"),
        ("rope.py", "base ** (-pair / head_dim)", "3 * base ** (-pair / head_dim)"),
        ("positions.py", "10000 ** (even / dim)", "9000 ** (even / dim)"),
        ("sharing.py", "def forward(self, x: Tensor) -> Tensor:\n", "def forward(self, x):\n        modell\n"),
    ):
        text = (work / name).read_text(encoding="utf-8")
        assert right in text
        (work / name).write_text(text.replace(right, wrong, 1), encoding="utf-8")
    done = command.run(work, "--exercise", "order,rope,positions,sharing", cwd=tmp_path)
    assert done.status == 1 and "name 'modell' is not defined" in done.stdout, done.stdout


ESCAPE = "\x1b"


def test_colour_is_for_terminals_and_no_color_is_respected(wrong: Path, tmp_path: Path) -> None:
    """Through a real pseudo-terminal, whose reader sees what a person's terminal would get."""
    pty = pytest.importorskip("pty", reason="pseudo-terminals are POSIX's")

    def run_on_terminal(environment: dict[str, str]) -> str:
        ours, theirs = pty.openpty()
        clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
        process = subprocess.Popen(
            [sys.executable, ROOT / "grade.py", TEMPLATE, "--exercise", "heads"],
            cwd=tmp_path,
            env={**clean, "TERM": "xterm-256color", "COLUMNS": "90", **environment},
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        shown = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not chunk:
                break
            shown += chunk
        os.close(ours)
        assert process.wait() == 1
        return shown.decode("utf-8")

    assert f"{ESCAPE}[" in run_on_terminal({})
    plain = run_on_terminal({"NO_COLOR": "1"})
    assert not re.search(ESCAPE + r"\[[0-9;]*3[0-7]m", plain)  # bold may stay, colours may not


def test_piped_output_is_plain_and_fits_any_width(command: Command, wrong: Path) -> None:
    for columns in ("40", "80", "200"):
        done = command.run(wrong, "--exercise", "heads", env={"COLUMNS": columns})
        assert ESCAPE not in done.stdout
        prose = [line for line in done.stdout.splitlines() if not line.startswith("    ")]
        assert max(map(len, prose)) <= min(int(columns), 100)


def test_one_mistake_does_not_fill_screens(command: Command, wrong: Path) -> None:
    done = command.run(wrong, "--exercise", "heads", env={"COLUMNS": "100"})
    assert len(done.stdout.splitlines()) < 75
    assert done.stdout.count("raised RuntimeError") == 1
    story = done.stdout[done.stdout.index("  split_heads: (1, 5, 32)") :]
    order = ["expected  ", "actual    ", "See it yourself", ">>> "]
    assert [story.index(words) for words in order] == sorted(story.index(words) for words in order)


def test_the_template_is_a_few_lines_that_say_where_to_start(command: Command) -> None:
    done = command.run(TEMPLATE, "--exercise", "heads")
    assert done.status == 1
    assert len(done.stdout.splitlines()) < 12
    assert re.search(r"not started +0 / 50", done.stdout)
    assert re.search(r"Next: write CausalSelfAttention.__init__ in gpt.py, line \d+\.", done.stdout)


def test_a_reader_that_leaves_gets_no_traceback(tmp_path: Path) -> None:
    """`python grade.py | head -1`: the report is there all the same."""
    process = subprocess.Popen(
        [sys.executable, ROOT / "grade.py", TEMPLATE], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate()
    assert errors == b"" and process.returncode == 1  # the grade stays what it is
    assert report_in(tmp_path)["score"]["earned"] == 0


def test_a_table_of_which_nobody_reads_the_rest_ends_quietly(tmp_path: Path) -> None:
    """`python grade.py list | head -3`: no complaint, and of the exit statuses that which a shell tells of git then."""
    process = subprocess.Popen(
        [sys.executable, ROOT / "grade.py", "list"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate()
    assert errors == b"" and process.returncode == 141


def test_an_output_that_knows_ascii_only(command: Command, wrong: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "grade.py", wrong, "--exercise", "heads"],
        cwd=wrong.parent,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    lines = done.stdout.decode("ascii").splitlines()
    assert any(line.startswith("+ ") for line in lines) and any(line.startswith("x ") for line in lines)


def test_list_shows_exercises_checks_and_points(command: Command) -> None:
    done = command.run("list")
    assert done.status == 0
    assert "heads.split-lesson" in done.stdout
    assert re.search(r"\d+ points", done.stdout)


@pytest.mark.slow
def test_pytest_judges_the_same(command: Command, wrong: Path, tmp_path: Path) -> None:
    command.run(wrong, cwd=tmp_path)
    expected = list(verdicts(report_in(tmp_path)).values())
    for submission, status in ((wrong, 1), (REFERENCE, 0)):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "graders", "-q", "-p", "no:cacheprovider", "--submission", submission],
            cwd=ROOT, capture_output=True, encoding="utf-8", check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        passed = expected.count("passed") if status else len(expected)
        assert re.search(rf"\b{passed} passed", done.stdout)
        if status:
            assert f"{len(expected) - passed} failed" in done.stdout
            assert "expected: " in done.stdout  # the message for the student, not pytest's traceback


# A course that is broken, in a copy of its own.


class Copy:
    """A copy of the course and the engine, with a server of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("harness", "graders", "reference", "student_template", "tests/support"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("grade.py", "pyproject.toml", "tests/__init__.py"):
            shutil.copyfile(ROOT / name, root / name)
        self.command = Command(root)

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    made = Copy(tmp_path_factory.mktemp("course") / "copy")
    made.write(
        "graders/course.toml",
        'id = "c"\ntitle = "T"\nseed = 1\n[[exercise]]\nid = "e"\ntitle = "E"\nfiles = ["gpt.py"]\n',
    )
    yield made
    made.command.close()


CHECK = """
import torch
from harness.grading import check, expect

@check("e.right", title="Right", points=1, hint="h")
def test_right(student):
    student.gpt

@check("e.odd", title="Odd", points=2, hint="h")
def test_odd(student, reference, draw):
    BODY
"""


@pytest.mark.parametrize(
    "body",
    [
        "None.nothing",
        "raise KeyError(1)",
        "draw.nothing(1)",
        "reference.nothing",
        "student.gpt.GPTConfig(reference.gpt)",
        "expect.message('x')",
        "raise SystemExit(0)",
    ],
)
def test_a_check_that_breaks_down_costs_nothing_and_is_reported(copy: Copy, tmp_path: Path, body: str) -> None:
    copy.write("graders/test_e.py", CHECK.replace("BODY", body))
    done = copy.command.run(REFERENCE, cwd=tmp_path)
    assert done.status == 2, done.stdout
    assert done.stderr.startswith("grade.py: A grader broke down; the report is marked for review.\n")
    report = report_in(tmp_path)
    assert verdicts(report) == {"e.right": "passed", "e.odd": "grader_error"}
    assert report["review"]
    assert (report["score"]["earned"], report["score"]["undecided"]) == (1, 2)
    assert "That is the grader's fault, not yours" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def test_broken(:\n", "SyntaxError"),
        ("import a_package_of_ours\n", "a_package_of_ours"),
        ("def test_no_check(student):\n    pass\n", "is not a check"),
        (CHECK.replace("BODY", "pass").replace("e.odd", "e.right"), "two checks are called e.right"),
        (CHECK.replace("BODY", "pass").replace("e.odd", "Odd"), "not of the form"),
    ],
    ids=["syntax", "import", "no check", "twice", "id"],
)
def test_a_grader_that_cannot_be_collected(copy: Copy, tmp_path: Path, text: str, words: str) -> None:
    copy.write("graders/test_e.py", text)
    done = copy.command.run(REFERENCE, cwd=tmp_path)
    assert (done.status, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("grade.py: The graders could not be run.")
    assert words in done.stderr
    assert not (tmp_path / "report.json").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id = ", "is not valid"),
        ('id = "c"\ntitle = "T"\nseed = "x"\nexercise = []\n', "seed"),
        ('id = "c"\ntitle = "T"\nseed = 1\nexercise = []\n', "at least one exercise"),
        ('id = "c"\ntitle = "T"\nseed = 1\n[[exercise]]\nid = "z"\ntitle = "Z"\nfiles = []\n', "no test_z.py"),
        ('id = "c"\ntitle = "T"\nseed = 1\ntypo = 1\n[[exercise]]\nid = "e"\ntitle = "Z"\nfiles = []\n', "typo"),
    ],
)
def test_a_course_file_that_is_not_valid(copy: Copy, text: str, words: str) -> None:
    good = (copy.root / "graders/course.toml").read_text(encoding="utf-8")
    copy.write("graders/course.toml", text)
    try:
        done = copy.command.run(REFERENCE)
    finally:
        copy.write("graders/course.toml", good)
    assert (done.status, done.stdout) == (2, "")
    assert words in done.stderr.splitlines()[0]
