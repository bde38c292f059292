"""Every target, from one class of twelve, byte for byte; and each file read back by a reader that is not ours.

`python -m pytest tests/test_export_goldens.py --update-goldens` writes the golden files anew; look at the difference.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import zipfile
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import jsonschema
import pytest
import xmlschema

from harness.export import Options, export, export_one
from harness.export.sheet import ABSENT, BLANK, CLAMPED, EMPTIED, KEPT
from harness.export.texts import cell, moodle, one_line
from tests.support import classroom

GOLDENS = Path(__file__).parent / "goldens" / "export"
SCHEMAS = Path(__file__).parent / "schemas"
NOW = datetime.datetime(2026, 3, 3, 8, 0, tzinfo=datetime.UTC)
# By student: what is left without a number, and the grade out of 50 of the others.
NO_NUMBER = {"s06": "pending", "s08": "grader_error", "s12": "missing"}
GRADES = {"s01": "50", "s02": "40", "s03": "32.5", "s04": "37.5", "s05": "0", "s07": "40", "s09": "35", "s10": "50",
          "s11": "50"}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A golden file.

    Args:
        name: of the file.
        target: of the export.
        options: the fields of Options.
        gradebook: the file to fill in, if there is one.
    """

    name: str
    target: str
    options: dict[str, Any] = field(default_factory=dict)
    gradebook: bytes | None = None


