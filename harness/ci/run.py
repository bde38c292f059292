"""Grades the submissions of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from harness.ci import changes
from harness.ci.git import Repository
from harness.ci.results import Result, reaches
from harness.course import Course, Exercise, files_of
from harness.problem import Problem
from harness.report import Report, Student, for_student
from harness.submission import Submission, Unreadable
from harness.worker import offer
from harness.worker.launch import Launcher


def check_isolation(isolation: str) -> None:
    """Refuse to run strangers' code without a sandbox, unless told to.

    Raises:
        Problem: this machine has none; what it lacks.
    """
    offered = offer.probe()
    if isolation == "sandbox" and offered.isolation != "sandbox":
        raise Problem(
            "This machine has no sandbox for the submissions: " + " ".join(offered.missing),
            "Use --isolation process only for work that you trust: it can read and write what you can.",
        )


def grade(
    repository: Repository,
    folders: Sequence[changes.Folder],
    course: Course,
    exercises: tuple[Exercise, ...],
    launcher: Launcher | None,
    mark: float,
) -> list[Result]:
    """Grade each folder; one that cannot be read is a result, too.

    Args:
        repository: has the files.
        folders: what to grade.
        course: names the files of the course; its seed is used.
        exercises: what is judged.
        launcher: makes the workers. It was made before any submission was read.
        mark: percent of the possible points that a submission needs.

    Raises:
        Problem: no worker can be made here, or the graders cannot be run.
    """
    from harness import session  # pytest and the graders: only after the workers' parent was forked
    from harness.bench import Bench

    if launcher is not None:
        launcher.ready()
    expected = files_of(exercises)
    results: list[Result] = []

    def jobs() -> Iterator[session.Job]:
        for folder in folders:
            try:
                submission = changes.read(repository, folder, expected, course.root)
            except Unreadable as problem:
                results.append(Result(folder.name, folder.path, passed=False, problem=problem.what))
                continue

            def deliver(report: Report, folder: changes.Folder = folder, submission: Submission = submission) -> None:
                report = for_student(msgspec.structs.replace(report, student=Student(id=folder.name)))
                results.append(Result(folder.name, folder.path, reaches(report, mark), report, files=submission.files))

            yield session.Job(Bench(submission, course, launcher, None, course.seed), exercises, deliver)

    session.grade_all(jobs(), exercises, warm=len(folders) > 1, root=course.root)
    return results
