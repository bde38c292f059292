"""What became of the submissions of a pull request, and of the pull request as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.ci.github import Annotation
from harness.ci.lines import place_of
from harness.course import Course
from harness.export.feedback import explanation
from harness.outcome import UNDECIDED, Status
from harness.report import CheckResult, Report


@dataclass(frozen=True)
class Result:
    """One submission.

    Args:
        name: of its folder.
        folder: its path within the repository, "" for the top.
        passed: whether it reached the mark.
        report: the student's copy; None where it could not be read.
        problem: why it could not.
        files: its content.
    """

    name: str
    folder: str
    passed: bool
    report: Report | None = None
    problem: str = ""
    files: dict[str, bytes] = field(default_factory=dict, repr=False)

    def annotations(self, course: Course) -> list[Annotation]:
        """One for each check that did not pass, at its line; what follows from another check's mistake last."""
        if self.report is None:
            return [Annotation(self.name, self.problem)]
        found: dict[Annotation, None] = {}
        wanted = {exercise.id: exercise.files for exercise in course.exercise}
        checks = [(item.id, check) for item in self.report.exercises for check in item.checks]
        for exercise, check in sorted(checks, key=lambda pair: bool(pair[1].caused_by)):
            if check.status is not Status.PASSED and check.status not in UNDECIDED:
                found[self._annotation(check, wanted[exercise])] = None
        return list(found)

    def _annotation(self, check: CheckResult, files: tuple[str, ...]) -> Annotation:
        place = place_of(check, self.files, files)
        title = check.title
        text = explanation(check) or title
        if check.status is Status.NOT_STARTED:
            title = "Not written yet"  # so that checks which wait for the same function say it once
        if place is None:
            return Annotation(title, text)
        file = f"{self.folder}/{place.file}" if self.folder else place.file
        return Annotation(title, text, file, place.line, place.end_line)


def reaches(report: Report, mark: float) -> bool:
    """Whether the points that count are at least `mark` percent of the possible ones."""
    return report.score.final * 100 >= mark * report.score.possible - 1e-9


@dataclass(frozen=True)
class Verdict:
    """The pull request as a whole.

    Args:
        course: its title.
        mark: percent of the possible points that each submission needs.
        results: of the submissions that it changes.
        removed: folders that are no submissions any more.
        misplaced: files of the course outside the folder that was asked for.
        ignored: what else it changes.
    """

    course: str
    mark: float
    results: tuple[Result, ...]
    removed: tuple[str, ...] = ()
    misplaced: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every submission reached the mark, and no work lies where it is not looked for."""
        return not self.misplaced and all(result.passed for result in self.results)

    @property
    def review(self) -> bool:
        """Whether a grader broke down, so that a person should look."""
        return any(result.report is not None and result.report.review for result in self.results)

    @property
    def sentence(self) -> str:
        """What happened, in short."""
        if not self.results and self.misplaced:
            return "Nothing was graded: the work lies outside the folder that is graded."
        if not self.results:
            return "This pull request changes nothing that is graded."
        count = len(self.results)
        good = sum(result.passed for result in self.results)
        needed = f"{self.mark:g} % of the points"
        if count == 1:
            return f"The submission {'has' if good else 'does not have'} the {needed} that are needed."
        return f"{good} of {count} submissions have the {needed} that are needed."

    @property
    def lists(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Paths with what is to be said of them."""
        return (
            ("These files lie outside the folder that is graded:", self.misplaced),
            ("These folders hold no work any more:", self.removed),
            ("These changes were not used. Graders, reference and harness are the base's:", self.ignored),
        )
