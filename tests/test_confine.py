"""What a confined worker can and cannot do: each test runs a piece of Python in a fresh, confined child.

Everything is tried three times: as the user who runs the tests (often root), as an ordinary user when root
runs them, and with Landlock pretending to be its first version, where seccomp has to cover what that lacks.
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

from harness.worker import confine, linux

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
    """submission/ (readable inside) and outside/ (not), the worker's own: nothing but the sandbox refuses."""
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


# What must be refused: an expression that gives "done" when it is not. EPERM is the filter's, EACCES and (for
# moves between folders) EXDEV are Landlock's, ENOSYS stands for a call that this process is not to know of.
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
        attempt(lambda: os.open(scratch / "setuid", os.O_CREAT | os.O_WRONLY, 0o4755))
        attempt(lambda: os.open(scratch / "setgid", os.O_CREAT | os.O_RDONLY, 0o2755))
        raw.renameat2(-100, bytes(scratch / "a"), -100, bytes(scratch / "b"), 4)
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
        raw.rt_sigqueueinfo(zygote, 0, bytes(8) + b"\\xff" * 4 + bytes(116))
        raw.rt_tgsigqueueinfo(zygote, zygote, 0, bytes(8) + b"\\xff" * 4 + bytes(116))
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
        attempt(lambda: __import__("multiprocessing.shared_memory").shared_memory.SharedMemory("a", True, 9))
    """,
    "network": """
        attempt(lambda: __import__("socket").socket())
        attempt(lambda: __import__("socket").socket(1))
        attempt(lambda: __import__("socket").socket(16, 3))
        attempt(lambda: __import__("socket").socketpair())
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
REFUSALS = {"EPERM", "EACCES", "ENOSYS", "EXDEV", "RuntimeError"}
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
    "raw.creat(bytes(scratch / 'setuid'), 0o4755)",
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


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions and numbers of x86_64")
@pytest.mark.parametrize(
    "call",
    [
        # mov eax, 20 (getpid of the 32-bit table); int 0x80; ret
        """
        import ctypes, mmap
        page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)
        page.write(bytes.fromhex("b814000000cd80c3"))
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
        """,
        "raw.number(0x40000000 | 39)",  # getpid of the x32 table
    ],
    ids=["32-bit", "x32"],
)
def test_calls_by_another_table_of_numbers_end_the_worker(box: Box, call: str) -> None:
    assert box(call).exit == -signal.SIGSYS


def test_threads_started_later_are_confined_too(box: Box) -> None:
    code = """
        import threading
        def look():
            print(attempt(lambda: open("/etc/passwd").close()), raw.socket(1, 1, 0), raw.kill(zygote, 0))
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    """
    assert box.says(code) == "EACCES EPERM EPERM"


def test_capabilities_are_gone(box: Box) -> None:
    """A file of somebody else's, in a folder that may be read: only CAP_DAC_OVERRIDE would open it."""
    foreign = box.zygote.folder / "submission" / "foreign.txt"
    foreign.write_text("x", encoding="utf-8")
    if os.geteuid() == 0:
        os.chown(foreign, 12345, 12345)
        foreign.chmod(0o600)
    else:
        foreign.chmod(0)
    try:
        assert box.says("print(attempt(lambda: (submission / 'foreign.txt').read_text()))") == "EACCES"
    finally:
        foreign.unlink()


def test_user_ids(box: Box) -> None:
    """A worker of root's has a user id of its own, different each time; others keep theirs."""
    first, second = (box.says("print(*os.getresuid())").split() for _ in range(2))
    if box.has_own_uid:
        assert len(set(first)) == 1 and int(first[0]) > 0x70000000
        assert first != second
    else:
        own = ordinary_user.NOBODY if box.user == "ordinary" else os.geteuid()
        assert first == second == [str(own)] * 3


def test_descriptors_environment_and_standard_input(box: Box) -> None:
    code = """
        import fcntl, sys, tempfile
        is_open = lambda fd: attempt(lambda: fcntl.fcntl(fd, fcntl.F_GETFD)) == "done"
        print([fd for fd in range(1000) if is_open(fd)] == [0, 1, 2, channel_fd])
        print(repr(sys.stdin.read()), repr(os.read(0, 9)))
        print("A_SECRET" in os.environ, os.environ["TORCHDYNAMO_DISABLE"])
        homes = {os.environ["HOME"], os.environ["TMPDIR"], os.getcwd(), tempfile.gettempdir()}
        print(homes == {str(scratch)})
        (scratch / "a").write_text("x")
        print(oct((scratch / "a").stat().st_mode), os.getpgrp() == os.getpid())
    """
    assert box.says(code).splitlines() == ["True", "'' b''", "False 1", "True", "0o100600 True"]


