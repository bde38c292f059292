"""What a notebook costs a warm batch beyond the same code as .py files, in CPU time.

    python benchmarks/notebook.py [--rounds N] [--exercise ID,...] [--isolation process]

The reference, as its files and as a notebook of one cell for each class and function, goes through one warm judge:
torch, the workers' zygotes, the graders and the reference's answers are there before anything is measured. The two
submissions of a round go through it together, exercise by exercise in turn (heads as files, heads as a notebook, order
as a notebook, order as files, ...), so that what else this machine does meets both alike; whatever is done once a
submission is done once a round.

Each side has workers from a zygote of its own, and the sides change places every round, so that the kernel tells apart
what their workers used. CPU time is that of the judge (this process), of the zygotes (which fork) and of the workers,
to the nanosecond, and what ending the workers takes, to a hundredth of a second over all rounds.

What differs between the two lies in a few requests: to begin a check and to get its modules, which is where files are
imported and a notebook is read, compiled and run. That is counted apart, with forks and endings, and is the figure: the
median over the rounds of the difference, with quartiles. The checks themselves are the same work, many times as much;
their difference is shown below it, so that nothing hides there, and says how far chance goes. Linux only.

Exit status 0: the claim holds; 1: it does not; 2: nothing could be measured.
"""

from __future__ import annotations

import argparse
import ast
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.course import Course, Exercise, Limits, read_course  # noqa: E402 - found beside this folder
from harness.notebook.inline import as_notebook  # noqa: E402
from harness.outcome import Status  # noqa: E402
from harness.problem import Problem  # noqa: E402
from harness.report import Report  # noqa: E402
from harness.worker import launch  # noqa: E402
from harness.worker.torch_import import import_torch  # noqa: E402

if TYPE_CHECKING:  # they import torch, which `import_torch` must be the first to do
    from harness.worker.client import WorkerLink
    from harness.worker.protocol import Request

MOST_MS = 50.0
FILES, NOTEBOOK = 0, 1
PARTS = ("judge", "workers", "forks", "checks")
JUDGE, WORKER, FORK, CHECKS = range(4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="pairs that are measured, 5 or more (default: 10)")
    parser.add_argument("--exercise", metavar="ID,...", help="with the code of these exercises; all by default")
    parser.add_argument("--isolation", choices=("sandbox", "process"), default="sandbox", help="of the workers")
    arguments = parser.parse_args()
    if arguments.rounds < 5:
        parser.error("a median of fewer than 5 rounds says little")
    if sys.platform != "linux":
        print("The CPU time of other processes is read as Linux tells it.", file=sys.stderr)
        return 2
    import_torch()
    zygotes = [Zygote(launcher) for launcher in launch.launchers("fork", arguments.isolation, 2, many=True)]
    try:
        for zygote in zygotes:
            zygote.launcher.ready()
        course = read_course().with_limits(["wall_factor=60", "start_seconds=600"])  # a busy machine ends nothing
        measured = Measured(course, course.select(arguments.exercise), zygotes, arguments.rounds)
        measured.run()
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    finally:
        for zygote in reversed(zygotes):
            zygote.launcher.close()
    return measured.tell()


class Zygote:
    """A launcher that adds up CPU seconds: of its workers until they were ended, and of what loads code."""

    def __init__(self, launcher: launch.Launcher) -> None:
        self.launcher = launcher
        self.isolation, self.method = launcher.isolation, launcher.method
        self.workers = 0.0
        self.loading = [0.0, 0.0]  # of the judge, of workers
        self.counts = False  # whether it is being added to
        self.pid = 0

    @property
    def broken(self) -> bool:
        return self.launcher.broken

    def ready(self) -> None:
        self.launcher.ready()

    def launch(self, files: Mapping[str, bytes], limits: Limits) -> launch.Process:
        process = self.launcher.launch(files, limits)
        self.pid = parent(process.pid)
        end = process.end

        def counted() -> str:
            self.workers += clock(process.pid)
            return end()

        process.end = counted  # type: ignore[method-assign]
        return process

    def close(self) -> None:
        self.launcher.close()


