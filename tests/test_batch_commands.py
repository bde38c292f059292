"""The commands `batch` and `summary` as they are typed, with a judge that answers at once."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from harness import cli, terminal
from harness.batch import commands, show
from harness.batch.marks import read_marks
from harness.batch.show import Display
from harness.batch.summary import Tally, rebuild
from harness.batch.work import Plan, Task
from harness.course import read_course
from harness.judge import Order
from harness.problem import Problem
from harness.report import Student, Text
from tests.support.command import ROOT
from tests.support.fake_judge import Class, FakeExecutor

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """`grade.py ARGUMENTS` in tmp_path: exit status, standard output, standard error. `no-graders` breaks the judge."""

    def judging(order: Order) -> None:
        if Path("no-graders").exists():
            raise Problem("The graders could not be run.")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "_make_executor", lambda *asked: FakeExecutor(read_course(), judging))

    def typed(*arguments: str | Path) -> tuple[int, str, str]:
        status = cli.run([str(word) for word in arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return typed


@pytest.fixture
def two(tmp_path: Path) -> Class:
    """Ada, who got all right, and Ben, who did not."""
    return Class(tmp_path, {"ada": "", "ben": "heads.a failed"})


# What others wrote is shown as it is


def hand_in_oddly(two: Class, name: str) -> None:
    """A zip of a method that is not read; what is said of it names its file."""
    with zipfile.ZipFile(two.submissions / "zoe.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr(name, "x")


@pytest.mark.parametrize("name", ["a[/b].py", "a[red]b.py"])
def test_a_file_name_is_no_markup(run: Run, two: Class, name: str) -> None:
    hand_in_oddly(two, name)
    status, said, err = run("batch", "class", "--out", "results")
    assert (status, err) == (1, "")
    assert said.count(name) == 2, said  # on its line, and among what cannot be read
    for more in (run("batch", "class", "--out", "results"), run("summary", "results")):
        assert more[0] == 1 and name in more[1]


def test_what_is_shown_of_a_report_is_no_markup(two: Class) -> None:
    two.run()
    odd, shown = ":smile: [/b] \x1b[2J \u202e 1 'a'\nb", ":smile: [/b] \\x1b[2J \\u202e 1 'a'\\nb"
    report = two.report("ada")
    report.exercises, report.submission.notes = [], [Text("x", odd)]
    tally = Tally()
    tally.add("[ada]", report)
    summary = tally.summary()
    summary.title, summary.review = odd, [odd]
    console = terminal.console(io.StringIO(), width=200)
    with Display(console, 1) as display:
        display.finished("[ada]", report, "not judged")
        display.postponed("[ada]", odd)
    show.show(summary, console)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert said.count(shown) == 5 and said.count("[ada]") == 3, said


def test_a_terminal_gets_no_colours_for_what_others_wrote() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=200)  # as rich makes it, which looks for both
    Display(console, 1, quiet=True)._line("'a' 1 https://x.org [red]")
    assert console.file.getvalue() == "'a' 1 https://x.org [red]\n"  # type: ignore[attr-defined]


def test_the_commands_print_with_one_console_which_knows_no_markup() -> None:
    console = terminal.console(io.StringIO(), width=200)
    console.print("[red]a[/b] :smile:")
    table = Table(box=None)
    table.add_row("[red]a[/b] :smile:")
    console.print(table)
    assert console.file.getvalue().count("[red]a[/b] :smile:") == 2  # type: ignore[attr-defined]
    makers = [path.name for path in (ROOT / "harness").rglob("*.py") if " Console(" in path.read_text(encoding="utf-8")]
    assert makers == ["terminal.py"]


def test_the_folder_of_results_is_no_markup(run: Run, two: Class) -> None:
    status, said, _ = run("batch", "class", "--out", "r[/b]")
    assert status == 0 and "Results: r[/b]\n" in said


def test_results_of_others_are_no_markup(run: Run, two: Class, tmp_path: Path) -> None:
    run("batch", "class", "--out", "results")
    (tmp_path / "results" / "ben").rename(tmp_path / "results" / "[red]")
    shutil.rmtree(two.submissions / "ben")
    status, said, _ = run("batch", "class", "--out", "results")
    assert status == 0 and "were left: [red]\n" in said


# Where results may go


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("submissions", "out", "said"),
    [
        ("class", "class", "must not go where the submissions are"),
        ("class", "link", "must not go where the submissions are"),
        ("class.zip", "class.zip", "must not go where the submissions are"),
        ("class", "class/results", "lies among the submissions"),
        ("link", "class/ada/deep/results", "lies among the submissions"),
        ("class", ".", "lie within ., where the results are to go"),
        ("class", "file", "file is a file"),
        ("class", "file/results", "file is a file"),
    ],
)
def test_results_go_nowhere_where_they_do_harm(
    run: Run, two: Class, tmp_path: Path, submissions: str, out: str, said: str
) -> None:
    for name in ("report.json", "key.json", "submission.zip"):  # what a result would overwrite
        (two.submissions / "ada" / name).write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to("class", target_is_directory=True)
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    zip_of(two, tmp_path / "class.zip")
    before = contents(tmp_path)
    status, shown, err = run("batch", submissions, "--out", out)
    assert (status, shown) == (2, "") and said in err and "with --out" in err, err
    assert contents(tmp_path) == before and not (tmp_path / "class" / "results").exists()


def zip_of(cls: Class, path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents(cls.submissions).items():
            archive.writestr(name, data)


def test_a_zip_of_the_class_may_lie_among_the_results(run: Run, two: Class, tmp_path: Path) -> None:
    (tmp_path / "week").mkdir()
    zip_of(two, tmp_path / "week" / "class.zip")
    assert run("batch", "week/class.zip", "--out", "week")[0] == 0
    assert (tmp_path / "week" / "ada" / "report.json").is_file()


def test_a_neighbour_whose_name_begins_alike_may_take_the_results(run: Run, two: Class) -> None:
    assert run("batch", "class", "--out", "class-results")[0] == 0


# --fresh


def test_fresh_deletes_nothing_before_the_graders_have_run(run: Run, two: Class, tmp_path: Path) -> None:
    run("batch", "class", "--out", "results")
    before = contents(tmp_path / "results")
    (tmp_path / "no-graders").touch()
    status, _, err = run("batch", "class", "--out", "results", "--fresh")
    assert status == 2 and "The graders could not be run" in err
    assert contents(tmp_path / "results") == before


def test_fresh_uses_nothing_of_earlier_results_and_leaves_nothing_of_them(run: Run, two: Class, tmp_path: Path) -> None:
    two.hand_in("gone", "")
    (tmp_path / "marks.csv").write_text("id,check,points\nben,heads.a,3\n", encoding="utf-8")
    run("batch", "class", "--out", "results", "--marks", "marks.csv")
    assert two.report("ben").adjustments != []
    note = tmp_path / "results" / "gone" / "note.txt"
    note.write_text("mine", encoding="utf-8")
    for place in ("ben", "gone"):  # as --attempt best leaves them
        shutil.copytree(tmp_path / "results" / "ada", tmp_path / "results" / place / "attempts" / "1")
    shutil.rmtree(two.submissions / "gone")
    status, said, _ = run("batch", "class", "--out", "results", "--fresh")
    assert status == 0 and "2/2" in said, "both are judged again"
    assert two.report("ben").adjustments == []
    assert sorted(contents(tmp_path / "results").keys() - {".lock", "scores.csv", "summary.json"}) == [
        *(f"{who}/{name}" for who in ("ada", "ben") for name in ("key.json", "report.json", "submission.zip")),
        "gone/note.txt",
    ]


def test_fresh_keeps_attempts_of_this_run(run: Run, two: Class, tmp_path: Path) -> None:
    for _ in range(2):
        two.run(plan=Plan((with_attempts(two, "ben", 2),), ()), best=True, fresh=True)
    assert {"ben/attempts/1/report.json", "ben/attempts/2/report.json"} <= contents(tmp_path / "results").keys()
    two.run(plan=Plan((with_attempts(two, "ben", 1),), ()), best=True, fresh=True)
    assert not (tmp_path / "results" / "ben" / "attempts").exists()


def with_attempts(cls: Class, id: str, count: int) -> Task:
    task = next(task for task in cls.plan().tasks if task.id == id)
    return replace(task, entry=replace(task.entry, attempts=task.entry.attempts * count))


def test_fresh_deletes_no_result_whose_folder_is_spelled_otherwise(two: Class) -> None:
    """As where a file system takes Ada for ada."""
    two.run()
    with two.store.locked():
        two.store.forget({"ADA"})
    assert two.store.ids() == ["ada"]


def test_fresh_and_only_failed_exclude_each_other(run: Run, two: Class, tmp_path: Path) -> None:
    run("batch", "class", "--out", "results")
    before = contents(tmp_path / "results")
    assert run("batch", "class", "--out", "results", "--fresh", "--only-failed")[0] == 2
    assert contents(tmp_path / "results") == before


# Reports that cannot be read


def damage(report: Path, how: str) -> None:
    data = report.read_bytes()
    if how == "cut":
        report.write_bytes(data[:100])
    elif how == "newer":
        newer = json.loads(data) | {"schema_version": "2"}
        newer["environment"]["headcheck"] = "9.1"
        report.write_text(json.dumps(newer), encoding="utf-8")
    elif how == "newer and changed":  # so that nothing but its version can be made out
        report.write_text('{"schema_version": "2", "score": 3}', encoding="utf-8")
    else:
        report.write_text(data.decode().replace('"schema_version": "1"', '"schema_version": "1-mine"'), "utf-8")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            "cut",
            [
                "It is damaged (",
                "The next `batch` makes it anew, and keeps this one beside it as report.damaged.json; "
                "marks by hand in it must be given again with --marks",
            ],
        ),
        ("newer", ["schema version 2", "versions up to 1", "Use the headcheck that wrote it, 9.1, or a newer one."]),
        ("newer and changed", ["schema version 2", "Use a newer headcheck to read it."]),
        ("edited", ["schema version '1-mine'", "with --marks"]),
    ],
)
def test_summary_names_reports_that_it_cannot_read(
    run: Run, two: Class, tmp_path: Path, how: str, said: list[str]
) -> None:
    run("batch", "class", "--out", "results")
    damage(tmp_path / "results" / "ben" / "report.json", how)
    status, shown, err = run("summary", "results")
    assert status == 1 and err.count("\n") == 1, err
    assert [part for part in [str(Path("results", "ben", "report.json")), "left out", *said] if part not in err] == []
    assert "Left out        ben" in shown and "Results         1" in shown
    summary = json.loads((tmp_path / "results" / "summary.json").read_bytes())
    assert summary["results"] == 1 and list(summary["left_out"]) == ["ben"] and said[0] in summary["left_out"]["ben"]
    assert "\nben,,,,left out," in (tmp_path / "results" / "scores.csv").read_text(encoding="utf-8")


def test_a_batch_names_the_damaged_report_of_somebody_else(run: Run, two: Class, tmp_path: Path) -> None:
    run("batch", "class", "--out", "results")
    damage(tmp_path / "results" / "ben" / "report.json", "cut")
    shutil.rmtree(two.submissions / "ben")
    status, said, err = run("batch", "class", "--out", "results", "--quiet")
    assert (status, said) == (1, "") and "is damaged" in err


# What is nobody's work


@pytest.mark.parametrize(("count", "said"), [(1, "1 thing among"), (12, "12 things among")])
def test_what_is_not_graded_is_named(run: Run, two: Class, count: int, said: str) -> None:
    for number in range(count):
        (two.submissions / f"notes\u202e{number:02}.md").write_text("", encoding="utf-8")
    status, _, err = run("batch", "class", "--out", "results")
    assert status == 0 and said in err and err.count("\n") == 1 and "--layout" in err
    assert err.count("notes\\u202e") == min(count, 10) and ("..." in err) == (count > 10)
    assert run("batch", "class", "--out", "results", "--quiet") == (0, "", "")


# The table


@pytest.mark.parametrize(
    ("id", "cell"),
    [
        ("\uff1d1+1", "'\uff1d1+1"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\nb", "a b"),
        ("\n=1+1", "'=1+1"),
        ("-5", "'-5"),
    ],
)
def test_ids_in_the_table_are_harmless(two: Class, id: str, cell: str) -> None:
    plan = two.plan()
    targets = (replace(plan.tasks[0].targets[0], student=Student(id=id)),)
    two.run(plan=Plan((replace(plan.tasks[0], targets=targets),), ()))
    rebuild(two.store)
    with (two.store.path / "scores.csv").open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    assert [row["id"] for row in rows] == [cell]
    assert (rows[0]["final"], rows[0]["earned"], rows[0]["attempt"]) == ("24", "24", "1")


# Exit statuses, and what the figures are about


@pytest.mark.parametrize(
    ("work", "status", "shown"),
    [
        ("heads.a failed", 0, "Graded in full  3"),
        ("heads.a pending", 1, "Waiting for marks  1, not among the scores"),
        ("heads.a grader_error", 1, "For review      ben"),
        (None, 1, "Not readable    ben"),
    ],
)
def test_the_exit_status_tells_whether_a_person_is_wanted(
    run: Run, two: Class, work: str | None, status: int, shown: str
) -> None:
    two.hand_in("cy", "")
    hand_in(two, "ben", work)
    done = run("batch", "class", "--out", "results")
    assert (done[0], done[2]) == (status, "") and shown in done[1], done[1]
    assert run("summary", "results")[0] == status
    assert run("batch", "class", "--out", "results", "--quiet") == (status, "", "")


def hand_in(cls: Class, name: str, work: str | None) -> None:
    """None: what cannot be read."""
    if work is not None:
        cls.hand_in(name, work)
        return
    shutil.rmtree(cls.submissions / name)
    (cls.submissions / f"{name}.zip").write_bytes(b"")


def test_marks_by_hand_end_the_waiting(run: Run, two: Class, tmp_path: Path) -> None:
    two.hand_in("ben", "heads.a pending")
    assert run("batch", "class", "--out", "results")[0] == 1
    (tmp_path / "marks.csv").write_text("id,check,points\nben,heads.a,1\n", encoding="utf-8")
    status, said, _ = run("batch", "class", "--out", "results", "--marks", "marks.csv")
    assert status == 0 and "Waiting" not in said


def test_where_nothing_could_be_read_the_status_says_that_nothing_was_graded(
    run: Run, two: Class, tmp_path: Path
) -> None:
    for name in ("ada", "ben"):
        hand_in(two, name, None)
    (tmp_path / "roster.csv").write_text("id,name\nada,A\nben,B\ncy,C\n", encoding="utf-8")
    for arguments in (("batch", "class", "--out", "results", "--roster", "roster.csv"), ("summary", "results")):
        status, said, err = run(*arguments)
        assert status == 2 and "no submission could be read" in err and "Nothing handed in" in said


def test_hardest_checks_say_over_how_many_and_pass_over_who_waits(two: Class, tmp_path: Path) -> None:
    for name, text in {"ben": "heads.a failed\nrope.a pending", "cy": "heads.a pending\nrope.a pending"}.items():
        two.hand_in(name, text)
    two.hand_in("ada", "rope.a pending")
    two.run()
    assert hardest(two) == [" 50 % of 2 pass  heads.a"]
    marks = tmp_path / "marks.csv"
    marks.write_text("id,check,points\nben,heads.a,4\ncy,heads.a,3.5\ncy,rope.a,0\nada,rope,8\n", encoding="utf-8")
    two.run(marks=read_marks(marks, two.plan(), ["heads", "rope"]))
    assert hardest(two) == ["  0 % of 1 pass  rope.a", " 67 % of 3 pass  heads.a"]
    heads = next(check for check in rebuild(two.store).checks if check.id == "heads.a")
    assert (heads.judged, heads.passed, heads.statuses) == (3, 2, {"failed": 1, "passed": 1, "pending": 1})


def hardest(cls: Class) -> list[str]:
    console = terminal.console(io.StringIO(), width=200)
    show.show(rebuild(cls.store), console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return [line[line.index(" % of ") - 3 :].rstrip() for line in lines if " % of " in line]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the file that is always full, which Linux has")
@pytest.mark.parametrize("command", [("batch", "class", "--out", "results"), ("summary", "results")])
def test_output_that_goes_nowhere_is_told_with_the_next_step(
    run: Run, two: Class, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    two.run()
    with contextlib.suppress(OSError), Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        status, _, err = run(*command)
    assert status == 2 and "No space left" in err and "are kept; run the command again." in err


# Whose result lies where


def test_whose_work_is_gone_is_named_and_the_result_left(run: Run, two: Class, tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text("id,name\nada,A\nben,B\n", encoding="utf-8")
    asked = ("batch", "class", "--out", "results", "--roster", "roster.csv")
    run(*asked)
    scores = (tmp_path / "results" / "scores.csv").read_bytes()
    shutil.rmtree(two.submissions / "ben")
    status, _, err = run(*asked)
    assert status == 0 and "of 1 on the roster nothing is among the submissions any more" in err and "left: ben." in err
    assert (tmp_path / "results" / "scores.csv").read_bytes() == scores
    run(*asked, "--fresh")
    assert rebuild(two.store).nothing == ["ben"]


def test_a_folder_of_results_stays_its_students(run: Run, two: Class, tmp_path: Path) -> None:
    two.hand_in("x_b", "")
    run("batch", "class", "--out", "results")
    two.hand_in("x b", "")
    for more in ((), ("--fresh",)):
        run("batch", "class", "--out", "results", *more)
        owners = {id: student.id for id, student in two.store.owners().items()}
        assert owners == {"ada": "ada", "ben": "ben", "x_b": "x_b", "x_b~2": "x b"}
    shutil.rmtree(two.submissions / "x_b")
    shutil.rmtree(two.store.path / "x_b")
    run("batch", "class", "--out", "results")
    assert two.store.owners()["x_b~2"].id == "x b"  # though the name that it would have now is free


@pytest.mark.parametrize("more", [("--marks", "marks.csv"), ("--regrade", "ada"), ("--fresh",)])
def test_only_failed_goes_with_nothing_that_changes_other_results(
    run: Run, two: Class, tmp_path: Path, more: tuple[str, ...]
) -> None:
    (tmp_path / "marks.csv").write_text("id,check,points\nada,heads,1\n", encoding="utf-8")
    run("batch", "class", "--out", "results")
    status, said, err = run("batch", "class", "--out", "results", "--only-failed", *more)
    assert (status, said) == (2, "") and "--only-failed" in err
