"""Inside the worker: import the submission and answer the judge's requests until the channel closes.

A worker is either forked by the zygote or started as `python -m harness.worker`. Everything that the submission
could trip over is loaded here, before its first byte runs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import linecache  # noqa: F401 - tracebacks read source lines through it: load it before the submission can shadow it
import math
import os
import socket
import sys
import warnings
from pathlib import Path
from typing import NoReturn

import msgspec
import torch

from harness.course import Limits
from harness.worker import confine, objects, protocol
from harness.worker.homes import SCRATCH, SUBMISSION, UNCONFINED


def become_worker(home: Path, channel: socket.socket, output: socket.socket, limits: Limits) -> NoReturn:
    """Make this process a worker: confined, with nothing of the judge's to import, and serve it.

    Args:
        home: holds the folders `submission` (the student's files) and `scratch` (current folder, may be written).
        channel: requests come and replies go here.
        output: where stdout and stderr go.
        limits: what it may use.
    """
    _redirect(output)
    if os.name == "posix":
        output.close()
    try:
        confine.confine(
            confine.Confinement(
                scratch=str(home / SCRATCH),
                readable=(str(home / SUBMISSION),),
                memory_bytes=limits.memory_bytes,
                cpu_seconds=math.ceil(limits.submission_seconds) + 1,
                file_bytes=limits.scratch_bytes,
                open_files=limits.open_files,
                threads=limits.threads,
                keep_fds=(channel.fileno(),),
            )
        )
    except confine.ConfinementError as error:
        # Nothing of the submission has run; the judge takes the exit status and the text as its own trouble.
        print(error, file=sys.stderr, flush=True)
        os._exit(UNCONFINED)
    sys.argv = ["worker"]
    sys.path.insert(0, str(home / SUBMISSION))
    serve(channel, home)


def _redirect(output: socket.socket) -> None:
    """Send stdout and stderr to `output`; where sockets are no file descriptors (Windows), Python's alone."""
    if os.name == "posix":
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            stream = open(  # noqa: SIM115 - lives as long as the process
                descriptor, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
            )
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
    else:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
        sys.stdout = sys.stderr = output.makefile("w", encoding="utf-8", errors="backslashreplace")


def serve(channel: socket.socket, home: Path) -> NoReturn:
    """Answer requests on `channel` until it closes, then end the process without running exit handlers."""
    world = objects.Objects(importlib.import_module, home / SUBMISSION)
    streams = (sys.stdout, sys.stderr)
    incoming = bytearray()
    while True:
        while len(incoming) < protocol.HEADER or len(incoming) - protocol.HEADER < _length(incoming):
            chunk = channel.recv(2**16)
            if not chunk:  # the judge is gone, or done
                os._exit(0)
            incoming += chunk
        with memoryview(incoming) as frame:
            request = protocol.decode_request(bytes(frame[protocol.HEADER :]))
        incoming.clear()
        reply = objects.encoded(world.perform(request))
        for stream in streams:
            with contextlib.suppress(OSError, ValueError):  # the submission may have closed it
                stream.flush()
        channel.sendall(len(reply).to_bytes(protocol.HEADER) + reply)


def _length(frame: bytearray) -> int:
    return int.from_bytes(frame[: protocol.HEADER])


# What the files of a course import from the standard library, torch's own imports aside.
_USUAL = ("argparse", "csv", "json", "random", "statistics")


def warm_up() -> None:
    """What would cost every worker again, done once before the fork: what a first use of torch takes, where modules are
    looked for, which warnings are shown."""
    root = Path(__file__).resolve().parents[2]
    sys.path[:] = [entry for entry in sys.path if entry and Path(entry).resolve() != root]
    warnings.resetwarnings()
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)  # Python's own defaults, whatever -W this process was started with
    for name in _USUAL:
        importlib.import_module(name)
    layer = torch.nn.Linear(2, 2)
    layer(torch.zeros(1, 2)).sum().backward()
    torch.nn.functional.softmax(torch.zeros(1, 2, dtype=torch.float64), dim=-1).numpy()
    importlib.import_module("numpy.random")  # numpy loads it when it is first asked, in every worker anew
    importlib.invalidate_caches()  # what the judge's own imports left there
    gc.freeze()  # a forked worker that collects garbage would copy every page of torch's heap


def main() -> NoReturn:
    """Serve as a spawned worker; see harness/worker/__main__.py."""
    home, limits = Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=Limits)
    if os.name == "posix":
        channel, output = (socket.socket(fileno=int(number)) for number in sys.argv[4:6])
    else:
        sizes = sys.stdin.buffer.readline().split()
        channel, output = (
            socket.fromshare(sys.stdin.buffer.read(int(size)))  # type: ignore[attr-defined,unused-ignore]
            for size in sizes
        )
    warm_up()
    confine.prepare(sandbox=sys.argv[3] == "sandbox")
    become_worker(home, channel, output, limits)
