"""What a confined worker can and cannot do: each test runs a piece of Python in a freshly forked, confined child.

Everything is tried three times: as the user who runs the tests (often root), as an ordinary user when root runs the
tests, and with Landlock pretending to be its first version, where seccomp alone has to cover what that lacks.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ordinary_user
import pytest

from harness.worker import confine, linux, offer

REPOSITORY = Path(confine.__file__).parents[2]
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or linux.landlock_abi() == 0, reason="this kernel offers no Landlock"
)


@dataclass
class Ran:
    """What came of one piece of code."""

    exit: int  # 0, or minus the signal
    output: str
    channel: str
    cpu: float


class Zygote:
    """A running tests/confined_zygote.py and the folder it works in."""

    def __init__(self, folder: Path, user: ordinary_user.OrdinaryUser | None) -> None:
        self.folder = folder
        code = folder / "code"
        shutil.copytree(REPOSITORY / "harness", code / "harness")
        shutil.copy(REPOSITORY / "tests" / "confined_zygote.py", code)
        python, environment, popen = sys.executable, dict[str, str](), dict[str, Any]()
        if user is not None:
            python, environment, popen = user.python, dict(user.environment), dict(user.popen)
        paths = [str(code), environment.pop("PYTHONPATH", "")]
        environment |= {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "A_SECRET": "token"}
        self.process = subprocess.Popen(
            [python, str(code / "confined_zygote.py"), str(folder)],
            env=confine.environment(str(folder)) | environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            **popen,
        )

    def run(self, code: str, **request: Any) -> Ran:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request | {"code": textwrap.dedent(code)}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "the zygote has ended"
        return Ran(**json.loads(answer))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


def lay_out(folder: Path, owner: int) -> None:
    """submission/ (readable inside) and outside/ (not): owned by the worker's user, so that only the sandbox refuses."""
    for name in ("submission", "outside", "code"):
        (folder / name).mkdir()
    (folder / "submission" / "answer.py").write_text("def double(x):\n    return 2 * x\n", encoding="utf-8")
    (folder / "outside" / "secret.txt").write_text("secret", encoding="utf-8")
    (folder / "submission" / "link.txt").symlink_to(folder / "outside" / "secret.txt")
    for path in (folder, *folder.rglob("*")):
        if os.geteuid() == 0:
            os.chown(path, owner, owner, follow_symlinks=False)
        if not path.is_symlink():
            path.chmod(0o777)
    shutil.rmtree(folder / "code")


@pytest.fixture(scope="module")
def zygotes() -> Iterator[dict[str, Zygote]]:
    started: dict[str, Zygote] = {}
    folders: list[Path] = []

    def folder(owner: int) -> Path:
        place = Path(tempfile.mkdtemp(prefix="headcheck-test-"))
        folders.append(place)
        lay_out(place, owner)
        return place

    if ordinary_user.available():
        python = Path(tempfile.mkdtemp(prefix="headcheck-python-"))
        python.chmod(0o755)
        folders.append(python)
        user = ordinary_user.prepare(python)
        started["ordinary"] = Zygote(folder(ordinary_user.NOBODY), user)
    started["own"] = Zygote(folder(os.geteuid()), None)
    yield started
    for one in started.values():
        one.close()
    for place in folders:
        shutil.rmtree(place)


class Box:
    """Runs code confined, in one of the three ways."""

    def __init__(self, zygote: Zygote, user: str, extra: dict[str, Any]) -> None:
        self.zygote, self.user, self.extra = zygote, user, extra
        self.has_own_uid = user == "own" and os.geteuid() == 0

    def __call__(self, code: str, **request: Any) -> Ran:
        return self.zygote.run(code, **(request | self.extra))

    def says(self, code: str, **request: Any) -> str:
        """The output of code that must end well."""
        ran = self(code, **request)
        assert ran.exit == 0, ran.output
        return ran.output.strip()


