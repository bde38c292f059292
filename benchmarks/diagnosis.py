"""What diagnosis adds to a failing submission: CPU time a failing check, over every known mistake.

    python benchmarks/diagnosis.py [--exercise ID,...] [--every N]

Each known mistake of the course is judged as a student's submission in its exercise, and the CPU time of this process
within `diagnosis` is divided by the number of checks that did not pass. Cold: the mistake is the first submission of a
fresh process, so reading the known answers and running them is in it. Warm: all mistakes one after the other in one
process, the second time round, as in a batch. torch and the checks are loaded before in both. Other work on the machine
makes the same code take up to twice the CPU time, never less: what is above the claim is measured twice more, and the
least of the three counts.

Exit status 0: no mistake takes more than is claimed; 1: one does; 2: one could not be judged.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.worker.torch_import import import_torch  # noqa: E402

import_torch()  # children are forked

from harness import session  # noqa: E402
from harness.authoring import prove  # noqa: E402
from harness.bench import Bench  # noqa: E402
from harness.course import Course, read_course  # noqa: E402
from harness.outcome import Status  # noqa: E402
from harness.report import Report  # noqa: E402
from harness.running import run_pytest  # noqa: E402
from harness.submission import Submission  # noqa: E402

MOST_MILLISECONDS = 100.0  # CPU a failing check


class Timed(session.Rounds):
    """Judges as `grade` does, and notes the CPU seconds that diagnosis took for each submission."""

    def __init__(self, jobs: Iterator[session.Job], spent: list[float]) -> None:
        super().__init__(jobs, warm=False)
        self.spent = spent

    def _diagnose(self, *arguments: object) -> None:
        began = time.process_time()
        super()._diagnose(*arguments)  # type: ignore[arg-type]
        self.spent.append(time.process_time() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercise", metavar="ID,...", help="mistakes of these exercises only")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth of them (default: 1)")
    given = parser.parse_args()
    course = read_course()
    wanted = {exercise.id for exercise in course.select(given.exercise)}
    cases = [case for case in prove.cases(course) if case.kind == "misconception" and case.exercise in wanted][
        :: given.every
    ]
    cold = [least(course, case) for case in cases]
    warm = judge(course, [*cases, *cases])[len(cases) :]
    print(f"{len(cases)} known mistakes; milliseconds of CPU a failing check")
    kept = [verdict("cold", cases, cold), verdict("warm", cases, warm)]
    return 0 if all(kept) else 1


def judge(course: Course, cases: Sequence[prove.Case]) -> list[float]:
    """Judge each mistake in this process; CPU milliseconds of diagnosis a failing check."""
    spent: list[float] = []
    failing: list[int] = []

    def deliver(report: Report) -> None:
        checks = [check for exercise in report.exercises for check in exercise.checks]
        failing.append(sum(check.status is not Status.PASSED for check in checks))
        if report.review or not failing[-1]:
            print(f"{report.submission.name} fails no check, or a grader broke down", file=sys.stderr)
            sys.exit(2)

    def jobs() -> Iterator[session.Job]:
        for case in cases:
            bench = Bench(Submission(case.id, case.files), course, None, None, course.seed)
            yield session.Job(bench, tuple(item for item in course.exercise if item.id == case.exercise), deliver)

    run_pytest(Timed(jobs(), spent), course.exercise, course.root)
    return [1000 * seconds / count for seconds, count in zip(spent, failing, strict=True)]


def least(course: Course, case: prove.Case) -> float:
    """What one mistake takes in a fresh process; above the claim, the least of three."""
    figure = in_a_child(course, case)
    return figure if figure <= MOST_MILLISECONDS else min(figure, *(in_a_child(course, case) for _ in range(2)))


def in_a_child(course: Course, case: prove.Case) -> float:
    """`judge` one mistake in a process that has judged nothing yet."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 2
        try:
            os.close(reading)
            (figure,) = judge(course, [case])
            os.write(writing, repr(figure).encode("ascii"))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        print(f"{case.id} could not be judged", file=sys.stderr)
        sys.exit(2)
    return float(said)


def verdict(name: str, cases: Sequence[prove.Case], figures: Sequence[float]) -> bool:
    """Print the figures of one round beside the claim; whether it holds."""
    worst = max(range(len(figures)), key=figures.__getitem__)
    kept = figures[worst] <= MOST_MILLISECONDS
    print(
        f"{name}: median {statistics.median(figures):.1f}, most {figures[worst]:.1f} ({cases[worst].id}), "
        f"at most {MOST_MILLISECONDS:g} claimed: {'holds' if kept else 'MISSED'}"
    )
    for place in sorted(range(len(figures)), key=figures.__getitem__, reverse=True)[1:5]:
        print(f"    {figures[place]:.1f}  {cases[place].id}")
    return kept


if __name__ == "__main__":
    sys.exit(main())
