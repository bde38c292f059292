"""The late rule: clocks that change, grace, days begun, caps."""

from __future__ import annotations

import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.course import ROOT, YEARS, Late, read_course
from harness.intake.late import days_late, due_time, instant, late_adjustment, late_seconds
from harness.problem import Problem

UTC = datetime.UTC
BERLIN = ZoneInfo("Europe/Berlin")
DUE = datetime.datetime(2026, 3, 27, 23, 59)  # two days before the clocks go forward
RULE = Late(DUE, "Europe/Berlin", grace_minutes=15, per_day=10, cap=25)


def berlin(day: int, hour: int, minute: int, second: int = 0, month: int = 3) -> datetime.datetime:
    return datetime.datetime(2026, month, day, hour, minute, second, tzinfo=BERLIN)


def taken(submitted: datetime.datetime, rule: Late = RULE, possible: float = 50, earned: float = 40) -> float:
    adjustment = late_adjustment(possible=possible, earned=earned, submitted=submitted, due=due_time(rule), rule=rule)
    if adjustment is None:
        return 0
    assert adjustment.kind == "late"
    assert adjustment.reason.text.startswith("Handed in ")
    return adjustment.points


def test_in_time_grace_and_days() -> None:
    assert taken(berlin(27, 23, 59)) == 0
    assert taken(berlin(28, 0, 14)) == 0
    assert taken(berlin(28, 0, 14, 1)) == -5
    assert taken(berlin(28, 23, 59)) == -5
    assert taken(berlin(28, 23, 59, 1)) == -10
    assert taken(berlin(30, 1, 0)) == -12.5
    assert taken(berlin(30, 1, 0), earned=3) == -3
    assert taken(berlin(30, 1, 0), earned=0) == 0


def test_points_a_day() -> None:
    rule = Late(DUE, "Europe/Berlin", per_day=1.5, unit="points", cap=2)
    assert taken(berlin(28, 0, 0), rule) == -1.5
    assert taken(berlin(29, 0, 0), rule) == -2


def test_a_rule_that_charges_nothing() -> None:
    assert taken(berlin(30, 0, 0), Late(DUE, "Europe/Berlin")) == 0


def test_the_reason_says_everything() -> None:
    adjustment = late_adjustment(possible=50, earned=40, submitted=berlin(29, 1, 0, 1), due=due_time(RULE), rule=RULE)
    assert adjustment is not None
    assert adjustment.reason.text == (
        "Handed in 25:02 h after the due time: 10 % of the possible points for each day begun, 2 in all, at most 25 %."
    )
    assert adjustment.reason.id == "late.percent"


def test_a_day_ends_at_the_same_time_by_the_clock() -> None:
    due = due_time(RULE)
    assert days_late(berlin(29, 23, 59), due, BERLIN) == 2  # 47 hours
    assert days_late(berlin(29, 23, 59, 1), due, BERLIN) == 3
    autumn = berlin(24, 23, 59, month=10)
    assert days_late(berlin(25, 23, 59, month=10), autumn, BERLIN) == 1  # 25 hours
    assert late_seconds(berlin(25, 23, 59, month=10), autumn) == 25 * 3600


def test_times_that_the_clocks_repeat_or_skip_are_read_in_the_students_favour() -> None:
    assert instant(datetime.datetime(2026, 10, 25, 2, 30), BERLIN) == datetime.datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert instant(datetime.datetime(2026, 3, 29, 2, 30), BERLIN) == datetime.datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def test_an_own_due_time() -> None:
    own = datetime.datetime(2026, 4, 1, 12, 0, tzinfo=UTC)
    assert due_time(RULE, own) == own
    assert due_time(RULE) == datetime.datetime(2026, 3, 27, 22, 59, tzinfo=UTC)


ANY_TIME = st.datetimes(datetime.datetime(YEARS[0], 1, 1), datetime.datetime(YEARS[-1], 12, 31, 23, 59))


@settings(deadline=None)
@given(due=ANY_TIME, submitted=ANY_TIME, zone=st.sampled_from(["Pacific/Kiritimati", "Pacific/Pago_Pago"]),
       hours=st.integers(-23, 23))  # fmt: skip
def test_no_year_that_is_allowed_leads_out_of_the_calendar(
    due: datetime.datetime, submitted: datetime.datetime, zone: str, hours: int
) -> None:
    when = submitted.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=hours)))
    start = due_time(Late(due, zone))
    assert (days_late(when, start, ZoneInfo(zone)) > 0) == (when > start)


TIMES = st.datetimes(datetime.datetime(2026, 1, 1), datetime.datetime(2027, 6, 1))
ZONES = st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe", "UTC"])