def test_the_inherited_channel_works(box: Box) -> None:
    code = """
        import socket
        channel = socket.socket(fileno=channel_fd)
        channel.settimeout(5)
        question = channel.recv(5)
        view = bytearray(5)
        channel.recv_into(view)
        channel.sendall(question)
        os.write(channel_fd, os.read(channel_fd, 100) + bytes(view))
    """
    ran = box(code, channel="hello, you")
    assert (ran.exit, ran.channel) == (0, "hello, you"), ran.output


POSITIVE = {
    "torch": """
        import torch
        torch.manual_seed(1)
        layer = torch.nn.Linear(16, 16)
        x = torch.randn(4, 16)
        loss = torch.nn.functional.scaled_dot_product_attention(layer(x)[None], x[None], x[None]).sum()
        loss.backward()
        torch.optim.AdamW(layer.parameters()).step()
        square = torch.randn(32, 32, dtype=torch.float64)
        for f in (torch.linalg.inv, torch.linalg.eigvals, torch.linalg.svd, torch.linalg.pinv, torch.fft.fft):
            f(square)
        print(torch.compile(lambda x: x + 1)(torch.ones(1)).item(), layer.weight.grad.abs().sum().item() > 0)
    """,
    "two-threads": """
        import threading, torch
        torch.set_num_threads(2)
        a = torch.randn(700, 700, requires_grad=True)
        (a @ a).exp().mean().backward()
        results = []
        threads = [threading.Thread(target=lambda: results.append((a @ a).shape)) for _ in range(2)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(len(results), a.grad is not None)
    """,
    "numpy-and-random": """
        import random, secrets, uuid, numpy, torch
        a = numpy.random.default_rng().normal(size=(300, 300))
        print(numpy.linalg.svd(a @ a.T)[1].shape, torch.from_numpy(a).shape, random.random() < 1,
              len(secrets.token_bytes(4)), uuid.uuid4().version)
    """,
    "temporary-files": """
        import shutil, tempfile, torch
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w+") as file:
            file.write("x"); file.flush()
            torch.save(torch.ones(3), folder + "/a.pt")
            print(torch.load(folder + "/a.pt").sum().item(), folder.startswith(str(scratch)))
            shutil.copyfile(folder + "/a.pt", folder + "/b.pt")
            os.rename(folder + "/b.pt", folder + "/c.pt")
            with open(folder + "/c.pt", "r+b") as other:
                other.truncate(3)
            print(os.stat(folder + "/c.pt").st_size)
    """,
    "imports": """
        import importlib, inspect, sys
        sys.path.insert(0, str(submission))
        import answer
        print(answer.double(4), inspect.getsource(answer.double).splitlines()[0])
        import decimal, sqlite3, statistics, unittest.mock, xml.etree.ElementTree, zoneinfo
        print(importlib.reload(answer).double(1), zoneinfo.ZoneInfo("UTC"))
    """,
    "warnings-and-tracebacks": """
        import sys, traceback, warnings
        sys.path.insert(0, str(submission))
        import answer
        try:
            answer.double(object())
        except TypeError:
            print("return 2 * x" in traceback.format_exc())
        warnings.warn_explicit("careful", UserWarning, answer.__file__, 2)
    """,
    "time-and-machine": """
        import datetime, getpass, logging, os, pathlib, platform, time
        time.sleep(0.001)
        years = time.localtime().tm_year, datetime.datetime.now().year
        print(min(years) > 2000, getpass.getuser(), os.cpu_count() > 0)
        print(pathlib.Path.home() == scratch, platform.system(), sorted(os.listdir(submission)))
    """,
    "asking-about-itself": """
        import faulthandler, resource, signal, threading
        faulthandler.enable()
        signal.signal(signal.SIGUSR1, lambda *_: print("caught"))
        signal.raise_signal(signal.SIGUSR1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        print(resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_MEMLOCK)[0])
    """,
}
SAID = {
    "torch": ["2.0 True"],
    "two-threads": ["2 True"],
    "numpy-and-random": ["(300,) torch.Size([300, 300]) True 4 4"],
    "temporary-files": ["3.0 True", "3"],
    "imports": ["8 def double(x):", "2 UTC"],
    "warnings-and-tracebacks": ["True", "{submission}/answer.py:2: UserWarning: careful", "  return 2 * x"],
    "time-and-machine": ["True student True", "True Linux ['answer.py', 'link.txt']"],
    "asking-about-itself": ["caught", "caught", "(0, 0) 0"],
}


