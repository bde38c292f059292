"""The work list: which results are to be made, of whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.intake.attempts import Entry, Work
from harness.intake.names import folder_names, plain
from harness.intake.roster import Member
from harness.report import Student

SUMMARY_FILES = ("scores.csv", "summary.json")  # no result's folder may be called so


@dataclass(frozen=True)
class Target:
    """A result: the name of its folder, and whose it is."""

    id: str
    student: Student


@dataclass(frozen=True)
class Task:
    """Attempts to be judged once, and the results that come of it: one for each student who shares them."""

    targets: tuple[Target, ...]
    entry: Entry

    @property
    def id(self) -> str:
        """The folder in which the work is looked up and kept; that of the first target."""
        return self.targets[0].id


@dataclass(frozen=True)
class Plan:
    """All that a batch has to do; `absent` are students on the roster who handed in nothing."""

    tasks: tuple[Task, ...]
    absent: tuple[Target, ...]

    @property
    def ids(self) -> frozenset[str]:
        """The folders of all results."""
        return frozenset(target.id for task in self.tasks for target in task.targets) | {
            target.id for target in self.absent
        }


def plan(work: Work, owner: Callable[[str], str | None] = lambda folder: None) -> Plan:
    """Give every student a folder of their own. Names are those of the roster or the layout, safe and distinct.

    Args:
        work: who handed in what.
        owner: id of the student whose result lies in a folder already, if one does: nobody else gets it.
    """
    taken = {plain(name) for name in SUMMARY_FILES}
    students = [student for entry in work.entries for student in entry.students]
    absent = [_student(member) for member in work.missing]
    ids = {student.id for student in (*students, *absent)}

    def is_free(folder: str, id: str) -> bool:
        if plain(folder) in taken:
            return False
        before = owner(folder)
        return before is None or before == id or (before not in ids and plain(before) == plain(id))

    def target(student: Student) -> Target:
        wanted = _safe(student.id)
        unique, number = wanted, 2
        while not is_free(unique, student.id):
            unique, number = f"{wanted}~{number}", number + 1
        taken.add(plain(unique))
        return Target(unique, student)

    tasks = [Task(tuple(map(target, entry.students)), entry) for entry in work.entries]
    return Plan(tuple(tasks), tuple(map(target, absent)))


def _safe(identity: str) -> str:
    return folder_names([identity])[0]


def _student(member: Member) -> Student:
    return Student(id=member.id, name=member.name, email=member.email, section=member.section, ids=dict(member.ids))
