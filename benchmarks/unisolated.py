"""A pytest plugin for benchmarks/batch.py: the checks on a submission in pytest's own process, without isolation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.bench import Bench
from harness.course import read_course
from harness.plugin import GradingPlugin
from harness.submission import Submission


def pytest_configure(config: pytest.Config) -> None:
    folder, course = Path(os.environ["HEADCHECK_SUBMISSION"]), read_course()
    files = {path.name: path.read_bytes() for path in folder.glob("*.py")}
    plugin = GradingPlugin(Bench(Submission(folder.name, files), course, None, None, course.seed))
    config.pluginmanager.register(plugin)