@pytest.mark.parametrize("kind", POSITIVE)
def test_honest_work_goes_on(box: Box, kind: str) -> None:
    submission = str(box.zygote.folder / "submission")
    said = box.says(POSITIVE[kind]).splitlines()
    assert sorted(said) == sorted(line.format(submission=submission) for line in SAID[kind])


def test_memory(box: Box) -> None:
    """At once, bit by bit, in mappings of a file: each ends in an error, long before the machine's memory."""
    code = """
        import torch
        print(attempt(lambda: torch.ones(50 << 30, dtype=torch.uint8)))
        kept = []
        print(attempt(lambda: [kept.append(bytes(1 << 20)) for _ in range(10000)]), 100 < len(kept) <= 512)
        kept.clear()
        with open(scratch / "file", "wb") as file:
            file.truncate(1 << 20)
        with open(scratch / "file", "r+b") as file:
            results = [raw.mmap(0, 1 << 20, 3, 1, file.fileno(), 0) for _ in range(10000)]
            print(results[0], results[-1], results.count("done") < 5000)
    """
    ran = box(code)
    assert ran.output.splitlines() == ["RuntimeError", "MemoryError True", "done ENOMEM True"]


def test_files_have_a_size_and_a_number(box: Box) -> None:
    code = """
        big = scratch / "big"
        print(attempt(lambda: big.write_bytes(bytes(2 << 20))), big.stat().st_size)
        print(attempt(lambda: os.truncate(os.open(big, os.O_RDWR), 2 << 20)))
        kept = []
        print(attempt(lambda: [kept.append(os.open("/dev/null", 0)) for _ in range(100)]), len(kept) < 64)
    """
    assert box.says(code).splitlines() == [f"EFBIG {1 << 20}", "EFBIG", "EMFILE True"]


def test_threads_have_a_number(box: Box) -> None:
    """Exactly `threads` with a user id of its own; for others only so many that the machine lives."""
    code = """
        import threading
        threading.stack_size(1 << 16)
        stop, started = threading.Event(), []
        def start():
            while len(started) < 4000:
                thread = threading.Thread(target=stop.wait)
                thread.start()
                started.append(thread)
        print(attempt(start), len(started))
        stop.set()
    """
    error, number = box.says(code).split()
    if box.user == "own" and os.geteuid() != 0:
        pytest.skip("the number of this user's other threads is not known to the test")
    assert error == "RuntimeError"
    assert int(number) == 15 if box.has_own_uid else int(number) < 3000


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("while True: pass", signal.SIGXCPU),
        ("import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass", signal.SIGKILL),
        ("os.abort()", signal.SIGABRT),
        ("import ctypes; ctypes.string_at(0)", signal.SIGSEGV),
        ("import signal; signal.raise_signal(signal.SIGTERM)", signal.SIGTERM),
    ],
    ids=["cpu", "cpu-ignored", "abort", "segfault", "own-signal"],
)
def test_ends_by_a_signal(box: Box, code: str, how: int) -> None:
    ran = box(code, limits={"cpu_seconds": 1})
    assert ran.exit == -how, ran.output
    assert not list(box.zygote.folder.glob("**/core*"))


def test_a_stack_overflow_ends_the_worker_only(box: Box) -> None:
    code = """
        import json, sys
        sys.setrecursionlimit(1 << 30)
        class Endless:
            def __repr__(self):
                return repr(self)
        repr(Endless())
    """
    assert box(code).exit in (-signal.SIGSEGV, 1)
    assert box.says("print(1)") == "1"


def test_moves_between_folders_of_the_scratch_folder(box: Box) -> None:
    """Landlock's first version refuses them all; later ones know the right, and it is given."""
    code = """
        (scratch / "a").mkdir()
        (scratch / "a" / "file").write_text("x")
        print(attempt(lambda: (scratch / "a" / "file").rename(scratch / "file")))
    """
    assert box.says(code) == ("EXDEV" if "abi" in box.extra or linux.landlock_abi() < 2 else "done")


def test_nothing_is_left_for_the_next(box: Box) -> None:
    """What one worker put into its own process and folder, the next one does not see."""
    left = """
        import torch
        torch.set_default_dtype(torch.float64)
        os.environ["LEFT"] = "1"
        (scratch / "left").write_text("x")
        os.umask(0)
    """
    box.says(left)
    look = """
        import torch
        print(torch.get_default_dtype(), "LEFT" in os.environ, os.listdir(scratch), oct(os.umask(0)))
    """
    assert box.says(look) == "torch.float32 False [] 0o77"


