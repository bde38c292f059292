"""Makes `python -m pytest graders --submission PATH` work, for people at home in pytest."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--submission", metavar="PATH", help="the folder (or .py file) to grade")


def pytest_configure(config: pytest.Config) -> None:
    from harness.plugin import GradingPlugin
    from harness.pytest_command import plugin_for

    # `python grade.py` brings its own.
    if not any(isinstance(plugin, GradingPlugin) for plugin in config.pluginmanager.get_plugins()):
        config.pluginmanager.register(plugin_for(Path(config.getoption("--submission") or "student_template")))
