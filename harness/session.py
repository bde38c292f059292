"""Submissions through pytest: checks run, outcomes become reports.

One pytest session judges any number of submissions: graders are collected once, and their tests run again for each.
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import io
import itertools
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_jsonreport.plugin  # type: ignore[import-untyped]
import torch

from harness import VERSION, diagnosis, files, lanes, report
from harness.authoring import recording
from harness.bench import Bench, reference_modules
from harness.course import ROOT, Course, Exercise
from harness.diagnosis import Footprint, asks_student, judges_files, record_check
from harness.dialogues import Dialogues, Listener, digest_of
from harness.grading import CheckInfo
from harness.messages import message
from harness.mistakes import Listed, Mistakes, Shelf
from harness.notebook import snippets
from harness.oracle import Recording, ReplayLink
from harness.outcome import Status
from harness.plugin import GradingPlugin, info_of
from harness.problem import Problem
from harness.report import CheckResult, ExerciseResult, Report, Text, as_text
from harness.submission import Submission
from harness.worker.client import WorkerLink
from harness.worker.launch import Launcher

# pytest plugins that graders do not need: each costs time in a process that holds torch.
_WITHOUT = ("cacheprovider", "doctest", "faulthandler", "junitxml", "logging", "pastebin", "stepwise",
            "threadexception", "unraisableexception", "warnings", "debugging", "setuponly", "setupplan")  # fmt: skip


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


class _Recorder(pytest_jsonreport.plugin.JSONReport):  # type: ignore[misc]
    """pytest-json-report's record of one round.

    What it does once a session is left out: declaring hooks (`Rounds` does) and signing up to be removed at the end.
    """

    pytest_addhooks = None
    pytest_configure = None


class Rounds(GradingPlugin):
    """Runs the collected checks once for each job."""

    def __init__(self, jobs: Iterable[Job], warm: bool) -> None:
        super().__init__(None)
        self.jobs, self.warm = jobs, warm
        self.recordings: dict[int, Recording] = {}
        self.dialogues = Dialogues()
        self.listeners: dict[str, Listener] = {}
        self.known: dict[str, float] = {}  # checks that pass by a known dialogue, and the seconds that took
        self.diagnosis: diagnosis.Diagnosis | None = None  # made when something has failed

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
            self.listeners, self.known = {}, {}
            try:
                job.deliver(self._round(session, job, items))
            finally:
                job.bench.close()
        return True

    def _round(self, session: pytest.Session, job: Job, items: list[pytest.Item]) -> Report:
        began, started = time.monotonic(), datetime.datetime.now().astimezone()
        config = session.config
        recorder = _Recorder(config)
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
        results = [_result(info, self, tests.get(info.id)) for info in map(info_of, items)]
        for result in results:
            if result.status is Status.PASSED and result.id in self.listeners:
                self.dialogues.add(result.id, job.bench.seed, self.listeners[result.id].said)
        grouped = [_exercise(exercise, results) for exercise in job.exercises]
        if any(result.status is not Status.PASSED for result in results) and not job.only:
            self._diagnose(grouped, job.bench, session.items)
        made = _report(job, grouped, started.isoformat(timespec="seconds"), time.monotonic() - began)
        snippets.fit(made, job.bench.course.root)
        return made

    def _run(
        self, session: pytest.Session, job: Job, items: list[pytest.Item], recorder: _Recorder
    ) -> list[dict[str, Any]]:
        """Run checks; pytest-json-report's record of each."""
        grouped = [list(group) for _, group in itertools.groupby(items, lambda item: info_of(item).exercise)]

        def work(place: int) -> None:
            group = grouped[place]
            for item in group:
                if not self._rehearse(job.bench, item):
                    # Which one will be run next is not known yet: all is torn down.
                    session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)

        def finish() -> list[dict[str, Any]]:
            recorder.pytest_sessionfinish(session)
            tests: list[dict[str, Any]] = recorder.report["tests"]
            return tests

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
        link = bench.link(info)
        assert isinstance(link, WorkerLink), "a launcher makes workers"
        listener = bench.listener = self.dialogues.listen(link, info.id, bench.seed)
        if not listener.rehearse():
            self.listeners[info.id] = listener
            return False
        self.output[info.id] = bench.output()
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


def run_pytest(plugin: GradingPlugin, exercises: tuple[Exercise, ...], root: Path, *more: str) -> None:
    """Run pytest over the graders of `exercises` with `plugin`, which does the judging.

    Raises:
        Problem: the graders cannot be run.
        KeyboardInterrupt: the user stopped it.
    """
    broken = _Broken()
    arguments = ["-q", "-s", "--tb=native", f"--rootdir={root}", f"--confcutdir={root / 'graders'}", "-c",
                 str(ROOT / "pyproject.toml"), "-o", "addopts=", "--import-mode=importlib",
                 "-p", "pytest_jsonreport.plugin", "--json-report-file=none",
                 "--json-report-omit", "log", "streams", "keywords", "collectors"]  # fmt: skip
    arguments += [word for name in _WITHOUT for word in ("-p", f"no:{name}")]
    paths = [str(root / "graders" / exercise.grader) for exercise in exercises]
    shown = io.StringIO()
    gc.freeze()  # pytest collects garbage several times; over torch's heap that takes longer than the checks
    with _quiet_environment(), contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        code = pytest.main([*arguments, *more, "--", *paths], plugins=[plugin, broken])
    if broken.text:
        raise Problem("The graders could not be run.", broken.text[-4000:])
    if code == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise Problem("The graders could not be run.", shown.getvalue()[-4000:])


