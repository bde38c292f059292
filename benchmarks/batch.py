"""CPU time of a class: `python grade.py batch` against plainer ways to run the same checks.

    python benchmarks/batch.py [--submissions N] [--rounds N] [--isolation sandbox|process] [--exercise IDS]
                               [--peers FOLDER] [--peer-submissions N]

Twenty healthy submissions (`--submissions`), a tenth of them wrong, with all checks of heads, order and rope
(`--exercise`). The right ones are each written in another way that the course accepts, for as long as there is one:
what one of them was answered helps the next only where both give the same numbers, bit for bit.

    batch     `python grade.py batch`, one job: every submission in worker processes of its own
    session   one pytest session over the whole class, without isolation: what no course should use
    floor     the same checks in one warm process, without pytest and without isolation
    pytest    a pytest process for each submission with pytest-json-report, without isolation
    otter     otter-grader 7, `otter run`: the submission as a notebook, each check a test
    nbgrader  nbgrader 0.9.6, `nbgrader autograde`: the same, each check a graded cell

The last two are installed into environments of their own, kept in `--peers`, and grade `--peer-submissions` (0 for
none), the last of them wrong: each submission costs them the same. Where one cannot be installed or run, or gives other
points than this harness, a notice says why and it is left out.

That two jobs are faster than one is measured on a class five times as large, for which starting a judge matters less.

Each way is run in turn (A B C D A B ...), so that a busy moment meets all; figures are medians of the rounds. CPU
seconds are user and system time of the command and all of its descendants, loading PyTorch included. What isolation
and pytest cost is shown as differences between the ways.

`--hostile` adds the same class with an endless loop, an os._exit and an allocation of 50 GiB, for `batch` alone.

Exit status 0: the claims hold; 1: one does not; 2: a command failed.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import peers  # noqa: E402 - after the path

LEAST_TIMES_PYTEST = 15.0  # fewer CPU seconds than a pytest process for each submission
MOST_TIMES_SESSION = 1.5  # of one unisolated session
LEAST_TIMES_PEER = 30.0  # fewer CPU seconds than another tool
LEAST_TIMES_JOBS = 1.8  # two jobs against one, on two cores or more
TIMES_FOR_JOBS = 5  # the class of that comparison
WAYS = ("batch", "session", "floor", "pytest")
HOSTILE = {
    "loops": "while True:\n    pass\n",
    "exits": "import os\nos._exit(0)\n",
    "eats": "import torch\nx = torch.ones(50 * 2**30, dtype=torch.uint8)\n",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--isolation", choices=["sandbox", "process"], default="sandbox")
    parser.add_argument("--exercise", default="heads,order,rope", metavar="IDS", help="what is judged, by every way")
    parser.add_argument("--peers", type=Path, default=peers.default_cache(), metavar="FOLDER",
                        help="where other tools are installed, once")  # fmt: skip
    parser.add_argument("--peer-submissions", type=int, default=3, metavar="N", help="0: without other tools")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--run", choices=["session", "floor"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        {"session": session, "floor": floor}[arguments.run](arguments.folder)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HEADCHECK_COURSE"] = str(make_course(Path(folder, "course"), arguments.exercise))
        right, wrong = answers()
        submissions = make_class(Path(folder, "class"), arguments.submissions, right, wrong)
        larger = make_class(Path(folder, "larger"), TIMES_FOR_JOBS * arguments.submissions, right, wrong)
        others = prepare_peers(Path(folder, "peers"), arguments, right[0], wrong)
        found = measure(submissions, others, arguments, Path(folder))
        kept = show(found, arguments.submissions, arguments.peer_submissions)
        kept.append(two_jobs(larger, arguments, Path(folder)))
        if arguments.hostile:
            hostile(submissions, arguments, Path(folder))
    return 0 if all(kept) else 1


def make_course(folder: Path, exercises: str) -> Path:
    """The course with these exercises alone."""
    from harness.course import read_course

    chosen = {exercise.id for exercise in read_course().select(exercises)}
    for name in ("graders", "reference", "student_template"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    toml = folder / "graders" / "course.toml"
    head, *tables = toml.read_text(encoding="utf-8").split("[[exercise]]\n")
    tables = [table for table in tables if table.partition('id = "')[2].partition('"')[0] in chosen]
    toml.write_text("[[exercise]]\n".join([head, *tables]), encoding="utf-8")
    if {exercise.id for exercise in read_course(toml.parent).exercise} != chosen:
        sys.exit("course.toml could not be cut down to the exercises")
    return folder


def answers() -> tuple[list[Mapping[str, bytes]], list[Mapping[str, bytes]]]:
    """The reference and all accepted forms of the exercises, mixed; and a submission for each known mistake in them."""
    from harness.authoring import prove
    from harness.course import read_course

    course = read_course()
    chosen = {exercise.id for exercise in course.exercise}
    cases = [case for case in prove.cases(course) if case.exercise in chosen]
    reference = next(case.files for case in cases if case.kind == "reference")
    accepted = [case.files for case in cases if case.kind == "accepted"]
    random.Random(0).shuffle(accepted)
    return [reference, *accepted], [case.files for case in cases if case.kind == "misconception"]


def make_class(
    folder: Path, count: int, right: Sequence[Mapping[str, bytes]], wrong: Sequence[Mapping[str, bytes]]
) -> Path:
    """Right answers in turn, each with a line of its own; every tenth has a known mistake."""
    for number in range(count):
        files = wrong[number * 7 % len(wrong)] if number % 10 == 9 else right[number % len(right)]
        own = folder / f"s{number:04}"
        for name, content in files.items():
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            (own / name).write_bytes(content + f"\n# {number}\n".encode())
    return folder


def prepare_peers(
    folder: Path, arguments: argparse.Namespace, right: Mapping[str, bytes], wrong: Sequence[Mapping[str, bytes]]
) -> dict[peers.Peer, peers.Class]:
    """The other tools that can be had here, and what they grade."""
    from harness.course import course_root, read_course
    from harness.judge import JudgeProcess, Order

    if not arguments.peer_submissions:
        return {}
    course = read_course()
    needed = {name for exercise in course.exercise for name in exercise.files}
    last = arguments.peer_submissions - 1
    given = {
        f"s{number:04}": {
            name: text for name, text in (wrong[0] if number == last else right).items() if name in needed
        }
        for number in range(last + 1)
    }
    judge = JudgeProcess(root=course_root())
    reports = {
        name: judge.grade(Order(name=name, files=files, exercises=[exercise.id for exercise in course.exercise],
                                seed=course.seed, trusted=True))
        for name, files in given.items()
    }  # fmt: skip
    judge.close()
    checks = [check for exercise in reports["s0000"].exercises for check in exercise.checks]
    graded = peers.Class(course_root(), given, {check.id: check.possible for check in checks},
                         {name: report.score.earned for name, report in reports.items()})  # fmt: skip
    return dict.fromkeys(peers.prepare(arguments.peers, folder, graded), graded)


def measure(
    submissions: Path, others: dict[peers.Peer, peers.Class], arguments: argparse.Namespace, folder: Path
) -> dict[str, list[tuple[float, float]]]:
    """(CPU seconds, wall seconds) of each way and round."""
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    own = [sys.executable, str(Path(__file__)), "--folder", str(submissions), "--run"]
    for number in range(arguments.rounds):
        results = folder / f"results{number}"
        found["batch"].append(timed(lambda to=results: run(batch(submissions, to, arguments.isolation, 1))))
        found["session"].append(timed(lambda: run([*own, "session"])))
        found["floor"].append(timed(lambda: run([*own, "floor"])))
        found["pytest"].append(timed(lambda: one_pytest_each(submissions)))
        for peer, graded in list(others.items()):
            try:
                found.setdefault(peer.name, []).append(timed(peer.grade))
                peers.verify(peer, graded)
            except peers.Unavailable as reason:
                print(f"{peer.name} is left out: {reason}", file=sys.stderr)
                del others[peer], found[peer.name]
    return found


def batch(submissions: Path, results: Path, isolation: str, jobs: int) -> list[str]:
    return [sys.executable, str(ROOT / "grade.py"), "batch", str(submissions), "--out", str(results), "--quiet",
            "--isolation", isolation, "--jobs", str(jobs)]  # fmt: skip


def session(submissions: Path) -> None:
    """One pytest session over the class, the submissions in its own process."""
    from harness.course import course_root, read_course
    from harness.judge import JudgeProcess, Order

    course = read_course()
    judge = JudgeProcess(root=course_root())
    for own in sorted(submissions.iterdir()):
        judge.grade(Order(name=own.name, files=read(own), exercises=[exercise.id for exercise in course.exercise],
                          seed=course.seed, trusted=True))  # fmt: skip
    judge.close()


def floor(submissions: Path) -> None:
    """The functions of the checks, called one after the other; the reference is asked once."""
    from harness.worker.torch_import import import_torch

    import_torch()
    import pytest

    from harness.bench import Bench, reference_modules
    from harness.course import read_course
    from harness.diagnosis import run_check
    from harness.oracle import Modules, Recording, RecordingLink, ReferenceLink, ReplayLink
    from harness.plugin import GradingPlugin
    from harness.submission import Submission
    from harness.worker.client import LocalLink
    from harness.worker.objects import Objects

    class Collected(GradingPlugin):
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            recording = Recording(course.seed)
            link = RecordingLink(ReferenceLink(reference_modules()), recording)
            for item in session.items:
                run_check(item, Bench(Submission("", {}), course, None, link, course.seed),
                          LocalLink(Objects(reference_modules().load)))  # fmt: skip
            for own in sorted(submissions.iterdir()):
                bench = Bench(Submission("", {}), course, None, ReplayLink(recording), course.seed)
                sources = {name.removesuffix(".py"): text.decode() for name, text in read(own).items()}
                student = LocalLink(Objects(Modules(sources, own.name).load))
                for item in session.items:
                    run_check(item, bench, student)
            return True

    course = read_course()
    paths = [str(ROOT / "graders" / exercise.grader) for exercise in course.exercise]
    if pytest.main(["-q", "-s", "-o", "addopts=", "--import-mode=importlib", *paths], plugins=[Collected(None)]):
        sys.exit("the graders could not be run")


def one_pytest_each(submissions: Path) -> None:
    from harness.course import read_course

    graders = [f"graders/{exercise.grader}" for exercise in read_course().exercise]
    for own in sorted(submissions.iterdir()):
        run([sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.unisolated", "-p", "no:cacheprovider",
             "--json-report", "--json-report-file=none", *graders],
            allowed=(0, 1), environment={"HEADCHECK_SUBMISSION": str(own)})  # fmt: skip


def read(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.py")}


def two_jobs(submissions: Path, arguments: argparse.Namespace, folder: Path) -> bool:
    """By the clock, one job against two. On one core there is nothing to gain."""
    from harness.worker import offer

    if offer.probe().cores < 2:
        print("two jobs: not measured, this machine has one core")
        return True
    ratios = []
    for number in range(arguments.rounds):
        one = timed(lambda to=folder / f"one{number}": run(batch(submissions, to, arguments.isolation, 1)))[1]
        two = timed(lambda to=folder / f"two{number}": run(batch(submissions, to, arguments.isolation, 2)))[1]
        ratios.append(one / two)
    return verdict("two jobs are faster than one", statistics.median(ratios), at_least=LEAST_TIMES_JOBS)


def hostile(submissions: Path, arguments: argparse.Namespace, folder: Path) -> None:
    for name, text in HOSTILE.items():
        (submissions / name).mkdir()
        for file in ("gpt.py", "rope.py", "heads_positions.py"):
            (submissions / name / file).write_text(text, encoding="utf-8")
    cpu, wall = timed(lambda: run(batch(submissions, folder / "hostile", arguments.isolation, 1)))
    graded = len(list((folder / "hostile").glob("*/report.json")))
    print(f"with an endless loop, an os._exit and an allocation of 50 GiB: {graded} of "
          f"{arguments.submissions + len(HOSTILE)} graded, {cpu:.0f} CPU seconds, {wall:.0f} by the clock")  # fmt: skip


def run(command: list[str], *, allowed: tuple[int, ...] = (0,), environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | (environment or {}), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    if done.returncode not in allowed:
        print(f"{' '.join(command)} ended with status {done.returncode}.\n{done.stdout}{done.stderr}", file=sys.stderr)
        sys.exit(2)


def timed(work: Callable[[], None]) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime), time.perf_counter() - began


def show(found: dict[str, list[tuple[float, float]]], count: int, peer_count: int) -> list[bool]:
    counts = {way: count if way in WAYS else peer_count for way in found}
    cpu = {way: statistics.median(seconds for seconds, _ in times) / counts[way] for way, times in found.items()}
    print(f"{'way':<10}{'CPU s a submission (median, range)':<38}{'clock s a submission':<24}submissions")
    for way, times in found.items():
        each = [seconds / counts[way] for seconds, _ in times]
        span = f"{cpu[way]:.3f} ({min(each):.3f} to {max(each):.3f})"
        clock = f"{statistics.median(wall for _, wall in times) / counts[way]:.3f}"
        print(f"{way:<10}{span:<38}{clock:<24}{counts[way]}")
    print(f"of batch: checks {cpu['floor']:.3f}, pytest {cpu['session'] - cpu['floor']:.3f}, "
          f"workers and results {cpu['batch'] - cpu['session']:.3f}")  # fmt: skip
    return [
        verdict("fewer CPU seconds than one pytest process each", cpu["pytest"] / cpu["batch"],
                at_least=LEAST_TIMES_PYTEST),
        *(verdict(f"fewer CPU seconds than {way}", cpu[way] / cpu["batch"], at_least=LEAST_TIMES_PEER)
          for way in found if way not in WAYS),
        verdict("of one unisolated session", cpu["batch"] / cpu["session"], at_most=MOST_TIMES_SESSION),
    ]  # fmt: skip


def verdict(what: str, value: float, *, at_least: float = 0.0, at_most: float = float("inf")) -> bool:
    """Print one claim beside what was measured; whether it holds."""
    kept = at_least <= value <= at_most
    bound = f"at least {at_least:g}" if at_least else f"at most {at_most:g}"
    print(f"{what}: {value:.3g} times, {bound} claimed: {'holds' if kept else 'MISSED'}")
    return kept


if __name__ == "__main__":
    sys.exit(main())
