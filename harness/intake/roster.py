"""The roster: who is in the course, and which of them a submission belongs to."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo

from harness.course import YEARS
from harness.intake.found import Found, Person
from harness.intake.late import instant
from harness.intake.names import compact, plain, spellings
from harness.problem import Problem

PLATFORMS = ("canvas", "sis", "login", "username", "idnumber", "moodle", "gradescope", "github", "lti", "openedx")
COLUMNS = ("id", "name", "email", "section", "group", "due", *PLATFORMS)
_ALSO = {"folder": "any", "gradescope": "id"}  # what else an id may be: a SID is one that the course gave
_MOST_SHOWN = 10


@dataclass(frozen=True)
class Member:
    """A row of the roster.

    Args:
        id: the course's id of the student.
        ids: in learning platforms, by column.
        due: the student's own due time, in UTC.
        group: all of a group share their submissions.
        row: line of the file.
    """

    id: str
    name: str = ""
    email: str = ""
    section: str = ""
    group: str = ""
    due: datetime.datetime | None = None
    ids: dict[str, str] = field(default_factory=dict)
    row: int = 0


@dataclass(frozen=True)
class Match:
    """Whose an attempt is.

    Args:
        found: the attempt.
        members: for whom it counts, in the roster's order.
        by: what agreed: `id`, `email`, `name` or `group`; of several people, the weakest. "" if nothing did.
        candidates: members who fit equally well, so that a person must decide.
        strangers: those of its people who are not on the roster.
    """

    found: Found
    members: tuple[Member, ...] = ()
    by: str = ""
    candidates: tuple[Member, ...] = ()
    strangers: tuple[Person, ...] = ()


class Roster:
    """The members, and an index of everything that they are known by."""

    def __init__(self, members: Iterable[Member]) -> None:
        self.members = tuple(members)
        self._position = {member.id: number for number, member in enumerate(self.members)}
        self._known: dict[tuple[str, str], list[Member]] = {}
        for member in self.members:
            own = {("id", plain(member.id)), ("any", plain(member.id)), ("email", plain(member.email))}
            for platform, value in member.ids.items():
                own |= {(platform, plain(value)), ("any", plain(value))}
            names = spellings(member.name)
            own |= {("name", name) for name in names}
            if member.group:
                own |= {("group", compact(member.group)), ("team", plain(member.group))}
                own |= {("name", compact(member.group) + name) for name in names}  # Moodle: "Group-First Last"
            for key in own:
                if key[1]:
                    self._known.setdefault(key, []).append(member)

    def team(self, member: Member) -> list[Member]:
        """The members of one's group; oneself alone without one."""
        return self._known[("team", plain(member.group))] if member.group else [member]

    def match(self, found: Found) -> Match:
        """Find out whose an attempt is.

        In this order, and the first that fits anyone decides: (1) the platform's id; Gradescope's SID may be the
        course's own id, too, and the name of a folder or file any id of the roster; (2) the e-mail address; (3) the
        name, without regard to case, punctuation and which word comes first; (4) the name of a group. If several fit,
        none is chosen. An attempt counts for all of a group.
        """
        members: list[Member] = []
        candidates: list[Member] = []
        strangers: list[Person] = []
        ways: list[str] = []
        for person in found.people:
            by, fitting = self._fitting(person)
            if not fitting:
                strangers.append(person)
            elif len({plain(member.group) for member in fitting} if by == "group" else fitting) > 1:
                candidates += fitting
            else:
                ways.append(by)
                members += [mate for member in fitting for mate in self.team(member)]
        by = max(ways, key=("id", "email", "name", "group").index, default="")
        return Match(found, self._in_order(members), by, self._in_order(candidates), tuple(strangers))

    def _fitting(self, person: Person) -> tuple[str, list[Member]]:
        by_id: list[Member] = []
        for platform, value in person.ids.items():
            by_id += self._known.get((platform, plain(value)), [])
            if platform in _ALSO:
                by_id += self._known.get((_ALSO[platform], plain(value)), [])
        address = person.email or person.ids.get("folder", "")
        ways = (
            ("id", by_id),
            ("email", self._known.get(("email", plain(address)), [])),
            ("name", self._known.get(("name", compact(person.name)), [])),
            ("group", self._known.get(("group", compact(person.name)), [])),
        )
        return next(((by, list(self._in_order(fit))) for by, fit in ways if fit), ("", []))

    def _in_order(self, members: list[Member]) -> tuple[Member, ...]:
        distinct = {member.id: member for member in members}
        return tuple(sorted(distinct.values(), key=lambda member: self._position[member.id]))


