"""What a notebook costs a warm batch beyond the same code as .py files, in CPU time.

    python benchmarks/notebook.py [--rounds N]

The reference, as its files and as a notebook of one cell for each class and function, goes through one judge in turn
(A B A B ...), after one warm-up of each. CPU time is that of the judge, its zygote and its workers, from /proc: Linux
only. The figure is the median over the pairs of the difference of one submission.

Exit status 0: the claim holds; 1: it does not; 2: nothing could be measured.
"""

from __future__ import annotations

import argparse
import ast
import os
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.course import read_course  # noqa: E402 - found beside this folder
from harness.judge import JudgeProcess, Order  # noqa: E402
from harness.notebook.inline import as_notebook  # noqa: E402

MOST_MS = 50.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="pairs that are measured, 5 or more (default: 15)")
    rounds = parser.parse_args().rounds
    if rounds < 5:
        parser.error("a median of fewer than 5 rounds says little")
    if not Path("/proc/self/stat").exists():
        print("CPU time of ended children is read from /proc, which this system lacks", file=sys.stderr)
        return 2
    course = read_course()
    names = dict.fromkeys(name for exercise in course.exercise for name in exercise.files)
    files = {name: (ROOT / "reference" / name).read_bytes() for name in names}
    notebook = as_notebook([cell for data in files.values() for cell in cells(data.decode("utf-8"))])
    exercises = [exercise.id for exercise in course.exercise]
    judge = JudgeProcess()
    costs: list[tuple[float, float]] = []
    try:
        for number in range(rounds + 1):
            pair = []
            for content in (files, {"lesson.ipynb": notebook}):
                before = 0.0 if judge.process is None else cpu_seconds(judge.process.pid)
                report = judge.grade(Order(name="reference", files=content, exercises=exercises, seed=course.seed))
                assert judge.process is not None
                pair.append(1000 * (cpu_seconds(judge.process.pid) - before))
                if report.score.earned != report.score.possible:
                    print("the reference did not get full marks", file=sys.stderr)
                    return 2
            if number:
                costs.append((pair[0], pair[1]))
    finally:
        judge.close()
    more = statistics.median(second - first for first, second in costs)
    for label, place in ((".py files", 0), ("notebook", 1)):
        values = [pair[place] for pair in costs]
        print(f"{label:<12}{statistics.median(values):.0f} ms ({min(values):.0f} to {max(values):.0f})")
    print(f"{len(exercises)} exercises, a worker each; median of {rounds} differences:")
    print(
        f"a notebook costs {more:.0f} ms more, at most {MOST_MS:g} claimed: {'holds' if more <= MOST_MS else 'MISSED'}"
    )
    return 0 if more <= MOST_MS else 1


def cells(source: str) -> list[str]:
    """A cell for each class and function, and one for what stands between them."""
    lines, found, start = source.splitlines(), [], 0
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found += ["\n".join(lines[start : first - 1]), "\n".join(lines[first - 1 : node.end_lineno])]
            start = node.end_lineno or 0
    return [cell for cell in [*found, "\n".join(lines[start:])] if cell.strip()]


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, of its living descendants, and of those that it or they have waited for."""
    ticks = os.sysconf("SC_CLK_TCK")
    total, waiting = 0.0, [pid]
    while waiting:
        number = waiting.pop()
        try:
            fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            children = Path(f"/proc/{number}/task/{number}/children").read_text(encoding="utf-8").split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(map(int, fields[11:15])) / ticks
        waiting += map(int, children)
    return total


if __name__ == "__main__":
    sys.exit(main())
