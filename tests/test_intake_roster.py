"""The roster: what it may look like, what is wrong with it, and whose a submission is."""

from __future__ import annotations

import datetime
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.intake import Found, Person, names
from harness.intake.attempts import Entry, arrange
from harness.intake.roster import Member, Roster, read_roster
from harness.messages import message
from harness.problem import Problem

ZONE = "Europe/Berlin"


def write(tmp_path: Path, text: str, encoding: str = "utf-8") -> Path:
    path = tmp_path / "roster.csv"
    path.write_bytes(text.encode(encoding))
    return path


def wrong(tmp_path: Path, text: str, zone: str | None = ZONE) -> str:
    with pytest.raises(Problem) as error:
        read_roster(write(tmp_path, text), zone)
    assert error.value.help
    return f"{error.value.what}\n{error.value.help}"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize(("separator", "end"), [(",", "\n"), (";", "\r\n")])
def test_a_roster(tmp_path: Path, separator: str, end: str, encoding: str) -> None:
    lines = [
        "Name|ID|email|Section|Canvas ID|moodle|due|group|",
        '"Müller, Åsa"|s1|asa@example.org|A|101|Participant 12|2026-03-03T23:59|blue|',
        "||||||||",
        "Zed|00s2||||7|2026-03-03 10:00+00:00",
    ]
    roster = read_roster(write(tmp_path, end.join(lines).replace("|", separator) + end, encoding), ZONE)
    assert roster.members == (
        Member("s1", "Müller, Åsa", "asa@example.org", "A", "blue",
               datetime.datetime(2026, 3, 3, 22, 59, tzinfo=datetime.UTC), {"canvas": "101", "moodle": "12"}, 2),
        Member("00s2", "Zed", due=datetime.datetime(2026, 3, 3, 10, 0, tzinfo=datetime.UTC), ids={"moodle": "7"},
               row=4),
    )  # fmt: skip


def test_every_wrong_row_is_named(tmp_path: Path) -> None:
    text = "id,name,canvas,due\ns1,A,1,\n,B,2,\nS1,C,3,\ns4,D,1,\ns5,E,5,tomorrow\ns6,F,6,2026-03-01\ns7,G,7,,x,\n"
    text += "s8,H,8,0001-01-01T00:00Z\n"
    said = wrong(tmp_path, text)
    for part in ("Row 3 has no id", "Row 4: id S1 is that of row 2", "Row 5: canvas 1 is that of row 2",
                 "Row 6: due 'tomorrow'", "Row 7: due '2026-03-01'", "2026-03-01T23:59",
                 "Row 8 has 6 cells", "Row 9: due '0001-01-01T00:00Z'"):  # fmt: skip
        assert part in said
    assert "Row 2" not in said


def test_many_wrong_rows_are_counted(tmp_path: Path) -> None:
    assert "... and 15 more." in wrong(tmp_path, "id,name\n" + ",x\n" * 25)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "is empty"),
        ("id,name\n", "lists nobody"),
        ("id,colour\ns1,red\n", "'colour'"),
        ("name,email\nx,y\n", "no column 'id'"),
        ("id,ID\ns1,s1\n", "'id' twice"),
        ('id,name\ns1,"x\n', "quotes"),
        ("id,email\ns1,a@example.org\ns2,A@example.org\n", "Row 3: email"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, part: str) -> None:
    assert part in wrong(tmp_path, text)


def test_a_due_time_needs_a_zone(tmp_path: Path) -> None:
    text = "id,due\ns1,2026-03-01T10:00\n"
    assert "the course names no time zone" in wrong(tmp_path, text, None)
    assert read_roster(write(tmp_path, text.replace("10:00", "10:00Z")), None).members[0].due is not None


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"not UTF-8 text \(row 2\)"):
        read_roster(write(tmp_path, "id,name\ns1,Åsa\n", "latin-1"))
    with pytest.raises(Problem, match="not UTF-8"):
        read_roster(write(tmp_path, "id,name\ns1,Åsa\n", "utf-16"))
    with pytest.raises(Problem, match="There is no"):
        read_roster(tmp_path / "nowhere.csv")


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    class Bytes(type(Path())):  # type: ignore[misc]
        def read_bytes(self) -> bytes:
            return b"id,name,due\ns1," + data

    try:
        assert read_roster(Bytes("roster.csv"), "UTC").members
    except Problem as problem:
        assert problem.what


