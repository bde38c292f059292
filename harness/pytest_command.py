"""What `python -m pytest graders --submission PATH` registers: the same plugin as `python grade.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.bench import Bench
from harness.course import read_course
from harness.plugin import GradingPlugin
from harness.problem import Problem
from harness.submission import read_submission
from harness.worker import offer
from harness.worker.launch import SpawnLauncher


def plugin_for(path: Path) -> GradingPlugin:
    """The grading plugin for one submission.

    Workers are spawned, not forked: this process already holds pytest, which a submission must not find.

    Raises:
        pytest.UsageError: there is nothing to grade at `path`, or the course is not valid.
    """
    try:
        course = read_course()
        submission = read_submission(path, tuple(name for item in course.exercise for name in item.files))
    except Problem as problem:
        raise pytest.UsageError(problem.what, problem.help) from None
    launcher = SpawnLauncher(offer.probe().isolation)
    return _PytestCommand(Bench(submission, course, launcher, None, course.seed), friendly=True)


class _PytestCommand(GradingPlugin):
    def pytest_unconfigure(self) -> None:
        self.bench.close()
