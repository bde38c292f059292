"""The steps of confinement one by one, in small processes of their own, without torch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from harness.worker import confine, linux

REPOSITORY = Path(confine.__file__).parents[2]
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or linux.landlock_abi() == 0, reason="this kernel offers no Landlock"
)
LIMITS = "readable=(), memory_bytes=1 << 29, cpu_seconds=20, file_bytes=1 << 20, open_files=64, threads=8, keep_fds=()"


def run_alone(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh Python with the module at hand as `confine` and a Confinement as `c`."""
    start = (
        "import os, sys, time\nfrom dataclasses import replace\nfrom threading import Thread\n"
        "from harness.worker import confine\n"
        f"c = confine.Confinement(scratch={str(folder)!r}, {LIMITS})\n"
    )
    command = [sys.executable, "-c", start + textwrap.dedent(code)]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, encoding="utf-8", timeout=60, check=False)


def test_dies_with_its_parent(tmp_path: Path) -> None:
    """The parent is killed with SIGKILL while the worker sleeps; the worker cannot have asked to stay."""
    code = """
        confine.prepare()
        pid = os.fork()
        if pid == 0:
            confine.confine(c)
            import ctypes
            ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
            time.sleep(600)
        time.sleep(0.5)
        print(pid, flush=True)
        os.kill(os.getpid(), 9)
    """
    ran = run_alone(code, tmp_path)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    worker = int(ran.stdout)
    for _ in range(200):
        if not is_running(worker):
            return
        time.sleep(0.05)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the worker outlived its parent")


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("confine.confine(c)", "prepare() was not called"),
        (
            "confine.prepare(); confine.confine(replace(c, scratch='/nowhere'))",
            "making the environment: [Errno 2]",
        ),
        (
            "confine.prepare(); confine.confine(replace(c, readable=('/nowhere',)))",
            "restricting files (Landlock): [Errno 2]",
        ),
        (
            "Thread(target=time.sleep, args=(1,)).start(); confine.prepare(); confine.confine(c)",
            "while it has one thread",
        ),
        (
            "confine.prepare(); confine.linux.landlock_abi = lambda: 0; confine.prepare()",
            "does not offer Landlock",
        ),
    ],
    ids=["unprepared", "scratch", "readable", "threads", "no-landlock"],
)
def test_fails_with_a_reason(tmp_path: Path, code: str, says: str) -> None:
    ran = run_alone(code, tmp_path)
    assert ran.returncode == 1
    assert "ConfinementError" in ran.stderr and says in ran.stderr


def test_a_process_that_was_not_forked_can_confine_itself(tmp_path: Path) -> None:
    """As a spawned worker does: prepare and confine in one process."""
    code = """
        confine.prepare()
        confine.confine(c)
        print(os.getcwd() == c.scratch)
        open("/etc/passwd").close()
    """
    ran = run_alone(code, tmp_path)
    assert ran.stdout.split() == ["True"], ran.stderr
    assert "Permission denied: '/etc/passwd'" in ran.stderr


def test_without_a_sandbox_limits_hold_all_the_same(tmp_path: Path) -> None:
    code = """
        import resource
        confine.prepare(sandbox=False)
        confine.confine(c)
        print(os.getcwd() == c.scratch, os.environ["HOME"] == c.scratch)
        print(resource.getrlimit(resource.RLIMIT_FSIZE)[0])
        open("/etc/passwd").close()
        bytes(1 << 30)
    """
    ran = run_alone(code, tmp_path)
    assert ran.stdout.split() == ["True", "True", str(1 << 20)], ran.stderr
    assert "MemoryError" in ran.stderr


def test_readable_paths_leave_the_harness_and_its_neighbours_out(tmp_path: Path) -> None:
    """The folder that holds harness/ holds the reference and the graders too; none is opened for a worker."""
    code = """
        sys.path.insert(0, os.getcwd())
        from harness.worker import files
        print(*files.readable_paths(), sep="\\n")
    """
    ran = run_alone(code, tmp_path)
    paths = [Path(line) for line in ran.stdout.splitlines()]
    assert any(Path(json.__file__).resolve().is_relative_to(path) for path in paths), ran.stderr
    for private in (REPOSITORY / "harness", REPOSITORY / "tests", tmp_path, Path("/etc/passwd"), Path.home()):
        assert not any(private.resolve().is_relative_to(path) for path in paths)


def test_the_environment_keeps_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    kept = confine.environment("/scratch")
    assert "GITHUB_TOKEN" not in kept
    assert (kept["LANG"], kept["HOME"], kept["TMPDIR"]) == ("C.UTF-8", "/scratch", "/scratch")
