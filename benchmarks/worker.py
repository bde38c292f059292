"""What a confined worker costs beside `import torch`: fork, confinement, and the import of the reference's files.

A worker is made for one exercise and imports what that needs: each exercise of the course is measured, and the dearest
counts. One that imports every file of the reference, more than any exercise needs, is shown beside them. The process
that forks workers has got ready for many of them, as it does for a class.

    python benchmarks/worker.py [--rounds N]

CPU time: of the judge, of the process that forks workers and of the worker together, from asking for a worker until the
files are imported; medians over the rounds, after one warm-up. The kernel counts it, so a busy machine changes it
little. `import torch` is measured in the same way, in turn, as a process of its own.
Memory: what is private to the worker then (Private_Clean and Private_Dirty of smaps_rollup); the kernel shows it to
root only, since workers may not be looked into.

Exit status 0: the claims hold; 1: one does not; 2: there is no sandbox to measure.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
MOST_OF_IMPORT = 1 / 50
MOST_MIB = 80.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="workers that are timed, 5 or more (default: 15)")
    rounds = parser.parse_args().rounds
    if rounds < 5:
        parser.error("a median of fewer than 5 rounds says little")
    from harness.worker import offer

    found = offer.probe()
    if found.isolation != "sandbox":
        print("There is no sandbox here: `python grade.py doctor` says why.", file=sys.stderr)
        return 2
    from harness.course import read_course
    from harness.worker import launch, torch_import

    torch_import.import_torch()

    (launcher,) = launch.launchers("fork", "sandbox", many=True)
    wanted = {
        exercise.id: [name for name in exercise.files if name.endswith(".py")] for exercise in read_course().exercise
    }
    wanted = {id: names for id, names in wanted.items() if names}
    wanted["every file"] = sorted(path.name for path in (ROOT / "reference").glob("*.py"))
    imports: list[float] = []
    workers: dict[str, list[float]] = {id: [] for id in wanted}
    memory: list[float | None] = []
    try:
        worker(launcher, wanted["every file"])
        for number in range(rounds):
            if number % 3 == 0:
                imports.append(import_torch())
            for id, names in wanted.items():
                seconds, mib = worker(launcher, names)
                workers[id].append(seconds)
                memory.append(mib)
    finally:
        launcher.close()
    one = statistics.median(imports)
    print(f"import torch: {one:.2f} s CPU (median of {len(imports)})")
    ratios = {id: statistics.median(times) / one for id, times in workers.items()}
    for id, times in workers.items():
        print(f"{id:<12}{1000 * statistics.median(times):4.0f} ms CPU ({1000 * min(times):.0f} to "
              f"{1000 * max(times):.0f}), {ratios[id]:.4f} imports of torch")  # fmt: skip
    del ratios["every file"]
    dearest = max(ratios, key=lambda id: ratios[id])
    kept = [verdict(f"CPU time of a worker for {dearest}, in imports of torch", ratios[dearest], MOST_OF_IMPORT)]
    known = [mib for mib in memory if mib is not None]
    if known:
        kept.append(verdict("private memory of a worker, MiB", max(known), MOST_MIB))
    else:
        print("private memory: not measured; only root may look into a worker")
    return 0 if all(kept) else 1


def import_torch() -> float:
    """CPU seconds of `python -c "import torch"`."""
    before = psutil.Process().cpu_times()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    after = psutil.Process().cpu_times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def worker(launcher: object, names: Sequence[str]) -> tuple[float, float | None]:
    """CPU seconds from asking for a worker until the files are imported, and its private memory in MiB."""
    from harness.course import Limits
    from harness.worker.client import Check, Root, WorkerLink

    files = {path.name: path.read_bytes() for path in (ROOT / "reference").glob("*.py")}
    link = WorkerLink(launcher, files, Limits())  # type: ignore[arg-type]
    ours, zygote = time.process_time(), on_cpu(launcher.pid)  # type: ignore[attr-defined]
    check = Check(link, "benchmark")
    check.begin(0)
    root = Root(check)
    for name in names:
        getattr(root, name.removesuffix(".py"))
    assert link.process is not None
    spent = time.process_time() - ours + on_cpu(launcher.pid) - zygote  # type: ignore[attr-defined]
    spent += on_cpu(link.process.pid)
    mib = private_mib(link.process.pid)
    link.close()
    return spent, mib


def on_cpu(pid: int) -> float:
    """CPU seconds of a process's first thread so far, to the nanosecond; workers have no other yet."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


def private_mib(pid: int) -> float | None:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except PermissionError:
        return None
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_")) / 1024


def verdict(what: str, value: float, most: float) -> bool:
    """Print one claim beside what was measured; whether it holds."""
    kept = value <= most
    print(f"{what}: {value:.4g}, at most {most:g} claimed: {'holds' if kept else 'MISSED'}")
    return kept


if __name__ == "__main__":
    sys.exit(main())
