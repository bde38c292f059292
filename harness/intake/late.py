"""The late rule: when work is due, how many days late it came, and what that costs."""

from __future__ import annotations

import datetime
import math
from zoneinfo import ZoneInfo

from harness import report
from harness.course import Late
from harness.messages import message
from harness.report import Adjustment, Text

_DAY = datetime.timedelta(days=1)


def instant(time: datetime.datetime, zone: ZoneInfo) -> datetime.datetime:
    """A time as UTC; without an offset it is wall-clock time in `zone`.

    A time that the clocks show twice in autumn, or skip in spring, is taken as the later of its two readings, in the
    student's favour.

    Raises:
        OverflowError: it lies at the very end of the calendar; no time of a year in `YEARS` does.
    """
    if time.tzinfo is not None:
        return time.astimezone(datetime.UTC)
    return max(time.replace(tzinfo=zone, fold=fold).astimezone(datetime.UTC) for fold in (0, 1))


def due_time(rule: Late, own: datetime.datetime | None = None) -> datetime.datetime:
    """When work is due, in UTC: the student's own time if there is one, else the course's."""
    return instant(own if own is not None else rule.due, ZoneInfo(rule.zone))


def late_seconds(submitted: datetime.datetime, due: datetime.datetime) -> float:
    """Real seconds after the due time, 0 if it was not after it. Both times have a zone."""
    return max(0.0, (_utc(submitted) - _utc(due)).total_seconds())


def days_late(submitted: datetime.datetime, due: datetime.datetime, zone: ZoneInfo) -> int:
    """How many days were begun after the due time.

    A day ends at the same time by the clock in `zone`, so that it has 23 or 25 hours when the clocks change.
    """
    seconds = late_seconds(submitted, due)
    if seconds == 0:
        return 0
    local = due.astimezone(zone).replace(tzinfo=None)
    days = max(1, math.floor(seconds / 86_400))  # within one or two; the clocks decide
    while _utc(submitted) > instant(local + days * _DAY, zone):
        days += 1
    while days > 1 and _utc(submitted) <= instant(local + (days - 1) * _DAY, zone):
        days -= 1
    return days


def late_adjustment(
    *, possible: float, earned: float, submitted: datetime.datetime, due: datetime.datetime, rule: Late
) -> Adjustment | None:
    """What lateness costs.

    In percent, a day costs that part of the `possible` points, so that a day costs everyone the same. No more is taken
    than was earned.

    Args:
        possible: points of the assignment, without bonus.
        earned: what the student would get without the rule.
        submitted: when it was handed in, with its zone.
        due: as `due_time` gives it.
        rule: the course's.

    Returns:
        Points below 0 with the reason, or None if nothing is taken.
    """
    seconds = late_seconds(submitted, due)
    if seconds <= rule.grace_minutes * 60 or not rule.per_day or rule.cap is None:
        return None
    days = days_late(submitted, due, ZoneInfo(rule.zone))
    cost = min(days * rule.per_day, rule.cap)
    if rule.unit == "percent":
        cost = cost * possible / 100
    cost = report.points([min(cost, max(earned, 0.0))])
    if cost <= 0:
        return None
    minutes = math.ceil(seconds / 60)
    late = f"{minutes // 60}:{minutes % 60:02} h"
    said = message(f"late.{rule.unit}", late=late, rate=_short(rule.per_day), days=days, cap=_short(rule.cap))
    return Adjustment(kind="late", points=-cost, reason=Text(said.id, said.render(), said.params))


def _utc(time: datetime.datetime) -> datetime.datetime:
    return time.astimezone(datetime.UTC)  # two times of one zone would be compared by their clocks


def _short(number: float) -> float | int:
    return int(number) if number == int(number) else number
