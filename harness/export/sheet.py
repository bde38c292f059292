"""The class that is exported: its reports one by one, and what is noticed on the way."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import msgspec

from harness import report as reports
from harness.export import texts
from harness.export.grades import Grade, grade, number
from harness.export.pseudonyms import Pseudonyms
from harness.intake.roster import read_roster
from harness.problem import Problem
from harness.report import Report, Student


@dataclass(frozen=True)
class Options:
    """What the command line may ask for; each target says which of these it takes.

    Args:
        out_of: the item's maximum in the learning platform.
        late: whether the penalty for lateness counts.
        strict: refuse to write while a row is blank, or a student unknown or absent.
        item: the item's title (or id) in the learning platform.
        gradebook: a file exported from the learning platform, to be filled in.
        column: which column of it gets the grades.
        id_columns: header to the name of an id, for gradebooks in other languages.
        comments: fill in the feedback column too.
        columns: of a CSV: a preset, or names with commas.
        course_id: the course's id in the learning platform.
        roster: a CSV with everybody who takes part, and their ids.
        pseudonyms: a CSV with the names that replace the real ones.
        now: the time of the export.
    """

    out_of: Decimal | None = None
    late: bool = True
    strict: bool = False
    item: str = ""
    gradebook: Path | None = None
    column: str = ""
    id_columns: dict[str, str] = field(default_factory=dict)
    comments: bool = False
    columns: str = ""
    course_id: str = ""
    roster: Path | None = None
    pseudonyms: Path | None = None
    now: datetime.datetime | None = None


@dataclass(frozen=True)
class Row:
    """One report and the name of the folder (or file) that it was in."""

    key: str
    report: Report


# Each kind of notice, with what is said above its list. Those of the first group stop a strict export.
BLANK, UNKNOWN, ABSENT = "left blank, without a number", "not in the class, left out", "without a report"
CLAMPED, KEPT = "above the maximum, set to it", "left as they are in the gradebook"
EMPTIED = "emptied in the gradebook, since there is no number now"
STOPS_STRICT = (BLANK, UNKNOWN, ABSENT)


def is_single(results: Path) -> bool:
    """Whether that is one report, or the folder of one, and not a class."""
    return results.is_file() or (results / "report.json").is_file()


def rows(results: Path) -> Iterator[Row]:
    """The reports of a results folder, read one at a time, in the order of the folders' names.

    Args:
        results: a folder of folders with a `report.json` each, one such folder, or one report.

    Raises:
        Problem: there is none, or one cannot be read.
    """
    if results.is_file():
        yield Row(results.stem, _read(results))
        return
    if (results / "report.json").is_file():
        yield Row(results.name or results.resolve().name, _read(results / "report.json"))
        return
    if not results.is_dir():
        raise Problem(f"There is no {results}.", "Give the folder that holds the results of a class, or one report.")
    found = False
    for folder in sorted(item for item in results.iterdir() if item.is_dir() and not item.name.startswith(".")):
        if (folder / "report.json").is_file():
            found = True
            yield Row(folder.name, _read(folder / "report.json"))
        elif (folder / "submission").is_dir():
            raise Problem(f"{folder} has a submission and no report.", "Was grading stopped? Let it finish first.")
    if not found:
        raise Problem(f"There is no report in {results}.", "It should hold a folder with a report.json a student.")


def _read(path: Path) -> Report:
    try:
        return reports.from_json(path.read_bytes())
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}.") from None
    except Problem as problem:
        raise Problem(f"{path}: {problem.what}", problem.help) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(f"{path} is not a report: {error}.", "Grade this submission again, or take it away.") from None


class Sheet:
    """The class: an iterator of grades, and what was noticed meanwhile.

    Args:
        source: the reports.
        options: of the export.
        single: it is one report and not a class, for targets where that makes a difference.
    """

    def __init__(self, source: Iterator[Row], options: Options, *, single: bool = False) -> None:
        self.source = source
        self.single = single
        self.options = options
        self.notices: dict[str, list[str]] = {}
        self.course_title = ""
        self._known: Grade | None = None
        self._pseudonyms: Pseudonyms | None = None

    @classmethod
    def of(cls, grade: Grade) -> Sheet:
        """A class of one whose grade is known already."""
        sheet = cls(iter(()), Options())
        sheet._known = grade
        return sheet

    def notice(self, kind: str, what: str) -> None:
        """Remember something that the person who exports should know."""
        self.notices.setdefault(kind, []).append(what)

    def grades(self, out_of: Decimal | None = None) -> Iterator[Grade]:
        """Each student's grade; to be taken once. The reports are not kept.

        Args:
            out_of: the maximum that a gradebook states.

        Raises:
            Problem: two reports of one student, reports of different courses or out of different totals; a report
                that cannot be read.
        """
        if self._known is not None:
            self.course_title = self._known.report.course.title
            yield self._known
            return
        out_of = self._maximum(out_of)
        roster = _participants(self.options.roster) if self.options.roster else None
        pseudonyms = self._pseudonyms = Pseudonyms(self.options.pseudonyms) if self.options.pseudonyms else None
        seen: dict[str, str] = {}
        totals: dict[float, str] = {}
        courses: dict[str, str] = {}
        for row in self.source:
            report = row.report
            student = report.student or Student(id=row.key)
            if roster is not None:
                known = roster.get(student.id)
                if known is None:
                    self.notice(UNKNOWN, f"{who(student)} ({row.key}) is not on the roster")
                    continue
                student = _joined(student, known)
            _once(seen, student.id, row.key, "Two reports are of the same student {0}: {1} and {2}.",
                  "Take one of the two folders away.")  # fmt: skip
            if report.exercises:
                totals.setdefault(report.score.possible, row.key)
                courses.setdefault(report.course.id, row.key)
                self.course_title = report.course.title
            _one(courses, "The reports are of different courses", "Export each course on its own.")
            _one(totals, "The reports are out of different totals", "Grade all of them with the same checks first.")
            result = grade(row.key, student, report, out_of=out_of, late=self.options.late)
            if pseudonyms is not None:
                result = pseudonyms.replace(result)
            if result.points is None:
                self.notice(BLANK, f"{who(result.student)}: {result.why}")
            elif result.clamped is not None:
                self.notice(CLAMPED, f"{who(result.student)}: {number(result.clamped)} of {number(result.out_of)}")
            yield result
        for identity, student in (roster or {}).items():
            if identity not in seen:
                self.notice(ABSENT, f"{who(student)} is on the roster" if pseudonyms is None else "one on the roster")

    def _maximum(self, stated: Decimal | None) -> Decimal | None:
        asked = self.options.out_of
        if asked is not None and stated is not None and asked != stated:
            raise Problem(
                f"The gradebook says that the maximum is {number(stated)}, and --out-of says {number(asked)}.",
                "Leave --out-of away, or change the item in the learning platform and export its gradebook again.",
            )
        return asked if asked is not None else stated

    def check(self) -> None:
        """What can be said only after the last row.

        Raises:
            Problem: the export is to be strict, and something is missing.
        """
        lines = [f"{what} ({kind})" for kind in STOPS_STRICT for what in self.notices.get(kind, [])]
        if self.options.strict and lines:
            raise Problem(f"Nothing was written: {len(lines)} rows are incomplete, and --strict refuses them.",
                          "\n".join(lines))  # fmt: skip
        if self._pseudonyms is not None:
            self._pseudonyms.save()


def who(student: Student) -> str:
    """How messages call a student; on one line, and fit for a terminal."""
    name, identity = texts.one_line(student.name), texts.one_line(student.id)
    return f"{name} ({identity})" if name and name != identity else identity


def _joined(student: Student, known: Student) -> Student:
    """The student as the report knows them, completed from the roster."""
    return Student(
        id=student.id,
        name=known.name or student.name,
        email=known.email or student.email,
        section=known.section or student.section,
        ids={**student.ids, **known.ids},
    )


def _once(seen: dict[str, str], identity: str, key: str, what: str, help: str) -> None:
    if identity in seen:
        raise Problem(what.format(identity, seen[identity], key), help)
    seen[identity] = key


def _one(found: dict[float, str] | dict[str, str], what: str, help: str) -> None:
    if len(found) > 1:
        listed = ", ".join(f"{value:g} ({key})" if isinstance(value, float) else f"{value} ({key})"
                           for value, key in found.items())  # fmt: skip
        raise Problem(f"{what}: {listed}.", help)


def _participants(path: Path) -> dict[str, Student]:
    """Everybody on the roster, by id."""
    return {
        member.id: Student(id=member.id, name=member.name, email=member.email, section=member.section, ids=member.ids)
        for member in read_roster(path, None).members
    }
