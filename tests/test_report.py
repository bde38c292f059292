"""The report: the committed schema, real reports against it, hostile text and numbers, and files that survive."""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path
from typing import Any, NoReturn

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import report
from harness.batch.summary import state
from harness.outcome import Evidence, Frame, Status
from harness.report import Adjustment, CheckResult, ExerciseResult, Report, Text
from tests.support.command import ROOT, Command

SCHEMA = ROOT / "schema" / "report.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))

hostile_text = st.text(st.characters()) | st.sampled_from(
    ["\ud800", "\x00", "\x1b[31m", "\udcff\n", "\u202e", "\ufeff"]
)
hostile_float = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, 5e-324, 1.8e308])
scalars = hostile_text | hostile_float | st.integers() | st.booleans()
texts = st.builds(Text, id=hostile_text, text=hostile_text, params=st.dictionaries(hostile_text, scalars, max_size=3))
evidences = st.builds(
    Evidence,
    what=hostile_text,
    expected=hostile_text,
    actual=hostile_text,
    where=hostile_text,
    tolerance=st.none() | hostile_float,
    error=st.none() | hostile_float,
)
frames = st.builds(
    Frame,
    file=hostile_text,
    line=st.integers(0, 10**6),
    function=hostile_text,
    source=hostile_text,
    column=st.integers(0, 10**4),
)
checks = st.builds(
    CheckResult,
    id=hostile_text,
    title=hostile_text,
    status=st.sampled_from(list(Status)),
    points=st.integers(0, 10**4).map(lambda cents: cents / 100),
    possible=st.integers(0, 10**4).map(lambda cents: cents / 100),
    message=st.none() | texts,
    hint=st.none() | texts,
    evidence=st.none() | evidences,
    trace=st.lists(frames, max_size=2),
    output=hostile_text,
    detail=hostile_text,
)


def a_report(checks: list[CheckResult], name: str = "work", notes: tuple[Text, ...] = ()) -> Report:
    exercise = ExerciseResult(id="heads", title="Heads", earned=0, possible=0, checks=checks)
    return Report(
        submission=report.SubmissionInfo(name=name, digest="0" * 64, files={name: "0" * 64}, notes=list(notes)),
        course=report.CourseInfo(id="course", title="Course", graders="1" * 64, reference="2" * 64),
        environment=report.Environment(
            headcheck="0", python="3", torch="2", platform="here", isolation="process", start_method="fork"
        ),
        seed=0,
        score=report.total([exercise]),
        review=False,
        exercises=[exercise],
        started="2026-01-01T00:00:00+00:00",
        seconds=0.5,
    )


def a_check(**more: Any) -> CheckResult:
    return CheckResult(id="heads.shape", title="Shape", status=Status.FAILED, points=0, possible=2.25, **more)


reports = st.builds(a_report, st.lists(checks, max_size=3), hostile_text, st.tuples(texts))


def validate(document: Any) -> None:
    """Raises jsonschema.ValidationError unless the document fits the committed schema."""
    VALIDATOR.validate(document)


def strictly(data: bytes) -> Any:
    """JSON as the standard has it: UTF-8, and no NaN or Infinity."""

    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(data.decode("utf-8"), parse_constant=refuse)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for pair in value.items() for item in pair for leaf in leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


# The schema


def test_the_committed_schema_is_the_one_that_the_code_makes() -> None:
    jsonschema.Draft202012Validator.check_schema(VALIDATOR.schema)
    assert SCHEMA.read_bytes() == report.schema(), "run `python grade.py schema` and commit the result"


@pytest.mark.parametrize("change", [{"status": "fine"}, {"points": "2"}, {"trace": None}])
def test_the_schema_refuses_what_is_no_report(change: dict[str, Any]) -> None:
    document = strictly(report.to_json(a_report([a_check()])))
    validate(document)
    document["exercises"][0]["checks"][0] |= change
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


