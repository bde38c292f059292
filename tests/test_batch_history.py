"""Results that live through many runs: whoever comes, goes or is corrected has the own result, marks and folder."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import report as reports
from harness.batch.marks import BY_HAND, Mark
from harness.batch.run import Run, Settings
from harness.batch.store import Store
from harness.batch.summary import rebuild
from harness.batch.work import Plan, plan
from harness.intake import read
from harness.intake.attempts import arrange
from harness.intake.roster import read_roster
from harness.judge import Order
from harness.report import Report
from tests.support.fake_judge import POINTS, Class, FakeExecutor, Heard, core_course

FULL = 2 * POINTS * len(core_course().exercise)


def work(cls: Class, roster: str = "", store: Store | None = None) -> Plan:
    """What a batch would do that is given this roster."""
    path = cls.submissions.parent / "roster.csv"
    path.write_text(roster, encoding="utf-8")
    found = arrange(read(cls.submissions).attempts, read_roster(path) if roster else None)
    return plan(found, (store or cls.store).owners())


def finals(cls: Class) -> dict[str, float]:
    """Final scores by folder, of what has exercises."""
    found = {id: cls.report(id) for id in cls.store.ids()}
    return {id: report.score.final for id, report in found.items() if report.exercises}


def hand_in_for_moodle(cls: Class, name: str, number: int, text: str) -> None:
    cls.hand_in(f"{name}_{number}_assignsubmission_file", text)


def test_a_platforms_number_is_not_the_rosters(tmp_path: Path) -> None:
    """Without a roster results are named by the platform's numbers; then a roster gives the same numbers to others."""
    cls = Class(tmp_path, {})
    hand_in_for_moodle(cls, "Ada Lo", 12, "")
    hand_in_for_moodle(cls, "Ben Bo", 13, "heads.a failed")
    cls.run(plan=work(cls), marks={"12": [Mark("heads", 0.0, "copied", 2)]})
    assert finals(cls) == {"12": FULL - 2 * POINTS, "13": FULL - POINTS}
    cls.run(plan=work(cls, "id,name,moodle\n12,Cy Curie,90\n1,Ada Lo,12\n2,Ben Bo,13\n"))
    students = {id: student.name for id, student in cls.store.owners().items()}
    assert students == {"12": "Ada Lo", "13": "Ben Bo", "12~2": "Cy Curie", "1": "Ada Lo", "2": "Ben Bo"}
    assert rebuild(cls.store).nothing == ["12~2"]
    assert not any(item.kind == BY_HAND for item in cls.report("12~2").adjustments)


@pytest.mark.parametrize(
    "before",
    ["id,name,github,group\n1,Ada,ben,\n2,Ben,,\n", "id,name,github,group\n1,Ada,,red\n2,Ben,ben,red\n"],
    ids=["another's by mistake", "a group that was none"],
)
def test_work_that_was_never_the_students_leaves_with_the_correction(tmp_path: Path, before: str) -> None:
    cls = Class(tmp_path, {"ben": ""})
    cls.run(plan=work(cls, before))
    assert finals(cls)["1"] == FULL
    cls.run(plan=work(cls, "id,name,github,group\n1,Ada,,\n2,Ben,ben,\n"))
    assert finals(cls) == {"2": FULL} and rebuild(cls.store).nothing == ["1"]


def test_a_corrected_name_keeps_the_marks(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"ada": ""})
    cls.run(plan=work(cls, "id,name,github\n1,Ada Lo,ada\n"), marks={"1": [Mark("heads", 1.0, "", 2)]})
    cls.run(plan=work(cls, 'id,name,github\n1,"Lovelace, Ada",ada\n'))
    assert finals(cls) == {"1": FULL - 2 * POINTS + 1}


