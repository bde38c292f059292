"""The command `batch` with real judges: a class with hostile work in it, what the parent loads, kills at any moment."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import psutil
import pytest

from harness.batch.executor import LocalExecutor
from harness.batch.scratch import Scratch, remove_abandoned
from harness.judge import JudgeDied, JudgeProcess, Order
from harness.worker import offer
from tests.support.command import ROOT

ISOLATION = offer.probe().isolation
LIMITS = ("--limit", "call_seconds=2", "--limit", "import_seconds=5", "--limit", "submission_seconds=6",
          "--limit", "wall_factor=1000")  # fmt: skip
# By the clock there is no limit worth the name: however busy this machine is, it must change no result.
CLEAN = {"started", "seconds"}  # what differs between two runs
FULL = 162  # 100, and what the bonus exercises give to code; nobody of the class answers the quiz


def batch(*arguments: str | Path, **more: object) -> subprocess.Popen[str]:
    """`python grade.py batch ARGUMENTS`, in a session of its own, as at a terminal of its own."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "grade.py"), "batch", *map(str, arguments), "--isolation", ISOLATION, *LIMITS],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        start_new_session=os.name == "posix", **more,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate()
    return process.returncode, out, err


def results(folder: Path) -> dict[str, object]:
    """All reports but for times, by the name of their folder."""
    return {path.parent.name: _timeless(json.loads(path.read_bytes())) for path in sorted(folder.glob("*/report.json"))}


def _timeless(value: object) -> object:
    if isinstance(value, dict):
        return {name: _timeless(item) for name, item in value.items() if name not in CLEAN}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def make_class(folder: Path) -> Path:
    """Four students: right, wrong, partly done, and the template."""
    reference = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "reference").glob("*.py")}
    wrong = reference["rope.py"].replace("torch.sin", "torch.cos").replace(".sin()", ".cos()")
    assert wrong != reference["rope.py"]
    for name, files in {
        "right": reference,
        "wrong": reference | {"rope.py": wrong},
        "heads-only": {"gpt.py": reference["gpt.py"]},
    }.items():
        (folder / name).mkdir(parents=True)
        for file, text in files.items():
            (folder / name / file).write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "student_template", folder / "template")
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A class and its results."""
    submissions, out = make_class(tmp_path_factory.mktemp("class")), tmp_path_factory.mktemp("results")
    status, said, err = finish(batch(submissions, "--out", out, "--jobs", "1"))
    assert (status, err) == (0, ""), err
    assert "4/4" in said
    return submissions, out


def test_a_class_is_graded_and_then_nothing_is_left_to_do(undisturbed: tuple[Path, Path]) -> None:
    submissions, out = undisturbed
    reports = {path.parent.name: json.loads(path.read_bytes()) for path in out.glob("*/report.json")}
    assert {name: report["score"]["final"] for name, report in reports.items()} | {"wrong": 0} == {
        "right": FULL, "template": 0, "heads-only": reports["heads-only"]["score"]["earned"], "wrong": 0,
    }  # fmt: skip
    assert 0 < reports["heads-only"]["score"]["final"] < FULL and 0 < reports["wrong"]["score"]["final"] < FULL
    assert {report["environment"]["isolation"] for report in reports.values()} == {ISOLATION}
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    status, said, _ = finish(batch(submissions, "--out", out))
    assert status == 0 and "4/4" not in said  # no judge was started for anybody
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    summary = json.loads((out / "summary.json").read_bytes())
    assert summary["results"] == 4 and summary["scores"]["highest"] == FULL


def test_summary_makes_the_figures_anew(undisturbed: tuple[Path, Path]) -> None:
    _, out = undisturbed
    before = {name: (out / name).read_bytes() for name in ("summary.json", "scores.csv")}
    for name in before:
        (out / name).unlink()
    done = subprocess.run([sys.executable, str(ROOT / "grade.py"), "summary", str(out)], capture_output=True, text=True,
                          encoding="utf-8", check=False)  # fmt: skip
    assert done.returncode == 0 and "Hardest checks" in done.stdout
    assert {name: (out / name).read_bytes() for name in before} == before


def test_quiet_says_nothing(undisturbed: tuple[Path, Path], tmp_path: Path) -> None:
    submissions, _ = undisturbed
    (tmp_path / "empty.zip").write_bytes(b"")
    shutil.copytree(submissions, tmp_path / "class")
    shutil.move(tmp_path / "empty.zip", tmp_path / "class" / "zoe.zip")
    status, said, err = finish(batch(tmp_path / "class", "--out", undisturbed[1], "--quiet"))
    assert (status, said, err) == (1, "", "")  # somebody's work cannot be read: a person has to look
    shutil.rmtree(undisturbed[1] / "zoe")


def test_the_parent_loads_neither_torch_nor_pytest(undisturbed: tuple[Path, Path], tmp_path: Path) -> None:
    """A batch that judges: right's result is removed, so that a judge has to be started."""
    submissions, out = undisturbed
    copy = tmp_path / "results"
    shutil.copytree(out, copy)
    code = (
        "import sys; from harness.cli import run; status = run(sys.argv[1:]);"
        "print([name for name in ('torch', 'pytest', 'numpy') if name in sys.modules], status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "batch", str(submissions), "--out", str(copy), "--regrade", "right", "--quiet",
         "--isolation", ISOLATION, *LIMITS],
        cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.stdout == "[] 0\n", done.stderr
    assert results(copy) == results(out)


