"""The run over a class, with a judge that says what the submission tells it to: what is judged, reused, repeated."""

from __future__ import annotations

import datetime
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from harness.batch.keys import basis
from harness.batch.marks import read_marks
from harness.batch.summary import rebuild
from harness.batch.work import Plan, Target, Task, plan
from harness.course import ROOT, Late
from harness.intake.attempts import Entry, Work, arrange
from harness.intake.found import Found, Person, Piece
from harness.judge import Order
from harness.outcome import Status
from harness.problem import Problem
from harness.report import Student
from tests.support.fake_judge import POINTS, Class, FakeExecutor, core_course

ALL = [exercise.id for exercise in core_course().exercise]
FULL = 2 * POINTS * len(ALL)


@pytest.fixture
def two(tmp_path: Path) -> Class:
    return Class(tmp_path, {"ada": "heads.a failed", "ben": ""})


def test_each_submission_is_judged_once_and_then_reused(two: Class) -> None:
    assert two.run().how == {"ada": "judged", "ben": "judged"}
    assert two.report("ada").score.final == FULL - POINTS
    before = {path: path.read_bytes() for path in two.store.path.rglob("*") if path.is_file()}
    assert two.run().how == {"ada": "reused", "ben": "reused"}
    assert two.judged == []
    assert {path: path.read_bytes() for path in two.store.path.rglob("*") if path.is_file()} == before


def test_a_changed_submission_is_judged_again_and_no_other(two: Class) -> None:
    two.run()
    two.hand_in("ada", "heads.a passed")
    two.run()
    assert two.judged == ["ada"]
    assert two.report("ada").score.final == FULL


@pytest.mark.parametrize("name", ["reference", "harness", "seed", "torch", "python", "limits", "isolation", "graders"])
def test_whatever_all_verdicts_depend_on_makes_all_be_judged_again(two: Class, name: str) -> None:
    two.run()
    assert name in two.basis.common
    two.run(basis=replace(two.basis, common=two.basis.common | {name: "another"}))
    assert two.judged == ["ada", "ben"]
    assert all(order.exercises == ALL for order in two.executor.orders)


def test_changing_one_grader_has_that_exercise_alone_judged_again(two: Class) -> None:
    two.run()
    old = two.report("ada")
    two.run(basis=replace(two.basis, exercises=two.basis.exercises | {"rope": "another"}))
    assert [order.exercises for order in two.executor.orders] == [["rope"], ["rope"]]
    assert two.report("ada").score == old.score
    assert [exercise.id for exercise in two.report("ada").exercises] == ALL
    two.run(basis=replace(two.basis, exercises=two.basis.exercises | {"rope": "another"}))
    assert two.judged == []


def test_a_named_mistake_that_may_explain_another_exercise_has_all_judged_again(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"ada": "heads.a failed\nheads.a! heads.some-mistake\nrope.b failed", "ben": "rope.b failed"})
    cls.run()
    cls.run(basis=replace(cls.basis, exercises=cls.basis.exercises | {"rope": "another"}))
    asked = [(order.name, order.exercises) for order in cls.executor.orders]
    assert asked.count(("ada", ALL)) == 1 and ("ben", ALL) not in asked


def test_digests_tell_whose_grader_changed(tmp_path: Path) -> None:
    for folder in ("graders", "reference", "harness"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    course = core_course()

    def look():  # type: ignore[no-untyped-def]
        return basis(course, 1, "process", tmp_path)

    def touch(name: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((path.read_bytes() if path.exists() else b"") + b"\n# changed\n")

    before = look()
    for name in ("graders/test_rope.py", "graders/misconceptions/rope.py", "graders/accepted/rope.py"):
        touch(name)
        after = look()
        assert after.common == before.common
        assert [id for id in ALL if after.exercises[id] != before.exercises[id]] == ["rope"], name
        before = after
    touch("graders/degenerate/rope.py")
    assert (look().common, look().exercises) == (before.common, before.exercises)
    for name, what in (
        ("graders/conftest.py", "graders"),
        ("graders/shared.py", "graders"),
        ("reference/rope.py", "reference"),
        ("reference/data/small.safetensors", "reference"),
        ("harness/expect.py", "harness"),
    ):
        touch(name)
        after = look()
        assert [key for key in after.common if after.common[key] != before.common[key]] == [what]
        assert after.exercises == before.exercises
        before = after


def test_regrade_and_only_failed(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"ada": "", "ben": "rope.a timeout", "cy": "heads.a failed", "dee": "heads.a grader_error"})
    cls.run()
    cls.run(regrade=frozenset({"cy"}))
    assert sorted(set(cls.judged)) == ["cy", "dee"]  # a broken grader's verdict is never used again
    cls.hand_in("eve", "")
    heard = cls.run(only_failed=True)
    assert set(heard.how) == {"ben", "dee"}
    assert set(cls.judged) == {"ben", "dee"}


@pytest.mark.parametrize("status", ["timeout", "out_of_memory", "crashed"])
def test_what_may_be_the_machines_fault_is_judged_once_more_alone_and_last(tmp_path: Path, status: str) -> None:
    cls = Class(tmp_path, {"ada": f"once rope.a {status}", "ben": f"heads.a {status}", "cy": "", "dee": ""})
    heard = cls.run()
    assert cls.judged[:4] == ["ada", "ben", "cy", "dee"]
    assert sorted(cls.judged[4:]) == sorted(heard.again) == ["ada", "ben"]
    assert cls.report("ada").score.final == FULL
    assert cls.report("ben").exercises[0].checks[0].status == status
    assert cls.run().how == dict.fromkeys(["ada", "ben", "cy", "dee"], "reused")


def test_a_run_that_stops_before_the_second_time_goes_on_with_it(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"ada": "once rope.a timeout", "ben": ""})

    def stop(order: Order) -> None:
        if len(cls.executor.orders) == 2:
            raise KeyboardInterrupt

    cls.executor = FakeExecutor(cls.course, stop)
    with pytest.raises(KeyboardInterrupt):
        cls.run()
    cls.executor.hook = lambda order: None
    cls.run()
    assert cls.judged == ["ada"]
    assert cls.report("ada").score.final == FULL


