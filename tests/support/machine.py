"""A judge that runs hostile submissions, with a small world around it that must stay as it is.

Outside the sandbox lie a file that anybody may read and write, a process of the judge's user, another submission, and
a listening socket. `Machine.harm` says what has become of them, and what was left behind.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from harness.judge import JudgeProcess, Order
from harness.oracle import check_seed
from harness.report import Report
from tests import ordinary_user
from tests.support.command import ROOT

USERS = ["own", *(["ordinary"] if ordinary_user.available() else [])]
SEED = 7  # of every run
TARGETS = Path(__file__).with_name("targets.py")
_PLANTED = tuple(Path(folder, "headcheck-planted") for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/"))
_KEY = str(0x68656164)  # of the SysV objects that a scenario tries to make
_PATIENCE = 30  # seconds for processes and folders to go away on a busy machine


class Machine:
    """One judge, run by `user`, and what must not change.

    Args:
        user: "own", or "ordinary" for an ordinary user where root runs the tests.
        isolation: of the judge.
    """

    def __init__(self, user: str, isolation: str = "sandbox") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="headcheck-hostile-")).resolve()
        self.folder.chmod(0o755)
        self.popen: dict[str, Any] = {}
        environment, python, self.root = dict(os.environ), sys.executable, ROOT
        if user == "ordinary":
            (self.folder / "python").mkdir()
            ordinary = ordinary_user.prepare(self.folder / "python")
            python, self.popen = ordinary.python, dict(ordinary.popen)
            self.root = self.folder / "code"
            for name in ("harness", "graders", "reference"):
                shutil.copytree(ROOT / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy(ROOT / "pyproject.toml", self.root)
            environment = {"PATH": os.environ["PATH"], **ordinary.environment}
        self.secret = secrets.token_hex(16)
        self._lay_out(user)
        environment |= {"TMPDIR": str(self.tmp), "HEADCHECK_CANARY_SECRET": self.secret, "PYTHONDONTWRITEBYTECODE": "1"}
        self.bystander = subprocess.Popen(["sleep", "1000000"], **self.popen)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.judge = JudgeProcess(isolation)
        self.judge.process = self.process = subprocess.Popen(
            [python, "-m", "harness.judge", isolation, str(self.root)], cwd=self.root, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, **self.popen,
        )  # fmt: skip
        try:
            self.before = self._state()
        except BaseException:
            self.close()
            raise

    def _lay_out(self, user: str) -> None:
        """The file, the other submission, and the folder for the judge's temporary files; open to everybody."""
        self.tmp, self.outside = self.folder / "tmp", self.folder / "outside"
        self.canary, self.other = self.outside / "canary.txt", self.tmp / "headcheck-other"
        for path in (self.tmp, self.outside, self.other / "submission", self.other / "scratch"):
            path.mkdir(parents=True)
        self.canary.write_text("untouched", encoding="utf-8")
        (self.other / "submission" / "gpt.py").write_text("other = 'work'\n", encoding="utf-8")
        for path in (self.tmp, *self.tmp.rglob("*"), self.outside, self.canary):
            if user == "ordinary":
                os.chown(path, ordinary_user.NOBODY, ordinary_user.NOBODY)
            path.chmod(0o777 if path.is_dir() else 0o666)

    def targets(self) -> bytes:
        """The module `targets` for the next submission."""
        home = os.environ.get("HOME", "/root")
        places = {"CANARY": str(self.canary), "CANARY_PID": self.bystander.pid, "JUDGE_PID": self.process.pid,
                  "ROOT": str(self.root), "OTHER": str(self.other), "HOME": home, "SECRET": self.secret,
                  "PORT": self.listener.getsockname()[1], "MOMENT": check_seed(SEED, "heads.merge")}  # fmt: skip
        lines = "".join(f"{name} = {value!r}\n" for name, value in places.items())
        return f"{TARGETS.read_text(encoding='utf-8')}\n\n{lines}".encode()

    def grade(self, order: Order) -> Report:
        return self.judge.grade(order)

    def harm(self) -> dict[str, tuple[object, object]]:
        """What is not as it was: before and now. Waits for what takes a moment to go away."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            now = self._state()
            changed = {name: (self.before[name], now[name]) for name in now if now[name] != self.before[name]}
            if not changed or time.monotonic() > deadline:
                return changed
            time.sleep(0.02)

    def _state(self) -> dict[str, object]:
        status = self.canary.stat()
        bystander = psutil.Process(self.bystander.pid)
        try:
            visitor = bool(self.listener.accept())
        except BlockingIOError:
            visitor = False
        return {
            "file": (self.canary.read_bytes(), status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns,
                     status.st_nlink, os.listxattr(self.canary)),
            "folder": sorted(path.name for path in self.outside.iterdir()),
            "other submission": sorted(str(path) for path in self.other.rglob("*")),
            "bystander": (self.bystander.poll(), bystander.nice(), bystander.cpu_affinity(),
                          Path(f"/proc/{self.bystander.pid}/limits").read_text(encoding="ascii")),
            "visitor": visitor,
            "judge": self.process.poll(),
            "workers": self._workers(),
            "left in the temporary folder": sorted(path.name for path in self.tmp.iterdir()),
            "planted": [str(path) for path in _PLANTED if path.exists()],
            "objects": [name for name in ("shm", "sem", "msg")
                        if _KEY in Path("/proc/sysvipc", name).read_text(encoding="utf-8")],
        }  # fmt: skip

    def _workers(self) -> list[int]:
        """What descends from the judge, zombies included, beside the one process that forks workers."""
        return [grandchild.pid for child in psutil.Process(self.process.pid).children()
                for grandchild in child.children(recursive=True)]  # fmt: skip

    def close(self) -> None:
        self.judge.close()
        self.bystander.kill()
        self.bystander.wait()
        self.listener.close()
        shutil.rmtree(self.folder)
