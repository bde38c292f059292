"""Makes the recording of a course: the reference and every known mistake take all checks, and what is seen is kept."""

from __future__ import annotations

import pytest

from harness.authoring import recording
from harness.authoring.variants import load_variants
from harness.bench import Bench, reference_modules
from harness.course import Course
from harness.diagnosis import Diagnosis
from harness.mistakes import Listed, candidates
from harness.oracle import ReplayLink
from harness.running import run_pytest
from harness.session import Rounds
from harness.submission import Submission


def record(course: Course, left_out: set[str]) -> bytes:
    """Everything that grading needs of the reference and of the known mistakes, on the course's own seed, as a file.

    Args:
        course: whose reference and misconceptions.
        left_out: ids of checks that are not to be recorded.

    Raises:
        Problem: the graders cannot be run, the reference fails a check, or what a check is about cannot be recorded.
    """
    recorder = _Recorder(course, left_out)
    run_pytest(recorder, course.exercise, course.root)
    assert recorder.recorded is not None, "pytest ran the loop"
    return recorder.recorded


class _Recorder(Rounds):
    """Records instead of judging."""

    def __init__(self, course: Course, left_out: set[str]) -> None:
        super().__init__((), warm=False)
        self.course, self.left_out = course, left_out
        self.recorded: bytes | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the graders could not be collected")
        root = self.course.root
        bench = Bench(Submission("reference", {}), self.course, None, None, self.course.seed)
        tapes = self.tapes(bench, session.items)
        bench.oracle = ReplayLink(tapes)
        kept = {exercise.id for exercise in self.course.exercise}
        known = candidates(
            [v for v in load_variants(root / "graders" / "misconceptions") if v.exercise in kept],
            [v for v in load_variants(root / "graders" / "accepted") if v.exercise in kept],
        )
        live = Diagnosis(Listed(known), reference_modules(root / "reference"), session.items)
        self.recorded = recording.record(tapes, known, live, bench, session.items, self.left_out)
        return True
