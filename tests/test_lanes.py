"""One submission judged on two cores gives what one core gives."""

import contextlib
import os
import sys
import time
from pathlib import Path

import msgspec
import pytest

from harness import lanes
from harness.authoring import prove
from harness.course import read_course
from harness.lanes import Record
from harness.report import Report
from harness.worker import offer
from tests.support.command import Command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, as only Linux does safely")


def entered() -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def test_every_piece_is_done_once() -> None:
    done: list[int] = []
    there = lanes.share(
        9, lambda place: done.append(place), entered, lambda: Record([{"done": done}], {}, {"x": "said"}, {})
    )
    assert sorted(done + there.tests[0]["done"]) == list(range(9))
    assert done == list(range(len(done))) and there.output == {"x": "said"}


def test_two_work_at_a_time(tmp_path: Path) -> None:
    """Each waits for the other to have begun, so one alone would wait for ever."""

    def meet(place: int) -> None:
        (tmp_path / str(place)).touch()
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.001)

    lanes.share(2, meet, entered, lambda: Record([], {}, {}, {}))


@pytest.mark.parametrize("dies_at", ["work", "record"])
def test_what_an_ended_fork_leaves_is_done_here(dies_at: str) -> None:
    here, done = os.getpid(), []

    def work(place: int) -> None:
        if os.getpid() != here and dies_at == "work":
            os._exit(3)
        done.append(place)
        time.sleep(0.01)  # so that the other gets its turn

    def record() -> Record:
        raise ValueError(dies_at)

    there = lanes.share(5, work, entered, record)
    assert sorted(done) == [0, 1, 2, 3, 4] and there.tests == []


def test_an_exception_here_ends_the_fork_too(tmp_path: Path) -> None:
    here = os.getpid()

    @contextlib.contextmanager
    def noted():
        try:
            yield
        finally:
            (tmp_path / "left").touch()

    def work(place: int) -> None:
        if os.getpid() == here:
            time.sleep(0.2)
            raise KeyboardInterrupt
        time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        lanes.share(4, work, noted, lambda: Record([], {}, {}, {}))
    assert (tmp_path / "left").exists()


@pytest.mark.skipif(offer.cores() < 2, reason="needs two cores")
@pytest.mark.parametrize("mistake", ["heads.view-without-transpose", "rope.exponent-halved"])
def test_a_report_from_two_lanes_is_that_of_one(command: Command, tmp_path: Path, mistake: str) -> None:
    case = next(case for case in prove.cases(read_course()) if case.id == mistake)
    for name, content in case.files.items():
        file = tmp_path / "class" / "s1" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    command.run("grade", tmp_path / "class" / "s1", "--json", tmp_path / "two.json")
    command.run("batch", tmp_path / "class", "--out", tmp_path / "results", "--quiet", "--jobs", 1)
    two = msgspec.json.decode((tmp_path / "two.json").read_bytes(), type=Report)
    one = msgspec.json.decode((tmp_path / "results" / "s1" / "report.json").read_bytes(), type=Report)
    assert told(two) == told(one)
    assert any(check.misconception == mistake for exercise in two.exercises for check in exercise.checks)


def told(report: Report) -> list[object]:
    checks = [check for exercise in report.exercises for check in exercise.checks]
    return [(c.id, c.status, c.points, c.message, c.evidence, c.misconception, c.caused_by, c.hint) for c in checks]


def test_without_room_for_a_fork_all_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> int:
        raise BlockingIOError("no more processes")

    done: list[int] = []
    monkeypatch.setattr(os, "fork", full)
    there = lanes.share(3, done.append, entered, lambda: Record([], {}, {}, {}))
    assert done == [0, 1, 2] and there.tests == []