CASES = [
    Case("canvas.csv", "canvas", {"item": "Attention (55)", "out_of": Decimal(10)}),
    Case("canvas-gradebook.csv", "canvas", {"column": "Attention (55)"}, classroom.canvas_gradebook()),
    Case("moodle.csv", "moodle", {"item": "Attention", "comments": True}),
    Case("moodle-gradebook.csv", "moodle", {"column": "課題: 注意機構 (実数)", "id_columns": {"IDナンバー": "sis"}},
         classroom.moodle_gradebook()),
    Case("moodle-worksheet.csv", "moodle-worksheet", {"comments": True}, classroom.moodle_worksheet()),
    Case("moodle-feedback.zip", "moodle-feedback"),
    Case("gradescope.zip", "gradescope", {"late": False}),
    Case("lti.jsonl", "lti", {"out_of": Decimal(100), "now": NOW}),
    Case("junit.xml", "junit"),
    Case("ctrf.json", "ctrf"),
    Case("json.json", "json"),
    Case("csv.csv", "csv", {"columns": "id,name,email,section,id:canvas,grade,state,why,earned,adjustments,"
                                       "exercise:heads,attempt,submitted,comment"}),
    Case("csv-brightspace.csv", "csv", {"columns": "brightspace", "item": "Attention"}),
    Case("csv-sakai.csv", "csv", {"columns": "sakai", "item": "Attention"}),
    Case("csv-openedx.csv", "csv", {"columns": "openedx", "item": "8f7a", "course_id": "course-v1:X+Y+Z"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The class on disk."""
    return classroom.write_results(tmp_path_factory.mktemp("class"), classroom.classroom())


def run(case: Case, results: Path, folder: Path) -> tuple[bytes, dict[str, list[str]]]:
    """Export, and give the file and the notices."""
    options = dict(case.options)
    if case.gradebook is not None:
        options["gradebook"] = folder / "gradebook.csv"
        options["gradebook"].write_bytes(case.gradebook)
    notices = export(case.target, results, folder / case.name, Options(**options))
    return (folder / case.name).read_bytes(), notices


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case: Case, results: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    written, notices = run(case, results, tmp_path)
    assert len(notices[BLANK]) == 3
    golden = GOLDENS / case.name
    if request.config.getoption("--update-goldens"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_bytes(written)
    if golden.suffix == ".zip":  # compressors differ between versions of zlib; contents do not
        assert unzipped(written) == unzipped(golden.read_bytes())
    else:
        assert written == golden.read_bytes()


def case_named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def table(written: bytes, delimiter: str = ",") -> list[dict[str, str]]:
    """Rows as Python's csv reads them; every row has as many cells as the header."""
    records = list(csv.reader(io.StringIO(written.decode("utf-8-sig"), newline=""), delimiter=delimiter, strict=True))
    assert {len(record) for record in records} == {len(records[0])}
    return [dict(zip(records[0], record, strict=True)) for record in records[1:]]


def unzipped(written: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def by_student(rows: list[dict[str, str]], column: str, prefix: str) -> dict[str, dict[str, str]]:
    """Rows by the id of the class: `column` holds `prefix` and the number."""
    return {f"s{int(row[column].removeprefix(prefix)):02}": row for row in rows}


def test_canvas_new(results: Path, tmp_path: Path) -> None:
    written, notices = run(case_named("canvas.csv"), results, tmp_path)
    assert not written.startswith(b"\xef\xbb\xbf")
    rows = table(written)
    assert list(rows[0]) == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Attention (55)"]
    assert rows[0]["Student"].strip() == "Points Possible"
    assert rows[0]["Attention (55)"] == "10"
    found = by_student(rows[1:], "SIS User ID", "U")
    assert {key: row["Attention (55)"] for key, row in found.items()} == {
        **{key: f"{Decimal(value) / 5:f}" for key, value in GRADES.items()}, **dict.fromkeys(NO_NUMBER, "")
    }  # fmt: skip
    assert [row["Student"] for row in rows[1:]] == [cell(name) for name in classroom.NAMES]
    assert found["s08"]["Student"] == "'=SUM(A1:A9) Formula"
    assert notices[CLAMPED] == ["New Line Nora (s11): 10.4 of 10"]


def test_canvas_gradebook_changes_one_column(results: Path, tmp_path: Path) -> None:
    before = classroom.canvas_gradebook()
    written, notices = run(case_named("canvas-gradebook.csv"), results, tmp_path)
    old, new = table(before), table(written)
    for one, other in zip(old, new, strict=True):
        assert {**one, "Attention (55)": ""} == {**other, "Attention (55)": ""}
    grades = {row["SIS User ID"]: row["Attention (55)"] for row in new}
    assert grades["U0002"] == "8"  # 40 of 50, out of the 10 that the gradebook states
    assert grades["U0005"] == "EX"
    assert grades["U0006"] == ""  # it had 3.5, and waits for a person now
    assert grades["U9999"] == ""
    assert [line for line in notices[KEPT] if "s05" in line]
    assert notices[EMPTIED] == ["row 9, Emoji 🎓 Emma (s06): 3.5"]
    assert notices[ABSENT] == ["row 15 of gradebook.csv, 9999"]
    # Byte for byte: with the old grades put back, it is the old file.
    lines = zip(before.split(b"\n"), written.split(b"\n"), strict=True)
    assert all(one.rpartition(b',"18,5",')[0] == other.rpartition(b',"18,5",')[0] for one, other in lines)


def test_moodle_new(results: Path, tmp_path: Path) -> None:
    written, _ = run(case_named("moodle.csv"), results, tmp_path)
    assert b"\\" not in written
    rows = table(written)
    found = by_student([{**row, "n": row["Email address"].partition("@")[0]} for row in rows], "n", "student")
    assert {key: row["Attention"] for key, row in found.items() if row["Attention"]} == GRADES
    assert [row["Name"] for row in rows] == [moodle(name) for name in classroom.NAMES]
    assert all("\n" not in row["Feedback"] for row in rows)
    assert 'Try "x.view(B, T, H, D)"' in found["s02"]["Feedback"]


def test_moodle_gradebook_in_another_language(results: Path, tmp_path: Path) -> None:
    before = classroom.moodle_gradebook()
    written, notices = run(case_named("moodle-gradebook.csv"), results, tmp_path)
    assert written.startswith(b"\xef\xbb\xbf")
    assert written.count(b"\r\n") == before.count(b"\r\n") == written.count(b"\n")
    column = "課題: 注意機構 (実数)"
    found = by_student(table(written, ";"), "IDナンバー", "U")
    assert {key: row[column] for key, row in found.items() if row[column]} == GRADES
    assert ABSENT not in notices
    for one, other in zip(table(before, ";"), table(written, ";"), strict=True):
        assert {**one, column: ""} == {**other, column: ""}


def test_moodle_worksheet(results: Path, tmp_path: Path) -> None:
    written, notices = run(case_named("moodle-worksheet.csv"), results, tmp_path)
    assert written.startswith(b"\xef\xbb\xbf")
    assert b"\r" not in written
    rows = table(written)
    found = {f"s{int(row['Identifier'].split()[1]) - 500:02}": row for row in rows}
    expected = {key: number for key, number in GRADES.items() if key != "s07"}
    assert {key: Decimal(row["Grade"]) / 2 for key, row in found.items() if row["Grade"]} == {
        key: Decimal(number) for key, number in expected.items()
    }
    assert "cannot be changed" in notices[KEPT][0]
    assert found["s07"]["Feedback comments"] == ""
    assert {row["Online text"] for row in rows} == {"two\nlines"}


def test_moodle_feedback(results: Path, tmp_path: Path) -> None:
    written, _ = run(case_named("moodle-feedback.zip"), results, tmp_path)
    files = unzipped(written)
    assert len(files) == 12
    for place, name in enumerate(files):
        folder, _, file = name.partition("/")
        assert file == "feedback.txt"
        person, number, *rest = folder.split("_")
        assert number == str(501 + place)
        assert rest == ["assignfeedback", "file", ""]
        assert person and not set(person) & set('\\/:*?"<>|\r\n\u202e')
        files[name].decode("utf-8")


def test_lti(results: Path, tmp_path: Path) -> None:
    written, _ = run(case_named("lti.jsonl"), results, tmp_path)
    messages = [json.loads(line) for line in written.decode("utf-8").splitlines()]
    assert {f"s{int(one['userId'].removeprefix('lti-')):02}": one["scoreGiven"] for one in messages} == {
        key: float(value) * 2 for key, value in GRADES.items()
    }
    for one in messages:
        assert set(one) == {"userId", "scoreGiven", "scoreMaximum", "activityProgress", "gradingProgress", "timestamp",
                            "comment"}  # fmt: skip
        assert (one["scoreMaximum"], one["gradingProgress"]) == (100, "FullyGraded")
        moment = datetime.datetime.fromisoformat(one["timestamp"])
        assert moment.utcoffset() is not None and "." in one["timestamp"]


def test_junit_is_valid_and_counts(results: Path, tmp_path: Path) -> None:
    written, _ = run(case_named("junit.xml"), results, tmp_path)
    xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd").validate(io.BytesIO(written))
    suites = xml.fromstring(written).findall("testsuite")
    assert len(suites) == 12
    cases = [(case.get("name"), case.get("classname")) for suite in suites for case in suite.findall("testcase")]
    assert len(set(cases)) == len(cases) == 44
    for suite in suites:
        assert int(suite.get("tests", "")) == len(suite.findall("testcase"))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(attribute, "")) == len(suite.findall(f"testcase/{tag}"))
    points = {suite.get("name", "")[-4:-1]: suite.find("properties/property[@name='points']") for suite in suites}
    assert {
        key: found.get("value") for key, found in points.items() if found is not None and found.get("value")
    } == GRADES


def test_ctrf_is_valid_and_counts(results: Path, tmp_path: Path) -> None:
    written, _ = run(case_named("ctrf.json"), results, tmp_path)
    document = json.loads(written)
    schema = json.loads((SCHEMAS / "ctrf-schema-0.0.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker()).validate(document)
    summary, tests = document["results"]["summary"], document["results"]["tests"]
    assert summary["tests"] == len(tests) == 44
    for status in ("passed", "failed", "skipped", "pending", "other"):
        assert summary[status] == sum(test["status"] == status for test in tests)
    assert (summary["pending"], summary["other"]) == (2, 1)
    assert summary["start"] == 1772440200000


def test_gradescope(results: Path, tmp_path: Path) -> None:
    written, _ = run(case_named("gradescope.zip"), results, tmp_path)
    for name, data in unzipped(written).items():
        key = name.partition("/")[0]
        document = json.loads(data)
        assert set(document) <= {"score", "execution_time", "output", "output_format", "test_output_format",
                                 "test_name_format", "visibility", "extra_data", "tests"}  # fmt: skip
        for test in document["tests"]:
            assert set(test) <= {"score", "max_score", "status", "name", "number", "output", "tags", "visibility"}
            assert test.get("status", "passed") in ("passed", "failed")
        if key in NO_NUMBER:
            assert "score" not in document
            assert not any("score" in test for test in document["tests"])
            assert document["output"].startswith("No score yet: ")
        else:
            # Without the penalty for lateness: s09 has 40, not 35.
            assert document["score"] == {**{k: float(v) for k, v in GRADES.items()}, "s09": 40.0}[key]


def test_json_has_the_reports(results: Path, tmp_path: Path) -> None:
    written, _ = run(case_named("json.json"), results, tmp_path)
    found = json.loads(written)
    assert [report["student"]["name"] for report in found] == list(classroom.NAMES)
    schema = json.loads((SCHEMAS.parents[1] / "schema" / "report.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    for report in found:
        validator.validate(report)


def test_csv(results: Path, tmp_path: Path) -> None:
    rows = table(run(case_named("csv.csv"), results, tmp_path)[0])
    assert {row["id"]: row["grade"] for row in rows if row["grade"]} == GRADES
    assert {row["id"]: row["state"] for row in rows if not row["grade"]} == NO_NUMBER
    assert [row["name"].removeprefix("'") for row in rows] == [one_line(name) for name in classroom.NAMES]
    assert not any(value.startswith(("=", "+", "@")) for row in rows for value in row.values())
    assert {row["earned"] for row in rows if row["id"] in NO_NUMBER} == {""}


def test_csv_presets(results: Path, tmp_path: Path) -> None:
    written, _ = run(case_named("csv-brightspace.csv"), results, tmp_path)
    rows = table(written)
    assert list(rows[0]) == ["OrgDefinedId", "Username", "Attention Points Grade", "End-of-Line Indicator"]
    assert {row["End-of-Line Indicator"] for row in rows} == {"#"}
    rows = table(run(case_named("csv-sakai.csv"), results, tmp_path)[0])
    assert list(rows[0]) == ["Student ID", "Name", "Attention [50]", "* Attention"]
    rows = table(run(case_named("csv-openedx.csv"), results, tmp_path)[0])
    assert list(rows[0]) == ["user_id", "username", "course_id", "new_override-8f7a"]


@pytest.mark.parametrize("target", ["gradescope", "junit", "ctrf", "json", "csv"])
def test_one_report(target: str) -> None:
    out = io.BytesIO()
    export_one(target, classroom.classroom()[1], out)
    text = out.getvalue().decode("utf-8")
    if target == "junit":
        assert len(xml.fromstring(text).findall("testsuite/testcase")) == 4
    elif target == "csv":
        assert table(out.getvalue())[0]["grade"] == "40"
    else:
        json.loads(text)
