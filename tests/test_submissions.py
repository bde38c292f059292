"""Submissions as students hand them in, each run through the real command.

Each folder in tests/submissions/ is a scenario. Its `expected.toml` says how the submission differs from the reference
and what must come of it:

    about       in a sentence
    start       "reference" (by default), "template" or "nothing": what the submission is made from
    remove      files taken away; then `folders` made, files of `copy` taken from the reference, those beneath `files/`
                added, and each [[replace]] made (`every`: at each place; `encoding`: of the file that is written)
    path        what is graded within the folder; all of it by default
    arguments   of the command, beside `--exercise heads`
    spawn       also run with a spawned worker
    status      the command's exit status
    statuses    of checks, by pattern; the first that fits counts, and every check must fit one
    stdout, not_stdout    texts that must, and must not, be shown
"""

from __future__ import annotations

import shutil
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import pytest

from harness import report
from harness.outcome import Status
from tests.support.command import ROOT, Command

SCENARIOS = Path(__file__).parent / "submissions"


class Replace(msgspec.Struct, forbid_unknown_fields=True):
    file: str
    old: str
    new: str
    every: bool = False
    encoding: str = "utf-8"


class Scenario(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    about: str
    start: str = "reference"
    remove: list[str] = []
    folders: list[str] = []
    copy: list[str] = []
    replace: list[Replace] = []
    path: str = ""
    arguments: list[str] = []
    spawn: bool = False
    status: int
    statuses: dict[str, Status]
    stdout: list[str] = []
    not_stdout: list[str] = []


def read(name: str) -> Scenario:
    text = (SCENARIOS / name / "expected.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Scenario)


def make(name: str, scenario: Scenario, target: Path) -> Path:
    """Write the submission to `target`; returns the path to grade."""
    target.mkdir()
    start = {"reference": ROOT / "reference", "template": ROOT / "student_template"}.get(scenario.start)
    if start is not None:
        shutil.copytree(start, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for file in scenario.remove:
        (target / file).unlink()
    for folder in scenario.folders:
        (target / folder).mkdir()
    for file in scenario.copy:
        shutil.copyfile(ROOT / "reference" / file, target / file)
    files = SCENARIOS / name / "files"
    if files.is_dir():
        shutil.copytree(files, target, dirs_exist_ok=True)
    for change in scenario.replace:
        text = (target / change.file).read_text(encoding="utf-8")
        count = text.count(change.old)
        assert count == 1 or (change.every and count), f"{change.old!r} occurs {count} times in {change.file}"
        (target / change.file).write_text(text.replace(change.old, change.new), encoding=change.encoding)
    return target / scenario.path


NAMES = sorted(folder.name for folder in SCENARIOS.iterdir())
CASES = [pytest.param(name, "fork", id=name) for name in NAMES] + [
    pytest.param(name, "spawn", id=f"{name}-spawn", marks=pytest.mark.slow) for name in NAMES if read(name).spawn
]


@pytest.mark.parametrize(("name", "method"), CASES)
def test_submission(name: str, method: str, command: Command, tmp_path: Path) -> None:
    scenario = read(name)
    path = make(name, scenario, tmp_path / name)
    done = command.run(
        "grade", path, "--exercise", "heads", "--start-method", method, *scenario.arguments, cwd=tmp_path
    )
    assert done.status == scenario.status, done.stdout + done.stderr
    assert done.stderr == ""
    result = report.from_json((tmp_path / "report.json").read_bytes())
    assert not result.review
    checks = {check.id: check for exercise in result.exercises for check in exercise.checks}
    assert checks
    expected = {
        id: next((status for pattern, status in scenario.statuses.items() if fnmatchcase(id, pattern)), None)
        for id in checks
    }
    assert {id: check.status for id, check in checks.items()} == expected
    for check in checks.values():
        assert check.points == (check.possible if check.status is Status.PASSED else 0)
    shown = done.stdout
    for text in scenario.stdout:
        assert text in " ".join(shown.split()) or text in shown, f"{text!r} is not in\n{shown}"
    for text in scenario.not_stdout:
        assert text not in shown and text not in " ".join(shown.split()), f"{text!r} is in\n{shown}"
