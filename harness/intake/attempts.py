"""From attempts to students: who gets which result, and which attempt counts."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.intake.found import Found
from harness.intake.late import late_seconds
from harness.intake.names import folder_names, natural
from harness.intake.roster import Match, Member, Roster
from harness.report import Attempt, Student


@dataclass(frozen=True)
class Entry:
    """One result to be made: the attempts of a student, or of students who share theirs.

    Args:
        id: name of its folder: the roster's id, the group's name, or what the layout tells; safe and distinct.
        students: for whom it counts.
        attempts: oldest first; `latest` is the one that counts unless the best is asked for.
        dues: own due times in UTC by the student's id, of those who have one. Who shares work shares no due time.
        match: how it was joined to the roster; None without a roster.
    """

    id: str
    students: tuple[Student, ...]
    attempts: tuple[Found, ...]
    dues: Mapping[str, datetime.datetime] = field(default_factory=dict)
    match: Match | None = None

    @property
    def latest(self) -> Found:
        """The attempt that counts by time, or, where times are not known, by name."""
        return self.attempts[-1]

    def attempt(self, counting: Found, due: datetime.datetime | None) -> Attempt:
        """What the report says of the attempt that counts; `due` has a zone."""
        late = late_seconds(counting.submitted, due) if counting.submitted is not None and due is not None else 0.0
        return Attempt(
            number=self.attempts.index(counting) + 1,
            submitted=counting.submitted.isoformat() if counting.submitted is not None else None,
            late_seconds=late,
            others=[found.source for found in self.attempts if found is not counting],
        )


@dataclass(frozen=True)
class Work:
    """All results to be made, and who is left over.

    Args:
        entries: every attempt is in at least one.
        missing: on the roster, but handed in nothing.
        unknown: entries of nobody on the roster (of everyone, without a roster: then it is empty).
        ambiguous: entries that fit several on the roster; `match.candidates` lists them.
    """

    entries: tuple[Entry, ...]
    missing: tuple[Member, ...] = ()
    unknown: tuple[Entry, ...] = ()
    ambiguous: tuple[Entry, ...] = ()


def arrange(attempts: Iterable[Found], roster: Roster | None = None) -> Work:
    """Join attempts to students.

    With a roster, a student's attempts are all that match the student or the student's group; students with the same
    attempts share an entry. What matches nobody, or several, makes an entry under the layout's own name, so that
    nothing is lost.
    """
    by_key: dict[str, list[Found]] = {}
    by_member: dict[str, list[Match]] = {}
    matches: dict[str, Match] = {}
    for found in attempts:
        match = roster.match(found) if roster is not None else None
        for member in match.members if match is not None else ():
            by_member.setdefault(member.id, []).append(match)  # type: ignore[arg-type]  # it is a match here
        if match is None or not match.members:
            by_key.setdefault(found.key, []).append(found)
            if match is not None:
                matches[found.key] = match
    drafts = [_of_members(members, shared) for shared, members in _sharing(by_member, roster)]
    drafts += [_of_layout(key, found, matches.get(key)) for key, found in by_key.items()]
    names = folder_names(draft.id for draft in drafts)
    entries = tuple(
        Entry(name, draft.students, draft.attempts, draft.dues, draft.match)
        for name, draft in zip(names, drafts, strict=True)
    )
    if roster is None:
        return Work(entries)
    return Work(
        entries,
        missing=tuple(member for member in roster.members if member.id not in by_member),
        unknown=tuple(e for e in entries if e.match and not e.match.members and not e.match.candidates),
        ambiguous=tuple(e for e in entries if e.match and e.match.candidates),
    )


def _sharing(by_member: dict[str, list[Match]], roster: Roster | None) -> list[tuple[list[Match], list[Member]]]:
    """Members with the same attempts, in the roster's order."""
    groups: dict[tuple[int, ...], tuple[list[Match], list[Member]]] = {}
    for member in roster.members if roster is not None else ():
        if shared := by_member.get(member.id):
            key = tuple(id(match) for match in shared)
            groups.setdefault(key, (shared, []))[1].append(member)
    return list(groups.values())


def _of_members(members: list[Member], shared: list[Match]) -> Entry:
    group = members[0].group if len(members) > 1 and len({member.group for member in members}) == 1 else ""
    students = tuple(
        Student(id=member.id, name=member.name, email=member.email, section=member.section, ids=dict(member.ids))
        for member in members
    )
    dues = {member.id: member.due for member in members if member.due is not None}
    ordered = _oldest_first(match.found for match in shared)
    match = next(match for match in shared if match.found is ordered[-1])
    return Entry(group or "+".join(member.id for member in members), students, ordered, dues, match)


def _of_layout(key: str, attempts: list[Found], match: Match | None) -> Entry:
    people = attempts[0].people
    students = tuple(
        Student(
            id=key if len(people) == 1 else next(iter(person.ids.values()), "") or person.email or person.name,
            name=person.name,
            email=person.email,
            ids={platform: value for platform, value in person.ids.items() if platform != "folder"},
        )
        for person in people
    )
    return Entry(key, students or (Student(id=key),), _oldest_first(attempts), match=match)


def _oldest_first(attempts: Iterable[Found]) -> tuple[Found, ...]:
    """By time, those without one first, then by name with numbers as numbers."""
    never = datetime.datetime.min.replace(tzinfo=datetime.UTC)
    return tuple(sorted(attempts, key=lambda found: (found.submitted or never, natural(found.source))))