def test_marks_count_for_whose_work_is_gone(tmp_path: Path) -> None:
    roster = "id,name,github\n1,Ada,ada\n2,Ben,ben\n"
    cls = Class(tmp_path, {"ada": "", "ben": "heads.a pending"})
    cls.run(plan=work(cls, roster))
    shutil.rmtree(cls.submissions / "ben")
    handed_in = (cls.store.path / "2" / "submission.zip").read_bytes()
    for where, points, final in (("heads.a", 1.0, FULL - POINTS + 1), ("heads", 0.0, FULL - 2 * POINTS)):
        marks = [Mark(where, points, "", 2)]
        cls.run(plan=work(cls, roster), marks={"2": marks})
        assert (finals(cls)["2"], cls.report("2").score.undecided) == (final, 0)
    cls.run(plan=work(cls, roster), marks={})
    assert cls.report("2").score.undecided == POINTS and cls.judged == []
    assert (cls.store.path / "2" / "submission.zip").read_bytes() == handed_in


def test_one_of_two_names_for_a_folder_goes(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"Zoe": "", "zoe": ""})
    cls.run(plan=work(cls), marks={"zoe~2": [Mark("heads", 1.0, "", 2)]})
    shutil.rmtree(cls.submissions / "Zoe")
    shutil.rmtree(cls.store.path / "Zoe")
    cls.run(plan=work(cls))
    assert finals(cls) == {"zoe~2": FULL - 2 * POINTS + 1}


def test_what_is_marked_but_cannot_be_read_follows_the_course(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"ada": ""})
    (cls.submissions / "ben.zip").write_bytes(b"PK\x03\x04 this is not a zip")
    cls.run(marks={"ben": [Mark("heads", 1.0, "", 2)]})
    for ids in (["order", "heads"], ["rope", "heads"]):
        exercises = {id: cls.basis.exercises[id] for id in ids}
        cls.course = cls.executor.course = msgspec.structs.replace(
            cls.course, exercise=tuple(item for id in ids for item in core_course().exercise if item.id == id)
        )
        cls.run(basis=replace(cls.basis, exercises=exercises))
        assert [exercise.id for exercise in cls.report("ben").exercises] == ids
    assert cls.report("ben").score.possible == 4 * POINTS
    (cls.submissions / "ben.zip").unlink()
    cls.hand_in("ben", "")
    assert cls.run(basis=replace(cls.basis, exercises=exercises), only_failed=True).how == {"ben": "judged"}


def test_what_was_judged_is_kept_beside_what_cannot_be_read(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"ada": "heads.a failed"})
    cls.run()
    handed_in = (cls.store.path / "ada" / "submission.zip").read_bytes()
    now = cls.plan()
    shutil.rmtree(cls.submissions / "ada")  # it vanishes once the batch has begun
    cls.run(plan=now)
    cls.run(plan=now)
    assert not (cls.store.path / "ada" / "submission.zip").exists()
    assert (cls.store.path / "ada" / "submission.earlier.zip").read_bytes() == handed_in
    cls.hand_in("ada", "")
    cls.run()
    assert not (cls.store.path / "ada" / "submission.earlier.zip").exists()


ASKED: Sequence[dict[str, object]] = ({}, {}, {"fresh": True}, {"only_failed": True}, {"regrade": frozenset("1")})


class _Deaf(Heard):
    def finished(self, id: str, report: Report, how: object) -> None:
        """With several runs on the way, somebody is told of more than once."""


