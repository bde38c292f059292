"""Submissions through pytest: checks run, outcomes become reports.

One pytest session judges any number of submissions: graders are collected once, and their tests run again for each.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_jsonreport.plugin  # type: ignore[import-untyped]

from harness import diagnosis, lanes
from harness.authoring import recording
from harness.bench import Bench, reference_modules
from harness.course import ROOT, Course, Exercise
from harness.diagnosis import Footprint, asks_student, judges_files, record_check
from harness.dialogues import Dialogues, Listener, digest_of
from harness.grading import CheckInfo
from harness.mistakes import Listed, Mistakes, Shelf
from harness.notebook import snippets
from harness.oracle import Recording, ReplayLink
from harness.outcome import Status
from harness.plugin import GradingPlugin, info_of
from harness.problem import Problem
from harness.report import CourseInfo, ExerciseResult, Report
from harness.reporting import course_of, exercise_of, report_of, result_of
from harness.running import Recorder, run_pytest
from harness.worker.client import WorkerLink
from harness.worker.launch import Launcher


@dataclass(frozen=True)
class Job:
    """One submission to judge, and who gets the report.

    Args:
        bench: the submission, its workers and the oracle. It is closed afterwards.
        exercises: what to judge.
        deliver: called with the report.
        only: the id of a single check to run.
        aside: makes the workers of a second lane, in which half of the exercises are judged at the same time.
    """

    bench: Bench
    exercises: tuple[Exercise, ...]
    deliver: Callable[[Report], None]
    only: str = ""
    aside: Launcher | None = None


def grade(bench: Bench, exercises: tuple[Exercise, ...], aside: Launcher | None = None) -> Report:
    """Judge one submission.

    Args:
        bench: the submission, its workers and the oracle. It is closed afterwards.
        exercises: what to judge.
        aside: makes workers that are used at the same time as the bench's; see harness.lanes.

    Raises:
        Problem: the graders themselves cannot be run.
        KeyboardInterrupt: the user stopped it.
    """
    reports: list[Report] = []
    grade_all([Job(bench, exercises, reports.append, aside=aside)], exercises, root=bench.course.root)
    return reports[0]


def grade_all(jobs: Iterable[Job], exercises: tuple[Exercise, ...], *, warm: bool = False, root: Path = ROOT) -> None:
    """Judge submissions one after the other, as `jobs` gives them.

    Args:
        jobs: taken one by one; the next is asked for when the report of the last has been delivered.
        exercises: all that a job may name; their graders are collected at the start.
        warm: ask the reference once for each seed, and answer all jobs of that seed from the recording.
        root: of the course, the same for all jobs.

    Raises:
        Problem: the graders themselves cannot be run.
        KeyboardInterrupt: the user stopped it.
    """
    run_pytest(Rounds(jobs, warm), exercises, root)


def collect(course: Course) -> list[CheckInfo]:
    """Every check of the course, in order, without running one."""
    plugin = GradingPlugin(None)
    run_pytest(plugin, course.exercise, course.root, "--collect-only")
    return plugin.checks


class Rounds(GradingPlugin):
    """Runs the collected checks once for each job."""

    def __init__(self, jobs: Iterable[Job], warm: bool) -> None:
        super().__init__(None)
        self.jobs, self.warm = jobs, warm
        self.recordings: dict[int, Recording] = {}
        self.dialogues = Dialogues()
        self.listeners: dict[str, Listener] = {}
        self.known: dict[str, float] = {}  # checks that pass by a known dialogue, and the seconds that took
        self.course_info: CourseInfo | None = None
        self.diagnosis: diagnosis.Diagnosis | None = None  # made when something has failed

    def turn_to(self, bench: Bench) -> None:
        super().turn_to(bench)
        self.listeners, self.known = {}, {}

    def pytest_addhooks(self, pluginmanager: pytest.PytestPluginManager) -> None:
        pluginmanager.add_hookspecs(pytest_jsonreport.plugin.Hooks)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the graders could not be collected")
        for job in self.jobs:
            wanted = {exercise.id for exercise in job.exercises}
            items = [
                item
                for item in session.items
                if info_of(item).exercise in wanted and job.only in ("", info_of(item).id)
            ]
            if self.warm and not isinstance(job.bench.oracle, ReplayLink):
                job.bench.oracle = ReplayLink(self.tapes(job.bench, items))
            self.turn_to(job.bench)
            try:
                job.deliver(self._round(session, job, items))
            finally:
                job.bench.close()
        return True

    def _round(self, session: pytest.Session, job: Job, items: list[pytest.Item]) -> Report:
        began, started = time.monotonic(), datetime.datetime.now().astimezone()
        config = session.config
        recorder = Recorder(config)
        config.pluginmanager.register(recorder)
        try:
            recorder.pytest_sessionstart(session)
            recorded = self._run(session, job, items, recorder)
        finally:
            config.pluginmanager.unregister(recorder)
            reporter = config.pluginmanager.get_plugin("terminalreporter")
            if reporter is not None:
                reporter.stats.clear()  # it would keep every test of every submission
        tests = {test["metadata"]["check"]: test for test in recorded if "metadata" in test}
        results = [result_of(info, self, tests.get(info.id), self.known.get(info.id)) for info in map(info_of, items)]
        for result in results:
            if result.status is Status.PASSED and result.id in self.listeners:
                self.dialogues.add(result.id, job.bench.seed, self.listeners[result.id].said)
        grouped = [exercise_of(exercise, results) for exercise in job.exercises]
        if any(result.status is not Status.PASSED for result in results) and not job.only:
            self._diagnose(grouped, job.bench, session.items)
        if self.course_info is None:  # of the files as they were when the graders were collected, or hardly later
            self.course_info = course_of(job.bench.course)
        seconds = time.monotonic() - began
        made = report_of(job.bench, self.course_info, grouped, started.isoformat(timespec="seconds"), seconds)
        snippets.fit(made, job.bench.course.root)
        return made

    def _run(
        self, session: pytest.Session, job: Job, items: list[pytest.Item], recorder: Recorder
    ) -> list[dict[str, Any]]:
        """Run checks; pytest-json-report's record of each."""
        grouped = [list(group) for _, group in itertools.groupby(items, lambda item: info_of(item).exercise)]

        def work(place: int) -> None:
            for item in grouped[place]:
                if not self._rehearse(job.bench, item):
                    # Which one will be run next is not known yet: all is torn down.
                    session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)

        def finish() -> list[dict[str, Any]]:
            recorder.pytest_sessionfinish(session)
            tests: list[dict[str, Any]] = recorder.report["tests"]
            return tests

        assert not (self.warm and job.aside), "another lane's dialogues would be lost"
        if job.aside is None or len(grouped) < 2:
            for place in range(len(grouped)):
                work(place)
            return finish()

        @contextlib.contextmanager
        def aside() -> Iterator[None]:
            job.bench.launcher = job.aside
            try:
                yield
            finally:
                job.bench.close()

        # A course grows harder, and its checks longer: both lanes begin with late exercises and meet at early ones.
        late = grouped[::-1]
        grouped = late[::2] + late[1::2][::-1]
        there = lanes.share(len(grouped), work, aside, lambda: lanes.Record.of(finish(), self))
        there.add_to(self)
        return finish() + there.tests

    def _rehearse(self, bench: Bench, item: pytest.Item) -> bool:
        """Whether this check passes by a known dialogue; if not, it is to run, and is listened to."""
        bench.listener = None
        if not self.warm or bench.launcher is None or judges_files(item) or not asks_student(item):
            return False
        info, began = info_of(item), time.monotonic()
        try:
            link = bench.link(info)
        except Exception:  # noqa: BLE001 - whatever it is, the check is to meet it in its turn
            return False
        assert isinstance(link, WorkerLink), "a launcher makes workers"
        listener = bench.listener = self.dialogues.listen(link, info.id, bench.seed)

        def begun() -> None:  # as after the setup of a test, so that what is printed is cut in the same place
            self.output[info.id] = bench.output()

        if not listener.rehearse(begun):
            self.listeners[info.id] = listener
            return False
        self.output[info.id] += bench.output()
        self.known[info.id] = time.monotonic() - began
        return True

    def tapes(self, bench: Bench, items: list[pytest.Item]) -> Recording:
        """What the reference says in these checks on this seed, asked once by letting it take the checks itself.

        Raises:
            Problem: it does not pass one; no mark of this course would be worth anything.
        """
        recording = self.recordings.setdefault(bench.seed, Recording(bench.seed))
        new = [item for item in items if info_of(item).id not in recording.tapes and not judges_files(item)]
        if new:
            modules = reference_modules(bench.course.root / "reference")
            answers = Recording(bench.seed)
            for item in new:
                id = info_of(item).id
                ended = record_check(item, bench, recording, modules, answers)
                if ended is not None:
                    raise Problem(f"The reference itself fails {id}.", ended.message.render())
                recording.tapes.setdefault(id, [])  # it may not have asked the reference at all
                said = [(asked, digest_of(answer)) for asked, answer in answers.tapes.pop(id, [])]
                self.dialogues.add(id, bench.seed, said)
        return recording

    def _diagnose(self, grouped: list[ExerciseResult], bench: Bench, items: list[pytest.Item]) -> None:
        root = bench.course.root
        if self.diagnosis is None:
            recorded = recording.read(root)
            if recorded is None:
                modules = reference_modules(root / "reference")
                known: Mistakes = Shelf(root / "graders") if modules.sources else Listed([])
                self.diagnosis = diagnosis.Diagnosis(known, modules, items)
            else:
                self.diagnosis = recording.RecordedDiagnosis(recorded, items)
        checks = [check.id for exercise in grouped for check in exercise.checks]
        footprints = {id: Footprint(self.ended.get(id), self.seen.get(id, [])) for id in checks}
        diagnosis.tell(self.diagnosis, grouped, footprints, bench)