def test_a_submission_that_ends_its_judge_twice_waits_for_a_person(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"ada": "dies", "ben": "once dies", "cy": ""})
    cls.run()
    ada = cls.report("ada")
    assert ada.review and ada.score.undecided == FULL and ada.score.final == 0
    assert {check.status for exercise in ada.exercises for check in exercise.checks} == {Status.GRADER_ERROR}
    assert ada.submission.digest and ada.submission.files
    assert cls.report("ben").score.final == FULL and cls.report("cy").score.final == FULL


def test_a_judge_that_cannot_judge_anything_stops_the_batch(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"ada": "dies"})
    submit = cls.executor.submit
    cls.executor.submit = lambda order: submit(msgspec.structs.replace(order, files={"gpt.py": b"dies"}))  # type: ignore[method-assign]
    with pytest.raises(Problem, match="ends by itself"):
        cls.run()


def test_what_cannot_be_read_is_a_result_with_its_reason(two: Class) -> None:
    (two.submissions / "cy.zip").write_bytes(b"PK\x03\x04 this is not a zip")
    assert two.run().how["cy"] == "not judged"
    cy = two.report("cy")
    assert cy.exercises == [] and "cy.zip" in cy.submission.notes[0].text
    assert two.report("ada").score.final == FULL - POINTS
    before = (two.store.path / "cy" / "report.json").read_bytes()
    two.run()
    assert (two.store.path / "cy" / "report.json").read_bytes() == before
    assert rebuild(two.store).unreadable["cy"] == cy.submission.notes[0].text


def test_a_submission_that_vanishes_during_the_run_stops_nothing(two: Class) -> None:
    plan = two.plan()
    two.executor.hook = lambda order: shutil.rmtree(two.submissions / "ben", ignore_errors=True)
    two.run(plan=plan)
    assert two.report("ada").score.final == FULL - POINTS
    assert two.report("ben").exercises == [] and two.report("ben").submission.notes


def test_of_what_is_in_memory_there_is_only_what_is_being_judged(tmp_path: Path) -> None:
    cls = Class(tmp_path, {f"s{number:02}": str(number) for number in range(30)})
    most = 0

    def look(order: Order) -> None:
        nonlocal most
        kept = len(cls.store.ids())
        most = max(most, len(cls.executor.orders) - kept)

    cls.executor.hook = look
    cls.run()
    assert most <= cls.executor.slots * 2


# Attempts, rosters, lateness


def attempts(tmp_path: Path, *work: tuple[str, str]) -> Plan:
    """A student's attempts: time in UTC and the text of gpt.py, as a layout that tells times gives them."""
    found = []
    for number, (when, text) in enumerate(work, 1):
        folder = tmp_path / f"attempt{number}"
        folder.mkdir()
        (folder / "gpt.py").write_text(text, encoding="utf-8")
        time = datetime.datetime.fromisoformat(f"{when}+00:00")
        found.append(Found("ada", f"attempt{number}", (Person("Ada", ids={"folder": "ada"}),), time,
                           pieces=(Piece(tmp_path, f"attempt{number}"),)))  # fmt: skip
    return plan(arrange(found))


def test_the_latest_attempt_counts_unless_the_best_is_asked_for(tmp_path: Path) -> None:
    cls = Class(tmp_path, {})
    work = attempts(tmp_path, ("2026-03-01T10:00", "heads.a failed\nheads.b failed"), ("2026-03-01T11:00", ""),
                    ("2026-03-01T12:00", "heads.a failed"))  # fmt: skip
    cls.run(plan=work)
    assert cls.judged == ["attempt3"]
    latest = cls.report("ada")
    assert latest.attempt is not None and latest.attempt.number == 3
    assert latest.attempt.others == ["attempt1", "attempt2"]
    cls.run(plan=work, best=True)
    assert cls.judged == ["attempt1", "attempt2"]
    best = cls.report("ada")
    assert best.attempt is not None and best.attempt.number == 2 and best.score.final == FULL
    cls.run(plan=work, best=True)
    assert cls.judged == []
    cls.run(plan=work)
    assert cls.judged == [] and cls.report("ada").attempt == latest.attempt


