"""Confinement of one worker process, without root, containers or user namespaces.

The order of use: the zygote imports torch, calls `prepare()` once, and forks; each child calls
`confine(...)` before a byte of the submission is imported, and never gets anything back. Every step either
works or raises ConfinementError; a worker that gets one must end, so a submission never runs half confined.
docs/threat-model.md says which mechanism stops what.

`prepare(sandbox=False)` is for machines without Landlock (isolation "process"): `confine` then keeps to what
any POSIX system has: own session, clean environment, closed descriptors, resource limits.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from harness.worker import files, linux, syscalls

MIB = 1 << 20
_STACK_BYTES = 8 * MIB
_ARENA_BYTES = 64 * MIB  # the C library reserves this much address space for each thread's heap
_MAPPED_BYTES = 256 * MIB  # room for shared libraries that are loaded later: address space, hardly any memory
_OTHER_TASKS = 2048  # what an ordinary user's other programs may start while a worker runs; see _limit_threads
# Above systemd's container range and below 2^31: belongs to nobody, and a process id (at most 2^22) fits on
# top.
_FIRST_WORKER_UID = 0x70000000
# What an interpreter may need to start and to read text; no secret belongs in any of them.
KEPT_VARIABLES = (
    *("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT"),
    *("PYTHONHOME", "PYTHONPATH", "PYTHONUTF8"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ"),
)


class ConfinementError(RuntimeError):
    """This process could not be confined and must not run a submission; the message says what failed."""


@dataclass(frozen=True)
class Confinement:
    """What one worker may use.

    scratch: a private folder that exists, the only place it may write; also its working folder, HOME and
    TMPDIR.
    readable: further files and folders it may read: the submission's copy.
    memory_bytes: private memory beyond what it inherited; mappings of files are bounded by the same figure.
    cpu_seconds: CPU time of the process; after it SIGXCPU, a second later SIGKILL.
    file_bytes: size of one file. open_files: descriptors. threads: threads, see `_limit_threads`.
    keep_fds: inherited descriptors to keep beside 0, 1 and 2.
    """

    scratch: str
    readable: tuple[str, ...]
    memory_bytes: int
    cpu_seconds: int
    file_bytes: int
    open_files: int
    threads: int
    keep_fds: tuple[int, ...]


@dataclass(frozen=True)
class _Sandbox:
    """What Landlock and seccomp need, the same for all workers."""

    abi: int
    readable: tuple[str, ...]
    bpf: bytes
    signals_bpf: bytes  # see syscalls.own_signals


@dataclass(frozen=True)
class _Prepared:
    """What is the same for all workers of one zygote."""

    zygote: int  # process id
    zygote_parent: int
    tasks: int  # threads of this user's processes when the zygote started
    signals: tuple[int, ...]  # those that do not do here what they do by default
    sandbox: _Sandbox | None


_prepared: _Prepared | None = None

# SIGPIPE and SIGXFSZ stay ignored, as Python has them, so that they show as exceptions.
_RESET_SIGNALS = sorted(
    set(signal.Signals) - {getattr(signal, name, None) for name in ("SIGKILL", "SIGSTOP", "SIGPIPE", "SIGXFSZ")}
)


def prepare(sandbox: bool = True) -> None:
    """Do once, in the zygote, what need not be done in every worker: load libraries, find paths, compile the
    filter.

    Call it after torch is imported, so that torch's shared libraries are among the readable ones. Does not
    restrict the calling process. Raises ConfinementError when a sandbox is asked for and this machine has
    none; `harness.worker.offer` says why in full.
    """
    global _prepared
    made = _prepare_sandbox() if sandbox else None
    tasks = _tasks_of(os.getuid()) if sys.platform == "linux" and os.getuid() != 0 else 0
    changed = tuple(number for number in _RESET_SIGNALS if signal.getsignal(number) is not signal.SIG_DFL)
    _prepared = _Prepared(os.getpid(), os.getppid(), tasks, changed, made)


def prepared_by_parent() -> None:
    """Make this process, a fork of the one that called `prepare`, a zygote like it."""
    global _prepared
    if _prepared is None:
        raise ConfinementError("prepare() was not called in the process that forked this zygote.")
    _prepared = replace(_prepared, zygote=os.getpid(), zygote_parent=_prepared.zygote)


def _prepare_sandbox() -> _Sandbox:
    if sys.platform != "linux":
        raise ConfinementError("The sandbox needs Linux with Landlock and seccomp. Use --isolation process here.")
    abi = linux.landlock_abi()
    if abi < 1:
        raise ConfinementError(
            "This kernel does not offer Landlock (Linux 5.13 or newer, with 'landlock' among its security "
            "modules). Use --isolation process, or another machine."
        )
    try:
        import resource  # noqa: F401  so that no worker has to

        import landlock  # noqa: F401
        import pyseccomp  # noqa: F401

        bpf, signals_bpf = syscalls.compile_filter(), syscalls.compile_own_signals()
    except (ImportError, OSError, RuntimeError) as error:
        raise ConfinementError(
            f"The sandbox's libraries do not work here: {error}. Install them with "
            "'python -m pip install -r requirements.txt', and the system's libseccomp "
            "(Debian and Ubuntu: libseccomp2; Fedora: libseccomp)."
        ) from error
    return _Sandbox(abi, files.readable_paths(), bpf, signals_bpf)


def environment(scratch: str) -> dict[str, str]:
    """The whole environment of a worker; HOME and the temporary folder are `scratch`.

    Start the zygote with it as well: the strings a process was started with stay in its memory, where a
    submission could read them even after the variables were deleted.
    """
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    folders = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), scratch)
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {
        **kept,
        **folders,
        **one_thread,
        "USER": "student",  # so that getpass.getuser() needs no /etc/passwd
        "LOGNAME": "student",
        "TORCHDYNAMO_DISABLE": "1",  # torch.compile hangs after fork; this makes it the plain function
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def confine(c: Confinement) -> None:
    """Confine the calling process, for good: see the module's text for when, and Confinement for what.

    Raises ConfinementError when any step fails; the process may then be half confined and must end.
    """
    prepared = _prepared
    if prepared is None:
        raise ConfinementError("prepare() was not called in the process that forked this worker.")
    step = "making the environment"
    try:
        _set_environment(c.scratch)
        if os.name != "posix":
            return
        step = "leaving the parent's session"
        _leave_session(prepared.signals)
        own_user = False
        if sys.platform == "linux":
            step = "giving up privileges"
            own_user = _drop_privileges()
            # After the last change of credentials, because the kernel forgets the death signal when they
            # change.
            step = "tying this process to its parent"
            die_with(prepared.zygote if os.getpid() != prepared.zygote else prepared.zygote_parent)
        step = "closing descriptors"
        _close_descriptors(c.keep_fds)
        step = "setting resource limits"
        _limit(c, own_user, prepared.tasks)
        if prepared.sandbox is not None:
            _require_one_thread()
            step = "restricting files (Landlock)"
            files.restrict((*prepared.sandbox.readable, *c.readable), c.scratch, prepared.sandbox.abi)
            step = "restricting system calls (seccomp)"
            linux.load_filter(syscalls.own_signals(prepared.sandbox.signals_bpf, os.getpid()))
            linux.load_filter(prepared.sandbox.bpf)
    except (OSError, ValueError) as error:
        raise ConfinementError(f"The worker could not be confined: {step}: {error}.") from error


def _require_one_thread() -> None:
    if linux.thread_count() != 1:
        raise ConfinementError(
            "A worker must be confined while it has one thread: Landlock and seccomp bind the calling thread "
            "and those it starts later. Set OMP_NUM_THREADS, MKL_NUM_THREADS and OPENBLAS_NUM_THREADS to 1 "
            "before torch is imported."
        )


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the thread that forked it ends; `parent` is that process's id.

    Raises ConfinementError when the parent is gone already: then no signal would ever come.
    """
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise ConfinementError("The process that started this worker has ended.")


