"""The work list: which results are to be made, of whom."""

from __future__ import annotations

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


def plan(work: Work) -> Plan:
    """Give every student a folder of their own. Names are those of the roster or the layout, safe and distinct."""
    taken = {plain(name) for name in SUMMARY_FILES}

    def name(wanted: str) -> str:
        unique, number = wanted, 2
        while plain(unique) in taken:
            unique, number = f"{wanted}~{number}", number + 1
        taken.add(plain(unique))
        return unique

    tasks = []
    for entry in work.entries:
        if len(entry.students) == 1:
            targets: tuple[Target, ...] = (Target(name(entry.id), entry.students[0]),)
        else:
            targets = tuple(Target(name(_safe(student.id)), student) for student in entry.students)
        tasks.append(Task(targets, entry))
    absent = tuple(Target(name(_safe(member.id)), _student(member)) for member in work.missing)
    return Plan(tuple(tasks), absent)


def _safe(identity: str) -> str:
    return folder_names([identity])[0]


def _student(member: Member) -> Student:
    return Student(id=member.id, name=member.name, email=member.email, section=member.section, ids=dict(member.ids))