def test_of_equal_attempts_the_latest_is_the_best_unless_it_is_late(tmp_path: Path) -> None:
    cls = Class(tmp_path, {})
    work = attempts(tmp_path, ("2026-03-01T10:00", "heads.a failed"), ("2026-03-01T11:00", "heads.b failed"),
                    ("2026-03-05T12:00", "rope.b failed"))  # fmt: skip
    cls.run(plan=work, best=True)
    assert cls.report("ada").attempt.number == 3  # type: ignore[union-attr]
    late = Late(due=datetime.datetime(2026, 3, 2), zone="UTC", per_day=10, cap=50)
    cls.course = msgspec.structs.replace(cls.course, late=late)
    cls.run(plan=work, best=True)
    assert cls.report("ada").attempt.number == 2  # type: ignore[union-attr]
    assert cls.judged == []


def test_lateness_costs_points_after_marks_by_hand_and_needs_no_judge(tmp_path: Path) -> None:
    cls = Class(tmp_path, {})
    work = attempts(tmp_path, ("2026-03-02T00:30", "heads.a failed"))
    cls.run(plan=work)
    late = Late(due=datetime.datetime(2026, 3, 2), zone="UTC", per_day=25, cap=50)
    cls.course = msgspec.structs.replace(cls.course, late=late)
    marks = tmp_path / "marks.csv"
    marks.write_text('id,check,points,comment\nada,heads.a,3,"Almost; see line 12"\n', encoding="utf-8")
    cls.run(plan=work, marks=read_marks(marks, work, ALL))
    assert cls.judged == []
    report = cls.report("ada")
    by_hand, taken = report.adjustments
    assert (by_hand.kind, by_hand.points, by_hand.check) == ("by-hand", 3, "heads.a")
    assert by_hand.reason.text == "Marked by hand: 3 points instead of 0. Almost; see line 12"
    assert (taken.kind, taken.points) == ("late", -FULL / 4)
    assert report.score.final == FULL - POINTS + 3 - FULL / 4
    assert report.attempt is not None and report.attempt.late_seconds == 1800
    cls.course = msgspec.structs.replace(cls.course, late=None)
    cls.run(plan=work)  # without a list, marks stay
    assert [item.kind for item in cls.report("ada").adjustments] == ["by-hand"]
    marks.write_text("id,check,points\n", encoding="utf-8")
    cls.run(plan=work, marks=read_marks(marks, work, ALL))
    assert cls.report("ada").adjustments == []


def test_exercises_that_change_places_or_go_need_no_judge(two: Class) -> None:
    two.run()
    before = two.report("ada")
    for ids in (["rope", "order", "heads"], ["heads", "order"]):
        exercises = {id: two.basis.exercises[id] for id in ids}
        heard = two.run(basis=replace(two.basis, exercises=exercises))
        assert heard.how == {"ada": "reused", "ben": "reused"} and two.judged == []
        now = two.report("ada")
        assert [exercise.id for exercise in now.exercises] == ids
        assert {e.id: e for e in now.exercises}["heads"] == {e.id: e for e in before.exercises}["heads"]
    assert two.report("ada").score.final == two.report("ada").score.possible - POINTS


def test_a_roster_names_the_results_and_lists_who_handed_in_nothing(two: Class, tmp_path: Path) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text("id,name,github\n1001,Ada L,ada\n1002,Ben M,ben\n1003,Cy N,cy\n", encoding="utf-8")
    two.run(plan=two.plan(roster))
    assert two.store.ids() == ["1001", "1002", "1003"]
    assert two.report("1001").student == Student(id="1001", name="Ada L", ids={"github": "ada"})
    nothing = two.report("1003")
    assert nothing.exercises == [] and nothing.submission.notes[0].id == "batch.nothing"
    assert rebuild(two.store).nothing == ["1003"]
    before = (two.store.path / "1003" / "report.json").read_bytes()
    two.run(plan=two.plan(roster))
    assert (two.store.path / "1003" / "report.json").read_bytes() == before


def test_a_group_is_judged_once_and_each_of_it_gets_a_result(two: Class, tmp_path: Path) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text("id,name,github,group\n1,Ada,ada,red\n2,Cy,,red\n3,Ben,ben,\n", encoding="utf-8")
    two.run(plan=two.plan(roster))
    assert two.judged == ["ada", "ben"]
    assert [two.report(id).student.id for id in ("1", "2", "3")] == ["1", "2", "3"]  # type: ignore[union-attr]
    assert two.report("1").exercises == two.report("2").exercises


def test_no_result_is_called_like_a_file_of_the_class() -> None:
    entries = tuple(Entry(id, (Student(id=id),), ()) for id in ("scores.csv", "Summary.JSON", "a"))
    names = [task.id for task in plan(Work(entries)).tasks]
    assert names == ["scores.csv~2", "Summary.JSON~2", "a"]
    assert Task((Target("a", Student(id="a")),), entries[2]).id == "a"
