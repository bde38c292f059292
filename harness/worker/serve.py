"""Inside the worker: import the submission and answer the judge's requests until the channel closes.

A worker is either forked by the zygote or started as `python -m harness.worker.serve`. Everything that the submission
could trip over is loaded here, before its first byte runs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import linecache  # noqa: F401 - tracebacks read source lines through it: load it before the submission can shadow it
import os
import socket
import sys
import warnings
from pathlib import Path
from typing import NoReturn

import torch

from harness.worker import objects, protocol

SUBMISSION, SCRATCH = "submission", "scratch"  # the two folders of a worker
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                "MKL_NUM_THREADS")  # fmt: skip


def single_thread() -> None:
    """Keep torch and BLAS to one thread: faster on the lesson's small models, and a fork of it is safe.

    Call it before the first `import torch`; it sets what the libraries read then.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def settle(home: Path, output: socket.socket | None) -> None:
    """Make this process a worker: its folders, its environment, its output, nothing of the judge's to import.

    Args:
        home: holds the folders `submission` (the student's files) and `scratch` (current folder, may be written).
        output: where stdout and stderr go; None leaves them as they are.
    """
    scratch = home / SCRATCH
    for name in list(os.environ):
        if name not in _ENVIRONMENT:
            del os.environ[name]
    os.environ.update(HOME=str(scratch), TMPDIR=str(scratch), TORCHDYNAMO_DISABLE="1", PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    os.chdir(scratch)
    sys.argv = ["worker"]
    root = Path(__file__).resolve().parents[2]
    kept = [entry for entry in sys.path if entry and Path(entry).resolve() != root]
    sys.path[:] = [str(home / SUBMISSION), *kept]
    importlib.invalidate_caches()
    warnings.resetwarnings()
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)  # Python's own defaults, whatever -W this process was started with
    if output is not None:
        _redirect(output)


def _redirect(output: socket.socket) -> None:
    """Send stdout and stderr to `output`; where sockets are no file descriptors (Windows), Python's alone."""
    if os.name == "posix":
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - lives as long as the process
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            stream = open(  # noqa: SIM115
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
    while True:
        header = _read(channel, protocol.HEADER)
        body = _read(channel, int.from_bytes(header)) if header else b""
        if not header:
            os._exit(0)
        reply = objects.encoded(world.perform(protocol.decode_request(body)))
        for stream in streams:
            with contextlib.suppress(OSError, ValueError):  # the submission may have closed it
                stream.flush()
        channel.sendall(len(reply).to_bytes(protocol.HEADER) + reply)


def _read(channel: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes, or b"" once the judge is gone."""
    data = bytearray()
    while len(data) < size:
        chunk = channel.recv(min(size - len(data), 2**20))
        if not chunk:
            return b""
        data += chunk
    return bytes(data)


def warm_up() -> None:
    """What a first use would cost every worker again, done once before the fork."""
    layer = torch.nn.Linear(2, 2)
    layer(torch.zeros(1, 2)).sum().backward()
    torch.nn.functional.softmax(torch.zeros(1, 2, dtype=torch.float64), dim=-1).numpy()
    gc.collect()
    gc.freeze()  # a forked worker that collects garbage would copy every page of torch's heap


def main() -> NoReturn:
    """Entry of a spawned worker: `python -m harness.worker.serve HOME` with its sockets on standard input."""
    torch.set_num_threads(1)
    home = Path(sys.argv[1])
    if os.name == "posix":
        channel, output = (socket.socket(fileno=int(number)) for number in sys.argv[2:4])
    else:
        sizes = sys.stdin.buffer.readline().split()
        channel, output = (
            socket.fromshare(sys.stdin.buffer.read(int(size)))  # type: ignore[attr-defined,unused-ignore]
            for size in sizes
        )
    settle(home, output)
    serve(channel, home)


if __name__ == "__main__":
    main()