HOSTILE = {
    "exits": "import os\nos._exit(0)\n",
    "loops": "while True:\n    pass\n",
    "floods": "import sys\nwhile True:\n    sys.stdout.write('x' * 65536)\n",
    "eats": "x = []\nwhile True:\n    x.append(bytearray(2 ** 26))\n",
    "kills": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos.kill(0, signal.SIGKILL)\n",
}


@pytest.mark.slow
def test_hostile_work_leaves_the_others_results_unchanged(undisturbed: tuple[Path, Path], tmp_path: Path) -> None:
    submissions, out = undisturbed
    shutil.copytree(submissions, tmp_path / "class")
    for name, text in HOSTILE.items():
        (tmp_path / "class" / name).mkdir()
        for file in ("gpt.py", "rope.py", "heads_positions.py"):
            (tmp_path / "class" / name / file).write_text(text, encoding="utf-8")
    status, said, err = finish(batch(tmp_path / "class", "--out", tmp_path / "results", "--jobs", "2"))
    assert status == 0, err
    found = results(tmp_path / "results")
    assert {name: report for name, report in found.items() if name not in HOSTILE} == results(out)
    for name in HOSTILE:
        report = json.loads((tmp_path / "results" / name / "report.json").read_bytes())
        assert report["score"]["final"] == 0, name
    assert "once more, alone" in said


# Kills


_LONGEST = {"parent": 6.0, "judge": 6.0, "zygote": 3.0, "worker": 0.3}  # seconds of its life before it is killed


def _family(process: subprocess.Popen[str]) -> dict[str, list[psutil.Process]]:
    """The parent, its judges' zygotes and their workers, as far as they are there."""
    found: dict[str, list[psutil.Process]] = {
        "parent": [psutil.Process(process.pid)],
        "judge": [],
        "zygote": [],
        "worker": [],
    }
    level = found["parent"]
    for role in ("judge", "zygote", "worker"):
        level = [child for one in level for child in _children(one)]
        found[role] = level
    return found


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children()
    except psutil.Error:
        return []


