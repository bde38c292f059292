"""Grading as Gradescope does it: the memory of all processes together stays below 600 MiB of the container's 768 MB.

    python benchmarks/gradescope_memory.py

Packs the bundle, unpacks it into an empty folder and grades the reference's files there. Every 20 ms the proportional
set sizes (shared pages counted once) of the whole tree of processes are added up; Linux only. Exit status 1 if the
claim is missed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.course import read_course  # noqa: E402
from harness.packing.gradescope import pack  # noqa: E402

MEBIBYTES = 600.0


def tree_size(root: psutil.Process) -> float:
    """MiB of a process and all its descendants, shared pages once."""
    total = 0
    for process in [root, *root.children(recursive=True)]:
        try:
            total += process.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it ended meanwhile
    return total / 2**20


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pack(folder / "bundle.zip", read_course())
        with zipfile.ZipFile(folder / "bundle.zip") as archive:
            archive.extractall(folder / "source")
        command = [sys.executable, "grade.py", "gradescope", "--submission", str(ROOT / "reference"),
                   "--metadata", "none.json", "--out", str(folder / "results.json")]  # fmt: skip
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder / "source", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        watched, peak, samples = psutil.Process(process.pid), 0.0, 0
        while process.poll() is None:
            try:
                peak = max(peak, tree_size(watched))
            except psutil.NoSuchProcess:
                break
            samples += 1
            time.sleep(0.02)
        process.wait()
        seconds = time.monotonic() - began
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        size = (folder / "bundle.zip").stat().st_size / 1e6
    if "score" not in results:
        print(results["output"])
        return 1
    print(
        f"bundle {size:.2f} MB; score {results['score']:g}; peak {peak:.0f} MiB over {samples} samples; {seconds:.1f} s"
    )
    print("within" if peak < MEBIBYTES else "MISSED:", f"{MEBIBYTES:g} MiB")
    return int(peak >= MEBIBYTES)


if __name__ == "__main__":
    sys.exit(main())
