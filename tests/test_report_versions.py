"""Versions of the report, and that its documentation names every field."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest

from harness import report as reports
from harness.outcome import Evidence, Frame, Status
from harness.problem import Problem
from tests.support import classroom
from tests.support.classroom import ROOT
from tests.support.command import Command


def document(**changes: Any) -> bytes:
    """A report as JSON, with other top-level fields."""
    return json.dumps({**json.loads(reports.to_json(classroom.report(0, {}))), **changes}).encode()


def test_round_trip() -> None:
    for one in classroom.classroom():
        assert reports.from_json(reports.to_json(one)) == one


def test_a_draft_is_upgraded() -> None:
    found = reports.from_json(document(schema_version="1-draft"))
    assert found == classroom.report(0, {})
    found = reports.from_json(document(schema_version="1-draft", score={"earned": 47.5, "possible": 50.0}))
    assert (found.schema_version, found.score.final) == ("1", 47.5)


@pytest.mark.parametrize("version", ["2", "10", "2-draft"])
def test_a_newer_report_is_refused_in_words(version: str) -> None:
    with pytest.raises(Problem, match=f"schema version {version}; this program reads versions up to 1"):
        reports.from_json(document(schema_version=version))
    with pytest.raises(Problem):  # also when its fields are others
        reports.from_json(json.dumps({"schema_version": version}).encode())


@pytest.mark.parametrize("version", ["", "0.9", "1.0", "draft", "1-draft-2"])
def test_a_version_that_never_was_is_refused(version: str) -> None:
    with pytest.raises(Problem, match="does not know"):
        reports.from_json(document(schema_version=version))


@pytest.mark.parametrize("changes", [{"score": None}, {"exercises": {}}, {"schema_version": 1}, {"seed": "x"}])
@pytest.mark.parametrize("version", ["1", "1-draft"])
def test_what_is_no_report_is_not_read(changes: dict[str, Any], version: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        reports.from_json(document(**{"schema_version": version, **changes}))


def test_the_documentation_names_every_field_and_status() -> None:
    text = (ROOT / "docs" / "report-schema.md").read_text(encoding="utf-8")
    words = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`[^`]+`", text))))
    structs = [
        value for value in vars(reports).values() if isinstance(value, type) and issubclass(value, msgspec.Struct)
    ]
    public = [struct for struct in structs if not struct.__name__.startswith("_")]
    fields = {name for struct in [*public, Evidence, Frame] for name in struct.__struct_fields__}
    assert len(fields) > 50
    assert fields - words == set()
    assert {status.value for status in Status} - words == set()


def test_one_submission_in_another_format(command: Command) -> None:
    done = command.run(ROOT / "student_template", "--format", "ctrf")
    assert done.status == 1, done.stderr
    passed = [test["name"] for test in json.loads(done.stdout)["results"]["tests"] if test["status"] == "passed"]
    # The one check without points: a table of results that nobody handed in claims nothing untrue.
    assert len(passed) == 1 and "runs.csv" in passed[0], passed
