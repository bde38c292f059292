"""Starting and ending worker processes: forked from a zygote where that is safe, spawned everywhere else."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from harness.worker.channel import Channel
from harness.worker.serve import SCRATCH, SUBMISSION


class Process(Protocol):
    """A running worker."""

    channel: Channel
    pid: int

    def end(self) -> str:
        """Kill the worker and all that it started, remove its folders, and say how it had ended.

        Returns:
            "exit N" or "signal NAME"; a worker that was still running ends by "signal SIGKILL".
        """
        ...


class Launcher(Protocol):
    """Makes workers for submissions."""

    isolation: str  # sandbox or process
    method: str  # fork or spawn

    def launch(self, files: Mapping[str, bytes]) -> Process: ...

    def close(self) -> None: ...


def best_start_method() -> str:
    """`fork` where a fork of a process that holds torch is safe (Linux), else `spawn`."""
    return "fork" if sys.platform == "linux" else "spawn"


def launcher(method: str, output_limit: int) -> Launcher:
    """A launcher by name, `fork` or `spawn`. Call it right after `import torch` and before anything is imported that
    a submission must not find in its memory: a zygote inherits all that this process holds."""
    return ForkLauncher(output_limit) if method == "fork" else SpawnLauncher(output_limit)


def _make_home(files: Mapping[str, bytes]) -> Path:
    """A private folder with the submission's files, and a scratch folder.

    The scratch folder is where the code runs and may write. Data files lie there too, so that `open("poem.txt")` finds
    beside it what it finds on the student's machine.
    """
    home = Path(tempfile.mkdtemp(prefix="headcheck-")).resolve()
    (home / SCRATCH).mkdir()
    (home / SUBMISSION).mkdir()
    for name, content in files.items():
        for folder in (SUBMISSION,) if name.endswith(".py") else (SUBMISSION, SCRATCH):
            target = home / folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return home


class ForkLauncher:
    """Workers forked from a zygote, which is itself forked from this process at once."""

    isolation = "process"
    method = "fork"

    def __init__(self, output_limit: int) -> None:
        from harness.worker import zygote  # its imports are POSIX's

        self.output_limit = output_limit
        self.pid, self.control = zygote.start()

    def launch(self, files: Mapping[str, bytes]) -> Process:
        home = _make_home(files)
        ours, theirs = socket.socketpair()
        output, their_output = socket.socketpair()
        with theirs, their_output:
            message = msgspec.msgpack.encode(("fork", str(home)))
            socket.send_fds(self.control, [message], [theirs.fileno(), their_output.fileno()])
            pid = self._answer()
        return _Forked(self, pid, home, Channel(ours, output, self.output_limit))

    def end(self, pid: int) -> int:
        """Kill a worker; returns its wait status."""
        self.control.sendall(msgspec.msgpack.encode(("end", pid)))
        return self._answer()

    def _answer(self) -> int:
        answer = self.control.recv(64)
        if not answer:
            raise RuntimeError("the process that makes workers has ended; run the command again")
        return msgspec.msgpack.decode(answer, type=int)

    def close(self) -> None:
        self.control.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class _Forked:
    def __init__(self, launcher: ForkLauncher, pid: int, home: Path, channel: Channel) -> None:
        self.launcher, self.pid, self.home, self.channel = launcher, pid, home, channel

    def end(self) -> str:
        status = self.launcher.end(self.pid)
        self.channel.drain()
        self.channel.close()
        shutil.rmtree(self.home, ignore_errors=True)
        return _ending(os.waitstatus_to_exitcode(status))


class SpawnLauncher:
    """Workers started as fresh interpreters: works everywhere, costs an `import torch` each."""

    isolation = "process"
    method = "spawn"

    def __init__(self, output_limit: int) -> None:
        self.output_limit = output_limit

    def launch(self, files: Mapping[str, bytes]) -> Process:
        home = _make_home(files)
        ours, theirs = socket.socketpair()
        output, their_output = socket.socketpair()
        command = [sys.executable, "-m", "harness.worker.serve", str(home)]
        root = Path(__file__).resolve().parents[2]
        with theirs, their_output:
            if os.name == "posix":
                numbers = [theirs.fileno(), their_output.fileno()]
                command += [str(number) for number in numbers]
                process = subprocess.Popen(command, cwd=root, pass_fds=numbers, start_new_session=True)
            else:
                process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE)
                assert process.stdin is not None
                shares = [
                    end.share(process.pid)  # type: ignore[attr-defined,unused-ignore]
                    for end in (theirs, their_output)
                ]
                process.stdin.write(b" ".join(b"%d" % len(share) for share in shares) + b"\n" + b"".join(shares))
                process.stdin.flush()
                # The copies must be made before ours close; the worker opens them as soon as it has started.
                process.stdin.close()
        return _Spawned(process, home, Channel(ours, output, self.output_limit))

    def close(self) -> None:
        """Nothing is kept between workers."""


class _Spawned:
    def __init__(self, process: subprocess.Popen[bytes], home: Path, channel: Channel) -> None:
        self.process, self.pid, self.home, self.channel = process, process.pid, home, channel

    def end(self) -> str:
        code = self.process.poll()
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.channel.drain()
        self.channel.close()
        shutil.rmtree(self.home, ignore_errors=True)
        return _ending(self.process.returncode if code is None else code)


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
