"""Marks by hand: whose they are, what they count, and that none is lost."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from harness.batch.marks import Mark, read_marks
from harness.batch.summary import rebuild
from harness.batch.work import Plan, plan
from harness.intake import read
from harness.intake.attempts import arrange
from harness.problem import Problem
from tests.support.fake_judge import POINTS, Class, core_course

ALL = [exercise.id for exercise in core_course().exercise]
FULL = 2 * POINTS * len(ALL)


@pytest.fixture
def two(tmp_path: Path) -> Class:
    return Class(tmp_path, {"ada": "heads.a failed", "ben": ""})


def test_a_mark_decides_what_waits_for_a_person(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"ada": "heads.a pending\nheads.b grader_error"})
    marks = tmp_path / "marks.csv"
    marks.write_text("id;exercise;points\nada;heads;5,5\n", encoding="utf-8")
    cls.run()
    assert cls.report("ada").score.undecided == 2 * POINTS
    cls.run(marks=read_marks(marks, cls.plan(), ALL))
    score = cls.report("ada").score
    assert score.undecided == 0 and score.final == FULL - 2 * POINTS + 5.5
    assert rebuild(cls.store).review == []


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("id,check,points\nzoe,heads.a,1\n", "Row 2: there is no student 'zoe'"),
        ("id,check,points\nada,tails.a,1\n", "Row 2: there is no check or exercise 'tails.a'"),
        ("id,check,points\nada,heads.a,-1\n", "Row 2: '-1' is not a number of points"),
        ("id,check,points\nada,heads.a,nan\n", "Row 2: 'nan' is not a number of points"),
        ("id,check,points\nada,heads.a,1\nada,heads,2\n", "Row 3: row 2 marks heads.a of ada already"),
        ("id,points\nada,1\n", "must have the columns"),
        ("", "must have the columns"),
    ],
)
def test_marks_that_cannot_be_used_are_named(two: Class, tmp_path: Path, rows: str, said: str) -> None:
    marks = tmp_path / "marks.csv"
    marks.write_text(rows, encoding="utf-8")
    with pytest.raises(Problem) as raised:
        read_marks(marks, two.plan(), ALL)
    assert said in f"{raised.value.what}\n{raised.value.help}"


@pytest.mark.parametrize("judged_before", [False, True])
def test_marks_that_do_not_fit_the_checks_are_all_named_before_anything_is_done(
    two: Class, tmp_path: Path, judged_before: bool
) -> None:
    if judged_before:
        two.run()
    before = {path: path.read_bytes() for path in two.store.path.rglob("*.json")}
    with pytest.raises(Problem, match="The marks cannot be used") as raised:
        two.run(marks=marks_of(two, tmp_path, "ben,heads.a,5\nada,heads.zzz,1\nada,heads.b,1\n"))
    assert raised.value.help.splitlines() == [
        "Row 2 of the marks: heads.a has 4 points at most, not 5.",
        "Row 3 of the marks: there is no check or exercise 'heads.zzz'.",
    ]
    assert {path: path.read_bytes() for path in two.store.path.rglob("*.json")} == before
    assert two.judged == ([] if judged_before else [""])  # whom nobody is: to see which checks there are


def marks_of(cls: Class, tmp_path: Path, rows: str, plan: Plan | None = None) -> Mapping[str, list[Mark]]:
    path = tmp_path / "marks.csv"
    path.write_text(f"id,check,points,comment\n{rows}", encoding="utf-8")
    return read_marks(path, plan or cls.plan(), ALL)


def test_a_decimal_comma_without_quotes_is_no_comment(two: Class, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="cannot be used") as raised:
        marks_of(two, tmp_path, "ada,heads.a,2,5,good but late\n")
    assert "Row 2 has more cells" in raised.value.help
    assert marks_of(two, tmp_path, 'ada,heads.a,"2,5",good,,\n')["ada"][0].points == 2.5


def test_a_mark_is_the_students_whose_id_is_written_like_it(tmp_path: Path) -> None:
    """Folders are called otherwise where an id has a blank, or differs from another in case only."""
    cls = Class(tmp_path, {"x b": "", "x_b": "", "Ada": "", "ada": ""})
    marks = marks_of(cls, tmp_path, "x_b,heads,1\nada,heads,2\n")
    cls.run(marks=marks)
    finals = {cls.report(id).student.id: cls.report(id).score.final for id in cls.store.ids()}  # type: ignore[union-attr]
    assert finals == {"x b": FULL, "x_b": FULL - 2 * POINTS + 1, "Ada": FULL, "ada": FULL - 2 * POINTS + 2}


def test_a_student_keeps_folder_and_marks_when_another_of_nearly_the_same_name_comes(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"x_b": ""})
    cls.run(marks=marks_of(cls, tmp_path, "x_b,heads,1\n"))
    cls.hand_in("x b", "rope.a failed")
    work = plan(arrange(read(cls.submissions).attempts), cls.store.owners())
    cls.run(plan=work)
    assert {id: cls.report(id).student.id for id in cls.store.ids()} == {"x_b": "x_b", "x_b~2": "x b"}  # type: ignore[union-attr]
    assert (cls.report("x_b").score.final, cls.report("x_b~2").score.final) == (FULL - 2 * POINTS + 1, FULL - POINTS)


def test_an_earlier_result_of_somebody_whose_work_is_gone_is_left_alone(two: Class, tmp_path: Path) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text("id,name,github\n1,Ada,ada\n2,Ben,ben\n", encoding="utf-8")
    two.run(plan=two.plan(roster), marks=marks_of(two, tmp_path, "2,heads,1\n", two.plan(roster)))
    before = {path: path.read_bytes() for path in (two.store.path / "2").iterdir()}
    shutil.rmtree(two.submissions / "ben")
    assert two.run(plan=two.plan(roster)).how == {"1": "reused", "2": "reused"}
    assert {path: path.read_bytes() for path in (two.store.path / "2").iterdir()} == before


def test_marks_of_a_person_count_where_nothing_can_be_judged(two: Class, tmp_path: Path) -> None:
    """Work on paper, or an archive that only a person could open: what is not marked waits for a person."""
    roster = tmp_path / "roster.csv"
    roster.write_text("id,name,github\n1,Ada,ada\n2,Ben,ben\n3,Cy,cy\n", encoding="utf-8")
    shutil.rmtree(two.submissions / "ada")
    (two.submissions / "ada.zip").write_bytes(b"PK\x03\x04 this is not a zip")
    work = two.plan(roster)
    two.run(plan=work)
    assert rebuild(two.store).nothing == ["3"] and list(rebuild(two.store).unreadable) == ["1"]
    two.run(plan=work, marks=marks_of(two, tmp_path, "1,heads,3\n3,heads,1\n3,order,2\n3,rope,0\n", work))
    ada, cy = two.report("1"), two.report("3")
    assert (ada.score.final, ada.score.undecided, cy.score.final, cy.score.undecided) == (3, FULL - 2 * POINTS, 3, 0)
    assert rebuild(two.store).pending == ["1"] and "ada.zip" in ada.submission.notes[0].text
    files = {path: path.read_bytes() for path in two.store.path.rglob("*.json")}
    assert two.run(plan=work).how == {"1": "not judged", "2": "reused", "3": "not judged"} and two.judged == []
    assert {path: path.read_bytes() for path in two.store.path.rglob("*.json")} == files
    two.run(plan=work, marks={})
    assert rebuild(two.store).nothing == ["3"] and two.report("1").exercises == []


def test_a_mark_stays_while_a_submission_cannot_be_read(two: Class, tmp_path: Path) -> None:
    two.run(marks=marks_of(two, tmp_path, "ada,heads,3\n"))
    marked = two.report("ada").score.final
    (two.submissions / "ada" / "gpt.py").rename(tmp_path / "gpt.py")
    shutil.rmtree(two.submissions / "ada")
    (two.submissions / "ada.zip").write_bytes(b"PK\x03\x04 this is not a zip")
    two.run()
    assert two.report("ada").score.final == 3
    (two.submissions / "ada.zip").unlink()
    two.hand_in("ada", (tmp_path / "gpt.py").read_text(encoding="utf-8"))
    two.run()
    assert two.report("ada").score.final == marked


def test_a_mark_that_the_course_has_outgrown_stops_nothing_and_is_shown(two: Class, tmp_path: Path) -> None:
    two.run(marks=marks_of(two, tmp_path, "ada,heads.a,3,well argued\n"))
    stored = two.store.read("ada")
    assert stored is not None and stored.key is not None
    outgrown = [msgspec.structs.replace(item, check="heads.old") for item in stored.report.adjustments]
    two.store.save("ada", msgspec.structs.replace(stored.report, adjustments=outgrown), stored.key, {"gpt.py": b""})
    for _ in range(2):
        two.run()
        (kept,) = two.report("ada").adjustments
        assert (kept.points, kept.reason.id, kept.reason.params["comment"]) == (0, "marks.unfit", "well argued")
        assert rebuild(two.store).review == ["ada"]
    two.run(marks={})
    assert two.report("ada").adjustments == [] and rebuild(two.store).review == []