ROSTER = Roster(
    [
        Member("s1", "Nova Quill", "nova@example.org", ids={"canvas": "101", "moodle": "11"}),
        Member("s2", "Müller, Åsa", "asa@example.org", ids={"canvas": "102"}),
        Member("s3", "Zed de la Cruz", "zed@example.org", group="blue", ids={"github": "zedc"}),
        Member("s4", "Ida Ng", group="blue"),
        Member("s5", "Kim Lee", ids={"gradescope": "Grade5"}),
        Member("s6", "Lee Kim"),
        Member("s7", "Red Hand", group="red"),
    ]
)


def found(key: str, *people: Person, at: int | None = None, source: str = "") -> Found:
    time = None if at is None else datetime.datetime(2026, 3, 1, at, tzinfo=datetime.UTC)
    return Found(key, source or key, people, time, problem=message("intake.empty", what=key))


def folder(name: str) -> Found:
    return found(name, Person(name, ids={"folder": name}))


@pytest.mark.parametrize(
    ("attempt", "members", "by"),
    [
        (found("101", Person("someone else", ids={"canvas": "101"})), "s1", "id"),
        (found("12", Person("nova quill", ids={"moodle": "12"})), "s1", "name"),
        (found("x", Person("Kim Lee", "NOVA@example.org")), "s1", "email"),
        (found("9", Person("mülleråsa", ids={"canvas": "9"})), "s2", "name"),
        (found("9", Person(unicodedata.normalize("NFD", "Åsa  MÜLLER"))), "s2", "name"),
        (found("9", Person("delacruzzed", ids={"canvas": "9"})), "s3 s4", "name"),
        (found("9", Person("blue-Ida Ng", ids={"moodle": "9"})), "s3 s4", "name"),
        (found("9", Person("x", ids={"gradescope": "S1"})), "s1", "id"),
        (found("9", Person("x", ids={"gradescope": "grade5"})), "s5", "id"),
        (found("9", Person("x", ids={"gradescope": "11"})), "", ""),  # a number that another platform gave
        (folder("s1"), "s1", "id"), (folder("zedc"), "s3 s4", "id"), (folder("asa@example.org"), "s2", "email"),
        (folder("Nova_Quill"), "s1", "name"), (folder("Red"), "s7", "group"), (folder("Blue"), "s3 s4", "group"),
        (found("g", Person("Nova Quill"), Person("", "asa@example.org")), "s1 s2", "name"),
        (folder("stranger"), "", ""), (folder(""), "", ""), (found("anon"), "", ""),
    ],
)  # fmt: skip
def test_matching(attempt: Found, members: str, by: str) -> None:
    match = ROSTER.match(attempt)
    assert (" ".join(member.id for member in match.members), match.by) == (members, by)
    assert not match.candidates


def test_ambiguous_matches_are_listed_not_guessed() -> None:
    match = ROSTER.match(found("9", Person("kimlee")))
    assert (match.members, [member.id for member in match.candidates]) == ((), ["s5", "s6"])


