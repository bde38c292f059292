"""How pytest is run here: over the graders of a course, with nothing of the user's own settings."""

from __future__ import annotations

import contextlib
import gc
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_jsonreport.plugin  # type: ignore[import-untyped]

from harness.course import ROOT, Exercise
from harness.plugin import GradingPlugin
from harness.problem import Problem

# pytest plugins that graders do not need: each costs time in a process that holds torch.
_WITHOUT = ("cacheprovider", "doctest", "faulthandler", "junitxml", "logging", "pastebin", "stepwise",
            "threadexception", "unraisableexception", "warnings", "debugging", "setuponly", "setupplan")  # fmt: skip


class Recorder(pytest_jsonreport.plugin.JSONReport):  # type: ignore[misc]
    """pytest-json-report's record of one round.

    What it does once a session is left out: declaring hooks (`Rounds` does) and signing up to be removed at the end.
    """

    pytest_addhooks = None
    pytest_configure = None


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
