"""10,000 reports in every format: each within 10 s and 300 MiB.

    python benchmarks/export.py [--reports 10000] [--target NAME]

Each report has 40 checks, of which every fifth is wrong, with its texts. Each export is the real command in a process
of its own. Seconds are the processor's, so that what else the machine does counts less; the clock's stand beside them.
The peak of memory is the kernel's figure for that process. Exit status 1 if a claim is missed.
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

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import msgspec  # noqa: E402

from harness import report as reports  # noqa: E402
from harness.export import TARGETS  # noqa: E402
from harness.outcome import Evidence, Frame, Status  # noqa: E402
from harness.report import CheckResult, ExerciseResult, Student, Text  # noqa: E402

SECONDS, MEBIBYTES = 10.0, 300.0
CHECKS = 40
MORE = {
    "canvas": ["--gradebook", "canvas.csv"],
    "moodle": ["--comments"],
    "moodle-worksheet": ["--gradebook", "worksheet.csv", "--comments"],
    "csv": ["--columns", "id,name,email,section,grade,state,comment"],
}


def full_report() -> reports.Report:
    """A report of `CHECKS` checks, a fifth of them wrong."""
    checks = []
    for place in range(CHECKS):
        passed = place % 5 != 0
        check = CheckResult(id=f"heads.check-{place}", title="Each head attends to its own slice of the channels",
                            status=Status.PASSED if passed else Status.FAILED, points=2.0 * passed, possible=2.0,
                            seconds=0.0123)  # fmt: skip
        if not passed:
            check.hint = Text("hint", "Did you cut the heads with view and never transpose? " * 2)
            check.message = Text("expect.close", "split_heads(x) differs from the expected values, first at [0, 1, 0].")
            check.evidence = Evidence(what="split_heads(x)", expected="0.25", actual="-1.5", tolerance=1e-6, error=1.7)
            check.trace = [Frame("gpt.py", 99, "split_heads", "        return x.view(B, self.n_head, T, -1)")]
            check.reproduce = "import torch\nfrom gpt import *\nmodel = CausalSelfAttention(GPTConfig())\n"
        checks.append(check)
    earned = reports.points(check.points for check in checks)
    exercise = ExerciseResult(id="heads", title="Attention with several heads", earned=earned, possible=2.0 * CHECKS,
                              checks=checks)  # fmt: skip
    return reports.Report(
        submission=reports.SubmissionInfo(name="s", digest="0" * 64, files={"gpt.py": "1" * 64}),
        course=reports.CourseInfo(id="course", title="Attention", graders="2" * 64, reference="3" * 64),
        environment=reports.Environment(headcheck="0", python="3", torch="2", platform="", isolation="sandbox",
                                        start_method="fork"),
        seed=1, score=reports.total([exercise]), review=False, exercises=[exercise],
        started="2026-03-02T09:30:00+01:00", seconds=1.5,
    )  # fmt: skip


def make_class(folder: Path, size: int) -> None:
    """A results folder of `size` students, and gradebooks of Canvas and Moodle with all of them."""
    base = full_report()
    canvas = ["Student,ID,SIS User ID,SIS Login ID,Section,Attention (1)"]
    worksheet = ['Identifier,"Full name","Email address",Grade,"Maximum Grade","Feedback comments"']
    for place in range(size):
        one = f"{place:05}"
        student = Student(id=f"s{one}", name=f"Family {one}, Given", email=f"s{one}@example.org", section="Lab",
                          ids={"canvas": one, "moodle": one, "lti": one, "login": f"u{one}"})  # fmt: skip
        (folder / "class" / student.id).mkdir(parents=True)
        report = msgspec.structs.replace(base, student=student)
        (folder / "class" / student.id / "report.json").write_bytes(reports.to_json(report))
        canvas.append(f'"{student.name}",{one},,u{one},Lab,')
        worksheet.append(f'"Participant {one}","{student.name}",{student.email},,100,')
    (folder / "canvas.csv").write_text("\n".join(canvas) + "\n", encoding="utf-8")
    (folder / "worksheet.csv").write_text("\n".join(worksheet) + "\n", encoding="utf-8")


def measure(target: str, folder: Path) -> tuple[float, float, float, float]:
    """Seconds of the processor and of the clock, peak MiB and MB written of one export.

    Raises:
        SystemExit: the export failed.
    """
    out = folder / "out"
    command = [
        sys.executable,
        str(ROOT / "grade.py"),
        "export",
        target,
        "class",
        "--out",
        str(out),
        *MORE.get(target, []),
    ]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait for it again
    clock = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"{target}: status {process.returncode}")
    unit = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss is in bytes there, in KiB here
    return usage.ru_utime + usage.ru_stime, clock, usage.ru_maxrss / unit, out.stat().st_size / 1e6


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--target", choices=list(TARGETS))
    asked = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_class(folder, asked.reports)
        print(f"{asked.reports} reports of {len(reports.to_json(full_report())) / 1000:.0f} KB")
        print(f"{'target':<18}{'CPU s':>9}{'clock s':>9}{'peak MiB':>10}{'MB':>8}")
        for target in [asked.target] if asked.target else TARGETS:
            runs = [measure(target, folder) for _ in range(asked.runs)]
            seconds, clock = (statistics.median(run[at] for run in runs) for at in (0, 1))
            peak = max(run[2] for run in runs)
            print(f"{target:<18}{seconds:>9.1f}{clock:>9.1f}{peak:>10.0f}{runs[0][3]:>8.1f}", flush=True)
            if seconds > SECONDS or peak > MEBIBYTES:
                missed.append(target)
    print(f"MISSED: {', '.join(missed)}" if missed else f"all within {SECONDS:g} s and {MEBIBYTES:g} MiB")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