def _leave_session(signals: Iterable[int]) -> None:
    """New session and process group, no terminal, default signals, first to go when memory runs out."""
    if os.getsid(0) != os.getpid():  # a spawned worker may lead a session already
        os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signals:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # A container may forbid it, other systems lack it; the memory limits below hold without it.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="utf-8")


def _set_environment(scratch: str) -> None:
    """Scrubbed environment, private umask, scratch as working folder, nothing on standard input."""
    kept = environment(scratch)
    os.environ.clear()
    os.environ.update(kept)
    tempfile.tempdir = None  # the zygote may have cached its own
    sys.dont_write_bytecode = True
    os.umask(0o077)
    os.chdir(scratch)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    if null != 0:
        os.close(null)
    # The inherited object may hold bytes that it read ahead for the zygote.
    sys.stdin = sys.__stdin__ = os.fdopen(0, "r", encoding="utf-8", closefd=False)  # type: ignore[misc]


def _drop_privileges() -> bool:
    """Give up every capability and the way back; answer whether the process now has a user id of its own.

    Root without capabilities is still the owner of root's files and of root's processes, and RLIMIT_NPROC
    does not bind it. So a root worker takes a user id that belongs to nobody and to no other worker:
    signals, scheduling, limits and memory of all other processes are then out of its reach by the oldest
    rule there is, and its threads are counted alone. Only for opening files it stays uid 0 (fsuid), because
    the interpreter may lie in root's home and the scratch folder is root's; which files these are is
    Landlock's decision. Where the ids are not available (some containers), the worker stays uid 0 without
    capabilities: Landlock and seccomp alone hold it.
    """
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.prctl(linux.PR_CAP_AMBIENT, linux.PR_CAP_AMBIENT_CLEAR_ALL)
    capabilities = linux.effective_capabilities()
    if capabilities:
        for number in range(64):
            try:
                linux.prctl(linux.PR_CAPBSET_DROP, number)
            except OSError:
                break  # past the last one; or no CAP_SETPCAP, which no_new_privs makes harmless
    own_user = False
    needed = 1 << linux.CAP_SETUID | 1 << linux.CAP_KILL  # without CAP_KILL the parent could not end the worker
    if os.getuid() == 0 and capabilities & needed == needed:
        own_user = _take_own_user()
    linux.set_capabilities(0, 0)
    linux.prctl(linux.PR_SET_DUMPABLE, 0)  # no core dump, whatever handler the system has; no tracer
    return own_user


