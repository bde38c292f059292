"""What this machine offers for isolating a submission.

Cheap: no torch is imported, and nothing changes in the calling process.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import errno
import os
import platform
import socket
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from harness.worker import linux, syscalls

_FIRST_ABI_WITH_TRUNCATE = 3


@dataclass(frozen=True)
class Offer:
    """What was found; `problems` says what is not there and what to do about it."""

    os: str
    kernel: str
    machine: str
    landlock_abi: int  # 0: none
    seccomp: bool  # a filter was installed, in a process of its own, and did refuse a call
    start_method: Literal["fork", "spawn"]
    cores: int  # usable by this process; a cgroup's quota rounded up
    memory_bytes: int  # of the machine or of the cgroup, whichever is less
    problems: tuple[str, ...]

    @property
    def isolation(self) -> Literal["sandbox", "process"]:
        """The strongest isolation that works here."""
        return "sandbox" if self.landlock_abi > 0 and self.seccomp else "process"

    @property
    def missing(self) -> list[str]:
        """What keeps this machine from the sandbox, or weakens it, in sentences; empty when all is there."""
        return list(self.problems)


def probe() -> Offer:
    """Look at the machine: Landlock by asking the kernel for its ABI, seccomp by trying it in a child."""
    problems: list[str] = []
    abi, filtered = 0, False
    if sys.platform == "linux":
        abi = _probe_landlock(problems)
        filtered = _probe_seccomp(problems)
        if os.getuid() == 0 and not linux.effective_capabilities() & 1 << linux.CAP_SETUID:
            problems.append(
                "This process is root without CAP_SETUID, so workers stay root and the number of their "
                "threads is not limited. Run as an ordinary user instead."
            )
    else:
        problems.append(
            f"The sandbox needs Linux (5.13 or newer); this is {platform.system()}. Submissions run in a "
            "process of their own, which does not protect your files: grade only work that you trust, or use "
            "Linux or WSL 2."
        )
    return Offer(
        os=platform.system(),
        kernel=platform.release(),
        machine=platform.machine(),
        landlock_abi=abi,
        seccomp=filtered,
        start_method="fork" if sys.platform == "linux" else "spawn",
        cores=cores(),
        memory_bytes=min([_physical_memory(), *_cgroup_memory()]),
        problems=tuple(problems),
    )


def probe_aside() -> Callable[[], Offer]:
    """Begin to probe in a process of its own, where there is fork; what comes back waits for what it found.

    The probe starts processes, each of which would have to copy this one's memory: begin before torch is imported.
    """
    if sys.platform != "linux":
        return probe
    answer, answers = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(answer)
            os.write(answers, msgspec.json.encode(probe()))
        finally:
            os._exit(0)  # nothing must climb into the code that the other process runs
    os.close(answers)

    def found() -> Offer:
        with os.fdopen(answer, "rb") as pipe:
            body = pipe.read()
        with contextlib.suppress(ChildProcessError):  # whoever started this process has children reaped unasked
            os.waitpid(pid, 0)
        return msgspec.json.decode(body, type=Offer) if body else probe()

    return found


def _probe_landlock(problems: list[str]) -> int:
    abi = linux.landlock_abi()
    if abi == 0:
        why = {
            errno.ENOSYS: "was built without it, is older than 5.13, or a container refuses the call",
            errno.EOPNOTSUPP: "has it switched off: add 'landlock' to its 'lsm=' boot parameter",
        }.get(ctypes.get_errno(), "refuses it")
        problems.append(f"Landlock, which confines files, is missing: the kernel ({platform.release()}) {why}.")
        return 0
    if find_spec("landlock") is None:
        problems.append(
            "The Python package landlock is not installed: run 'python -m pip install -r requirements.txt'."
        )
        return 0
    if abi < _FIRST_ABI_WITH_TRUNCATE:
        problems.append(
            f"Landlock's ABI is {abi}; the sandbox works, and seccomp alone keeps readable files from being "
            "emptied. Linux 6.2 or newer has both."
        )
    return abi


def _probe_seccomp(problems: list[str]) -> bool:
    if find_spec("pyseccomp") is None:
        problems.append(
            "The Python package pyseccomp is not installed: run 'python -m pip install -r requirements.txt'."
        )
        return False
    if ctypes.util.find_library("seccomp") is None:
        problems.append(
            "The system library libseccomp.so.2 is missing: install it with your package manager "
            "(Debian and Ubuntu: libseccomp2; Fedora, Arch and Alpine: libseccomp)."
        )
        return False
    try:
        works = _filter_works(syscalls.compile_filter())
    except (OSError, RuntimeError, ImportError) as error:
        problems.append(f"The system call filter could not be made: {error}.")
        return False
    if not works:
        problems.append("The kernel did not accept a system call filter (seccomp); a container may forbid it.")
    return works


def _filter_works(bpf: bytes) -> bool:
    """Whether a child that loads the filter is refused a socket, which it could make before."""
    with warnings.catch_warnings():
        # Newer Pythons warn of forks beside threads; this child makes four system calls and ends.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        works = False
        try:
            first, _second = socket.socketpair()
            linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
            linux.load_filter(bpf)
            works = _is_refused(first)
        finally:
            os._exit(0 if works else 1)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def _is_refused(connected: socket.socket) -> bool:
    """Whether making a socket is refused while one that is there still works."""
    connected.send(b"x")
    try:
        socket.socketpair()
    except PermissionError:
        return True
    return False


def cores() -> int:
    """Processors that this process may use; a quota of its control group is rounded up."""
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    for text in _cgroup_settings("cpu.max"):
        quota, period = text.split()
        if quota != "max":
            usable = min(usable, -(-int(quota) // int(period)))
    return max(usable, 1)


def _physical_memory() -> int:
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    import psutil  # where sysconf is not; elsewhere its import is a tenth of a second that every start would pay

    return int(psutil.virtual_memory().total)


def _cgroup_memory() -> list[int]:
    """Memory limits of this process's control groups in bytes; empty when there are none."""
    texts = _cgroup_settings("memory.max", "memory", "memory.limit_in_bytes")
    return [int(text) for text in texts if text != "max"]


def _cgroup_settings(name: str, controller: str = "", name_in_version_1: str = "") -> list[str]:
    """One setting in this process's control group and those around it, of version 2 and, where named, 1."""
    own = Path("/proc/self/cgroup")
    if not own.is_file():
        return []
    settings: list[str] = []
    for line in own.read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, file_name = Path("/sys/fs/cgroup"), name
        elif controller in controllers.split(","):
            root, file_name = Path("/sys/fs/cgroup", controller), name_in_version_1
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            file = folder / file_name
            if file.is_file():
                settings.append(file.read_text(encoding="ascii").strip())
            if folder == root:
                break
    return settings