def counting(exchange: Callable[..., bytes]) -> Callable[..., bytes]:
    """A link's `exchange` that tells its zygote what it takes to begin a check and to get its modules: all that differs
    between files and a notebook."""
    from harness.worker.protocol import Begin, Import

    def counted(link: WorkerLink, request: Request, frame: bytes) -> bytes:
        zygote = link.launcher
        assert isinstance(zygote, Zygote)
        if zygote.counts or not isinstance(request, Begin | Import):
            return exchange(link, request, frame)
        zygote.counts = True
        before = time.process_time(), clock(link.process.pid) if link.process else 0.0
        try:
            return exchange(link, request, frame)
        finally:
            after = time.process_time(), clock(link.process.pid) if link.process else 0.0
            zygote.loading = [was + b - a for was, a, b in zip(zygote.loading, before, after, strict=True)]
            zygote.counts = False

    return counted


@dataclass
class Side:
    """One form of the submission, and what it has cost: for each exercise, round by round, the parts' milliseconds."""

    files: dict[str, bytes]
    costs: dict[str, list[list[float]]] = field(default_factory=dict)
    ending: float = 0.0  # ms that its workers took in all rounds to end

    def by_round(self, *parts: int) -> list[float]:
        """The milliseconds of some parts in each round, over all exercises."""
        rounds = zip(*self.costs.values(), strict=True)
        return [sum(cost[part] for cost in costs for part in parts) for costs in rounds]


class Measured:
    """The rounds."""

    def __init__(self, course: Course, exercises: Sequence[Exercise], zygotes: Sequence[Zygote], rounds: int) -> None:
        self.course, self.exercises, self.zygotes, self.rounds = course, tuple(exercises), zygotes, rounds
        self.sides = [Side(files) for files in both_forms(exercises)]
        self.lost: list[str] = []  # checks that did not pass, and why

    def run(self) -> None:
        from harness import session  # brings pytest, which workers do not inherit: their zygotes are there by now
        from harness.notebook.link import NotebookLink
        from harness.worker.client import WorkerLink

        for kind in (WorkerLink, NotebookLink):
            kind.exchange = counting(kind.exchange)  # type: ignore[method-assign]
        session.grade_all(self.jobs(), self.exercises, warm=True, root=self.course.root)

    def jobs(self) -> Iterator[object]:
        """Both submissions, an exercise at a time; what the judge does between two `yield`s is what is measured."""
        from harness import session
        from harness.bench import Bench
        from harness.submission import Submission

        def benches() -> list[Bench]:
            return [
                Bench(Submission("reference", side.files), self.course, zygote, None, self.course.seed)
                for side, zygote in zip(self.sides, zygotes, strict=True)
            ]

        zygotes = list(self.zygotes)
        for bench in benches():  # the judge warms up: the reference's answers to all checks, the zygotes' numbers
            yield session.Job(bench, self.exercises, self.see)
        for number in range(self.rounds):
            zygotes.reverse()
            pair = benches()
            whole = [ended_children(zygote.pid) for zygote in zygotes]
            counted = [zygote.workers for zygote in zygotes]
            for place, exercise in enumerate(self.exercises):
                for which in (FILES, NOTEBOOK) if (number + place) % 2 else (NOTEBOOK, FILES):
                    before = readings(zygotes[which])
                    yield session.Job(pair[which], (exercise,), self.see)
                    spent = [1000 * (b - a) for a, b in zip(before, readings(zygotes[which]), strict=True)]
                    self.sides[which].costs.setdefault(exercise.id, []).append(spent)
            for side, zygote, all_before, seen_before in zip(self.sides, zygotes, whole, counted, strict=True):
                used = ended_children(zygote.pid) - all_before
                side.ending += 1000 * (used - (zygote.workers - seen_before))

    def see(self, report: Report) -> None:
        checks = [check for exercise in report.exercises for check in exercise.checks]
        lost = [check for check in checks if check.status not in (Status.PASSED, Status.PENDING)]
        self.lost += [f"{check.id}: {check.message and check.message.text} {check.detail}" for check in lost]

    def tell(self) -> int:
        if self.lost:
            print("the reference did not get full marks", *self.lost[:5], sep="\n", file=sys.stderr)
            return 2
        print(f"ms of CPU time until the code is there; medians of {self.rounds} rounds (quartiles of the differences)")
        print(f"{'':<12}{'files':>9}{'notebook':>10}   more")
        for id in (exercise.id for exercise in self.exercises):
            print(row(id, *([sum(parts[:CHECKS]) for parts in side.costs[id]] for side in self.sides)))
        print()
        for place, part in enumerate(PARTS[:CHECKS]):
            print(row(part, *(side.by_round(place) for side in self.sides)))
        ended = [side.ending / self.rounds for side in self.sides]
        print(f"{'ending':<12}{ended[FILES]:>9.1f}{ended[NOTEBOOK]:>10.1f}   {ended[NOTEBOOK] - ended[FILES]:+.1f}")
        both = [[ms + end for ms in side.by_round(JUDGE, WORKER, FORK)]
                for side, end in zip(self.sides, ended, strict=True)]  # fmt: skip
        print(row("together", *both))
        print("\nThe checks themselves, which are the same work:")
        print(row("checks", *(side.by_round(CHECKS) for side in self.sides)))
        more = statistics.median(differences(*both))
        print(f"\n{len(self.exercises)} exercises, a worker each where code is asked for:")
        held = "holds" if more <= MOST_MS else "MISSED"
        print(f"a notebook costs {more:.0f} ms more, at most {MOST_MS:g} claimed: {held}")
        return 0 if more <= MOST_MS else 1


