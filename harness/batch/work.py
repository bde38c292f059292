"""The work list: which results are to be made, of whom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.intake.attempts import Entry, Work
from harness.intake.names import compact, folder_names, plain
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


def same_person(before: Student, now: Student) -> bool:
    """Whether an earlier result may be this student's: ids agree, and names as far as both are known.

    Without a roster, ids are the platform's, and may be somebody else's on the roster. A name may have been corrected:
    one word in common is enough.
    """
    if plain(before.id) != plain(now.id):
        return False
    if before.email and plain(before.email) == plain(now.email):
        return True
    names = [{compact(word) for word in re.split(r"[\s,]+", student.name)} - {""} for student in (before, now)]
    return not all(names) or bool(names[0] & names[1])


def plan(work: Work, owners: Mapping[str, Student] | None = None) -> Plan:
    """Give every student a folder of their own. Names are those of the roster or the layout, safe and distinct.

    Args:
        work: who handed in what.
        owners: whose results lie in which folders already: each keeps it, and nobody else gets it.
    """
    owners = owners or {}
    taken = {plain(name) for name in SUMMARY_FILES}
    students = [student for entry in work.entries for student in entry.students]
    absent = [_student(member) for member in work.missing]
    ids = {student.id for student in (*students, *absent)}

    owned: dict[str, list[str]] = {}
    for folder, before in sorted(owners.items()):
        owned.setdefault(plain(before.id), []).append(folder)
    closed = {plain(folder) for folder in owners}

    def own(student: Student) -> str | None:
        there = [folder for folder in owned.get(plain(student.id), []) if plain(folder) not in taken]
        exact = [folder for folder in there if owners[folder].id == student.id]
        like = [folder for folder in there if owners[folder].id not in ids]  # but for the case, say
        return next((folder for folder in (*exact, *like) if same_person(owners[folder], student)), None)

    def target(student: Student) -> Target:
        wanted = _safe(student.id)
        folder, number = own(student), 2
        unique = folder or wanted
        while folder is None and (plain(unique) in taken or plain(unique) in closed):
            unique, number = f"{wanted}~{number}", number + 1
        taken.add(plain(unique))
        return Target(unique, student)

    tasks = [Task(tuple(map(target, entry.students)), entry) for entry in work.entries]
    return Plan(tuple(tasks), tuple(map(target, absent)))


def _safe(identity: str) -> str:
    return folder_names([identity])[0]


def _student(member: Member) -> Student:
    return Student(id=member.id, name=member.name, email=member.email, section=member.section, ids=dict(member.ids))