class _Broken:
    """What pytest said of grader files that it could not collect."""

    def __init__(self) -> None:
        self.text = ""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.text += f"{report.longreprtext}\n"


@contextlib.contextmanager
def _quiet_environment() -> Iterator[None]:
    """pytest obeys variables of the environment; grades must not."""
    ours = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": ""}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _result(info: CheckInfo, plugin: Rounds, test: dict[str, Any] | None) -> CheckResult:
    """A check's result. It passed only if pytest recorded every stage, and each passed, or it was answered as then."""
    stages = [(test or {}).get(stage, {}) for stage in ("setup", "call", "teardown")]
    ended = plugin.ended.get(info.id)
    result = CheckResult(
        id=info.id,
        title=info.title,
        status=Status.GRADER_ERROR,
        points=0,
        possible=info.points,
        hidden=info.id in plugin.bench.course.hidden,
        reproduce=info.reproduce,
        output=plugin.output.get(info.id, ""),
        seconds=round(sum(stage.get("duration", 0.0) for stage in stages), 4),
    )
    if info.id in plugin.known:
        result.status, result.points = Status.PASSED, info.points
        result.seconds = round(plugin.known[info.id], 4)
    elif ended is not None:
        result.status = ended.status
        result.message = as_text(ended.message)
        result.evidence, result.trace, result.detail = ended.evidence, list(ended.trace), ended.detail
        if ended.status is Status.FAILED:
            result.hint = as_text(ended.hint) if ended.hint else Text(f"{info.id}.hint", info.hint)
            result.misconception = ended.mistake
    elif test is not None and test["outcome"] == "passed" and all(s.get("outcome") == "passed" for s in stages):
        result.status, result.points = Status.PASSED, info.points
    else:
        result.message = as_text(message("grader-error.lost"))
    return result


def _report(job: Job, grouped: list[ExerciseResult], started: str, seconds: float) -> Report:
    bench = job.bench
    adjustments = _follow_through(grouped) if bench.course.follow_through else []
    return Report(
        submission=_submission(bench.submission),
        course=_course(bench.course),
        environment=report.Environment(
            headcheck=VERSION,
            python=platform.python_version(),
            torch=str(torch.__version__),
            platform=platform.platform(),
            isolation="none" if bench.launcher is None else bench.launcher.isolation,
            start_method="none" if bench.launcher is None else bench.launcher.method,
        ),
        seed=bench.seed,
        score=report.total(grouped, adjustments),
        adjustments=adjustments,
        review=any(check.status is Status.GRADER_ERROR for exercise in grouped for check in exercise.checks),
        exercises=grouped,
        started=started,
        seconds=round(seconds, 3),
    )


def _follow_through(grouped: list[ExerciseResult]) -> list[report.Adjustment]:
    """The points of checks that failed only because of an earlier mistake, given back where all can see it."""
    checks = {check.id: check for exercise in grouped for check in exercise.checks}
    return [
        report.Adjustment(
            kind="follow-through",
            points=check.possible,
            reason=_given_back(check, checks[check.caused_by]),
            check=check.id,
        )
        for check in checks.values()
        if check.caused_by and check.status is Status.FAILED and check.possible
    ]


def _given_back(check: CheckResult, cause: CheckResult) -> Text:
    """Why its points are given back. Parameters that are ids are shown as titles, in any language."""
    said = message("follow-through", check=check.title, cause=cause.title)
    return Text(said.id, said.render(), {"check": check.id, "cause": cause.id})


def _exercise(exercise: Exercise, results: list[CheckResult]) -> ExerciseResult:
    checks = [result for result in results if result.id.partition(".")[0] == exercise.id]
    return ExerciseResult(
        id=exercise.id,
        title=exercise.title,
        bonus=exercise.bonus,
        earned=report.points(check.points for check in checks),
        possible=report.points(check.possible for check in checks),
        checks=checks,
    )


def _submission(submission: Submission) -> report.SubmissionInfo:
    return report.SubmissionInfo(
        name=submission.name,
        digest=submission.digest,
        files=submission.file_digests(),
        notes=[as_text(note) for note in submission.notes],
    )


def _course(course: Course) -> report.CourseInfo:
    return report.CourseInfo(
        id=course.id,
        title=course.title,
        graders=files.digest(files.read_sources(course.root / "graders")),
        reference=files.digest(files.read_sources(course.root / "reference")),
    )
