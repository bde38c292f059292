"""A judge for tests of the batch: no torch, no pytest. What it says is written in the submission itself.

gpt.py holds lines such as `heads.a failed`, `rope.b timeout`, `dies`: what does not stand there passes. `once` in front
of a line means: only the first time that this submission is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import msgspec

from harness import VERSION, files, report
from harness.batch.keys import Basis, basis
from harness.batch.run import How, Run, Settings
from harness.batch.store import Store
from harness.batch.work import Plan, plan
from harness.course import Course, read_course
from harness.intake import read
from harness.intake.attempts import arrange
from harness.intake.roster import read_roster
from harness.judge import JudgeDied, Order
from harness.outcome import Status
from harness.report import CheckResult, ExerciseResult, Report

POINTS = 4.0  # of each check; every exercise has two, a and b


def core_course() -> Course:
    """The course without its bonus exercises."""
    course = read_course()
    return msgspec.structs.replace(course, exercise=tuple(item for item in course.exercise if not item.bonus))


class FakeExecutor:
    """Judges at once, in this process; `orders` is what it was asked, in order."""

    slots = 2

    def __init__(self, course: Course, hook: Callable[[Order], None] = lambda order: None) -> None:
        self.course, self.hook = course, hook
        self.orders: list[Order] = []
        self.times: dict[str, int] = {}

    def submit(self, order: Order) -> Future[Report]:
        self.hook(order)
        self.orders.append(order)
        future: Future[Report] = Future()
        digest = files.digest(order.files)
        self.times[digest] = self.times.get(digest, 0) + 1
        words = _words(order, first=self.times[digest] == 1)
        if "dies" in words:
            future.set_exception(JudgeDied())
        else:
            future.set_result(self._report(order, words))
        return future

    def close(self, *, now: bool = False) -> None:
        pass

    def _report(self, order: Order, words: dict[str, str]) -> Report:
        exercises = [
            ExerciseResult(
                id=exercise.id, title=exercise.title, bonus=exercise.bonus, earned=report.points(c.points for c in c_s),
                possible=2 * POINTS, checks=c_s,
            )
            for exercise in self.course.exercise
            if exercise.id in order.exercises
            for c_s in [[_check(f"{exercise.id}.{letter}", words) for letter in "ab"]]
        ]  # fmt: skip
        return Report(
            submission=report.SubmissionInfo(name=order.name, digest=files.digest(order.files), files={}),
            course=report.CourseInfo(id=self.course.id, title=self.course.title, graders="g", reference="r"),
            environment=report.Environment(headcheck=VERSION, python="3", torch="2", platform="p",
                                           isolation="process", start_method="fork"),
            seed=order.seed, score=report.total(exercises), exercises=exercises,
            review=any(c.status is Status.GRADER_ERROR for e in exercises for c in e.checks),
            started="2026-01-01T00:00:00+00:00", seconds=float(len(self.orders)),
        )  # fmt: skip


def _words(order: Order, first: bool) -> dict[str, str]:
    words: dict[str, str] = {}
    for line in order.files.get("gpt.py", b"").decode().splitlines():
        parts = line.split()
        if parts[:1] == ["once"]:
            parts = parts[1:] if first else []
        if parts:
            words[parts[0]] = parts[1] if len(parts) > 1 else ""
    return words


def _check(id: str, words: dict[str, str]) -> CheckResult:
    status = Status(words.get(id, "passed"))
    points = POINTS if status is Status.PASSED else 0.0
    return CheckResult(id=id, title=id, status=status, points=points, possible=POINTS,
                       misconception=words.get(f"{id}!", ""))  # fmt: skip


class Heard:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.how: dict[str, How] = {}
        self.again: list[str] = []

    def finished(self, id: str, report: Report, how: How) -> None:
        assert id not in self.how, "told once"
        self.how[id] = how

    def postponed(self, id: str, why: str) -> None:
        self.again.append(id)

    def alone(self, count: int) -> None:
        pass


class Class:
    """A folder of submissions and a folder of results.

    Args:
        tmp: where both are made.
        work: student -> text of gpt.py.
    """

    def __init__(self, tmp: Path, work: dict[str, str]) -> None:
        self.course = core_course()
        self.submissions, self.store = tmp / "class", Store(tmp / "results")
        self.executor = FakeExecutor(self.course)
        self.basis = basis(self.course, 1, "process")
        for name, text in work.items():
            self.hand_in(name, text)

    def hand_in(self, name: str, text: str) -> None:
        folder = self.submissions / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "gpt.py").write_text(text, encoding="utf-8")

    def plan(self, roster: Path | None = None) -> Plan:
        zone = self.course.late.zone if self.course.late is not None else None
        members = read_roster(roster, zone) if roster is not None else None
        return plan(arrange(read(self.submissions).attempts, members))

    def run(self, *, basis: Basis | None = None, plan: Plan | None = None, **settings: object) -> Heard:
        """One batch; `settings` as in `Settings`."""
        heard = Heard()
        self.executor.orders.clear()
        asked = Settings(self.course, 1, **settings)  # type: ignore[arg-type]
        with self.store.locked():
            Run(asked, basis or self.basis, self.store, self.executor, heard).run(plan or self.plan())
        return heard

    @property
    def judged(self) -> list[str]:
        """Whose work the last run had judged, in order."""
        return [order.name for order in self.executor.orders]

    def report(self, id: str) -> Report:
        stored = self.store.read(id)
        assert stored is not None
        return stored.report
