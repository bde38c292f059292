"""What grading costs beyond loading PyTorch: `python grade.py reference` against `python -c "import torch"`.

    python benchmarks/cold_start.py [--rounds N]

Wall time: both commands in turn (A B A B ...) after one warm-up of each, so that a busy moment meets both; the ratio
is the median over the pairs.
Memory: proportional set size (PSS, which counts a page that n processes share as 1/n in each) summed over the command
and all its descendants, the highest sample of one more run; Linux only.

Exit status 0: both claims hold; 1: one does not; 2: a command failed.
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
MOST_MIB = 600.0
PAUSE = 0.01  # seconds between two samples of memory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="pairs that are timed, 5 or more (default: 5)")
    rounds = parser.parse_args().rounds
    if rounds < 5:
        parser.error("a median of fewer than 5 rounds says little")
    with tempfile.TemporaryDirectory() as folder:
        grade = [sys.executable, "grade.py", "reference", "--json", str(Path(folder, "report.json"))]
        bare = [sys.executable, "-c", "import torch"]
        for command in (grade, bare):
            seconds(command)
        pairs = [(seconds(grade), seconds(bare)) for _ in range(rounds)]
        grade_mib, samples = peak_mib(grade)
        bare_mib, _ = peak_mib(bare)
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    print(f"{'':<32}{'seconds (median, range)':<28}peak MiB")
    for name, times, mib in (
        ("python grade.py reference", [ours for ours, _ in pairs], grade_mib),
        ('python -c "import torch"', [theirs for _, theirs in pairs], bare_mib),
    ):
        span = f"{statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f})"
        print(f"{name:<32}{span:<28}{'-' if mib is None else f'{mib:.0f}'}")
    kept = [verdict(f"wall time, median of {rounds} pairs", ratio, MOST_TIMES, " times")]
    if grade_mib is None:
        print("peak memory: not measured here; /proc/*/smaps_rollup is Linux's")
    else:
        kept.append(verdict(f"peak memory, highest of {samples} samples", grade_mib, MOST_MIB, " MiB"))
    return 0 if all(kept) else 1


def seconds(command: list[str]) -> float:
    """Wall time of a command that must succeed."""
    began = time.perf_counter()
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
    return took


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