# The rest needs no torch: small processes of their own.

LIMITS = (
    "readable=(), memory_bytes=1 << 29, cpu_seconds=20, file_bytes=1 << 20, "
    "open_files=64, threads=8, keep_fds=()"
)


def run_alone(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh Python with the module at hand as `confine` and a Confinement as `c`."""
    start = (
        "import os, sys, time\nfrom dataclasses import replace\nfrom threading import Thread\n"
        "from harness.worker import confine\n"
        f"c = confine.Confinement(scratch={str(folder)!r}, {LIMITS})\n"
    )
    command = [sys.executable, "-c", start + textwrap.dedent(code)]
    return subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, encoding="utf-8", timeout=60, check=False
    )


def test_dies_with_its_parent(tmp_path: Path) -> None:
    """The parent is killed with SIGKILL while the worker sleeps; the worker cannot have asked to stay."""
    code = """
        confine.prepare()
        pid = os.fork()
        if pid == 0:
            confine.confine(c)
            import ctypes
            ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
            time.sleep(600)
        time.sleep(0.5)
        print(pid, flush=True)
        os.kill(os.getpid(), 9)
    """
    ran = run_alone(code, tmp_path)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    worker = int(ran.stdout)
    for _ in range(200):
        if not is_running(worker):
            return
        time.sleep(0.05)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the worker outlived its parent")


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("confine.confine(c)", "prepare() was not called"),
        (
            "confine.prepare(); confine.confine(replace(c, scratch='/nowhere'))",
            "making the environment: [Errno 2]",
        ),
        (
            "confine.prepare(); confine.confine(replace(c, readable=('/nowhere',)))",
            "restricting files (Landlock): [Errno 2]",
        ),
        (
            "Thread(target=time.sleep, args=(1,)).start(); confine.prepare(); confine.confine(c)",
            "while it has one thread",
        ),
        (
            "confine.prepare(); confine.linux.landlock_abi = lambda: 0; confine.prepare()",
            "does not offer Landlock",
        ),
    ],
    ids=["unprepared", "scratch", "readable", "threads", "no-landlock"],
)
def test_fails_with_a_reason(tmp_path: Path, code: str, says: str) -> None:
    ran = run_alone(code, tmp_path)
    assert ran.returncode == 1
    assert "ConfinementError" in ran.stderr and says in ran.stderr


def test_a_process_that_was_not_forked_can_confine_itself(tmp_path: Path) -> None:
    """As a spawned worker does: prepare and confine in one process."""
    code = """
        confine.prepare()
        confine.confine(c)
        print(os.getcwd() == c.scratch)
        open("/etc/passwd").close()
    """
    ran = run_alone(code, tmp_path)
    assert ran.stdout.split() == ["True"], ran.stderr
    assert "Permission denied: '/etc/passwd'" in ran.stderr


def test_without_a_sandbox_limits_hold_all_the_same(tmp_path: Path) -> None:
    code = """
        import resource
        confine.prepare(sandbox=False)
        confine.confine(c)
        print(os.getcwd() == c.scratch, os.environ["HOME"] == c.scratch)
        print(resource.getrlimit(resource.RLIMIT_FSIZE)[0])
        open("/etc/passwd").close()
        bytes(1 << 30)
    """
    ran = run_alone(code, tmp_path)
    assert ran.stdout.split() == ["True", "True", str(1 << 20)], ran.stderr
    assert "MemoryError" in ran.stderr


def test_readable_paths_leave_the_harness_and_its_neighbours_out(tmp_path: Path) -> None:
    """The folder that holds harness/ holds the reference and the graders too; none is opened for a worker."""
    code = """
        sys.path.insert(0, os.getcwd())
        from harness.worker import files
        print(*files.readable_paths(), sep="\\n")
    """
    ran = run_alone(code, tmp_path)
    paths = [Path(line) for line in ran.stdout.splitlines()]
    assert any(Path(json.__file__).resolve().is_relative_to(path) for path in paths), ran.stderr
    for private in (REPOSITORY / "harness", REPOSITORY / "tests", tmp_path, Path("/etc/passwd"), Path.home()):
        assert not any(private.resolve().is_relative_to(path) for path in paths)


def test_the_environment_keeps_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    kept = confine.environment("/scratch")
    assert "GITHUB_TOKEN" not in kept
    assert (kept["LANG"], kept["HOME"], kept["TMPDIR"]) == ("C.UTF-8", "/scratch", "/scratch")
