"""course.toml as frozen, validated objects: exercises in their order, limits of a submission, the late rule."""

from __future__ import annotations

import datetime
import math
import os
import tomllib
import zoneinfo
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from harness.messages import message
from harness.problem import Problem

ROOT = Path(__file__).resolve().parents[1]
YEARS = range(1970, 9000)  # of times that are reckoned with: zones and days late cannot leave the calendar from there


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a submission may use.

    Seconds are CPU time of its worker, or `wall_factor` times as long by the clock: a busy machine must not cost
    points, and a worker that sleeps must not hold a batch. Sizes are bytes.
    """

    start_seconds: float = 60.0  # by the clock, until a new worker answers; a spawned one imports torch first
    import_seconds: float = 20.0  # of one import
    call_seconds: float = 10.0  # of one call
    submission_seconds: float = 120.0  # of everything
    wall_factor: float = 3.0
    memory_bytes: int = 2 * 2**30  # beyond what a worker starts with
    scratch_bytes: int = 64 * 2**20  # of all files in the folder that it may write
    scratch_files: int = 1000
    open_files: int = 64
    threads: int = 16
    output_bytes: int = 20_000  # of captured output kept for each check


class Late(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When work is due, and what lateness costs: `[late]` in course.toml.

    Args:
        due: date and time; without an offset it is the time in `zone`.
        zone: an IANA name, such as `Europe/Berlin`; also that of due times in the roster.
        grace_minutes: so much later is still in time. Beyond it, days count from the due time itself.
        per_day: what each day begun costs, in `unit`.
        unit: `percent` of the possible points, or `points`.
        cap: the most that lateness costs, in `unit`; needed if anything is charged.
    """

    due: datetime.datetime
    zone: str
    grace_minutes: float = 0.0
    per_day: float = 0.0
    unit: Literal["percent", "points"] = "percent"
    cap: float | None = None

    def __post_init__(self) -> None:
        try:
            zoneinfo.ZoneInfo(self.zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"zone {self.zone!r} is not known; give a name like 'Europe/Berlin' or 'UTC'") from None
        if self.due.year not in YEARS:
            raise ValueError(f"due is in the year {self.due.year}; give one from {YEARS[0]} to {YEARS[-1]}, or leave "
                             "[late] out if nothing is ever late")  # fmt: skip
        for name, value in (("grace_minutes", self.grace_minutes), ("per_day", self.per_day), ("cap", self.cap or 0.0)):
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"{name} must be a number of at least 0, not {value}")
        if self.grace_minutes > 366 * 24 * 60:
            raise ValueError("grace_minutes is more than a year")
        if self.per_day and self.cap is None:
            raise ValueError(f"cap is missing: the most that lateness costs, in {self.unit}")
        if self.unit == "percent" and max(self.per_day, self.cap or 0.0) > 100:
            raise ValueError("per_day and cap are percentages, at most 100")


class Exercise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One exercise: the student's files that it needs and the grader that judges it."""

    id: str
    title: str
    files: tuple[str, ...]
    lesson: str = ""  # which part of the lesson it belongs to
    bonus: bool = False  # its points come on top of the core exercises
    bundled: bool = True  # students get its checks; a quiz, say, whose grader holds the keys, stays with the instructor

    @property
    def grader(self) -> str:
        """File name of its checks, in graders/."""
        return f"test_{self.id}.py"


class Course(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A course's assignment.

    Args:
        id: short name, for file names and exports.
        title: for people.
        seed: from which every check's inputs are drawn.
        exercise: in the order in which a student does them.
        limits: what a submission may use.
        late: when it is due, if lateness counts.
        hidden: checks of which students see title, hint and points, never inputs or expected values.
        follow_through: give the points back of checks that fail only because of an earlier mistake.
        root: the folder that holds graders/, reference/ and student_template/; where course.toml was read, never in it.
    """

    id: str
    title: str
    seed: int
    exercise: tuple[Exercise, ...]
    limits: Limits = Limits()
    late: Late | None = None
    hidden: tuple[str, ...] = ()
    follow_through: bool = False
    root: Path = ROOT

    def with_limits(self, changes: Sequence[str]) -> Course:
        """This course with other limits, given as `name=value`.

        Raises:
            Problem: there is no such limit, or the value is no number that fits it.
        """
        values: dict[str, object] = msgspec.structs.asdict(self.limits)
        for change in changes:
            name, _, value = change.partition("=")
            if name not in values:
                raise Problem(f"There is no limit {name!r}.", f"Limits are: {', '.join(values)}.")
            values[name] = value
        try:
            return msgspec.structs.replace(self, limits=msgspec.convert(values, Limits, strict=False))
        except msgspec.ValidationError as error:
            raise Problem(f"--limit: {error}.", "Give a number, as in --limit call_seconds=60.") from None

    def select(self, wanted: str | None) -> tuple[Exercise, ...]:
        """The exercises named in a comma-separated list, in the course's order; all for None.

        Raises:
            Problem: a name is not an exercise.
        """
        if wanted is None:
            return self.exercise
        names = [name.strip() for name in wanted.split(",") if name.strip()]
        known = [exercise.id for exercise in self.exercise]
        help = message("problem.exercises", exercises=", ".join(known))
        for name in names:
            if name not in known:
                raise Problem(message("problem.no-exercise", name=repr(name)), help)
        if not names:
            raise Problem(message("problem.empty-exercise"), help)
        return tuple(exercise for exercise in self.exercise if exercise.id in names)


def files_of(exercises: Iterable[Exercise]) -> tuple[str, ...]:
    """The files that exercises ask for, each once, in their order."""
    return tuple(dict.fromkeys(name for exercise in exercises for name in exercise.files))


def course_root() -> Path:
    """Where the course lies: the folder that HEADCHECK_COURSE names, else this repository."""
    return Path(os.environ.get("HEADCHECK_COURSE") or ROOT).resolve()


def read_course(graders: Path | None = None) -> Course:
    """Read and validate `course.toml`.

    Args:
        graders: its folder; that of `course_root` by default.

    Raises:
        Problem: it is missing or not valid; the text names the key.
    """
    graders = course_root() / "graders" if graders is None else graders
    path = graders / "course.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        course = msgspec.structs.replace(msgspec.convert(data, Course), root=graders.resolve().parent)
    except FileNotFoundError:
        raise Problem(f"There is no {path}.", "It lists the exercises of the course.") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise Problem(f"{path} is not valid: {error}") from None
    ids = [exercise.id for exercise in course.exercise]
    if len(set(ids)) < len(ids) or not ids:
        raise Problem(f"{path} must list at least one exercise, each id once.")
    for exercise in course.exercise:
        if not (graders / exercise.grader).is_file():
            raise Problem(f"{path} lists {exercise.id!r}, but there is no {exercise.grader} beside it.")
    return course
