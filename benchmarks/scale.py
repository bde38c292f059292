"""A class of thousands: `python grade.py batch` on generated submissions.

    python benchmarks/scale.py [--submissions N] [--jobs N]

Claims: a submission of the last tenth takes as long as one of a batch that has just begun, within 10 %; the memory of
the parent stays flat, and that of each judge, within 50 MiB; a second run, which finds everything done, takes less than
5 ms a submission (what the command takes on a class of one is taken off).

A machine that is shared with others changes its speed by half from minute to minute. So the young batch, of the last
fifth of the same class, runs beside the old one while that is at its end, and what both do in that time is compared.

The course is cut down to one exercise, `heads`, so that 2,000 submissions (the default) take minutes.

Exit status 0: the claims hold; 1: one does not; 2: a command failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import batch  # noqa: E402 - after the path

MOST_DRIFT = 1.10  # the last tenth against a batch that has just begun
MOST_MIB = 50.0
MOST_MS = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.submissions < 20:
        parser.error("a tenth of fewer than 20 submissions says nothing")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HEADCHECK_COURSE"] = str(batch.make_course(Path(folder, "course"), "heads"))
        submissions, results = make_class(Path(folder, "class"), arguments.submissions), Path(folder, "results")
        command = [sys.executable, "grade.py", "batch", str(submissions), "--out", str(results), "--jobs",
                   str(arguments.jobs)]  # fmt: skip
        fifth = sorted(submissions.iterdir())[-arguments.submissions // 5 :]
        for own in fifth:
            shutil.copytree(own, Path(folder, "fifth", own.name))
        young = Told([*command[:3], str(Path(folder, "fifth")), "--out", str(Path(folder, "r2")), *command[6:]])
        moments, growth, judges = watched(command, arguments.submissions, young)
        again = seconds([*command, "--quiet"])
        one = make_class(Path(folder, "one"), 1)
        single = [sys.executable, "grade.py", "batch", str(one), "--out", str(Path(folder, "r1")), "--quiet"]
        seconds(single)
        alone = seconds(single)
    tenth = arguments.submissions // 10
    first, last = moments[2 * tenth] - moments[tenth], moments[-1] - moments[-1 - tenth]
    beside = [moment for moment in young.moments if moments[-1 - tenth] <= moment <= moments[-1]]
    if len(beside) < 2 or young.moments[-1] < moments[-1]:
        print("The young batch did not run as long as the last tenth of the old one.", file=sys.stderr)
        return 2
    print(f"{arguments.submissions} submissions: {moments[-1] - moments[0]:.0f} s by the clock; a submission "
          f"{1000 * first / tenth:.0f} ms in the second tenth, {1000 * last / tenth:.0f} in the last")  # fmt: skip
    return 0 if all([
        verdict("last tenth against a batch that has just begun, at the same time",
                last / tenth / ((beside[-1] - beside[0]) / (len(beside) - 1)), MOST_DRIFT, " times"),
        verdict("memory of the parent, from the first tenth to the end", growth, MOST_MIB, " MiB"),
        verdict("memory of its judges, each", judges / arguments.jobs, MOST_MIB, " MiB"),
        verdict("a run that finds everything done", 1000 * (again - alone) / arguments.submissions, MOST_MS,
                " ms a submission"),
    ]) else 1  # fmt: skip


def make_class(folder: Path, count: int) -> Path:
    """Answers to the exercise `heads` alone, in all ways that are accepted; every tenth has a known mistake."""
    right, wrong = ([{"gpt.py": files["gpt.py"]} for files in kind] for kind in batch.answers())
    return batch.make_class(folder, count, right, wrong)


class Told:
    """A batch that is begun when it is told to; `moments` is when each result was there."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.moments: list[float] = []
        self._thread = threading.Thread(target=self._follow)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._thread.join()

    def _follow(self) -> None:
        with subprocess.Popen(self.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              encoding="utf-8") as process:  # fmt: skip
            assert process.stdout is not None
            self.moments += [time.perf_counter() for line in process.stdout if is_result(line)]


def is_result(line: str) -> bool:
    """Whether a batch tells of a student: `7/20  ada  10 / 10`."""
    return line[:1].isdigit() and "/" in line.split()[0]


def watched(command: list[str], count: int, young: Told) -> tuple[list[float], float, float]:
    """When each result was told, and by how many MiB the parent and its judges grew after the first tenth.

    At four fifths `young` is started, and waited for.
    """
    moments: list[float] = []
    before = after = (0.0, 0.0)
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          encoding="utf-8") as process:  # fmt: skip
        parent = psutil.Process(process.pid)
        assert process.stdout is not None
        for line in process.stdout:
            if not is_result(line):
                continue
            moments.append(time.perf_counter())
            if len(moments) == count * 4 // 5:
                young.start()
            if len(moments) == max(1, count // 10):
                before = mebibytes(parent)
            elif len(moments) > count // 10 and len(moments) % 20 == 0 and len(moments) < count:
                after = tuple(map(max, after, mebibytes(parent)))  # type: ignore[assignment]
    young.end()
    if process.returncode != 0 or len(moments) != count:
        print(f"{' '.join(command)} ended with status {process.returncode}, {len(moments)} results.", file=sys.stderr)
        sys.exit(2)
    grown = [max(0.0, late - early) for early, late in zip(before, after, strict=True)]
    return moments, grown[0], grown[1]


def mebibytes(parent: psutil.Process) -> tuple[float, float]:
    """Resident memory of the parent, and of the judges that it has started."""
    judges = [child for child in parent.children() if "harness.judge" in child.cmdline()]
    return parent.memory_info().rss / 2**20, sum(judge.memory_info().rss for judge in judges) / 2**20


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def verdict(what: str, value: float, most: float, unit: str) -> bool:
    """Print one claim beside what was measured; whether it holds."""
    kept = value <= most
    print(f"{what}: {value:.3g}{unit}, at most {most:g} claimed: {'holds' if kept else 'MISSED'}")
    return kept


if __name__ == "__main__":
    sys.exit(main())
