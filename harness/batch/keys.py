"""What a result depends on. A result is used again only while none of it has changed."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import msgspec

from harness import VERSION, files
from harness.course import ROOT, Course
from harness.report import CourseInfo, Environment

_NOT_JUDGING = {"degenerate", "locale"}  # folders of graders/ that no verdict depends on


class Key(msgspec.Struct, kw_only=True):
    """What a stored result was made from.

    Args:
        submission: digest of the files.
        common: everything that all exercises depend on, by name: reference, harness, seed, ...
        exercises: digest of each exercise's grader and settings.
        again: not to be used again, though nothing changed: it is to be judged once more, alone.
    """

    version: int = 1
    submission: str
    common: dict[str, str]
    exercises: dict[str, str]
    again: bool = False


@dataclass(frozen=True)
class Basis:
    """What results of this run depend on, apart from the submission.

    Args:
        common: as in `Key`.
        exercises: as in `Key`, in the course's order.
        course: for reports of what could not be judged.
        environment: the same.
    """

    common: dict[str, str]
    exercises: dict[str, str]
    course: CourseInfo
    environment: Environment

    def key(self, submission: str, *, again: bool = False) -> Key:
        """The key of a result of this run."""
        return Key(submission=submission, common=self.common, exercises=self.exercises, again=again)

    def stale(self, key: Key | None, submission: str) -> list[str]:
        """Which exercises of a stored result must be judged (again); all of them without a key."""
        if key is None or key.version != 1 or key.submission != submission or key.common != self.common:
            return list(self.exercises)
        return [id for id, digest in self.exercises.items() if key.exercises.get(id) != digest]


def basis(course: Course, seed: int, isolation: str, root: Path | None = None) -> Basis:
    """Look at everything that a verdict depends on. torch is not imported for it.

    Args:
        course: with the limits of this run.
        seed: of the inputs.
        isolation: of the workers.
        root: of a checkout that has both the course and the harness; by default the course's own, and this one.
    """
    own_root, program = root or course.root, root or ROOT
    graders = files.read_sources(own_root / "graders", ("*",))
    shared, own = _by_exercise(graders, [exercise.id for exercise in course.exercise])
    reference = files.digest(files.read_sources(own_root / "reference"))
    common = {
        "course": _hash(msgspec.json.encode((course.id, course.title, course.follow_through))),
        "graders": files.digest(shared),
        "reference": reference,
        "harness": files.digest(files.read_sources(program / "harness", ("*.py",))),
        "limits": _hash(msgspec.json.encode(course.limits)),
        "seed": str(seed),
        "isolation": isolation,
        "headcheck": VERSION,
        "python": platform.python_version(),
        "torch": version("torch"),
    }
    exercises = {}
    for exercise in course.exercise:
        settings = msgspec.json.encode((exercise, _hidden(course, exercise.id)))
        exercises[exercise.id] = files.digest(own[exercise.id] | {"": settings})
    info = CourseInfo(id=course.id, title=course.title, graders=files.digest(files.read_sources(own_root / "graders")),
                      reference=reference)  # fmt: skip
    environment = Environment(headcheck=VERSION, python=common["python"], torch=common["torch"],
                              platform=platform.platform(), isolation="none", start_method="none")  # fmt: skip
    return Basis(common, exercises, info, environment)


def _hidden(course: Course, exercise: str) -> list[str]:
    return sorted(id for id in course.hidden if id.partition(".")[0] == exercise)


def _by_exercise(graders: dict[str, bytes], ids: list[str]) -> tuple[dict[str, bytes], dict[str, dict[str, bytes]]]:
    """Split the files of graders/ into shared ones and those that bear the name of one exercise."""
    shared: dict[str, bytes] = {}
    own: dict[str, dict[str, bytes]] = {id: {} for id in ids}
    for name, content in graders.items():
        path = PurePosixPath(name)
        if path.name == "course.toml" or _NOT_JUDGING & set(path.parts[:-1]):
            continue  # what counts of course.toml stands in the key by itself
        words = {path.name.partition(".")[0].removeprefix("test_"), *path.parts[:-1]}
        owner = next((id for id in ids if id in words), None)
        (shared if owner is None else own[owner])[name] = content
    return shared, own


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