@pytest.mark.parametrize("folder", ["reference", "student_template"])
def test_a_real_report_validates_and_reads_back(command: Command, tmp_path: Path, folder: str) -> None:
    done = command.run(ROOT / folder, cwd=tmp_path)
    assert done.status in (0, 1), done.stderr
    data = (tmp_path / "report.json").read_bytes()
    document = strictly(data)
    validate(document)
    assert document["submission"]["name"] == folder
    read = report.from_json(data)
    assert report.from_json(report.to_json(read)) == read


def test_a_failed_check_reports_the_tolerance_and_the_error_measured(command: Command, tmp_path: Path) -> None:
    right = (ROOT / "reference" / "gpt.py").read_text(encoding="utf-8")
    wrong = right.replace("/ D**0.5", "* D**0.5")
    assert wrong != right
    (tmp_path / "gpt.py").write_text(wrong, encoding="utf-8")
    assert command.run(tmp_path / "gpt.py", "--exercise", "heads", cwd=tmp_path).status == 1
    document = strictly((tmp_path / "report.json").read_bytes())
    validate(document)
    failed = [check for check in document["exercises"][0]["checks"] if check["status"] == "failed"]
    assert failed and any(check["evidence"]["error"] > check["evidence"]["tolerance"] > 0 for check in failed)


# Hostile content


@given(reports)
def test_whatever_a_submission_says_the_report_is_json_and_reads_back(result: Report) -> None:
    data = report.to_json(result)
    document = strictly(data)
    validate(document)
    for leaf in leaves(document):
        assert not isinstance(leaf, float) or math.isfinite(leaf)
        if isinstance(leaf, str):
            leaf.encode("utf-8")  # json.loads would let an escaped lone surrogate through
    read = report.from_json(data)
    assert report.from_json(report.to_json(read)) == read


@given(st.text(), st.integers(0, 10**4))
def test_clean_content_comes_back_as_it_was(text: str, cents: int) -> None:
    message = Text("id", text, {"text": text, "number": 0.25, "count": 3, "flag": True})
    result = a_report([a_check(message=message, output=text, evidence=Evidence(actual=text, error=0.5))], name="work")
    result.exercises[0].checks[0].points = cents / 100
    assert report.from_json(report.to_json(result)) == result


def test_points_add_up_to_two_decimals() -> None:
    assert report.points([0.1] * 3 + [0.07]) == 0.37


# Files


def test_what_waits_in_a_bonus_is_undecided_until_it_is_marked() -> None:
    waiting = CheckResult(id="quiz.why", title="Why", status=Status.PENDING, points=0, possible=2)
    made = a_report([CheckResult(id="heads.shape", title="Shape", status=Status.PASSED, points=1, possible=1)])
    made.exercises.append(
        ExerciseResult(id="quiz", title="Quiz", earned=0, possible=2, bonus=True, checks=[waiting, a_check()])
    )
    made.score = report.total(made.exercises)
    assert (made.score.possible, made.score.undecided) == (1, 0)
    assert report.undecided(made.exercises) == [waiting]
    assert state(made) == "pending"
    for where in ("quiz.why", "quiz"):
        made.adjustments = [Adjustment(kind="by-hand", points=1.5, reason=Text("m", "By hand."), check=where)]
        assert report.undecided(made.exercises, made.adjustments) == []
        assert state(made) == "graded"
    assert report.total(made.exercises, made.adjustments).final == 2.5


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_the_report_is_written_in_whole(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_bytes(b"older")
    result = a_report([a_check()])
    report.write(result, target)
    assert target.read_bytes() == report.to_json(result)
    assert names_in(tmp_path) == ["report.json"]


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_when_writing_fails_the_old_file_stays_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    target = tmp_path / "report.json"
    target.write_bytes(b"older")

    def disk_full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(step, disk_full)
    with pytest.raises(OSError, match="No space left"):
        report.write(a_report([a_check()]), target)
    assert target.read_bytes() == b"older"
    assert names_in(tmp_path) == ["report.json"]


def test_a_folder_in_the_place_of_the_report_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.mkdir()
    with pytest.raises(OSError):
        report.write(a_report([a_check()]), target)
    assert target.is_dir() and names_in(tmp_path) == ["report.json"]