def _runs(process: psutil.Process) -> bool:
    """Not a zombie, which whoever adopted it has yet to bury."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _kill_at_random(submissions: Path, out: Path, role: str, draw: random.Random) -> None:
    """Start a batch, kill one process of that role at a random moment of its life, and let the rest end."""
    process = batch(submissions, "--out", out, "--jobs", "1")
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        victims = _family(process)[role]
        if victims:
            time.sleep(draw.uniform(0, _LONGEST[role]))
            try:
                draw.choice(victims).kill()  # a worker may have ended meanwhile: then the next one
                break
            except psutil.Error:
                pass
        time.sleep(0.01)
    if role == "parent":
        process.communicate()
        return
    status, _, err = finish(process)
    assert status == 0, err


@pytest.mark.skipif(sys.platform != "linux", reason="kills the processes of a fork, which Linux alone has here")
@pytest.mark.parametrize(
    "roles",
    [
        pytest.param(["parent", "zygote", "worker"], id="three"),
        pytest.param(["parent", "zygote", "worker", "judge"] * 5, id="twenty", marks=pytest.mark.slow),
    ],
)
def test_kills_at_random_moments_change_no_result(
    undisturbed: tuple[Path, Path], tmp_path: Path, roles: list[str]
) -> None:
    submissions, expected = undisturbed
    draw = random.Random(20)
    out = tmp_path / "results"
    for number, role in enumerate(roles):
        if role != "parent" and out.is_dir():
            shutil.rmtree(out / draw.choice(["right", "wrong", "template", "heads-only"]), ignore_errors=True)
        _kill_at_random(submissions, out, role, draw)
        for path in out.glob("*/report.json"):
            assert json.loads(path.read_bytes())["schema_version"], f"a whole report after kill {number}"
    status, _, err = finish(batch(submissions, "--out", out, "--jobs", "1"))
    assert (status, err) == (0, "")
    assert results(out) == results(expected)


@pytest.mark.skipif(os.name != "posix", reason="sends the signal that Ctrl-C sends on POSIX")
def test_ctrl_c_keeps_what_is_finished_and_ends_every_process(undisturbed: tuple[Path, Path], tmp_path: Path) -> None:
    submissions, expected = undisturbed
    shutil.copytree(submissions, tmp_path / "class")
    (tmp_path / "class" / "sleeps").mkdir()  # so that the batch cannot end before it is stopped
    for file in ("gpt.py", "rope.py", "heads_positions.py"):
        (tmp_path / "class" / "sleeps" / file).write_text("import time\ntime.sleep(100_000)\n", encoding="utf-8")
    process = batch(tmp_path / "class", "--out", tmp_path / "results", "--jobs", "1")
    assert process.stdout is not None
    first = process.stdout.readline()  # one is finished, others are on their way
    family = [one for group in _family(process).values() for one in group]
    os.killpg(process.pid, signal.SIGINT)
    status, _, err = finish(process)
    assert status == 130 and "Traceback" not in err and "goes on from there" in err
    _, alive = psutil.wait_procs(family, timeout=60)
    assert [one for one in alive if _runs(one)] == []
    kept = results(tmp_path / "results")
    assert first.split()[1] in kept and not kept.keys() & {"sleeps", "template", "wrong"}
    status, said, _ = finish(batch(submissions, "--out", tmp_path / "results", "--jobs", "1"))
    assert status == 0 and f"  {first.split()[1]}  " not in said
    assert results(tmp_path / "results") == results(expected)


# The judge's process


@pytest.fixture
def judge() -> Iterator[Callable[[], JudgeProcess]]:
    made: list[JudgeProcess] = []

    def make() -> JudgeProcess:
        made.append(JudgeProcess(ISOLATION))
        return made[-1]

    yield make
    for one in made:
        one.close(kill=True)


def _order() -> Order:
    files = {path.name: path.read_bytes() for path in (ROOT / "reference").glob("*.py")}
    return Order(name="right", files=files, exercises=["heads"], seed=1)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_secret_of_the_instructors_is_in_the_judges_memory(
    judge: Callable[[], JudgeProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANVAS_TOKEN", "s3cret-of-the-instructor")
    one = judge()
    assert one.grade(_order()).score.final == 50
    assert one.process is not None
    process = psutil.Process(one.process.pid)
    (zygote,) = process.children()
    for pid in (process.pid, zygote.pid):
        assert b"s3cret" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert os.getsid(pid) == pid, "Ctrl-C at the batch's terminal must not reach it"


@pytest.mark.skipif(sys.platform != "linux", reason="kills the processes of a fork, which Linux alone has here")
def test_a_judge_whose_zygote_is_killed_while_it_starts_ends_without_a_word(
    judge: Callable[[], JudgeProcess], capfd: pytest.CaptureFixture[str]
) -> None:
    one = judge()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(one.grade, _order())
        while one.process is None or not (zygotes := psutil.Process(one.process.pid).children()):
            time.sleep(0.005)
        zygotes[0].kill()
        assert isinstance(answer.exception(), JudgeDied)
    assert capfd.readouterr().err == ""


def test_a_judge_that_is_ended_takes_its_queued_orders_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the end of a judge and that of the queue, the thread that waited for it takes the next order."""
    started: list[subprocess.Popen[bytes]] = []

    def silent(*about: object) -> subprocess.Popen[bytes]:
        code = "import sys; sys.stdin.buffer.read()"
        started.append(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1]

    monkeypatch.setattr("harness.judge._start", silent)
    executor = LocalExecutor(1, "process")
    orders = [executor.submit(_order()) for _ in range(3)]
    while not started:
        time.sleep(0.01)
    shutdown = executor._pool.shutdown

    def late(**how: bool) -> None:
        assert isinstance(orders[0].exception(), JudgeDied)
        time.sleep(0.2)  # a busy machine
        shutdown(**how)

    monkeypatch.setattr(executor._pool, "shutdown", late)
    executor.close(now=True)
    assert all(order.cancelled() or isinstance(order.exception(), JudgeDied) for order in orders)
    assert len(started) == 1 and started[0].returncode is not None


