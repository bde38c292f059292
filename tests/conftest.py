"""Fixtures shared by all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.command import Command

collect_ignore = ["courses"]  # their checks run against submissions, not as tests


@pytest.fixture(scope="session")
def command() -> Iterator[Command]:
    """The real command line, with torch loaded once for all tests."""
    server = Command()
    yield server
    server.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="Write tests/goldens anew instead of comparing.")