def read_roster(path: Path, zone: str | None = None) -> Roster:
    """Read the roster from a CSV file in UTF-8, with `,` or `;` between cells and a first line that names the columns.

    Columns, in any order and case: `id` (needed), `name`, `email`, `section`, `group`, `due` (ISO date and time), and
    ids in platforms: `canvas`, `sis`, `login`, `moodle` (`Participant 12` or `12`), `gradescope`, `github`.

    Args:
        path: the file.
        zone: of due times that have no offset; the course's.

    Raises:
        Problem: it cannot be read, or rows are wrong; each is named, with what to do.
    """
    rows = _rows(path)
    if not rows:
        raise Problem(f"{path} is empty.", f"Its first line names columns: {', '.join(COLUMNS)}.")
    columns = _columns(path, rows[0][1])
    wrong: list[str] = []
    members: list[Member] = []
    seen: dict[tuple[str, str], int] = {}
    for line, cells in rows[1:]:
        if not any(cells):
            continue
        if any(cells[len(columns) :]):
            wrong.append(f"Row {line} has {len(cells)} cells, the first line has {len(columns)}: is a cell with a "
                         "separator in it without quotes?")  # fmt: skip
            continue
        member = _member(line, dict(zip(columns, cells, strict=False)), zone, wrong)
        if member is None:
            continue
        for column, value in (("id", member.id), ("email", member.email), *member.ids.items()):
            first = seen.setdefault((column, plain(value)), line)
            if value and first != line:
                wrong.append(f"Row {line}: {column} {value} is that of row {first}, too. Correct or delete one.")
        members.append(member)
    if wrong:
        more = [f"... and {len(wrong) - _MOST_SHOWN} more."] if len(wrong) > _MOST_SHOWN else []
        raise Problem(f"{path} cannot be used.", "\n".join(wrong[:_MOST_SHOWN] + more))
    if not members:
        raise Problem(f"{path} lists nobody.", "Below the line that names the columns, give one line for each student.")
    return Roster(members)


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Line numbers and stripped cells."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise Problem(f"There is no {path}.", "Give the roster as a CSV file.") from None
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}.") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Problem(
            f"{path} is not UTF-8 text (row {line}).", "Save it as CSV UTF-8 from your spreadsheet."
        ) from None
    first = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";" if first.count(";") > first.count(",") else ",",
                        strict=True)  # fmt: skip
    rows = []
    try:
        for cells in reader:
            rows.append((reader.line_num, [cell.strip() for cell in cells]))
    except csv.Error as error:
        raise Problem(f"{path}, row {reader.line_num}: {error}.", "Check the quotes of that row.") from None
    return rows


def _columns(path: Path, header: list[str]) -> list[str]:
    columns = [cell.lower().replace("_", " ").removesuffix(" id") for cell in header]
    while columns and not columns[-1]:
        columns.pop()
    unknown = [name for name, column in zip(header, columns, strict=False) if column not in COLUMNS]
    if unknown:
        raise Problem(f"{path} has columns that are not known: {', '.join(map(repr, unknown))}.",
                      f"Rename or delete them. Known are: {', '.join(COLUMNS)}.")  # fmt: skip
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise Problem(f"{path} has the column {twice[0]!r} twice.", "Rename or delete one.")
    if "id" not in columns:
        raise Problem(f"{path} has no column 'id'.", "It is what results are named by: give each student one.")
    return columns


def _member(line: int, cells: dict[str, str], zone: str | None, wrong: list[str]) -> Member | None:
    if not cells.get("id"):
        wrong.append(f"Row {line} has no id. Give it one, or delete the row.")
        return None
    due = None
    if text := cells.get("due"):
        due = _due(text, zone)
        if due is None:
            how = "2026-03-01T23:59" if zone else "2026-03-01T23:59+01:00 (the course names no time zone)"
            wrong.append(f"Row {line}: due {text!r} is not a date and time. Write it like {how}.")
    ids = {platform: cells[platform] for platform in PLATFORMS if cells.get(platform)}
    if number := ids.get("moodle", "").rpartition(" ")[2]:
        ids["moodle"] = number  # the grading worksheet says "Participant 12", in the site's language
    plain_cells = {column: cells.get(column, "") for column in ("name", "email", "section", "group")}
    return Member(cells["id"], **plain_cells, due=due, ids=ids, row=line)


def _due(text: str, zone: str | None) -> datetime.datetime | None:
    try:
        time = datetime.datetime.fromisoformat(text)
        if ":" not in text or time.year not in YEARS or (time.tzinfo is None and zone is None):
            return None
        return instant(time, ZoneInfo(zone or "UTC"))
    except ValueError:
        return None
