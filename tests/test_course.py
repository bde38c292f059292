"""The course's graders judge what is known in advance: the quick form of `python grade.py check-course`."""

from __future__ import annotations

import pytest

from harness.authoring import prove
from harness.course import read_course

COURSE = read_course()
CASES = prove.cases(COURSE)


def problems(cases: list[prove.Case]) -> list[str]:
    """What is wrong, as `id: problem`."""
    verdicts = prove.prove(COURSE, cases, [COURSE.seed], jobs=2)
    assert len(verdicts) == len(cases)
    return [f"{verdict.case.id}: {problem}" for verdict in verdicts for problem in verdict.problems]


def some(kind: str, exercise: str, count: int) -> list[prove.Case]:
    """Cases spread over all of a kind."""
    own = [case for case in CASES if (case.kind, case.exercise) == (kind, exercise)]
    assert len(own) >= count
    return own[:: len(own) // count][:count]


def test_accepted_forms_of_attention_pass_and_mistakes_are_caught_and_named() -> None:
    cases = some("accepted", "heads", 10) + some("misconception", "heads", 20) + some("degenerate", "heads", 2)
    assert problems(cases) == []


def test_every_exercise_has_its_reference_template_and_mistakes() -> None:
    cases = [
        case
        for exercise in COURSE.exercise
        for kind, count in (("reference", 1), ("template", 1), ("accepted", 2), ("misconception", 3), ("degenerate", 1))
        for case in some(kind, exercise.id, count)
    ]
    assert problems(cases) == []


@pytest.mark.slow
def test_every_known_answer_on_one_seed() -> None:
    assert problems(CASES) == []
