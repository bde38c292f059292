"""What an export refuses, what it lists, and that nothing is written when it refuses."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness import cli
from harness import report as reports
from harness.export import Options, export
from harness.export.gradebook import Gradebook
from harness.export.sheet import ABSENT, BLANK, UNKNOWN
from harness.outcome import Status
from harness.problem import Problem
from harness.report import Report
from tests.support import classroom

ROSTER = "id,name,email,canvas\ns01,One,one@example.org,1\ns02,Two,two@example.org,2\n"


def results(folder: Path, *found: Report) -> Path:
    return classroom.write_results(folder / "class", list(found))


def renamed(one: Report, **changes: Any) -> Report:
    """The same report of another student."""
    assert one.student is not None
    return msgspec.structs.replace(one, student=msgspec.structs.replace(one.student, **changes))


def two() -> tuple[Report, Report]:
    return classroom.report(0, {}), classroom.report(1, {"heads.split": Status.FAILED})


def refused(folder: Path, found: Path, target: str = "csv", **options: Any) -> str:
    """The text of the refusal; the file that was there before must be untouched, and nothing lie beside it."""
    out = folder / "out"
    out.write_bytes(b"before")
    with pytest.raises(Problem) as caught:
        export(target, found, out, Options(**options))
    assert out.read_bytes() == b"before"
    assert not list(folder.glob(".out*"))
    return f"{caught.value.what}\n{caught.value.help}"


def test_the_same_student_twice(tmp_path: Path) -> None:
    found = results(tmp_path, *two())
    (found / "again").mkdir()
    (found / "again" / "report.json").write_bytes((found / "s01" / "report.json").read_bytes())
    said = refused(tmp_path, found)
    assert "s01: again and s01" in said


@pytest.mark.parametrize(("target", "changes", "told"), [
    ("canvas", {"ids": {"canvas": "9001"}}, "the same Canvas id 9001"),
    ("moodle", {"email": "STUDENT1@example.org"}, "the same Email address"),
    ("lti", {"ids": {"lti": "lti-1"}}, "the same LTI user id"),
    ("moodle-feedback", {"ids": {"moodle": "501"}}, "the same participant number 501"),
    ("canvas", {"ids": {}}, "Nothing tells Canvas who"),
    ("lti", {"ids": {}}, "is not known"),
    ("moodle", {"ids": {}, "email": ""}, "missing of 1: "),
    ("csv", {"email": "=cmd()"}, "cannot go into a table"),
])  # fmt: skip
def test_ids_that_are_missing_or_twice(tmp_path: Path, target: str, changes: dict[str, Any], told: str) -> None:
    one, other = two()
    assert told in refused(tmp_path, results(tmp_path, one, renamed(other, **changes)), target)


def test_different_totals_and_courses(tmp_path: Path) -> None:
    one, other = two()
    less = msgspec.structs.replace(other, exercises=other.exercises[:1], score=reports.total(other.exercises[:1]))
    said = refused(tmp_path, results(tmp_path, one, less))
    assert "50 (s01), 30 (s02)" in said
    foreign = msgspec.structs.replace(other, course=msgspec.structs.replace(other.course, id="elsewhere"))
    said = refused(tmp_path, results(tmp_path / "b", one, foreign))
    assert "course (s01), elsewhere (s02)" in said


def test_strict_refuses_blank_rows_and_names_them(tmp_path: Path) -> None:
    found = results(tmp_path, *classroom.classroom())
    said = refused(tmp_path, found, strict=True)
    assert "3 rows are incomplete" in said
    assert "waits for a person: order.blind" in said and "handed in nothing" in said and "heads.merge" in said
    export("csv", results(tmp_path / "b", *two()), tmp_path / "fine", Options(strict=True))


def test_a_roster_lists_unknown_and_absent_students(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text(ROSTER + "s77,Absent,a@example.org,77\n", encoding="utf-8")
    found = results(tmp_path, *two(), classroom.report(2, {}))
    out = tmp_path / "out.csv"
    notices = export("canvas", found, out, Options(roster=tmp_path / "roster.csv", item="Quiz"))
    assert [line for line in notices[UNKNOWN] if "s03" in line]
    assert notices[ABSENT] == ["Absent (s77) is on the roster"]
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"), newline="")))
    assert [(row["Student"], row["ID"]) for row in rows[1:]] == [("One", "1"), ("Two", "2")]
    assert "s03" in refused(tmp_path, found, "canvas", roster=tmp_path / "roster.csv", item="Quiz", strict=True)


@pytest.mark.parametrize(("text", "told"), [
    ("name\nx\n", "has no column 'id'"),
    ("id,name\ns01,x\ns01,y\n", "Row 3: id s01 is that of row 2"),
    ("id,name\n,x\n", "Row 2 has no id"),
])  # fmt: skip
def test_a_faulty_roster(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "roster.csv").write_text(text, encoding="utf-8")
    assert told in refused(tmp_path, results(tmp_path, *two()), roster=tmp_path / "roster.csv")


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b'{"schema_version": "1"}', b"\xff\xfe", b'{"schema_version": 1}']
)
def test_a_broken_report_stops_the_export_and_is_named(tmp_path: Path, data: bytes) -> None:
    found = results(tmp_path, *two())
    (found / "s02" / "report.json").write_bytes(data)
    said = refused(tmp_path, found)
    assert str(found / "s02" / "report.json") in said


def test_results_without_reports(tmp_path: Path) -> None:
    assert "There is no" in refused(tmp_path, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "There is no report" in refused(tmp_path, tmp_path / "empty")
    found = results(tmp_path, *two())
    (found / "s01" / "report.json").unlink()
    assert "has a submission and no report" in refused(tmp_path, found)


def test_an_option_that_the_target_does_not_take(tmp_path: Path) -> None:
    assert "junit takes no --column" in refused(tmp_path, results(tmp_path, *two()), "junit", column="x")


@pytest.mark.parametrize("title", ["Final Score", "Override it", "My Current Points"])
def test_titles_that_canvas_would_drop(tmp_path: Path, title: str) -> None:
    assert "does not import" in refused(tmp_path, results(tmp_path, *two()), "canvas", item=title)


# Gradebooks


def fill(folder: Path, data: bytes, *found: Report, **options: Any) -> bytes:
    """Fill a Canvas gradebook."""
    (folder / "book.csv").write_bytes(data)
    export("canvas", results(folder, *found), folder / "out.csv", Options(gradebook=folder / "book.csv", **options))
    return (folder / "out.csv").read_bytes()


@pytest.mark.parametrize(("encoding", "bom"), [
    ("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"), ("cp1252", b""),
])  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_gradebook_keeps_its_bytes(tmp_path: Path, encoding: str, bom: bytes, end: str, delimiter: str) -> None:
    lines = [
        'Student,ID,Section,"HW ""x"" (5)",Other (6)',
        '"Ñandú, Zoë",9001,L, 3 ,"a""b"',
        "Two,9002,L,,x",
        "",
        "Last,7,L,,",
    ]
    text = end.join(line.replace(",", delimiter) for line in lines)
    written = fill(tmp_path, bom + text.encode(encoding), *two(), column='HW "x" (5)')
    expected = text.replace(f"L{delimiter} 3 {delimiter}", f"L{delimiter}50{delimiter}")
    expected = expected.replace(f"9002{delimiter}L{delimiter}{delimiter}", f"9002{delimiter}L{delimiter}40{delimiter}")
    assert written == bom + expected.encode(encoding)


@pytest.mark.parametrize(("data", "told"), [
    (b"", "is empty"),
    (b"Name,ID\n", "not a gradebook that Canvas reads back"),
    (b"Student\tID\tSection\tHW (5)\n", "not a gradebook that Canvas reads back"),
    (b"Student,ID,Section,HW (5),HW2 (6)\n", "HW (5), HW2 (6)"),
    (b"Student,ID,Section\n", "has no assignments"),
    (b"Student,ID,Section,HW (5)\nx,9001,L\n", "Row 2 of"),
    (b"Student,ID,Section,HW (5)\nx,9001,L,\ny,9001,L,\n", "row 2 by ID, row 3 by ID"),
    (b"Student,ID,SIS Login ID,Section,HW (5)\nx,9001,a,L,\ny,3,user1,L,\n", "found more than once"),
    (b'Student,ID,Section,HW (5)\n"x,9001,L,\n', "Row 2 of"),
    (b"Student,Section,HW (5)\nx,L,\n", "No column of"),
    (b"Student,ID,Section,HW (5)\n    Points Possible,,,20\nx,9001,L,\n", "the maximum is 20, and --out-of says 10"),
])  # fmt: skip
def test_a_gradebook_that_cannot_be_filled_in(tmp_path: Path, data: bytes, told: str) -> None:
    (tmp_path / "book.csv").write_bytes(data)
    found = results(tmp_path, *two())
    assert told in refused(tmp_path, found, "canvas", gradebook=tmp_path / "book.csv", out_of=Decimal(10))


def test_two_students_in_one_row(tmp_path: Path) -> None:
    (tmp_path / "book.csv").write_bytes(b"Student,ID,SIS Login ID,Section,HW (5)\nx,9001,user2,L,\n")
    said = refused(tmp_path, results(tmp_path, *two()), "canvas", gradebook=tmp_path / "book.csv")
    assert "are both row 2" in said


def test_students_who_are_not_in_the_gradebook_are_listed(tmp_path: Path) -> None:
    book = tmp_path / "book.csv"
    book.write_bytes(b"Student,ID,Section,HW (5)\nx,9001,L,\nz,12,L,\n")
    notices = export("canvas", results(tmp_path, *two()), tmp_path / "out", Options(gradebook=book))
    assert len(notices[UNKNOWN]) == 1 and "s02" in notices[UNKNOWN][0]
    assert notices[ABSENT] == ["row 3 of book.csv, 12"]


def test_cells_read_as_the_csv_module_reads_them(tmp_path: Path) -> None:
    data = classroom.canvas_gradebook()
    (tmp_path / "book.csv").write_bytes(data)
    book = Gradebook(tmp_path / "book.csv")
    ours = [[book.value(row, column) for column in range(len(book.header))] for row in range(len(book.cells))]
    assert ours == list(csv.reader(io.StringIO(data.decode(), newline="")))
    assert book.to_bytes() == data


# Grades by hand


def test_a_mark_by_hand_decides_a_check(tmp_path: Path) -> None:
    notices = export("csv", results(tmp_path, *classroom.classroom()), tmp_path / "out", Options())
    assert not any("s10" in line for line in notices[BLANK])


# Pseudonyms


@pytest.mark.parametrize("target", ["json", "junit", "ctrf", "csv", "gradescope"])
def test_pseudonyms_hide_who_it_is(tmp_path: Path, target: str) -> None:
    one = renamed(classroom.report(3, {"heads.causal": Status.ERROR}), name="Nora Neuling", email="nora.n@example.org")
    one = msgspec.structs.replace(one, submission=msgspec.structs.replace(one.submission, name="nora_neuling_hw1"))
    for check in one.exercises[0].checks:
        check.output, check.detail = "hello from NORA at /home/neuling", "nora.n@example.org"
        if check.message is not None:
            check.message = reports.Text("error.raised", "Neuling, Nora", {"what": "Nora Neuling"})
    found = results(tmp_path, one, renamed(classroom.report(4, {}), name="山田 太郎"))
    names = tmp_path / "names.csv"
    for _ in range(2):
        export(target, found, tmp_path / "out", Options(pseudonyms=names))
        written = (tmp_path / "out").read_bytes().decode("utf-8", "replace").casefold()
        for secret in ("nora", "neuling", "student4@", "山田", "u0004", "user4", "9004"):
            assert secret not in written
    pairs = list(csv.reader(io.StringIO(names.read_text(encoding="utf-8"), newline="")))
    assert [row[0] for row in pairs] == ["id", "s04", "s05"]  # the second run added nobody
    if target != "gradescope":
        assert pairs[1][1] in written


def test_pseudonyms_that_are_given_are_kept(tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("id,pseudonym\ns01,otter\ns02,heron\n", encoding="utf-8")
    found = results(tmp_path, *two())
    export("csv", found, tmp_path / "out", Options(pseudonyms=tmp_path / "names.csv"))
    rows = list(csv.DictReader((tmp_path / "out").read_text(encoding="utf-8").splitlines()))
    assert [(row["id"], row["name"], row["email"]) for row in rows] == [("otter", "otter", ""), ("heron", "heron", "")]
    (tmp_path / "names.csv").write_text("id,pseudonym\ns01,otter\ns02,otter\n", encoding="utf-8")
    assert "twice" in refused(tmp_path, found, pseudonyms=tmp_path / "names.csv")
    assert "takes no --pseudonyms" in refused(tmp_path, found, "canvas", pseudonyms=tmp_path / "names.csv")


def test_folders_whose_names_fall_together_in_a_zip(tmp_path: Path) -> None:
    for place, key in enumerate(("a b", "a  b", "a   b")):
        (tmp_path / "class" / key).mkdir(parents=True)
        (tmp_path / "class" / key / "report.json").write_bytes(reports.to_json(classroom.report(place, {})))
    export("gradescope", tmp_path / "class", tmp_path / "out.zip", Options())
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        assert len({name.casefold() for name in archive.namelist()}) == 3


def test_a_single_report_becomes_results_json_and_no_zip(tmp_path: Path) -> None:
    folder = results(tmp_path, *two()) / "s01"
    roster = tmp_path / "roster.csv"
    for single in (folder, folder / "report.json"):
        out = tmp_path / "results.json"
        export("gradescope", single, out, Options(out_of=Decimal(100)))
        document = json.loads(out.read_bytes())
        assert document["score"] == 100 and len(document["tests"]) == 4
    export("gradescope", folder, tmp_path / "one.zip", Options())
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        assert len(archive.namelist()) == 1
    roster.write_text("id,name\nsomebody,Else\n", encoding="utf-8")
    with pytest.raises(Problem, match="nobody in the roster"):
        export("gradescope", folder, out, Options(roster=roster))
    shutil.rmtree(tmp_path / "class" / "s02")
    export("gradescope", tmp_path / "class", out, Options())  # a class of one is a class
    assert zipfile.is_zipfile(out)


# The commands


def test_export_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, out = results(tmp_path, *classroom.classroom()), tmp_path / "out.csv"
    assert cli.run(["export", "csv", str(found), "--out", str(out), "--out-of", "10", "--columns", "id,grade"]) == 0
    printed = capsys.readouterr()
    assert "3 left blank, without a number:" in printed.err
    assert "s06): waits for a person: order.blind" in printed.err
    assert b"s02,8\r\n" in out.read_bytes()
    assert cli.run(["export", "csv", str(found), "--out", str(out), "--columns", "id,nonsense"]) == 2
    assert "There is no column 'nonsense'" in capsys.readouterr().err
    for wrong in ("nan", "-1", "0", "x", "inf"):
        assert cli.run(["export", "csv", str(found), "--out", str(out), "--out-of", wrong]) == 2


def test_validate_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(reports.to_json(classroom.report(0, {})))
    assert cli.run(["validate", str(path)]) == 0
    assert "schema version 1" in capsys.readouterr().out

    document = json.loads(path.read_bytes())
    draft = {**document, "schema_version": "1-draft", "score": {"earned": 50.0, "possible": 50.0, "undecided": 0.0}}
    path.write_text(json.dumps(draft), encoding="utf-8")
    assert cli.run(["validate", str(path)]) == 0

    path.write_text(json.dumps({"schema_version": "2", "something": "new"}), encoding="utf-8")
    assert cli.run(["validate", str(path)]) == 2
    assert "schema version 2; this program reads versions up to 1" in capsys.readouterr().err

    path.write_text(json.dumps({**document, "schema_version": "0.9"}), encoding="utf-8")
    assert cli.run(["validate", str(path)]) == 2

    document["score"]["final"] = 51.0
    document["exercises"][0]["checks"][0]["status"] = "failed"
    path.write_text(json.dumps(document), encoding="utf-8")
    capsys.readouterr()
    assert cli.run(["validate", str(path)]) == 1
    printed = capsys.readouterr().err
    assert "score.final is 51, and it adds up to 50" in printed
    assert "heads.split has points, and its status is failed" in printed


def test_an_exported_array_validates(tmp_path: Path) -> None:
    export("json", results(tmp_path, *classroom.classroom()), tmp_path / "all.json", Options())
    assert cli.run(["validate", str(tmp_path / "all.json")]) == 0


def test_no_command_of_exports_loads_torch() -> None:
    code = (
        "import sys; from harness import cli, export; cli.run(['export', '--help']); cli.run(['validate', 'nothing']); "
        "[export.target(name) for name in export.TARGETS]; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=classroom.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_format_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([str(tmp_path), "--format", "canvas"]) == 2
    assert "canvas is a format for a class" in capsys.readouterr().err
    assert cli.run([str(tmp_path), "--out", "x"]) == 2
    assert "--out needs --format" in capsys.readouterr().err


def test_a_student_only_known_by_the_folder(tmp_path: Path) -> None:
    one = msgspec.structs.replace(classroom.report(0, {}), student=None)
    (tmp_path / "class" / "somebody").mkdir(parents=True)
    (tmp_path / "class" / "somebody" / "report.json").write_bytes(reports.to_json(one))
    export("csv", tmp_path / "class", tmp_path / "out", Options(columns="id,name,grade"))
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines()[1] == "somebody,somebody,50"
