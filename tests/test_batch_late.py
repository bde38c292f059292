"""Lateness in a batch: each student's is measured against that student's own due time, or else the course's."""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec

from harness.batch.work import plan
from harness.course import Late
from harness.intake.attempts import arrange
from harness.intake.found import Found, Person, Piece
from harness.intake.roster import Member, Roster
from tests.support.fake_judge import Class

MARCH_28 = Late(due=datetime.datetime(2026, 3, 28, 23, 59), zone="UTC", per_day=1, unit="points", cap=5)


def test_who_hands_in_together_is_late_by_the_own_due_time(tmp_path: Path) -> None:
    own = datetime.datetime(2026, 3, 20, 23, 59, tzinfo=datetime.UTC)
    longer = datetime.datetime(2026, 4, 10, 23, 59, tzinfo=datetime.UTC)
    roster = Roster([Member("bob", "Bob B", due=own), Member("cy", "Cy C"), Member("dee", "Dee D", due=longer)])
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "gpt.py").touch()
    people = (Person("Bob B"), Person("Cy C"), Person("Dee D"))
    submitted = datetime.datetime(2026, 3, 30, 12, tzinfo=datetime.UTC)
    together = Found("both", "both", people, submitted, pieces=(Piece(tmp_path, "both"),))
    cls = Class(tmp_path, {})
    cls.course = msgspec.structs.replace(cls.course, late=MARCH_28)
    cls.run(plan=plan(arrange([together], roster)))
    assert cls.judged == ["both"]
    reports = {id: cls.report(id) for id in ("bob", "cy", "dee")}
    assert {id: [item.points for item in report.adjustments] for id, report in reports.items()} == {
        "bob": [-5], "cy": [-2], "dee": [],
    }  # fmt: skip
    late = {id: report.attempt.late_seconds / 60 for id, report in reports.items() if report.attempt is not None}
    assert late == {"bob": 24 * 60 * 9 + 721, "cy": 24 * 60 + 721, "dee": 0}
