"""Starting and ending worker processes: forked from a zygote where that is safe, spawned everywhere else."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from harness.course import ROOT, Limits
from harness.problem import Problem
from harness.worker import confine, homes
from harness.worker.channel import Channel
from harness.worker.homes import SCRATCH


class Process(Protocol):
    """A running worker."""

    channel: Channel
    pid: int
    home: Path
    scratch_seen: float  # time.monotonic() of the last look at what it wrote

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
    broken: bool  # whether what makes the workers has ended by itself

    def ready(self) -> None:
        """Wait until workers can be made; starting takes a moment, in which the caller can do something else.

        Raises:
            Problem: this machine cannot make workers that are isolated so.
        """
        ...

    def launch(self, files: Mapping[str, bytes], limits: Limits) -> Process: ...

    def close(self) -> None: ...


def best_start_method() -> str:
    """`fork` where a fork of a process that holds torch is safe (Linux), else `spawn`."""
    return "fork" if sys.platform == "linux" else "spawn"


def launchers(method: str, isolation: str, count: int = 1, *, many: bool = False) -> list[Launcher]:
    """Launchers that can be used at the same time, by name, `fork` or `spawn`. Close the first one last.

    Call it right after `import torch` and before anything is imported that a submission must not find in its memory: a
    zygote inherits all that this process holds. With `many`, which is for dozens of workers, getting ready takes a
    third of a second more, and making each of them a third of the time.
    """
    if method == "spawn":
        return [SpawnLauncher(isolation) for _ in range(count)]
    from harness.worker import zygote  # its imports are POSIX's

    pid, controls = zygote.start(sandbox=isolation == "sandbox", count=count, many=many)
    return [ForkLauncher(isolation, control, None if place else pid) for place, control in enumerate(controls)]


class ForkLauncher:
    """Workers forked from a zygote, which was itself forked from this process.

    Args:
        isolation: `sandbox` or `process`.
        control: the zygote's socket.
        pid: the zygote's, if it is a child of this process.
    """

    method = "fork"

    def __init__(self, isolation: str, control: socket.socket, pid: int | None) -> None:
        self.isolation, self.control, self.pid = isolation, control, pid
        self.broken = self._ready = False

    def ready(self) -> None:
        if not self._ready:
            trouble = self._answer()
            if trouble:
                self.close()
                raise Problem(trouble)
            self._ready = True

    def launch(self, files: Mapping[str, bytes], limits: Limits) -> Process:
        self.ready()
        home = homes.make(files)
        ours, theirs = socket.socketpair()
        output, their_output = socket.socketpair()
        with theirs, their_output, _removed_if_broken(home):
            message = msgspec.msgpack.encode(("fork", str(home), msgspec.msgpack.encode(limits)))
            pid: int = self._ask(message, [theirs.fileno(), their_output.fileno()])
        return _Forked(self, pid, home, Channel(ours, output, limits.output_bytes))

    def end(self, pid: int) -> int:
        """Kill a worker; returns its wait status."""
        status: int = self._ask(msgspec.msgpack.encode(("end", pid, b"")), [])
        return status

    def _ask(self, message: bytes, descriptors: list[int]) -> Any:
        try:
            if descriptors:
                socket.send_fds(self.control, [message], descriptors)
            else:
                self.control.sendall(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self._ended() from None
        return self._answer()

    def _answer(self) -> Any:
        try:
            answer = self.control.recv(4096)
        except ConnectionResetError:
            answer = b""
        if not answer:
            raise self._ended()
        return msgspec.msgpack.decode(answer)

    def _ended(self) -> RuntimeError:
        self.broken = True
        return RuntimeError("the process that makes workers has ended; run the command again")

    def close(self) -> None:
        self.control.close()
        if self.pid is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)


class _Forked:
    def __init__(self, launcher: ForkLauncher, pid: int, home: Path, channel: Channel) -> None:
        self.launcher, self.pid, self.home, self.channel = launcher, pid, home, channel
        self.scratch_seen = time.monotonic()

    def end(self) -> str:
        with _removed_if_broken(self.home):
            status = self.launcher.end(self.pid)
        return _after(self, os.waitstatus_to_exitcode(status))


class SpawnLauncher:
    """Workers started as fresh interpreters: works everywhere, costs an `import torch` each."""

    method = "spawn"

    def __init__(self, isolation: str) -> None:
        self.isolation, self.broken = isolation, False

    def ready(self) -> None:
        """There is nothing to wait for."""

    def launch(self, files: Mapping[str, bytes], limits: Limits) -> Process:
        home = homes.make(files)
        ours, theirs = socket.socketpair()
        output, their_output = socket.socketpair()
        environment = confine.environment(str(home / SCRATCH)) | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", "harness.worker", str(home), msgspec.json.encode(limits).decode(),
                   self.isolation]  # fmt: skip
        with theirs, their_output:
            if os.name == "posix":
                numbers = [theirs.fileno(), their_output.fileno()]
                command += [str(number) for number in numbers]
                process = subprocess.Popen(
                    command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, pass_fds=numbers,
                    start_new_session=True,
                )  # fmt: skip
            else:
                process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE)
                assert process.stdin is not None
                shares = [
                    end.share(process.pid)  # type: ignore[attr-defined,unused-ignore]
                    for end in (theirs, their_output)
                ]
                sizes = b" ".join(b"%d" % len(share) for share in shares)
                process.stdin.write(sizes + b"\n" + b"".join(shares))
                process.stdin.close()
        return _Spawned(process, home, Channel(ours, output, limits.output_bytes))

    def close(self) -> None:
        """Nothing is kept between workers."""


class _Spawned:
    def __init__(self, process: subprocess.Popen[bytes], home: Path, channel: Channel) -> None:
        self.process, self.pid, self.home, self.channel = process, process.pid, home, channel
        self.scratch_seen = time.monotonic()

    def end(self) -> str:
        code = self.process.poll()
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        return _after(self, self.process.returncode if code is None else code)


@contextlib.contextmanager
def _removed_if_broken(home: Path) -> Iterator[None]:
    """Remove a worker's folders when the process that made it is gone, and the worker with it."""
    try:
        yield
    except RuntimeError:
        homes.remove(home)
        raise


def _after(process: _Forked | _Spawned, code: int) -> str:
    """Once a worker has ended: keep what it printed, remove its folders, say how it ended."""
    process.channel.drain()
    process.channel.close()
    homes.remove(process.home)
    if code >= 0:
        return f"exit {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
