"""Which system calls a submission may make: a seccomp filter, as an allow list.

Why an allow list: what is not named here is refused, so a system call that a later kernel adds (another way
to change metadata, to mount, to signal) opens nothing. What makes it hold across C libraries is the pair of
errors: a refused call answers EPERM, which a student reads as "not permitted"; a call numbered from 424 up
(numbers that are the same on all architectures and younger than any C library's fall-back code) answers
ENOSYS, as an older kernel would, and the C library then takes its older path, as it must on older kernels.
So `clone3`, whose flags a filter cannot see, falls back to `clone`, whose flags it can. The list below was
run with forward, backward, linear algebra, threads, numpy, random, tempfile, inspect and importlib
(tests/test_confine.py).

A filter sees numbers, not memory: a call whose arguments lie behind a pointer is either harmless or refused
whole. Paths are Landlock's business; here goes everything that Landlock does not handle: metadata, signals,
scheduling, sockets, IPC, processes, other processes' memory, kernel interfaces.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import sys
from collections.abc import Iterator
from typing import Any

ARCHITECTURES = ("x86_64", "aarch64")  # argument order of clone and the numbers below are checked for these

# Files: what is opened is decided by Landlock. Not here: chmod, chown, utime, xattr (a filter cannot tell
# the scratch folder from the rest, and a submission needs none of them), link, symlink, mknod (traps for
# whoever walks the scratch folder later), truncate by path (Landlock covers it from ABI 3 only), openat2
# (flags behind a pointer), sync (slows the whole machine), inotify (watches files that cannot be read).
_FILES = """
close close_range read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek
dup dup2 dup3 pipe pipe2 ftruncate fallocate fadvise64 fsync fdatasync flock sendfile copy_file_range
stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink readlinkat
getdents getdents64 getcwd chdir fchdir mkdir mkdirat rmdir unlink unlinkat rename renameat umask
poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd2
"""
_MEMORY = "brk munmap mprotect mremap madvise msync"
_THREADS = """
futex set_robust_list set_tid_address rseq gettid sched_yield sched_getaffinity sched_getparam
sched_getscheduler sched_get_priority_max sched_get_priority_min getcpu exit exit_group restart_syscall
"""
_SIGNALS = """
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack pause
alarm setitimer getitimer
"""
_TIME = "time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep times"
_ABOUT_ITSELF = """
getpid getppid getuid geteuid getgid getegid getresuid getresgid getgroups getpgrp
getrlimit getrusage sysinfo uname getrandom wait4 waitid
"""
# The inherited channel: send and recv on a connected socket; no way to make, name or find another one.
_CHANNEL = "recvfrom shutdown getsockname getpeername getsockopt"

_SOME_PROCESS = 0x5A17E3C9  # stands for a process id in a filter that is made before the process; none is so large
_LOW = 0xFFFFFFFF  # the kernel reads an int argument's low half only, so the filter must too

# DUPFD, GETFD, SETFD, GETFL, SETFL, GETLK, SETLK, SETLKW, the three OFD locks, DUPFD_CLOEXEC. Not F_SETOWN,
# F_SETSIG and their ioctl forms: with them the kernel sends any signal to any process of the same user.
_FCNTL = (*range(8), 36, 37, 38, 1030)
# TCGETS, TCGETS2 (isatty), TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX. Not TIOCSTI, which types into a
# terminal.
_IOCTL = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# PR_SET_NAME, PR_GET_NAME; PR_SET_VMA, with which newer C libraries name their heaps.
# Not PR_SET_PDEATHSIG: a worker must die with its parent.
_PRCTL = (15, 16, 0x53564D41)
# ARCH_GET_XCOMP_SUPP, ARCH_GET_XCOMP_PERM, ARCH_REQ_XCOMP_PERM: how oneDNN turns on the matrix unit of newer
# Xeons.
_ARCH_PRCTL = (0x1021, 0x1022, 0x1023)

_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_CLONE_THREAD = 0x00010000
# NEWTIME, PIDFD, PTRACE, VFORK, PARENT, UNTRACED, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_CLONE_REFUSED = 0x00000080 | 0x1000 | 0x2000 | 0x4000 | 0x8000 | 0x00800000 | 0x00020000 | 0x7E000000

# 512 to 547 are x32's on x86_64; the newest that exists is about 470.
_FIRST_COMMON_NUMBER, _LAST_COMMON_NUMBER = 424, 511

Condition = tuple[int, int, int]  # argument index, mask, value: (argument & mask) == value


def _conditional() -> Iterator[tuple[str, tuple[Condition, ...]]]:
    """System calls allowed only with certain arguments; several lines for one call mean "or"."""
    for command in _FCNTL:
        yield "fcntl", ((1, _LOW, command),)
    for request in _IOCTL:
        yield "ioctl", ((1, _LOW, request),)
    for option in _PRCTL:
        yield "prctl", ((0, _LOW, option),)
    for code in _ARCH_PRCTL:
        yield "arch_prctl", ((0, _LOW, code),)
    # Threads, not processes.
    yield "clone", ((0, _CLONE_THREAD | _CLONE_REFUSED, _CLONE_THREAD),)
    # Shared anonymous memory escapes RLIMIT_DATA and nothing honest in one process needs it.
    yield "mmap", ((3, _MAP_SHARED, 0),)
    yield "mmap", ((3, _MAP_ANONYMOUS, 0),)
    # Not read-only opens that truncate: under Landlock ABI 1 and 2 they empty a file that may only be read.
    # Not modes with the set-user-id or set-group-id bit: the file might be root's.
    for call, flags in (("open", 1), ("openat", 2)):
        plain = (flags + 1, 0o6000, 0)
        yield call, ((flags, os.O_TRUNC, 0), plain)
        yield call, ((flags, os.O_ACCMODE, os.O_WRONLY), plain)
        yield call, ((flags, os.O_ACCMODE, os.O_RDWR), plain)
    # At most RENAME_NOREPLACE: RENAME_WHITEOUT makes a device.
    yield "renameat2", ((4, _LOW & ~1, 0),)
    # Own limits only: 0 means the calling process.
    yield "prlimit64", ((0, _LOW, 0),)
    # send(), not sendto(): no address.
    yield "sendto", ((4, 0xFFFFFFFFFFFFFFFF, 0),)


def compile_filter() -> bytes:
    """The filter as a BPF program, ready for `linux.load_filter` in any number of workers.

    `tgkill` is allowed here without a condition, because the process id is not known yet: the filter of
    `own_signals`, which the worker loads first, narrows it.

    Raises OSError or ImportError when libseccomp is missing or too old, RuntimeError on an unknown
    architecture.
    """
    import pyseccomp

    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise RuntimeError(f"no system call filter for {machine}, only for {', '.join(ARCHITECTURES)}")
    rules = _new_filter(pyseccomp.ERRNO(errno.EPERM))
    handled: set[int] = set()

    def allow(name: str, *conditions: Condition) -> None:
        number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
        if number < 0:  # this architecture, or this libseccomp, does not have it
            return
        handled.add(number)
        args = [pyseccomp.Arg(i, pyseccomp.MASKED_EQ, mask, value) for i, mask, value in conditions]
        rules.add_rule(pyseccomp.ALLOW, number, *args)

    for group in (_FILES, _MEMORY, _THREADS, _SIGNALS, _TIME, _ABOUT_ITSELF, _CHANNEL, "tgkill"):
        for name in group.split():
            allow(name)
    for name, conditions in _conditional():
        allow(name, *conditions)
    for number in range(_FIRST_COMMON_NUMBER, _LAST_COMMON_NUMBER + 1):
        if number not in handled:
            rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), number)
    return _export(rules)


def compile_own_signals() -> bytes:
    """A filter that lets `tgkill` (raise, abort, pthread_kill) reach one process only; `own_signals` names it.

    Raises as `compile_filter` does.
    """
    import pyseccomp

    rules = _new_filter(pyseccomp.ALLOW)
    own = pyseccomp.Arg(0, pyseccomp.NE, _SOME_PROCESS)
    rules.add_rule(pyseccomp.ERRNO(errno.EPERM), "tgkill", own)
    made = _export(rules)
    if own_signals(made, 0) == made:
        raise RuntimeError("libseccomp made a filter of signals that names no process")
    return made


def own_signals(bpf: bytes, pid: int) -> bytes:
    """What `compile_own_signals` made, for the process `pid`."""
    # A struct sock_filter has eight bytes; the last four are the constant that an instruction uses.
    instructions = [bpf[place : place + 8] for place in range(0, len(bpf), 8)]
    some, own = (number.to_bytes(4, sys.byteorder) for number in (_SOME_PROCESS, pid))
    return b"".join(one[:4] + own if one[4:] == some else one for one in instructions)


def _new_filter(default: int) -> Any:
    """An empty filter; a call by 32-bit or x32 numbers kills the process: nothing honest makes one."""
    import pyseccomp

    rules = pyseccomp.SyscallFilter(default)
    rules.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.KILL_PROCESS)
    return rules


def _export(rules: Any) -> bytes:
    import pyseccomp

    with contextlib.suppress(OSError):  # libseccomp before 2.5: slower, the same verdicts
        rules.set_attr(pyseccomp.Attr.CTL_OPTIMIZE, 2)  # a binary tree: some 8 comparisons a call, not 200
    if sys.platform != "linux":
        raise OSError("system call filters exist on Linux only")
    fd = os.memfd_create("filter", os.MFD_CLOEXEC)
    with os.fdopen(fd, "w+b") as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()
