"""The few Linux calls that confinement needs and Python's library does not offer.

Each function is a thin, typed face on one system call and raises OSError when the kernel says no. The module
imports anywhere; only calling a function needs Linux.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_KEEPCAPS = 8
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2

CAP_KILL = 5
CAP_SETUID = 7

MADV_COLLAPSE = 25

CLOSE_RANGE = 436  # this and the next are the same on every architecture
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_VERSION = 1  # flag: answer the ABI instead of making a ruleset

_CAPABILITY_VERSION_3 = 0x20080522


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapData(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable"))


class _LandlockAttr(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


@functools.cache
def libc() -> Any:
    """The C library of this process, with argument types set so that 64-bit values pass whole."""
    lib = ctypes.CDLL(None, use_errno=True)
    lib.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    lib.prctl.restype = ctypes.c_int
    lib.syscall.restype = ctypes.c_long
    lib.capset.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    lib.setfsuid.argtypes = (ctypes.c_uint32,)
    lib.setfsuid.restype = ctypes.c_int
    return lib


def syscall(number: int, *args: int) -> int:
    """syscall(2), arguments as 64-bit values: the result, or -1 with ctypes' errno set."""
    result: int = libc().syscall(ctypes.c_long(number), *(ctypes.c_long(value) for value in args))
    return result


def _raise(call: str) -> None:
    code = ctypes.get_errno()
    raise OSError(code, f"{call}: {os.strerror(code)}")


def prctl(option: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> int:
    """prctl(2)."""
    result: int = libc().prctl(option, a, b, c, d)
    if result < 0:
        _raise(f"prctl({option})")
    return result


def landlock_abi() -> int:
    """The running kernel's Landlock ABI, by asking it; 0 where Landlock is absent or switched off at boot."""
    version = syscall(LANDLOCK_CREATE_RULESET, 0, 0, LANDLOCK_VERSION)
    return max(version, 0)


def landlock_ruleset(fs: int, net: int, scoped: int) -> int:
    """A descriptor of a new ruleset that handles file rights, TCP (`net`, ABI 4) and scopes (ABI 6).

    The landlock package has the same for files alone.
    """
    attr = _LandlockAttr(fs, net, scoped)
    # An older kernel refuses a structure that is longer than it knows.
    size = 24 if scoped else 16 if net else 8
    ruleset = syscall(LANDLOCK_CREATE_RULESET, ctypes.addressof(attr), size, 0)
    if ruleset < 0:
        _raise("landlock_create_ruleset")
    return ruleset


def replace_environment(values: Mapping[str, str]) -> None:
    """Delete every variable, overwrite the strings that this process was started with, and set `values`.

    A variable that is only deleted leaves its string in memory, where a forked process could read it.
    """
    os.environ.clear()  # first, for C's pointers lead to these strings
    start, end = (int(field) for field in _after_name("stat")[47:49])  # env_start and env_end, see proc_pid_stat(5)
    ctypes.memset(start, 0, end - start)
    os.environ.update(values)


def _after_name(file: str) -> list[str]:
    """The fields of a file of /proc/self that follow the program's name, which may hold blanks."""
    return Path("/proc/self", file).read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def use_huge_pages() -> None:
    """Move the memory of this process into huge pages, as far as the kernel (6.1) can.

    A fork copies the page table, and an ending process takes its own apart: with torch's heap in huge pages both take
    a quarter of the time, or less.
    """
    try:
        size = int(Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").read_text(encoding="ascii"))
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # then all stays as it is
        return
    for line in maps.splitlines():
        addresses, rights, _, _, _, *name = line.split(maxsplit=5)
        if rights != "rw-p" or name not in ([], ["[heap]"]):
            continue
        start, end = (int(address, 16) for address in addresses.split("-"))
        for place in range(-(-start // size) * size, end - size + 1, size):
            # Where it cannot, for want of memory or of pages to move, all stays as it was.
            libc().madvise(ctypes.c_void_p(place), ctypes.c_size_t(size), MADV_COLLAPSE)


def set_capabilities(effective: int, permitted: int) -> None:
    """capset(2) for the calling thread; inheritable becomes empty. Bit n is capability n."""
    header = _CapHeader(_CAPABILITY_VERSION_3, 0)
    low = 0xFFFFFFFF
    data = (_CapData * 2)(_CapData(effective & low, permitted & low, 0), _CapData(effective >> 32, permitted >> 32, 0))
    if libc().capset(ctypes.byref(header), ctypes.byref(data)) < 0:
        _raise("capset")


def effective_capabilities() -> int:
    """The calling thread's effective capabilities as a bit mask."""
    for line in _status():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def thread_count() -> int:
    """Threads of this process as the kernel counts them, native ones too."""
    for line in _status():
        if line.startswith("Threads:"):
            return int(line.split()[1])
    raise OSError("/proc/self/status has no line 'Threads:'")


def _status() -> list[str]:
    return Path("/proc/thread-self/status").read_text(encoding="utf-8", errors="replace").splitlines()


def close_range(first: int, last: int) -> None:
    """Close all descriptors from `first` to `last`; one call on Linux (5.9), else one by one."""
    if sys.platform == "linux":
        if syscall(CLOSE_RANGE, first, last, 0) == 0:
            return
    os.closerange(first, min(last, os.sysconf("SC_OPEN_MAX") - 1) + 1)


def set_fsuid(uid: int) -> None:
    """setfsuid(2): the user id for file access only. It reports no error, so it is asked again."""
    libc().setfsuid(uid)
    if libc().setfsuid(0xFFFFFFFF) != uid:  # an invalid id changes nothing and answers the current one
        raise PermissionError(f"setfsuid({uid}) was refused")


def load_filter(bpf: bytes) -> None:
    """Install a compiled seccomp program on the calling thread (which must have no_new_privs)."""
    instructions = ctypes.create_string_buffer(bpf, len(bpf))
    program = _FilterProgram(len(bpf) // 8, ctypes.addressof(instructions))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program))
