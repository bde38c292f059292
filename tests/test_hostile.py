"""Hostile submissions, each judged in the sandbox as root and as an ordinary user, and what must come of them.

Each folder in tests/hostile/ is a scenario in the manner of tests/submissions/ (see tests/test_submissions.py). Its
`expected.toml`:

    about, kind   in a sentence; what sort of attack it is
    at            where `attack.py`, among `files/`, comes in: "import" (gpt.py imports it) or "once" (merge_heads calls
                  its `run`, within the check heads.merge only); "+" joins them
    files/        added to the reference's files; then each [[replace]] is made
    links, fifos, names    made in the folder: links to CANARY or CANARY_FOLDER, pipes, files with odd names
    zip, zip_mode handed in as an archive with these entries in addition
    exercises, limits      what is graded, within which limits
    score         of what is graded; all of it by default
    statuses      of checks, by pattern; the first that fits counts
    says, output, notes    texts that some check's message, some check's output, some note must hold
    shown         texts that the terminal must show
    reaches       what it says to have reached where there is no sandbox: proof that the attack is one

A submission says itself what it reached; that word must never be seen. After each, the machine is looked at, and a
right submission is graded by the same judge, which must give it everything.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tomllib
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from harness import report, terminal
from harness.course import Limits
from harness.judge import Order
from harness.outcome import Status
from harness.report import Report
from harness.submission import Submission, read_submission
from harness.worker import offer
from tests.support.command import ROOT
from tests.support.machine import SEED, USERS, Machine
from tests.test_submissions import Replace

SCENARIOS = Path(__file__).parent / "hostile"
KINDS = {"leaving", "not leaving", "taking", "reaching", "lying", "shadowing", "leaking", "files", "messages"}
LIMITS = Limits(call_seconds=1.0, import_seconds=10.0, wall_factor=20.0, memory_bytes=2**29, output_bytes=20_000)
_PLACES = {
    "import": ("import torch\n", "import torch\nimport attack\n"),
    "once": (
        "B, H, T, D = x.shape",
        "import attack, targets\n        if targets.now(): attack.run()\n        B, H, T, D = x.shape",
    ),
}

pytestmark = [
    pytest.mark.skipif(offer.probe().isolation != "sandbox", reason="this machine offers no sandbox (see doctor)"),
    pytest.mark.slow,
]


class Scenario(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    about: str
    kind: str
    at: str = ""
    replace: list[Replace] = []
    links: dict[str, str] = {}
    fifos: list[str] = []
    names: list[str] = []
    zip: list[tuple[str, str]] = []
    zip_mode: int = stat.S_IFREG | 0o644
    exercises: tuple[str, ...] = ("heads",)
    limits: dict[str, float] = {}
    score: float | None = None
    statuses: dict[str, Status]
    says: list[str] = []
    output: list[str] = []
    notes: list[str] = []
    shown: list[str] = []
    reaches: list[str] = []


def read(name: str) -> Scenario:
    text = (SCENARIOS / name / "expected.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Scenario)


NAMES = sorted(folder.name for folder in SCENARIOS.iterdir())


def make(name: str, scenario: Scenario, folder: Path, machine: Machine) -> Submission:
    """What is handed in, read as the command reads it."""
    files = {path.name: path.read_bytes() for path in (ROOT / "reference").glob("*.py")}
    added = SCENARIOS / name / "files"
    files |= {path.relative_to(added).as_posix(): path.read_bytes() for path in added.rglob("*") if path.is_file()}
    files["targets.py"] = machine.targets()
    changes = [Replace(file="gpt.py", old=old, new=new) for old, new in
               (_PLACES[place] for place in scenario.at.split("+") if place)]  # fmt: skip
    for change in [*changes, *scenario.replace]:
        text = files[change.file].decode()
        assert text.count(change.old) == 1, f"{change.old!r} is not there once in {change.file}"
        files[change.file] = text.replace(change.old, change.new).encode()
    target = folder / name
    target.mkdir()
    if scenario.zip:
        target /= "work.zip"
        target.write_bytes(_archive(files, scenario))
    else:
        _folder(files, scenario, target, machine)
    return read_submission(target, ("gpt.py",))


def _archive(files: dict[str, bytes], scenario: Scenario) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        for name, text in scenario.zip:
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, scenario.zip_mode << 16
            archive.writestr(info, text)
    return data.getvalue()


def _folder(files: dict[str, bytes], scenario: Scenario, target: Path, machine: Machine) -> None:
    aims = {"CANARY": machine.canary, "CANARY_FOLDER": machine.outside}
    for name in scenario.links:
        files.pop(name, None)
    for name, content in {**files, **dict.fromkeys(scenario.names, b"")}.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(content)
    for name, aim in scenario.links.items():
        (target / name).symlink_to(aims[aim])
    for name in scenario.fifos:
        os.mkfifo(target / name)


def order(submission: Submission, scenario: Scenario) -> Order:
    # TOML's numbers become what the limit is: a whole number or not.
    limits = msgspec.convert(msgspec.structs.asdict(LIMITS) | scenario.limits, Limits, strict=False)
    return Order(
        name=submission.name, files=submission.files, exercises=list(scenario.exercises), seed=SEED, limits=limits
    )


def right(exercises: tuple[str, ...]) -> Order:
    files = {path.name: path.read_bytes() for path in (ROOT / "reference").glob("*.py")}
    return Order(name="right", files=files, exercises=list(exercises), seed=SEED)


@pytest.fixture(scope="module")
def machines() -> Iterator[dict[str, Machine]]:
    started: dict[str, Machine] = {}
    yield started
    for machine in started.values():
        machine.close()


@pytest.fixture
def machine(request: pytest.FixtureRequest, machines: dict[str, Machine]) -> Machine:
    """The judge of one user; started once."""
    if request.param not in machines:
        machines[request.param] = Machine(*request.param.split())
    return machines[request.param]


def test_every_kind_is_there() -> None:
    assert {read(name).kind for name in NAMES} == KINDS


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("machine", USERS, indirect=True)
def test_hostile(name: str, machine: Machine, tmp_path: Path) -> None:
    scenario = read(name)
    submission = make(name, scenario, tmp_path, machine)
    result = machine.grade(order(submission, scenario))
    checks = {check.id: check for exercise in result.exercises for check in exercise.checks}
    said = [check.message.text for check in checks.values() if check.message is not None]
    printed = "".join(check.output for check in checks.values())
    what = {"statuses": {id: check.status for id, check in checks.items()}, "said": said, "printed": printed[-3000:]}
    expected = {id: _first(scenario.statuses, id) for id in checks}
    assert what["statuses"] == expected, what
    for check in checks.values():
        assert check.points == (check.possible if check.status is Status.PASSED else 0)
    assert result.score.final == (result.score.possible if scenario.score is None else scenario.score)
    assert not result.review
    assert result.environment.isolation == "sandbox"
    _texts_are_there(scenario.says, said)
    _texts_are_there(scenario.output, [printed])
    _texts_are_there(scenario.notes, [note.render() for note in submission.notes])
    assert "REACHED" not in printed, printed
    _is_harmless_data(result, scenario)
    assert machine.harm() == {}
    after = machine.grade(right(scenario.exercises))
    assert report.passed_everything(after), "the next submission was harmed"
    assert machine.harm() == {}


def _first(statuses: dict[str, Status], id: str) -> Status | None:
    return next((status for pattern, status in statuses.items() if fnmatchcase(id, pattern)), None)


def _texts_are_there(wanted: list[str], texts: list[str]) -> None:
    for text in wanted:
        assert any(text in one for one in texts), f"{text!r} is in none of {texts}"


def _is_harmless_data(result: Report, scenario: Scenario) -> None:
    """What the report says may be shown and stored anywhere."""
    data = report.to_json(result)
    json.loads(data, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert len(data) < 2_000_000
    console = Console(file=io.StringIO(), width=100, highlight=False)
    terminal.show(result, console, verbose=True)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.replace("\n", "").replace("\t", "").isprintable() or not _controls(shown), _controls(shown)
    _texts_are_there(scenario.shown, [shown])


def _controls(text: str) -> set[str]:
    return {character for character in text if ord(character) < 32 or 127 <= ord(character) < 160} - {"\n", "\t"}


@pytest.mark.parametrize("machine", ["own process"], indirect=True)
@pytest.mark.parametrize("name", [name for name in NAMES if read(name).reaches])
def test_attack_is_one(name: str, machine: Machine, tmp_path: Path) -> None:
    """Without the sandbox the same code does reach what it aims at; it harms the world of this test only."""
    scenario = read(name)
    result = machine.grade(order(make(name, scenario, tmp_path, machine), scenario))
    printed = "".join(check.output for exercise in result.exercises for check in exercise.checks)
    _texts_are_there([f"{what}: REACHED" for what in scenario.reaches], [printed])