def _take_own_user() -> bool:
    uid = _FIRST_WORKER_UID + os.getpid()
    linux.prctl(linux.PR_SET_KEEPCAPS, 1)  # else the change of user drops CAP_SETUID, which set_fsuid needs
    try:
        os.setgroups([])
        os.setresuid(uid, uid, uid)
    except OSError:
        return False  # the id is not mapped in this container
    only_setuid = 1 << linux.CAP_SETUID
    linux.set_capabilities(only_setuid, only_setuid)
    linux.set_fsuid(0)
    return True


def _limit(c: Confinement, own_user: bool, tasks: int) -> None:
    """Resource limits, soft and hard; none above what the process already has."""
    import resource

    _set_limit(resource.RLIMIT_CPU, c.cpu_seconds, c.cpu_seconds + 1)
    _set_limit(resource.RLIMIT_STACK, _STACK_BYTES)
    _set_limit(resource.RLIMIT_FSIZE, c.file_bytes)
    _set_limit(resource.RLIMIT_NOFILE, max((c.open_files, 3, *(fd + 1 for fd in c.keep_fds))))
    _set_limit(resource.RLIMIT_CORE, 0)
    if sys.platform != "linux":
        return
    page = resource.getpagesize()
    statm = Path("/proc/self/statm").read_text(encoding="utf-8").split()
    size, data = int(statm[0]) * page, int(statm[5]) * page
    _set_limit(resource.RLIMIT_DATA, data + c.memory_bytes)
    # Bounds what DATA does not count: mappings of files. Threads reserve address space that is not memory.
    reserved = _MAPPED_BYTES + c.threads * (_STACK_BYTES + _ARENA_BYTES)
    _set_limit(resource.RLIMIT_AS, size + c.memory_bytes + reserved)
    _set_limit(resource.RLIMIT_MEMLOCK, 0)
    _set_limit(resource.RLIMIT_MSGQUEUE, 0)
    _set_limit(resource.RLIMIT_SIGPENDING, 64)
    _set_limit(resource.RLIMIT_NPROC, _limit_threads(c.threads, own_user, tasks))


def _limit_threads(threads: int, own_user: bool, tasks: int) -> int:
    """RLIMIT_NPROC counts a user's threads over all processes: exact for a worker with a user id of its own.

    For an ordinary user the other programs count too, and a limit that they could exhaust would fail an
    honest worker, so it leaves them room: it keeps a submission from exhausting the machine's process ids,
    not from a few hundred threads.
    """
    return threads if own_user else tasks + threads + _OTHER_TASKS


def _set_limit(which: int, soft: int, hard: int | None = None) -> None:
    import resource

    _, ceiling = resource.getrlimit(which)
    wanted = soft if hard is None else hard
    if ceiling != resource.RLIM_INFINITY:
        wanted = min(wanted, ceiling)
    resource.setrlimit(which, (min(soft, wanted), wanted))


def _tasks_of(uid: int) -> int:
    """Threads of all processes whose real user is `uid`."""
    tasks = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            status = (process / "status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if int(fields["Uid"].split()[0]) == uid:
            tasks += int(fields["Threads"])
    return tasks


def _close_descriptors(keep: Iterable[int]) -> None:
    start = 3
    for fd in (*sorted(set(keep) - {0, 1, 2}), 1 << 31):
        if fd > start:
            linux.close_range(start, fd - 1)
        start = fd + 1
