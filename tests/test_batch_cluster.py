"""`batch --cluster`: a real Dask scheduler and two real worker processes on loopback; one is killed in the middle."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from harness.batch.cluster import DaskExecutor
from harness.batch.keys import basis
from harness.course import read_course
from harness.judge import Order
from harness.problem import Problem
from tests.support.command import ROOT
from tests.test_batch import ISOLATION, batch, finish, make_class, results

pytestmark = pytest.mark.slow


class Cluster:
    """A scheduler and workers, all on loopback, each worker one process with one thread and no nanny."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        self.environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self.scheduler = self._start("dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file",
                                     str(self.file), "--host", "127.0.0.1")  # fmt: skip
        while not self.file.exists():
            assert self.scheduler.poll() is None, "the scheduler did not start"
            time.sleep(0.1)
        self.workers = [self._worker(number) for number in range(workers)]

    @property
    def address(self) -> str:
        return str(json.loads(self.file.read_bytes())["address"])

    def _worker(self, number: int) -> subprocess.Popen[bytes]:
        return self._start("dask_worker", "--scheduler-file", str(self.file), "--nthreads", "1", "--no-nanny",
                           "--no-dashboard", "--host", "127.0.0.1", "--local-directory",
                           str(self.folder / f"worker{number}"))  # fmt: skip

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-m", f"distributed.cli.{module}", *arguments], cwd=self.folder,
                                env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, 2)
    yield made
    made.close()


def test_a_worker_that_is_killed_in_the_middle_changes_no_result(cluster: Cluster, tmp_path: Path) -> None:
    submissions = make_class(tmp_path / "class")
    for number in range(4):
        shutil.copytree(submissions / "right", submissions / f"more{number}")
    process = batch(submissions, "--out", tmp_path / "over-there", "--cluster", cluster.address)
    victim = cluster.workers[0]
    while not _judging(victim.pid):
        assert process.poll() is None, finish(process)
        time.sleep(0.05)
    time.sleep(1)
    assert _judging(victim.pid) and process.poll() is None
    victim.kill()
    status, said, err = finish(process)
    assert (status, err) == (0, ""), err
    told = [line.split()[1] for line in said.splitlines() if line[:1].isdigit() and "/" in line.split()[0]]
    assert sorted(told) == sorted(path.name for path in submissions.iterdir()), "each is told once"
    status, _, err = finish(batch(submissions, "--out", tmp_path / "here", "--jobs", "1"))
    assert status == 0, err
    assert results(tmp_path / "over-there") == results(tmp_path / "here")
    status, said, _ = finish(batch(submissions, "--out", tmp_path / "here", "--cluster", cluster.address))
    assert status == 0 and "1/8" not in said, "a result is reused wherever it was judged"


def _judging(pid: int) -> bool:
    """Whether that worker's judge is there."""
    try:
        return bool(psutil.Process(pid).children())
    except psutil.Error:
        return False


def test_a_worker_with_other_files_refuses(cluster: Cluster) -> None:
    depends = basis(read_course(), 1, ISOLATION)
    other = replace(depends, exercises=depends.exercises | {"rope": "another"})
    executor = DaskExecutor(cluster.address, ISOLATION, other)
    try:
        future = executor.submit(Order(name="x", files={}, exercises=["heads"], seed=1))
        with pytest.raises(Problem, match="another version of: exercise rope"):
            future.result(timeout=120)
    finally:
        executor.close()


def test_no_scheduler_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.batch.cluster._CONNECT_SECONDS", 0.5)
    with pytest.raises(Problem, match="There is no Dask scheduler"):
        DaskExecutor("tcp://127.0.0.1:9", ISOLATION, basis(read_course(), 1, ISOLATION))
