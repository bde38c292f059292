"""The run inside Gradescope's container and the zip that it installs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from harness import cli
from harness import report as reports
from harness.export import gradescope_run
from harness.outcome import Status
from tests.support import classroom
from tests.support.classroom import ROOT

METADATA = {
    "id": 1, "created_at": "2026-03-01T12:00:00.123456-08:00", "previous_submissions": [{"score": 1.0}, {"score": 2.0}],
    "users": [{"id": 77, "name": "Comma, Carla", "email": "student1@example.org"}],
}  # fmt: skip


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, grader: str, *options: str, metadata: object = METADATA) -> Any:
    """Grade with `grader` (Python) in the place of grade.py; the results.json."""
    (folder / "root").mkdir()
    (folder / "root" / "grade.py").write_text(grader, encoding="utf-8")
    (folder / "submission").mkdir()
    (folder / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    monkeypatch.setattr(gradescope_run, "ROOT", folder / "root")
    out = folder / "results" / "results.json"
    words = ["gradescope", "--submission", folder / "submission", "--metadata", folder / "metadata.json", "--out", out]
    assert cli.run([*map(str, words), *options]) == 0
    return json.loads(out.read_text(encoding="utf-8"))


def grader(report: reports.Report, more: str = "") -> str:
    """A program that writes this report where --json says."""
    write = f"pathlib.Path(sys.argv[4]).write_bytes({reports.to_json(report)!r})"
    return f"import sys, pathlib\n{write}\nprint('noise {{')\n{more}"


def test_a_graded_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = classroom.report(0, {"heads.split": Status.FAILED})
    found = run(tmp_path, monkeypatch, grader(report), "--out-of", "10")
    assert found["score"] == 8.0
    assert [test["status"] for test in found["tests"]] == ["failed", "passed", "passed", "passed"]
    assert sum(test["max_score"] for test in found["tests"]) == 50
    assert "noise" not in json.dumps(found)
    printed = capsys.readouterr()
    assert printed.out == "" and "noise {" in printed.err
    assert "seed" not in json.dumps(found["extra_data"])


def test_a_grader_at_fault_gives_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = classroom.report(0, {"heads.split": Status.GRADER_ERROR})
    found = run(tmp_path, monkeypatch, grader(report, "sys.exit(2)"))
    assert "score" not in found and not any("score" in test for test in found["tests"])
    assert found["output"].startswith("No score yet: a grader broke down: heads.split.")


@pytest.mark.parametrize(("program", "told"), [
    ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "SIGKILL; it may have run out of memory"),
    ("import sys\nprint('grade.py: There is no such thing.', file=sys.stderr)\nsys.exit(2)", "There is no such thing."),
    ("raise RuntimeError('ours')", "Grading ended with status 1."),
    ("import sys, pathlib\npathlib.Path(sys.argv[4]).write_text('{}')", "ValidationError"),
    ("import sys, pathlib\npathlib.Path(sys.argv[4]).write_text('{\"schema_version\": \"9\"}')", "schema version 9"),
    ("", "Grading ended with status 0."),
])  # fmt: skip
def test_a_fault_of_ours_is_a_valid_file_without_a_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, told: str
) -> None:
    found = run(tmp_path, monkeypatch, program)
    assert set(found) == {"output", "output_format", "visibility", "tests"}
    assert found["tests"] == []
    assert told in found["output"] and "costs no points" in found["output"]


def test_grading_that_does_not_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(tmp_path, monkeypatch, "import time\nwhile True: time.sleep(1)", "--seconds", "1")
    assert "did not end within 1 seconds" in found["output"] and "score" not in found


@pytest.mark.parametrize("metadata", [None, [], {}, {"users": "x"}, {"users": [{}]}, {"users": [{"id": 1}]}, METADATA])
def test_odd_metadata_does_not_stop_grading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata: object) -> None:
    assert run(tmp_path, monkeypatch, grader(classroom.report(0, {})), metadata=metadata)["score"] == 50.0


def test_metadata_tells_student_and_attempt(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(METADATA), encoding="utf-8")
    student, attempt = gradescope_run.who_and_which(tmp_path / "m.json")
    assert student is not None and (student.id, student.ids) == ("77", {"gradescope": "77"})
    assert attempt is not None and attempt.number == 3
    assert gradescope_run.who_and_which(tmp_path / "nothing") == (None, None)


def test_the_bundle(tmp_path: Path) -> None:
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"
    assert cli.run(["bundle", "gradescope", "--out", str(one), "--out-of", "20"]) == 0
    assert cli.run(["bundle", "gradescope", "--out", str(other), "--out-of", "20"]) == 0
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as archive:
        names = archive.namelist()
        scripts = ("setup.sh", "run_autograder")
        assert {
            *scripts,
            "grade.py",
            "requirements.txt",
            "harness/cli.py",
            "graders/course.toml",
            "reference/gpt.py",
        } <= set(names)
        assert not [name for name in names if "__pycache__" in name or name.startswith(("tests/", "/", ".git"))]
        for name in scripts:
            assert archive.getinfo(name).external_attr >> 16 == 0o100755
            checked = subprocess.run(["bash", "-n"], input=archive.read(name), capture_output=True, check=False)
            assert checked.returncode == 0, checked.stderr
        assert b"grade.py gradescope --out-of 20\n" in archive.read("run_autograder")
        archive.extractall(tmp_path / "unpacked")
    for path in (tmp_path / "unpacked").rglob("*.py"):
        ast.parse(path.read_bytes())


def test_the_bundle_takes_an_index_for_torch(tmp_path: Path) -> None:
    url = "https://example.org/whl/cpu?a='b"
    assert cli.run(["bundle", "gradescope", "--out", str(tmp_path / "b.zip"), "--torch-index", url]) == 0
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        setup = archive.read("setup.sh")
    assert subprocess.run(["bash", "-n"], input=setup, capture_output=True, check=False).returncode == 0
    line = next(line for line in setup.decode().splitlines() if "--index-url" in line)
    said = subprocess.run(
        ["bash", "-c", f"pip=(printf '%s|'); {line}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    pinned = next(
        line
        for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
        if line.startswith("torch==")
    )
    assert said.stdout == f"--index-url|{url}|{pinned}|"


@pytest.mark.slow
def test_the_bundle_grades_the_reference(tmp_path: Path) -> None:
    """The real run: unpacked elsewhere, with its own graders, on the reference's files."""
    assert cli.run(["bundle", "gradescope", "--out", str(tmp_path / "b.zip")]) == 0
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        archive.extractall(tmp_path / "source")
    command = [sys.executable, "grade.py", "gradescope", "--submission", ROOT / "reference", "--metadata", "nothing",
               "--out", tmp_path / "results.json"]  # fmt: skip
    subprocess.run(command, cwd=tmp_path / "source", check=True, capture_output=True)
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert found["score"] == sum(test["max_score"] for test in found["tests"]) > 0