def test_work() -> None:
    attempts = [
        found("101", Person(ids={"canvas": "101"}), at=9, source="late"),
        found("s1", Person(ids={"folder": "s1"}), at=8, source="early"),
        found("blue", Person("blue", ids={"folder": "blue"}), at=8),
        found("s4", Person("Ida Ng", ids={"folder": "s4"}), at=9),
        found("9", Person("Lee, Kim")),
        found("s5", Person(ids={"folder": "s5"})),
        found("guest", Person("Guest", ids={"folder": "guest"}), source="b"),
        found("guest", Person("Guest", ids={"folder": "guest"}), source="a"),
    ]
    work = arrange(attempts, ROSTER)
    seen = {entry.id: ([student.id for student in entry.students], [f.source for f in entry.attempts])
            for entry in work.entries}  # fmt: skip
    assert seen == {
        "s1": (["s1"], ["early", "late"]),
        "blue": (["s3", "s4"], ["blue", "s4"]),
        "s5": (["s5"], ["s5"]),
        "9": (["9"], ["9"]),
        "guest": (["guest"], ["a", "b"]),
    }
    assert [member.id for member in work.missing] == ["s2", "s6", "s7"]
    assert [entry.id for entry in work.unknown] == ["guest"]
    assert [entry.id for entry in work.ambiguous] == ["9"]
    first = work.entries[0]
    assert first.students[0].name == "Nova Quill"
    due = datetime.datetime(2026, 3, 1, 8, 30, tzinfo=datetime.UTC)
    said = first.attempt(first.latest, due)
    assert (said.number, said.late_seconds, said.others) == (2, 1800, ["early"])
    assert said.submitted == "2026-03-01T09:00:00+00:00"


def test_a_member_of_a_pair_who_also_handed_in_alone() -> None:
    alone = found("a", Person("Nova Quill"), at=9)
    pair = found("p", Person("Nova Quill"), Person("Åsa Müller"), at=8)
    work = arrange([alone, pair], ROSTER)
    assert {entry.id: entry.attempts for entry in work.entries} == {"s1": (pair, alone), "s2": (pair,)}


def test_own_due_times() -> None:
    times = [datetime.datetime(2026, 3, day, tzinfo=datetime.UTC) for day in (1, 5)]
    dues = {"a": times[0], "b": times[1], "c": None}
    roster = Roster([Member(key, group="g", due=due) for key, due in dues.items()])
    entry = arrange([folder("a")], roster).entries[0]  # who shares work shares no due time
    assert entry.dues == {"a": times[0], "b": times[1]}


def test_without_a_roster() -> None:
    work = arrange([folder("CON"), folder("x/../y"), folder("X_.._Y"), folder("s2"), found("s10"), found("")])
    assert [entry.id for entry in work.entries] == ["_CON", "x_.._y", "X_.._Y~2", "s2", "s10", "_"]
    assert [entry.students[0].id for entry in work.entries] == ["CON", "x/../y", "X_.._Y", "s2", "s10", ""]
    assert not (work.missing or work.unknown or work.ambiguous)


def test_attempts_without_times_go_by_name_with_numbers_as_numbers() -> None:
    sources = ["try 10", "try 9", "try"]
    entry: Entry = arrange([found("k", source=source) for source in sources]).entries[0]
    assert [attempt.source for attempt in entry.attempts] == ["try", "try 9", "try 10"]
    assert entry.latest.source == "try 10"


NAME = st.text(st.characters(categories=("Lu", "Ll", "Lo", "Mn", "Pd", "Zs")), max_size=20)


@settings(deadline=None)
@given(st.lists(NAME, min_size=1, max_size=3), st.sampled_from(["NFC", "NFD"]))
def test_names_agree_whatever_their_form_case_and_order(words: list[str], form: str) -> None:
    first = " ".join(words)
    own = names.spellings(first)
    turned = ", ".join(words[1:] + words[:1])
    assert names.spellings(unicodedata.normalize(form, turned)) == own  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.lists(st.text(max_size=120), max_size=8))
def test_folder_names_are_distinct_and_safe(keys: list[str]) -> None:
    made = names.folder_names(keys)
    assert len({name.casefold() for name in made}) == len(keys)
    for name in made:
        assert name not in ("", ".", "..")
        assert not set(name) & set('/\\:*?"<>| \0')
        assert not name.endswith(".")
        assert len(name.encode()) <= 255