@pytest.fixture(params=["own", "ordinary", "own-first-abi"])
def box(request: pytest.FixtureRequest, zygotes: dict[str, Zygote]) -> Box:
    user, _, old = request.param.partition("-")
    if user not in zygotes:
        pytest.skip("only root can start processes of another user; 'own' is an ordinary user here")
    return Box(zygotes[user], user, {"abi": 1} if old else {})


# What must be refused: an expression that gives "done" when it is not. EPERM is the filter's, EACCES is Landlock's,
# ENOSYS stands for a call that this process is not to know of, EXDEV is Landlock's for moving between folders.
REFUSED = {
    "files": """
        attempt(lambda: (outside / "secret.txt").read_text())
        attempt(lambda: (submission / "link.txt").read_text())
        attempt(lambda: os.listdir(outside))
        attempt(lambda: (outside / "secret.txt").write_text("x"))
        attempt(lambda: (outside / "new.txt").write_text("x"))
        attempt(lambda: (outside / "secret.txt").unlink())
        attempt(lambda: (outside / "secret.txt").rename(outside / "other.txt"))
        attempt(lambda: ((scratch / "a").write_text("x"), (scratch / "a").rename(outside / "a")))
        attempt(lambda: (outside / "folder").mkdir())
        attempt(lambda: os.truncate(outside / "secret.txt", 0))
        attempt(lambda: os.open(outside / "secret.txt", os.O_RDONLY | os.O_TRUNC))
        attempt(lambda: os.open(submission / "answer.py", os.O_RDONLY | os.O_TRUNC))
        attempt(lambda: os.open(submission / "answer.py", os.O_WRONLY))
        attempt(lambda: os.truncate(submission / "answer.py", 0))
        attempt(lambda: (submission / "new.py").write_text("x"))
        attempt(lambda: open("/etc/passwd").close())
        attempt(lambda: os.listdir("/"))
        attempt(lambda: os.listdir("/proc"))
        attempt(lambda: open("/proc/self/mem", "rb").close())
        attempt(lambda: open("/proc/self/environ", "rb").close())
        attempt(lambda: open(f"/proc/{zygote}/mem", "rb").close())
        attempt(lambda: open(f"/proc/{zygote}/environ", "rb").close())
        attempt(lambda: os.readlink(f"/proc/{zygote}/exe"))
        attempt(lambda: os.listdir(f"/proc/{zygote}/fd"))
        attempt(lambda: os.listdir(outside.parent))
        attempt(lambda: open(outside.parent / "code/harness/worker/confine.py").close())
        attempt(lambda: open("/dev/zero", "rb").close())
        attempt(lambda: open("/dev/ptmx", "rb").close())
        attempt(lambda: open("/dev/shm/headcheck-test", "w").close())
        attempt(lambda: open("/tmp/headcheck-test", "w").close())
        attempt(lambda: os.symlink(outside / "secret.txt", scratch / "link"))
        attempt(lambda: os.link(submission / "answer.py", scratch / "hard"))
        attempt(lambda: os.link(outside / "secret.txt", scratch / "hard"))
        attempt(lambda: os.mkfifo(scratch / "fifo"))
        attempt(lambda: os.mknod(scratch / "node", 0o600 | 0o100000))
        raw.openat2(-100, bytes(outside / "secret.txt"), b"\\0" * 24, 24)
        raw.name_to_handle_at(-100, b"/", bytes(128), bytes(8), 0)
        raw.open_by_handle_at(-100, bytes(128), 0)
        raw.inotify_init1(0)
        raw.fanotify_init(0, 0)
        raw.chroot(bytes(scratch))
        raw.sync()
        raw.quotactl(0, 0, 0, 0)
        raw.number(457, 0, 0, 0, 0)
        raw.number(458, 0, 0, 0, 0)
    """,
    "metadata": """
        attempt(lambda: os.chmod(outside, 0o700))
        attempt(lambda: os.chmod(scratch, 0o700))
        attempt(lambda: os.chmod(submission / "answer.py", 0o600))
        attempt(lambda: os.fchmod(os.open(submission / "answer.py", os.O_RDONLY), 0o600))
        attempt(lambda: os.chown(outside, -1, -1))
        attempt(lambda: os.lchown(outside, -1, -1))
        attempt(lambda: os.fchown(os.open(submission / "answer.py", os.O_RDONLY), -1, -1))
        attempt(lambda: os.utime(outside / "secret.txt"))
        attempt(lambda: os.utime(os.open(submission / "answer.py", os.O_RDONLY)))
        attempt(lambda: os.setxattr(outside / "secret.txt", "user.x", b"x"))
        attempt(lambda: os.setxattr(os.open(submission / "answer.py", os.O_RDONLY), "user.x", b"x"))
        attempt(lambda: os.removexattr(outside / "secret.txt", "user.x"))
        raw.fchmodat(-100, bytes(outside), 0o700)
        raw.number(452, -100, bytes(outside), 0o700, 0)
        raw.fchownat(-100, bytes(outside), -1, -1, 0)
        raw.utimensat(-100, bytes(outside), 0, 0)
        raw.lsetxattr(bytes(outside), b"user.x", b"x", 1, 0)
        raw.fsetxattr(0, b"user.x", b"x", 1, 0)
        raw.number(463, -100, bytes(outside), 0, b"user.x", bytes(16), 16)
        raw.number(466, -100, bytes(outside), 0, b"user.x")
        raw.number(469, -100, bytes(outside), bytes(64), 64, 0)
    """,
    "processes": """
        attempt(os.fork)
        attempt(os.forkpty)
        attempt(lambda: os.posix_spawn("/bin/true", ["true"], {}))
        attempt(lambda: os.execv("/bin/true", ["true"]))
        attempt(lambda: __import__("subprocess").run(["/bin/true"]))
        attempt(lambda: __import__("subprocess").run("true", shell=True))
        attempt(lambda: __import__("multiprocessing").get_context("fork").Process(target=print).start())
        raw.clone(17, 0, 0, 0, 0)
        raw.clone(0x10000000 | 17, 0, 0, 0, 0)
        raw.clone(0x10000000 | 0x00010f00, 0, 0, 0, 0)
        raw.clone3(bytes(88), 88)
        raw.execve(b"/bin/true", 0, 0)
        raw.execveat(-100, b"/bin/true", 0, 0, 0)
        raw.unshare(0x10000000)
        raw.setns(0, 0)
        raw.mount(b"none", bytes(scratch), b"tmpfs", 0, 0)
        raw.umount2(b"/proc", 2)
        raw.pivot_root(bytes(scratch), bytes(scratch))
        raw.fsopen(b"tmpfs", 0)
        raw.open_tree(-100, b"/", 0)
        raw.move_mount(-100, b"/", -100, b"/", 0)
        raw.mount_setattr(-100, b"/", 0, bytes(32), 32)
        raw.number(467, -100, b"/", 0, bytes(32), 32)
        raw.setsid()
        raw.setpgid(0, 0)
    """,
    "signals": """
        attempt(lambda: os.kill(zygote, 0))
        attempt(lambda: os.kill(os.getpid(), 0))
        attempt(lambda: os.kill(-1, 0))
        attempt(lambda: os.killpg(0, 0))
        attempt(lambda: os.kill(1, 0))
        raw.tgkill(zygote, zygote, 0)
        raw.tgkill(-1, zygote, 0)
        raw.tkill(zygote, 0)
        raw.rt_sigqueueinfo(zygote, 0, bytes(128))
        raw.rt_tgsigqueueinfo(zygote, zygote, 0, bytes(128))
        raw.pidfd_open(zygote, 0)
        raw.pidfd_send_signal(0, 0, 0, 0)
        raw.pidfd_getfd(0, 0, 0)
        raw.number(448, 0, 0)
        raw.fcntl(channel_fd, 8, zygote)
        raw.fcntl(channel_fd, 8, os.getpid())
        raw.fcntl(channel_fd, 10, 9)
        raw.fcntl(channel_fd, 15, bytes(8))
        raw.fcntl(channel_fd, 1026, 0)
        raw.ioctl(channel_fd, 0x8901, b"\\1\\0\\0\\0")
        raw.ioctl(channel_fd, 0x8902, b"\\1\\0\\0\\0")
        raw.ioctl(channel_fd, 0x5452, b"\\1\\0\\0\\0")
        raw.ioctl(0, 0x5412, b"x")
    """,
    "others": """
        attempt(lambda: os.sched_setaffinity(zygote, {0}))
        attempt(lambda: os.setpriority(os.PRIO_PROCESS, zygote, 5))
        attempt(lambda: os.setpriority(os.PRIO_USER, 0, 5))
        attempt(lambda: os.sched_setscheduler(zygote, os.SCHED_BATCH, os.sched_param(0)))
        attempt(lambda: __import__("resource").prlimit(zygote, 7, (64, 64)))
        attempt(lambda: __import__("resource").prlimit(zygote, 7))
        raw.prlimit64(0, 4, b"\\1" * 16, 0)
        raw.sched_setparam(zygote, bytes(4))
        raw.sched_setattr(zygote, bytes(48), 0)
        raw.ioprio_set(1, zygote, 0)
        raw.migrate_pages(zygote, 0, 0, 0)
        raw.move_pages(zygote, 0, 0, 0, 0, 0)
        raw.ptrace(0, 0, 0, 0)
        raw.ptrace(16, zygote, 0, 0)
        raw.ptrace(0x4206, zygote, 0, 0)
        raw.process_vm_readv(zygote, 0, 0, 0, 0, 0)
        raw.process_vm_writev(zygote, 0, 0, 0, 0, 0)
        raw.process_madvise(0, 0, 0, 0, 0)
        raw.kcmp(zygote, zygote, 0, 0, 0)
        raw.get_robust_list(zygote, bytes(8), bytes(8))
        raw.setresuid(0, 0, 0)
        raw.setuid(0)
        raw.setfsuid(0)
        raw.setgroups(0, 0)
        raw.capset(bytes(8), bytes(24))
    """,
    "memory": """
        attempt(lambda: __import__("mmap").mmap(-1, 4096))
        raw.mmap(0, 4096, 3, 0x21, -1, 0)
        raw.mmap(0, 4096, 3, 0x23, -1, 0)
        raw.memfd_create(b"x", 0)
        raw.number(447, 0)
        raw.userfaultfd(0)
        raw.mlock(0, 4096)
        raw.mlockall(1)
        raw.remap_file_pages(0, 0, 0, 0, 0)
        raw.vmsplice(0, 0, 0, 0)
    """,
    "ipc": """
        raw.shmget(0, 4096, 0o1600)
        raw.shmat(0, 0, 0)
        raw.shmctl(0, 0, 0)
        raw.semget(0, 1, 0o1600)
        raw.semop(0, 0, 0)
        raw.msgget(0, 0o1600)
        raw.msgsnd(0, 0, 0, 0)
        raw.mq_open(b"headcheck", 0o102, 0o600, 0)
        raw.mq_unlink(b"headcheck")
        raw.add_key(b"user", b"x", b"x", 1, -3)
        raw.request_key(b"user", b"x", 0, -3)
        raw.keyctl(0, -3, 0, 0, 0)
        attempt(lambda: __import__("torch").ones(4).share_memory_())
        attempt(lambda: __import__("multiprocessing.shared_memory").shared_memory.SharedMemory(create=True, size=9))
    """,
    "network": """
        attempt(lambda: __import__("socket").socket())
        attempt(lambda: __import__("socket").socket(1))
        attempt(lambda: __import__("socket").socket(16, 3))
        attempt(lambda: __import__("socket").socketpair())
        attempt(lambda: __import__("urllib.request").request.urlopen("http://127.0.0.1:9/").close())
        raw.connect(channel_fd, b"\\1\\0x", 3)
        raw.bind(channel_fd, b"\\1\\0x", 3)
        raw.listen(channel_fd, 1)
        raw.accept4(channel_fd, 0, 0, 0)
        raw.sendmsg(channel_fd, bytes(56), 0)
        raw.recvmsg(channel_fd, bytes(56), 0)
        raw.sendmmsg(channel_fd, bytes(64), 1, 0)
        raw.sendto(channel_fd, b"x", 1, 0, b"\\1\\0/tmp/x", 8)
        raw.setsockopt(channel_fd, 1, 7, bytes(4), 4)
    """,
    "kernel": """
        raw.bpf(0, bytes(64), 64)
        raw.io_uring_setup(4, bytes(120))
        raw.io_uring_enter(0, 0, 0, 0, 0, 0)
        raw.io_uring_register(0, 0, 0, 0)
        raw.perf_event_open(bytes(112), 0, -1, -1, 0)
        raw.seccomp(1, 0, 0)
        raw.landlock_create_ruleset(0, 0, 1)
        raw.prctl(1, 0)
        raw.prctl(4, 1)
        raw.prctl(22, 2, 0)
        raw.prctl(24, 0)
        raw.prctl(35, 0, 0, 0, 0)
        raw.prctl(0x59616D61, -1)
        raw.personality(0xFFFFFFFF)
        raw.reboot(0, 0, 0, 0)
        raw.swapon(b"x", 0)
        raw.swapoff(b"x")
        raw.init_module(0, 0, b"")
        raw.finit_module(0, b"", 0)
        raw.delete_module(b"x", 0)
        raw.kexec_load(0, 0, 0, 0)
        raw.clock_settime(0, bytes(16))
        raw.settimeofday(0, 0)
        raw.adjtimex(bytes(208))
        raw.clock_adjtime(0, bytes(208))
        raw.sethostname(b"x", 1)
        raw.setdomainname(b"x", 1)
        raw.syslog(3, bytes(8), 8)
        raw.acct(0)
        raw.vhangup()
        raw.syncfs(0)
        raw.number(475, 0)
        raw.number(600, 0)
        raw.number(100000, 0)
    """,
}
REFUSALS = {"EPERM", "EACCES", "ENOSYS", "EXDEV", "RuntimeError", "URLError"}
X86_ONLY = {
    "raw.arch_prctl(0x1002, 0)",
    "raw.modify_ldt(0, bytes(16), 16)",
    "raw.iopl(0)",
    "raw.ioperm(0, 1, 1)",
    "raw.chmod(bytes(outside), 0o700)",
    "raw.chown(bytes(outside), -1, -1)",
    "raw.utimes(bytes(outside), 0)",
    "raw.futimesat(-100, bytes(outside), 0)",
    "raw.vfork()",
    "raw.inotify_init()",
}


@pytest.mark.parametrize("kind", [*REFUSED, "x86"])
def test_is_refused(box: Box, kind: str) -> None:
    """Every line of the table, in one child, with one line of output each."""
    if kind == "x86":
        if platform.machine() != "x86_64":
            pytest.skip("system calls of x86_64 only")
        lines = sorted(X86_ONLY)
    else:
        lines = [line.strip() for line in REFUSED[kind].strip().splitlines()]
    said = box.says("\n".join(f"print({line}, flush=True)" for line in lines)).splitlines()
    assert len(said) == len(lines)
    let_through = [
        f"{line} -> {what}" for line, what in zip(lines, said, strict=True) if what not in REFUSALS
    ]
    assert let_through == []