class _History:
    """A class that lives: hands in and takes back, while the course changes and runs are stopped."""

    TEXTS = ("", "heads.a failed", "heads.a failed\nheads.a! m1\nrope.b failed", "rope.a error\norder.b missing",
             "heads.b timeout", "order.a pending", "order.a grader_error", "dies", "BAD")  # fmt: skip
    ROSTER = "id,name,github,group\n1,Ada,ada,\n2,Ben,ben,g\n3,Cy,cy,g\n4,Dora,dora,\n5,Eve,eve,\n"
    NAMES = ("ada", "1", "ben", "2", "dora", "eve", "x b", "x_b")

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.chance, self.cls = chance, Class(folder, {"ada": ""})
        self.all = {exercise.id: exercise for exercise in self.cls.course.exercise}
        self.digests = dict(self.cls.basis.exercises)
        self.order = list(self.all)

    def hand_in(self) -> None:
        name, text = self.chance.choice(self.NAMES), self.chance.choice(self.TEXTS)
        shutil.rmtree(self.cls.submissions / name, ignore_errors=True)
        (self.cls.submissions / f"{name}.zip").unlink(missing_ok=True)
        if text == "BAD":
            (self.cls.submissions / f"{name}.zip").write_bytes(b"this is not a zip")
        else:
            self.cls.hand_in(name, text)

    def change_course(self) -> None:
        what = self.chance.choice(["shuffle", "remove", "add", "edit", "leave"])
        gone = [id for id in self.all if id not in self.order]
        if what == "shuffle":
            self.chance.shuffle(self.order)
        elif what == "remove" and len(self.order) > 1:
            self.order.remove(self.chance.choice(self.order))
        elif what == "add" and gone:
            self.order.insert(0, self.chance.choice(gone))
        elif what == "edit":
            self.digests[self.chance.choice(self.order)] += "x"
        self.cls.course = msgspec.structs.replace(self.cls.course, exercise=tuple(self.all[id] for id in self.order))

    def go(self, store: Store | None = None, stop_after: int | None = None, **asked: object) -> FakeExecutor:
        """A run, ended by Ctrl-C after so many orders."""
        left = [stop_after]

        def judging(order: Order) -> None:
            if left[0] is not None:
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt

        store, executor = store or self.cls.store, FakeExecutor(self.cls.course, judging)
        depends = replace(self.cls.basis, exercises={id: self.digests[id] for id in self.order})
        now = work(self.cls, self.ROSTER, store)
        with store.locked():
            Run(Settings(self.cls.course, 1, **asked), depends, store, executor, _Deaf()).run(now)  # type: ignore[arg-type]
        return executor


def told(report: Report) -> object:
    """What a report says, without when and by which graders."""
    document = json.loads(reports.to_json(report))
    for name in ("started", "seconds", "course", "environment"):
        del document[name]
    return document


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chance=st.randoms(use_true_random=False))
def test_any_history_ends_like_a_first_run(tmp_path_factory: pytest.TempPathFactory, chance: random.Random) -> None:
    """... with the same marks, but for who has nothing there any more; and then nothing is left to do."""
    folder = tmp_path_factory.mktemp("history")
    history = _History(folder, chance)
    best = chance.random() < 0.4
    for _ in range(6):
        for _ in range(chance.randint(0, 3)):
            history.hand_in()
        history.change_course()
        with contextlib.suppress(KeyboardInterrupt):
            history.go(stop_after=chance.choice([None, 1, 2, 5]), best=best, **chance.choice(ASKED))
    ids = sorted(work(history.cls, history.ROSTER).ids)
    marks = {id: [Mark(f"{history.order[0]}.a", 1.0, "why", 2)] for id in chance.sample(ids, min(3, len(ids)))}
    history.go(best=best, marks=marks)
    history.go(best=best)  # marks stay
    first = Store(folder / "first")
    places = {student.id: id for id, student in history.cls.store.owners().items()}
    now = work(history.cls, history.ROSTER, first)
    targets = [target for task in now.tasks for target in task.targets] + list(now.absent)
    history.go(first, best=best, marks={target.id: marks.get(places[target.student.id], []) for target in targets})
    for target in targets:
        expected, found = first.read(target.id), history.cls.store.read(places[target.student.id])
        assert expected is not None and found is not None
        if expected.report.submission.digest or not found.report.submission.digest:
            assert told(found.report) == told(expected.report)
    if not best and not any("grader_error" in reports.to_json(history.cls.report(id)).decode() for id in ids):
        before = {path: path.stat().st_mtime_ns for path in history.cls.store.path.rglob("*.json")}
        assert history.go().orders == []
        assert {path: path.stat().st_mtime_ns for path in history.cls.store.path.rglob("*.json")} == before
