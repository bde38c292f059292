"""The process that forks workers: torch is imported once, every worker starts from a copy of it.

It holds torch and this package, never the graders, the reference or a submission, and stays single-threaded: a fork
of a process that ran torch on two threads hangs. The judge commands it over a socket; when the judge is gone, be it
killed, it kills its workers, removes their folders and ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import msgspec
import torch

from harness.course import Limits
from harness.worker import confine, homes, linux, serve

BROKEN = 70  # exit status of a worker whose own code raised: the submission broke what serves it

_encode, _decode = msgspec.msgpack.encode, msgspec.msgpack.Decoder(tuple[str, str | int, bytes]).decode


def start(*, sandbox: bool, count: int = 1, many: bool = False) -> tuple[int, list[socket.socket]]:
    """Fork a zygote from this process, which has imported torch and run nothing on two threads.

    Args:
        sandbox: confine the workers with Landlock and seccomp, not only with what any POSIX system has.
        count: make so many zygotes, each a fork of the first once that is ready.
        many: get ready for many workers.

    Returns:
        The first one's process id, and for each the socket on which a launcher commands it. The first message on it
        is "" when all is ready, else why no worker can be made.
    """
    ours, theirs = zip(*(socket.socketpair() for _ in range(count)), strict=True)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        for end in ours:
            end.close()
        _run(theirs, sandbox, many)
    for end in theirs:
        end.close()
    return pid, list(ours)


def _run(controls: Sequence[socket.socket], sandbox: bool, many: bool) -> NoReturn:
    """Obey the judge until its end of the socket is closed. No signal tells of that: it would leave no time to tidy."""
    homes_of: dict[int, Path] = {}  # of the workers that have not been ended
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the judge is gone before it had an answer
            _obey(controls, sandbox, many, homes_of)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        for pid, home in homes_of.items():
            _end(pid)
            homes.remove(home)
        os._exit(0)  # nothing must climb into the judge's code, which this process inherited


def _obey(controls: Sequence[socket.socket], sandbox: bool, many: bool, homes_of: dict[int, Path]) -> None:
    """Get ready, become as many zygotes as there are sockets, and obey what comes over this one's.

    `fork HOME LIMITS` (with two descriptors) answers a process id, `end PID` kills and answers how it had ended.
    """
    os.setsid()  # Ctrl-C at the judge's terminal is the judge's to handle
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    try:
        if sys.platform == "linux":
            linux.replace_environment(confine.environment(tempfile.gettempdir()))
        serve.warm_up()
        confine.prepare(sandbox=sandbox)
        if many and sys.platform == "linux":
            linux.use_huge_pages()
    except confine.ConfinementError as error:
        for control in controls:
            control.sendall(_encode(str(error)))
        os._exit(1)
    control, *others = controls
    for other in others:
        if os.fork() == 0:
            for unused in controls:
                if unused is not other:
                    unused.close()
            confine.prepared_by_parent()
            control = other
            break
        other.close()
    control.sendall(_encode(""))
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 65536, 2)
        if not message:
            return
        verb, argument, limits = _decode(message)
        if verb == "fork":
            pid = os.fork()
            if pid == 0:
                try:
                    control.close()
                    channel, output = (socket.socket(fileno=number) for number in descriptors)
                    found = msgspec.msgpack.decode(limits, type=Limits)
                    serve.become_worker(Path(str(argument)), channel, output, found)
                finally:
                    os._exit(BROKEN)  # an exception must not climb into the judge's code, which this process inherited
            for descriptor in descriptors:
                os.close(descriptor)
            homes_of[pid] = Path(str(argument))
            control.sendall(_encode(pid))
        else:
            pid = int(argument)
            homes_of.pop(pid, None)
            control.sendall(_encode(_end(pid)))


def _end(pid: int) -> int:
    """Kill a worker with all of its process group; its wait status tells whether it had ended by itself."""
    # Look without reaping first: once reaped, the number could already be somebody else's.
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if ended is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # it may not have made its own group yet
    return os.waitpid(pid, 0)[1]