def row(label: str, files: Sequence[float], notebook: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(differences(files, notebook), n=4)
    medians = f"{statistics.median(files):>9.1f}{statistics.median(notebook):>10.1f}"
    return f"{label:<12}{medians}   {middle:+.1f} ({low:+.1f} to {high:+.1f})"


def differences(files: Sequence[float], notebook: Sequence[float]) -> list[float]:
    return [second - first for first, second in zip(files, notebook, strict=True)]


def both_forms(exercises: Sequence[Exercise]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The reference's files for these exercises, and the same with a notebook in place of the code."""
    files: dict[str, bytes] = {}
    for exercise in exercises:
        for name in exercise.files:
            add(files, name)
    modules = {name.removesuffix(".py") for name in files}
    code = [cell for name, data in files.items() if name.endswith(".py") for cell in cells(data.decode(), modules)]
    sheets = {name: data for name, data in files.items() if not name.endswith(".py")}
    return files, {"lesson.ipynb": as_notebook(code), **sheets}


def add(files: dict[str, bytes], name: str) -> None:
    """Add a file of the reference, after those that it imports."""
    if name in files or not (ROOT / "reference" / name).exists():
        return
    data = (ROOT / "reference" / name).read_bytes()
    if name.endswith(".py"):
        for node in ast.walk(ast.parse(data)):
            if isinstance(node, ast.ImportFrom):
                add(files, f"{node.module}.py")
    files[name] = data


def cells(source: str, modules: set[str]) -> list[str]:
    """A cell for each class and function, and one for what stands between them but imports of `modules`."""
    lines, found, start = source.splitlines(), [], 0
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found += ["\n".join(lines[start : first - 1]), "\n".join(lines[first - 1 : node.end_lineno])]
            start = node.end_lineno or 0
    return [cell for cell in [*found, "\n".join(lines[start:])] if cell.strip()]


def readings(zygote: Zygote) -> list[float]:
    """CPU seconds so far, by part: until code is there, of the judge and of a zygote's workers; of the zygote; the rest
    of the judge and of the workers that have been ended."""
    loading = sum(zygote.loading)
    return [*zygote.loading, clock(zygote.pid), time.process_time() + zygote.workers - loading]


def clock(pid: int) -> float:
    """CPU seconds of a process, its threads' included; the number of its clock is what clock_getcpuclockid(3) makes."""
    return time.clock_gettime((~pid << 3) | 2)


def stat(pid: int) -> list[int]:
    """The numbers of /proc/PID/stat from the parent's process id on."""
    return list(map(int, Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1:20]))


def parent(pid: int) -> int:
    return stat(pid)[0]


def ended_children(pid: int) -> float:
    """CPU seconds of the children that a process has waited for, in steps of a hundredth or so."""
    return sum(stat(pid)[12:14]) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
