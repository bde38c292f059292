"""A small zygote for tests of confinement: imports torch, then runs pieces of Python in confined children.

Reads one JSON object a line from standard input and answers one a line. Request: `code`; optional `limits`
(fields of Confinement), `abi` (pretend that the kernel's Landlock is that old), `channel` (text for the
inherited socket). Answer: `exit` (as subprocess has it: negative for a signal), `output`, `channel` (what the
child wrote to the socket), `cpu` (seconds).
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

LIMITS = {
    "memory_bytes": 512 << 20,
    "cpu_seconds": 20,
    "file_bytes": 1 << 20,
    "open_files": 64,
    "threads": 16,
}
HANG_SECONDS = 60  # a child that takes longer is killed, so that a broken test ends


def attempt(action: Any) -> str:
    """What came of calling `action`: "done" or the name of the error."""
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno] if error.errno else type(error).__name__
    except Exception as error:  # noqa: BLE001  whatever it is, its name is the answer
        return type(error).__name__
    return "done"


class Raw:
    """System calls by name, past every wrapper: raw.kill(pid, 9) gives "done" or the name of the error."""

    def __init__(self) -> None:
        import ctypes

        import pyseccomp

        self._libc = ctypes.CDLL(None, use_errno=True)
        self._ctypes = ctypes
        self._resolve = lambda name: pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.number(self._resolve(name), *args)

    def number(self, number: int, *args: Any) -> str:
        c = self._ctypes
        values = [arg if not isinstance(arg, int) else c.c_long(arg) for arg in args]
        if self._libc.syscall(c.c_long(number), *values) == -1:
            return errno.errorcode[c.get_errno()]
        return "done"


def child(request: dict[str, Any], namespace: dict[str, Any], confinement: Any) -> None:
    from harness.worker import confine

    prepared = confine._prepared
    assert prepared is not None
    if "abi" in request:
        import landlock.plumbing

        landlock.plumbing.landlock_abi_version = lambda: request["abi"]
        sandbox = dataclasses.replace(prepared.sandbox, abi=request["abi"])
        confine._prepared = dataclasses.replace(prepared, sandbox=sandbox)
    confine.confine(confinement)
    exec(compile(request["code"], "piece.py", "exec"), namespace)


def serve(place: Path) -> None:
    from harness.worker import confine

    confine.prepare()
    raw = Raw()
    for line in sys.stdin:
        request = json.loads(line)
        scratch = Path(tempfile.mkdtemp(dir=place))
        out, out_child = socket.socketpair()
        channel, channel_child = socket.socketpair()
        channel.sendall(request.get("channel", "").encode())
        channel.shutdown(socket.SHUT_WR)
        limits = LIMITS | request.get("limits", {})
        confinement = confine.Confinement(
            scratch=str(scratch),
            readable=(str(place / "submission"),),
            keep_fds=(channel_child.fileno(),),
            **limits,
        )
        namespace = {
            "attempt": attempt,
            "raw": raw,
            "os": os,
            "zygote": os.getpid(),
            "scratch": scratch,
            "submission": place / "submission",
            "outside": place / "outside",
            "channel_fd": channel_child.fileno(),
            "out_fd": out.fileno(),
        }
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.dup2(out_child.fileno(), 1)
                os.dup2(out_child.fileno(), 2)
                child(request, namespace, confinement)
                status = 0
            except SystemExit as leaving:
                status = leaving.code if isinstance(leaving.code, int) else 1
            except BaseException:  # noqa: BLE001  a child must not run on in the parent's loop
                traceback.print_exc()
            finally:
                with contextlib.suppress(OSError):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(status)
        out_child.close()
        channel_child.close()
        output, answer = collect(pid, out, channel)
        _, wait_status, used = os.wait4(pid, 0)
        shutil.rmtree(scratch, ignore_errors=True)
        reply = {
            "exit": os.waitstatus_to_exitcode(wait_status),
            "output": output.decode(errors="replace"),
            "channel": answer.decode(errors="replace"),
            "cpu": used.ru_utime + used.ru_stime,
        }
        print(json.dumps(reply), flush=True)


def collect(pid: int, *sockets: socket.socket) -> list[bytes]:
    """Read each socket to its end; kill the child when that takes too long."""
    received = {one: b"" for one in sockets}
    open_ones = list(sockets)
    deadline = time.monotonic() + HANG_SECONDS
    while open_ones:
        ready, _, _ = select.select(open_ones, [], [], 1)
        for one in ready:
            data = one.recv(1 << 16)
            received[one] += data
            if not data:
                open_ones.remove(one)
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            deadline += HANG_SECONDS
    for one in sockets:
        one.close()
    return list(received.values())


if __name__ == "__main__":
    import numpy  # noqa: F401
    import torch
    import torch.optim  # noqa: F401

    torch.ones(2)
    serve(Path(sys.argv[1]))
