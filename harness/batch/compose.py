"""From what a judge says to the report of a student: whose it is, which attempt, lateness, marks by hand."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

import msgspec

from harness import report as reports
from harness.batch.keys import Basis
from harness.batch.marks import BY_HAND, OUTGROWN, Mark
from harness.course import Course
from harness.intake.attempts import Entry
from harness.intake.found import Found
from harness.intake.late import due_time, late_adjustment
from harness.messages import message
from harness.outcome import Message, Status
from harness.report import ExerciseResult, Report, Student, SubmissionInfo, Text, as_text

# What a judge alone on the machine may see otherwise.
SHAKY = frozenset({Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.CRASHED})


def statuses(report: Report) -> set[Status]:
    """How the checks of a report ended."""
    return {check.status for exercise in report.exercises for check in exercise.checks}


def not_judged(name: str, why: Iterable[Message], basis: Basis, seed: int) -> Report:
    """The report of work that cannot be read, or was not handed in: it has no exercises, and a note why."""
    return Report(
        submission=SubmissionInfo(name=name, digest="", files={}, notes=[as_text(said) for said in why]),
        course=basis.course,
        environment=basis.environment,
        seed=seed,
        score=reports.total([]),
        review=False,
        exercises=[],
        started=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        seconds=0.0,
    )


def undecided(skeleton: Report, name: str, files: SubmissionInfo) -> Report:
    """The report of a submission that ended its judge twice: every check waits for a person.

    Args:
        skeleton: a report with all checks, of whatever submission.
        name: of this submission.
        files: of this submission.
    """
    exercises = _all(skeleton, Status.GRADER_ERROR, message("batch.judge-died"))
    return msgspec.structs.replace(
        skeleton, submission=msgspec.structs.replace(files, name=name), exercises=exercises,
        score=reports.total(exercises), review=True,
    )  # fmt: skip


def blank(skeleton: Report, unjudged: Report) -> Report:
    """The report of work that cannot be read, or was not handed in, but that a person marks: every check waits for it.

    Args:
        skeleton: a report with all checks, of whatever submission.
        unjudged: what `not_judged` says.
    """
    exercises = _all(skeleton, Status.PENDING, message("quiz.pending"))
    return msgspec.structs.replace(unjudged, exercises=exercises, score=reports.total(exercises))


def _all(skeleton: Report, status: Status, said: Message) -> list[ExerciseResult]:
    """Every check with this status, and no points."""
    return [
        msgspec.structs.replace(
            exercise,
            earned=0.0,
            checks=[
                reports.CheckResult(id=check.id, title=check.title, status=status, points=0, possible=check.possible,
                                    message=as_text(said), hidden=check.hidden)
                for check in exercise.checks
            ],
        )
        for exercise in skeleton.exercises
    ]  # fmt: skip


def merge(old: Report, new: Report | None, order: Sequence[str]) -> Report | None:
    """An earlier report in which some exercises were judged again, and others may be gone or in another place.

    Args:
        old: of the same files.
        new: with the exercises that were judged again alone, if any were.
        order: ids of all exercises.

    Returns:
        The report, or None where a mistake in one exercise may explain a failure in another: links between them can
        be found only when they are judged together.
    """
    fresh = {exercise.id: exercise for exercise in new.exercises} if new is not None else {}
    kept = {exercise.id: exercise for exercise in old.exercises if exercise.id in order and exercise.id not in fresh}
    before = [exercise for exercise in old.exercises if exercise.id not in kept]
    if any(_linked(part, list(kept.values())) for part in (list(fresh.values()), before)):
        return None
    exercises = [(fresh | kept)[id] for id in order]
    adjustments = [item for item in old.adjustments if item.check.partition(".")[0] in kept]
    adjustments += new.adjustments if new is not None else []
    return msgspec.structs.replace(
        new if new is not None else old,
        exercises=exercises,
        adjustments=adjustments,
        score=reports.total(exercises, adjustments),
        review=any(check.status is Status.GRADER_ERROR for exercise in exercises for check in exercise.checks),
    )


def _linked(ours: list[ExerciseResult], others: list[ExerciseResult]) -> bool:
    """Whether something found in the one group may stand behind what failed in the other."""
    first, second = _failed(ours), _failed(others)
    if not first or not second:
        return False
    named = any(check.misconception or check.caused_by for check in (*first, *second))
    raised = all(any(c.status in (Status.ERROR, Status.MISSING) for c in group) for group in (first, second))
    return named or raised


def _failed(exercises: Iterable[ExerciseResult]) -> list[reports.CheckResult]:
    over = (Status.PASSED, Status.NOT_STARTED, Status.PENDING)
    return [check for exercise in exercises for check in exercise.checks if check.status not in over]


def adjusted(
    judged: Report,
    *,
    student: Student,
    entry: Entry,
    counting: Found,
    course: Course,
    marks: Sequence[Mark],
    notes: Sequence[Message],
) -> Report:
    """The report of a student: marks by hand first, then what lateness costs of the rest.

    Args:
        judged: what the judge says.
        student: whose it is.
        entry: the student's attempts, and own due times.
        counting: the attempt that was judged.
        course: has the late rule.
        marks: those for this student.
        notes: of the intake, on the files.

    Raises:
        Problem: a mark does not fit the checks.
    """
    own = entry.dues.get(student.id)
    due = due_time(course.late, own) if course.late is not None else own
    if judged.exercises:
        judged = marked(judged, marks)
    adjustments = list(judged.adjustments)
    said = [as_text(note) for note in (*counting.notes, *notes)]
    if course.late is not None and due is not None and judged.exercises:
        score = reports.total(judged.exercises, adjustments)
        if counting.submitted is not None:
            late = late_adjustment(possible=score.possible, earned=score.final, submitted=counting.submitted, due=due,
                                   rule=course.late)  # fmt: skip
            adjustments += [late] if late is not None else []
        elif counting.late and course.late.per_day:
            said.append(as_text(message("late.no-time", what=counting.source)))
    return msgspec.structs.replace(
        judged,
        submission=msgspec.structs.replace(
            judged.submission, name=counting.source, notes=_distinct([*judged.submission.notes, *said])
        ),
        student=student,
        attempt=entry.attempt(counting, due),
        adjustments=adjustments,
        score=reports.total(judged.exercises, adjustments),
    )


def marked(judged: Report, marks: Sequence[Mark]) -> Report:
    """A report with marks by hand.

    Raises:
        Problem: a mark does not fit the checks.
    """
    by_hand = [mark.adjustment(judged) for mark in marks]
    unfit = [item.reason for item in by_hand if item.kind == OUTGROWN]
    adjustments = [*judged.adjustments, *by_hand]
    return msgspec.structs.replace(
        judged,
        submission=msgspec.structs.replace(judged.submission, notes=[*judged.submission.notes, *unfit]),
        adjustments=adjustments,
        score=reports.total(judged.exercises, adjustments),
        review=judged.review or bool(unfit),
    )


def remarked(stored: Report, marks: Sequence[Mark]) -> Report:
    """A stored report with other marks by hand; what lateness costs stays what it was, if so much is left.

    Raises:
        Problem: a mark does not fit the checks.
    """
    plain = stripped(stored)
    unfit = {item.reason.text for item in stored.adjustments if item.kind == OUTGROWN}
    notes = [note for note in stored.submission.notes if note.text not in unfit]
    made = marked(plain, marks)
    late = [
        msgspec.structs.replace(item, points=max(item.points, -max(made.score.final, 0.0)))
        for item in stored.adjustments
        if item.kind == "late"
    ]
    adjustments = [*made.adjustments, *late]
    return msgspec.structs.replace(
        made,
        submission=msgspec.structs.replace(stored.submission, notes=_distinct([*notes, *made.submission.notes])),
        student=stored.student,
        attempt=stored.attempt,
        adjustments=adjustments,
        score=reports.total(made.exercises, adjustments),
    )


def stripped(stored: Report) -> Report:
    """A stored report as the judge made it, without what `adjusted` adds."""
    given = [item for item in stored.adjustments if item.kind not in ("late", BY_HAND, OUTGROWN)]
    return msgspec.structs.replace(
        stored,
        submission=msgspec.structs.replace(stored.submission, notes=[]),
        student=None, attempt=None, adjustments=given, score=reports.total(stored.exercises, given),
        review=any(check.status is Status.GRADER_ERROR for item in stored.exercises for check in item.checks),
    )  # fmt: skip


def _distinct(notes: list[Text]) -> list[Text]:
    return list({(note.id, note.text): note for note in notes}.values())
