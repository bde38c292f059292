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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.worker import confine, linux
from tests import ordinary_user
from tests.refused_calls import REFUSALS, REFUSED, X86_ONLY

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
    let_through = [f"{line} -> {what}" for line, what in zip(lines, said, strict=True) if what not in REFUSALS]
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
            mapped, last = 0, "done"
            while last == "done" and mapped < 10000:  # no list: once it is refused, Python has no room either
                last = raw.mmap(0, 1 << 20, 3, 1, file.fileno(), 0)
                mapped += 1
        print("done" if mapped > 1 else last, last, mapped < 5000)
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
