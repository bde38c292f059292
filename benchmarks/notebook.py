"""What a notebook costs a warm batch beyond the same code as .py files, in CPU time.

    python benchmarks/notebook.py [--rounds N] [--exercise ID,...]

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
    parser.add_argument("--exercise", metavar="ID,...", help="with the code of these exercises; all by default")
    arguments = parser.parse_args()
    rounds = arguments.rounds
    if rounds < 5:
        parser.error("a median of fewer than 5 rounds says little")
    if not Path("/proc/self/stat").exists():
        print("CPU time of ended children is read from /proc, which this system lacks", file=sys.stderr)
        return 2
    course = read_course()
    chosen = course.select(arguments.exercise)
    files: dict[str, bytes] = {}
    for exercise in chosen:
        for name in exercise.files:
            add(files, name)
    modules = {name.removesuffix(".py") for name in files}
    code = [cell for name, data in files.items() if name.endswith(".py") for cell in cells(data.decode(), modules)]
    sheets = {name: data for name, data in files.items() if not name.endswith(".py")}
    notebook = {"lesson.ipynb": as_notebook(code), **sheets}
    exercises = [exercise.id for exercise in chosen]
    judge = JudgeProcess()
    costs: list[tuple[float, float]] = []
    try:
        for number in range(rounds + 1):
            pair = []
            for content in (files, notebook):
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
