"""Whether a file is a report that adds up."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness import report as reports
from harness.outcome import Status
from harness.problem import Problem
from harness.report import Report


def check_file(path: Path) -> tuple[str, list[str]]:
    """Read a report, or an array of reports as `export json` writes it.

    Returns:
        A line on what it is, and what is wrong with it, a line each.

    Raises:
        Problem: it is no report, or of a version that this program does not read.
    """
    try:
        data = path.read_bytes()
        raw = msgspec.json.decode(data, type=list[msgspec.Raw]) if data.lstrip()[:1] == b"[" else [data]
        found = [reports.from_json(bytes(item)) for item in raw]
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}.") from None
    except Problem as problem:
        raise Problem(f"{path}: {problem.what}", problem.help) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(f"{path} is not a report: {error}.", "docs/report-schema.md explains every field.") from None
    faults = [f"{report.submission.name}: {fault}" for report in found for fault in inconsistencies(report)]
    if len(found) == 1:
        report = found[0]
        checks = sum(len(exercise.checks) for exercise in report.exercises)
        return (f"a report of schema version {report.schema_version}: {report.submission.name}, {checks} checks, "
                f"{report.score.final:g} points of {report.score.possible:g}", faults)  # fmt: skip
    return f"{len(found)} reports of schema version {reports.SCHEMA_VERSION}", faults


def inconsistencies(report: Report) -> list[str]:
    """What contradicts itself in a report: sums, ids, points without a pass."""
    faults = []
    seen: set[str] = set()
    for exercise in report.exercises:
        for check in exercise.checks:
            if check.id in seen:
                faults.append(f"{check.id} stands there twice")
            seen.add(check.id)
            if check.id.partition(".")[0] != exercise.id:
                faults.append(f"{check.id} stands in the exercise {exercise.id}")
            if check.points > check.possible or check.points < 0:
                faults.append(f"{check.id} has {check.points:g} points out of {check.possible:g}")
            if check.points and check.status is not Status.PASSED:
                faults.append(f"{check.id} has points, and its status is {check.status.value}")
        for name, value in (("earned", exercise.earned), ("possible", exercise.possible)):
            attribute = "points" if name == "earned" else "possible"
            total = reports.points(getattr(check, attribute) for check in exercise.checks)
            if total != value:
                faults.append(f"{exercise.id}.{name} is {value:g}, and its checks add up to {total:g}")
    total_score = reports.total(report.exercises, report.adjustments)
    for name in total_score.__struct_fields__:
        said, computed = getattr(report.score, name), getattr(total_score, name)
        if said != computed:
            faults.append(f"score.{name} is {said:g}, and it adds up to {computed:g}")
    return faults
