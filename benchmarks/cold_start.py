"""What grading costs beyond loading PyTorch: `python grade.py reference` against `python -c "import torch"`.

Claimed are the wall time of all exercises, training included, their memory, and the CPU time of the first six: the
core exercises and those about positions, caches and shared heads.

    python benchmarks/cold_start.py [--rounds N]

Times: all commands in turn (A B C D A B ...) after one warm-up of each, so that a busy moment meets all; figures are
medians of the rounds.
Memory: proportional set size (PSS, which counts a page that n processes share as 1/n in each) summed over the command
and all its descendants, the highest sample of one more run; Linux only.

Exit status 0: the claims hold; 1: one does not; 2: a command failed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
# Compiled files are kept, as they are wherever nobody forbids it; torch's are there in either case.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
MOST_TIMES = 1.5  # of the wall time of `import torch`
MOST_CPU = 1.5  # seconds of all processes beyond `import torch`
CORE = "heads,order,rope"
MODELS = "heads,order,rope,positions,sharing,cache"
MOST_MIB = 600.0
PAUSE = 0.01  # seconds between two samples of memory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds that are timed, 5 or more (default: 5)")
    rounds = parser.parse_args().rounds
    if rounds < 5:
        parser.error("a median of fewer than 5 rounds says little")
    with tempfile.TemporaryDirectory() as folder:
        grade = [sys.executable, "grade.py", "reference", "--json", str(Path(folder, "report.json"))]
        bare = [sys.executable, "-c", "import torch"]
        ways = {
            'python -c "import torch"': bare,
            f"... --exercise {CORE}": [*grade, "--exercise", CORE],
            f"... --exercise {MODELS}": [*grade, "--exercise", MODELS],
            "python grade.py reference": grade,
        }
        for command in ways.values():
            seconds(command)
        found = [{name: seconds(command) for name, command in ways.items()} for _ in range(rounds)]
        grade_mib, samples = peak_mib(grade)
        bare_mib, _ = peak_mib(bare)
    first, core, models, whole = ways
    print(f"{'':<68}{'seconds (median, range)':<28}CPU seconds")
    for name in ways:
        clock = [times[name][0] for times in found]
        span = f"{statistics.median(clock):.2f} ({min(clock):.2f} to {max(clock):.2f})"
        print(f"{name:<68}{span:<28}{statistics.median(times[name][1] for times in found):.2f}")

    def ratio(name: str) -> float:
        return statistics.median(times[name][0] / times[first][0] for times in found)

    beyond = statistics.median(times[models][1] - times[first][1] for times in found)
    print(f"wall time of the core exercises: {ratio(core):.4g} times")
    kept = [
        verdict("wall time of all exercises", ratio(whole), MOST_TIMES, " times"),
        verdict("CPU time of the first six beyond import torch", beyond, MOST_CPU, " s"),
    ]
    print(f"peak memory of import torch: {'-' if bare_mib is None else f'{bare_mib:.0f} MiB'}")
    if grade_mib is None:
        print("peak memory: not measured here; /proc/*/smaps_rollup is Linux's")
    else:
        kept.append(verdict(f"peak memory, highest of {samples} samples", grade_mib, MOST_MIB, " MiB"))
    return 0 if all(kept) else 1


def seconds(command: list[str]) -> tuple[float, float]:
    """Wall time and CPU time, its children's included, of a command that must succeed."""
    before, began = psutil.Process().cpu_times(), time.perf_counter()
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    took = time.perf_counter() - began
    if done.returncode != 0:
        fail(command, done.returncode, done.stdout + done.stderr)
    after = psutil.Process().cpu_times()
    return took, after.children_user + after.children_system - before.children_user - before.children_system


def peak_mib(command: list[str]) -> tuple[float | None, int]:
    """The most memory that a command and its descendants held at once, in MiB, and how many samples were taken.

    None where the system does not tell. Sampling slows the command down, so it is never one that is timed.
    """
    if not Path("/proc/self/smaps_rollup").exists():
        return None, 0
    peak, samples = 0.0, 0
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        root = psutil.Process(process.pid)
        while process.poll() is None:
            peak, samples = max(peak, sum(map(pss_mib, family(root)))), samples + 1
            time.sleep(PAUSE)
    if process.returncode != 0:
        fail(command, process.returncode, "")
    return peak, samples


def family(root: psutil.Process) -> list[int]:
    """The process and all that descend from it, workers of the zygote included."""
    try:
        return [root.pid, *(child.pid for child in root.children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def pss_mib(pid: int) -> float:
    """Proportional set size of one process in MiB; 0 once it is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


def verdict(what: str, value: float, most: float, unit: str) -> bool:
    """Print one claim beside what was measured; whether it holds."""
    kept = value <= most
    print(f"{what}: {value:.4g}{unit}, at most {most:g} claimed: {'holds' if kept else 'MISSED'}")
    return kept


def fail(command: list[str], status: int, output: str) -> None:
    print(f"{' '.join(command)} ended with status {status}.\n{output[-2000:]}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    sys.exit(main())
