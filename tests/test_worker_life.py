"""Workers end when the judge does, however it ends, and what serves a submission never runs on in the judge's code."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from harness.course import Limits
from harness.judge import JudgeDied, Order
from harness.outcome import Status
from harness.worker import homes, offer
from tests.support.command import ROOT
from tests.support.machine import SEED, Machine

pytestmark = pytest.mark.skipif(offer.probe().isolation != "sandbox", reason="this machine offers no sandbox")
_PATIENCE = 60  # seconds on a busy machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    made = Machine("own")
    yield made
    made.close()


def submission(line: str) -> Order:
    files = {path.name: path.read_bytes() for path in (ROOT / "reference").glob("*.py")}
    files["gpt.py"] = files["gpt.py"].replace(b"import torch\n", f"import torch\n{line}\n".encode(), 1)
    return Order(name="work", files=files, exercises=["heads"], seed=SEED, limits=Limits(wall_factor=1000.0))


def test_nothing_of_a_sleeping_worker_outlives_a_judge_that_is_killed(machine: Machine) -> None:
    order = submission("import time; time.sleep(100_000)")
    judge = machine.judge.process
    assert judge is not None and judge.stdin is not None
    body = msgspec.msgpack.encode(order)
    judge.stdin.write(len(body).to_bytes(8) + body)
    judge.stdin.flush()
    family = psutil.Process(judge.pid)
    deadline = time.monotonic() + _PATIENCE
    while len(below := family.children(recursive=True)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(below) == 2, "the process that forks, and a worker"
    judge.send_signal(signal.SIGKILL)
    with pytest.raises(JudgeDied):
        machine.judge.grade(order)
    _, alive = psutil.wait_procs(below, timeout=_PATIENCE)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert list(machine.tmp.iterdir()) == [machine.other], "its folders are gone too"


def test_a_worker_whose_serving_code_raises_has_crashed(machine: Machine) -> None:
    line = "import harness.worker.protocol as p; p.decode_request = None; print('patched')"
    result = machine.grade(submission(line))
    checks = {check.id: check for exercise in result.exercises for check in exercise.checks}
    assert {check.status for check in checks.values()} == {Status.CRASHED}
    assert "exit 70" in checks["heads.parameters"].message.text  # type: ignore[union-attr]
    assert "patched" in checks["heads.parameters"].output


def test_a_name_that_leaves_the_submission_is_refused(tmp_path: Path) -> None:
    for name in ("../gpt.py", "a/../../gpt.py", str(tmp_path / "gpt.py")):
        with pytest.raises(ValueError, match="leaves the submission"):
            homes.make({name: b"x"})
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_listed_counts_as_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / homes.SCRATCH / "closed").mkdir(parents=True)
    assert homes.used(tmp_path, 10)[1] == 1
    real = os.scandir

    def refuse(path: str):  # type: ignore[no-untyped-def]
        if path.endswith("closed"):
            raise PermissionError
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert homes.used(tmp_path, 10)[1] > 10