@settings(deadline=None)
@given(due=TIMES, late=st.lists(st.integers(-10, 60 * 24 * 40), min_size=2, max_size=2), zone=ZONES,
       per_day=st.floats(0, 100), cap=st.floats(0, 100), earned=st.floats(0, 100))  # fmt: skip
def test_later_never_costs_less_and_never_too_much(
    due: datetime.datetime, late: list[int], zone: str, per_day: float, cap: float, earned: float
) -> None:
    rule = Late(due, zone, per_day=per_day, cap=cap)
    start = due_time(rule)
    first, second = (taken_after(start, minutes, rule, earned) for minutes in sorted(late))
    assert 0 <= first <= second <= round(min(earned, cap), 2)


def taken_after(start: datetime.datetime, minutes: int, rule: Late, earned: float) -> float:
    submitted = (start + datetime.timedelta(minutes=minutes)).astimezone(ZoneInfo(rule.zone))
    return -taken(submitted, rule, possible=100, earned=earned)


@settings(deadline=None)
@given(due=TIMES, minutes=st.integers(1, 60 * 24 * 40), zone=ZONES)
def test_days_are_those_of_the_calendar(due: datetime.datetime, minutes: int, zone: str) -> None:
    where = ZoneInfo(zone)
    start = instant(due, where)
    submitted = start + datetime.timedelta(minutes=minutes)
    days = days_late(submitted, start, where)
    assert abs(days - minutes / 1440) < 1.05
    assert days_late(submitted, start, ZoneInfo("UTC")) == -(-minutes // 1440)


def course(tmp_path: Path, late: str) -> Path:
    text = f'id = "c"\ntitle = "C"\nseed = 1\n[late]\n{late}\n[[exercise]]\nid = "a"\ntitle = "A"\nfiles = ["a.py"]\n'
    (tmp_path / "course.toml").write_text(text, encoding="utf-8")
    (tmp_path / "test_a.py").touch()
    return tmp_path


@pytest.mark.parametrize("due", ["2026-03-27T23:59:00", '"2026-03-27T23:59:00"', "2026-03-27T23:59:00+01:00"])
def test_the_rule_in_course_toml(tmp_path: Path, due: str) -> None:
    rule = read_course(course(tmp_path, f'due = {due}\nzone = "Europe/Berlin"\nper_day = 10\ncap = 50')).late
    assert rule is not None
    assert due_time(rule) == datetime.datetime(2026, 3, 27, 22, 59, tzinfo=UTC)
    assert (rule.unit, rule.cap) == ("percent", 50)


def test_the_rule_in_the_documentation(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "instructors.md").read_text(encoding="utf-8")
    rule = read_course(course(tmp_path, text.partition("```toml\n[late]\n")[2].partition("```")[0])).late
    assert rule == Late(DUE, "Europe/Berlin", 15, 10, "percent", 50)


@pytest.mark.parametrize(
    ("late", "part"),
    [
        ('due = 2026-03-27\nzone = "UTC"', "due"),
        ("due = 2026-03-27T23:59:00", "zone"),
        ('due = 2026-03-27T23:59:00\nzone = "Berlin"', "'Berlin' is not known"),
        ('due = 2026-03-27T23:59:00\nzone = ""', "is not known"),
        ('due = 2026-03-27T23:59:00\nzone = "UTC"\nper_day = 10', "cap is missing"),
        ('due = 2026-03-27T23:59:00\nzone = "UTC"\nper_day = 101\ncap = 100', "at most 100"),
        ('due = 2026-03-27T23:59:00\nzone = "UTC"\ngrace_minutes = -1', "grace_minutes"),
        ('due = 2026-03-27T23:59:00\nzone = "UTC"\nper_day = nan\ncap = 1', "per_day"),
        ('due = 2026-03-27T23:59:00\nzone = "UTC"\nunit = "euro"', "unit"),
        ('due = 2026-03-27T23:59:00\nzone = "UTC"\npenalty = 5', "penalty"),
        ('due = 9999-12-31T23:59:00\nzone = "America/New_York"', "due is in the year 9999; give one from 1970"),
        ('due = 0001-01-01T00:00:00\nzone = "Europe/Berlin"', "due is in the year 1; give one"),
        ('due = 0001-01-01T00:00:00Z\nzone = "America/New_York"', "due is in the year 1; give one"),
    ],
)
def test_a_rule_that_is_wrong_names_the_key(tmp_path: Path, late: str, part: str) -> None:
    with pytest.raises(Problem) as error:
        read_course(course(tmp_path, late))
    assert part in error.value.what