# Folders


def _age(folder: Path) -> None:
    os.utime(folder, (1, 1))


def test_the_folder_of_a_batch_that_was_killed_is_removed_by_the_next_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import sys, tempfile; from harness.batch.scratch import Scratch; tempfile.tempdir = sys.argv[1];"
        "scratch = Scratch(); print(scratch.path, flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, text=True, encoding="utf-8",
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert other.stdout is not None
    theirs = Path(other.stdout.readline().strip())
    (theirs / "headcheck-x").mkdir()
    _age(theirs)
    ours = Scratch()
    assert theirs.is_dir() and ours.path.is_dir()  # its batch is alive
    other.kill()
    other.communicate()
    remove_abandoned()
    assert list(tmp_path.iterdir()) == [ours.path]
    ours.remove()
    assert not ours.path.exists()


def test_folders_without_a_lock_are_removed_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch was killed while it made, or removed, its folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    hour = time.time() - 3600
    outside = tmp_path / "outside"
    for name in ("headcheck-batch-old/x", "headcheck-batch-new", "headcheck-batch-odd/.lock", "headcheck-x", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (outside / "file").write_text("keep", encoding="utf-8")
    (tmp_path / "headcheck-batch-file").write_text("", encoding="utf-8")
    link = tmp_path / "headcheck-batch-link"
    with contextlib.suppress(OSError):  # Windows needs a right for it
        link.symlink_to(outside, target_is_directory=True)
    before = {path.name for path in tmp_path.iterdir()}
    for path in tmp_path.iterdir():
        _age(path)
    os.utime(tmp_path / "headcheck-batch-new", (hour, hour))
    remove_abandoned()
    assert before - {path.name for path in tmp_path.iterdir()} == {"headcheck-batch-old"}
    assert (outside / "file").exists()


def test_a_judge_that_takes_too_long_is_killed_and_the_next_order_starts_another(
    judge: Callable[[], JudgeProcess],
) -> None:
    one = judge()
    with pytest.raises(JudgeDied):
        one.grade(_order(), most_seconds=0.2)  # less than it takes to load torch
    assert one.process is None


def test_an_order_that_cannot_be_sent_is_no_dead_judge(judge: Callable[[], JudgeProcess]) -> None:
    """It would be given again, and then be nobody's fault but the student's."""
    with pytest.raises(UnicodeEncodeError):
        judge().grade(msgspec.structs.replace(_order(), name="\udce9"))


def test_less_than_a_sandbox_is_refused_unless_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from harness.cli import run

    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "gpt.py").write_text("x = 1\n", encoding="utf-8")
    weak = offer.Offer("Linux", "4", "x86_64", 0, False, "fork", 2, 2**33, ("Landlock is missing.",))
    monkeypatch.setattr(offer, "probe", lambda: weak)
    started: list[str] = []

    def refuse(self: LocalExecutor, jobs: int, isolation: str, *more: object) -> None:
        started.append(isolation)
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalExecutor, "__init__", refuse)
    assert run(["batch", str(tmp_path / "class"), "--out", str(tmp_path / "r")]) == 2
    err = capsys.readouterr().err
    assert "Landlock is missing." in err and "--isolation process" in err and started == []
    assert run(["batch", str(tmp_path / "class"), "--out", str(tmp_path / "r"), "--isolation", "process"]) == 130
    assert started == ["process"]
