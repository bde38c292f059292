"""Every layout in which submissions arrive, as a folder and as a zip, and what a class holds that cannot be read."""

from __future__ import annotations

import datetime
import os
import pickle
import shutil
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import submission
from harness.course import ROOT
from harness.intake import Found, Intake, read
from harness.outcome import Message
from harness.problem import Problem
from harness.submission import Submission
from tests.support.archive import locked, make_zip, zip_of

EXPECTED = ("gpt.py", "rope.py")
Laid = Callable[[dict[str, bytes]], Path]
GPT, ROPE = b"import torch\n", b"import math\n"


def lay(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder


@pytest.fixture(params=["folder", "zip", "wrapped zip"])
def laid(request: pytest.FixtureRequest, tmp_path: Path) -> Laid:
    """Lays out files as an unpacked folder, as a zip, or as a zip in which all lies in one folder."""

    def make(files: dict[str, bytes]) -> Path:
        if request.param == "folder":
            return lay(tmp_path / "all", files)
        top = "all of it/" if request.param == "wrapped zip" else ""
        path = tmp_path / "all.zip"
        path.write_bytes(make_zip({top + name: content for name, content in files.items()}))
        return path

    return make


def loaded(found: Found) -> dict[str, bytes]:
    result = found.load(EXPECTED)
    assert isinstance(result, Submission), result
    return result.files


def refused(found: Found) -> str:
    result = found.load(EXPECTED)
    assert isinstance(result, Message)
    assert result.render()
    return result.id


def by_key(intake: Intake) -> dict[str, Found]:
    assert len({found.key for found in intake.attempts}) == len(intake.attempts)
    return {found.key: found for found in intake.attempts}


def note_ids(found: Found) -> list[str]:
    result = found.load(EXPECTED)
    assert isinstance(result, Submission)
    return [note.id for note in result.notes]


def test_canvas(laid: Laid) -> None:
    intake = read(laid({
        "quillnova_101_9001_gpt.py": GPT, "quillnova_101_9002_rope-1.py": ROPE,
        "mülleråsa_LATE_102_9003_my work.zip": make_zip({"my work/gpt.py": GPT, "__MACOSX/x": b""}),
        "o_brienzed_103_text.html": b"<p>typed</p>",
        "anon_Ab3xZ_9004_gpt.py": GPT, "LATE_anon_Qq1_9005_gpt.py": GPT,
        "readme.md": b"", ".DS_Store": b"", "mailed by eve gpt.py": GPT, "hand_delivered/gpt.py": GPT,
        "grades.csv": b"",
    }))  # fmt: skip
    assert intake.layout == "canvas"
    why = "(Canvas gives files named like doejane_123_456_gpt.py)"
    assert intake.ignored == [f"{name} {why}" for name in ("hand_delivered", "mailed by eve gpt.py", "readme.md")]
    found = by_key(intake)
    assert set(found) == {"101", "102", "103", "anon_Ab3xZ", "anon_Qq1"}
    assert loaded(found["101"]) == {"gpt.py": GPT, "rope.py": ROPE}
    assert note_ids(found["101"]) == ["intake.renamed"]
    assert found["101"].people[0].name == "quillnova"
    assert found["101"].people[0].ids == {"canvas": "101"}
    assert loaded(found["102"]) == {"gpt.py": GPT}
    assert [key for key in found if found[key].late] == ["anon_Qq1", "102"]
    assert [[note.id for note in found[key].notes] for key in ("101", "102")] == [[], ["late.no-time"]]
    assert found["103"].people[0].name == "o_brienzed"
    assert refused(found["103"]) == "intake.online"
    assert found["anon_Ab3xZ"].people == ()
    assert all(found[key].submitted is None for key in found)


def test_moodle(laid: Laid) -> None:
    intake = read(laid({
        "Nova de la Quill_11_assignsubmission_file/gpt.py": GPT,
        "Nova de la Quill_11_assignsubmission_file/sub/notes.txt": b"",
        "Åsa Müller-O'Neil_12_assignsubmission_file_/work.zip": make_zip({"a/gpt.py": GPT, "a/rope.py": ROPE}),
        "Flat File_13_assignsubmission_file_gpt.py": GPT,
        "Typed Text_14_assignsubmission_onlinetext/onlinetext.html": b"<p>",
        "Both Kinds_15_assignsubmission_onlinetext/onlinetext.html": b"<p>",
        "Both Kinds_15_assignsubmission_file/gpt.py": GPT,
        "extra.py": GPT,
    }))  # fmt: skip
    assert intake.layout == "moodle"
    assert intake.ignored == ["extra.py (Moodle gives names like Jane Doe_123_assignsubmission_file)"]
    found = by_key(intake)
    assert {key: found[key].people[0].name for key in found} == {
        "11": "Nova de la Quill", "12": "Åsa Müller-O'Neil", "13": "Flat File", "14": "Typed Text", "15": "Both Kinds",
    }  # fmt: skip
    assert found["11"].people[0].ids == {"moodle": "11"}
    assert loaded(found["11"]) == {"gpt.py": GPT, "sub/notes.txt": b""}
    assert loaded(found["12"]) == {"gpt.py": GPT, "rope.py": ROPE}
    assert loaded(found["13"]) == loaded(found["15"]) == {"gpt.py": GPT}
    assert refused(found["14"]) == "intake.online"


METADATA = """---
submission_71:
  :submitters:
  - :name: &1 Nova Quill
    :sid: 00123
    :email: nova@example.org
  :created_at: 2026-03-01 22:58:01.123456789 Z
  :score: 3.0
  :results: {tests: [{name: "a: b", output: "it's [odd]"}]}
submission_72:
  :submitters:
  - :name: "Zed: O'Brien"
    :sid:
    :email: zed@example.org
  - :name: Åsa Müller
    :sid: '77'
    :email: asa@example.org
  :created_at: 2026-03-02 00:10:00.5 +01:00
submission_73:
  :submitters:
  - :name: *1
    :sid: '9'
  :created_at: later
"""


def test_gradescope(laid: Laid) -> None:
    intake = read(laid({
        "assignment_5_export/submission_metadata.yml": METADATA.encode(),
        "assignment_5_export/submission_71/gpt.py": GPT,
        "assignment_5_export/submission_72/my work/gpt.py": GPT,
        "assignment_5_export/submission_74/gpt.py": GPT,
        "assignment_5_export/scores.csv": b"",
        "assignment_5_export/eve.zip": b"",
        "__MACOSX/assignment_5_export/._submission_71": b"",
    }))  # fmt: skip
    assert intake.layout == "gradescope"
    assert [name.partition(" (")[0] for name in intake.ignored] == ["eve.zip"]
    found = by_key(intake)
    assert set(found) == {"00123", "submission_72", "9", "submission_74"}
    assert found["00123"].submitted == datetime.datetime(2026, 3, 1, 22, 58, 1, 123456, datetime.UTC)
    assert found["submission_72"].submitted == datetime.datetime(2026, 3, 1, 23, 10, 0, 500_000, datetime.UTC)
    assert [(person.name, person.ids) for person in found["submission_72"].people] == [
        ("Zed: O'Brien", {}), ("Åsa Müller", {"gradescope": "77"}),
    ]  # fmt: skip
    assert loaded(found["00123"]) == loaded(found["submission_72"]) == loaded(found["submission_74"]) == {"gpt.py": GPT}
    assert refused(found["9"]) == "intake.no-files"
    assert found["9"].people[0].name == "Nova Quill"
    assert [note.id for note in found["9"].notes] == ["intake.no-time.metadata"]


@pytest.mark.parametrize("time", ["0001-01-01 00:00:00 +1000", "9999-12-31 23:59:59 -0500", "2026-02-30 00:00:00 Z"])
def test_gradescope_times_that_cannot_be(tmp_path: Path, time: str) -> None:
    text = f"submission_1:\n  :created_at: {time}\n"
    files = {"submission_metadata.yml": text.encode(), "submission_1/gpt.py": GPT}
    found = by_key(read(lay(tmp_path, files)))["submission_1"]
    assert found.submitted is None
    assert [note.id for note in found.notes] == ["intake.no-time.metadata"]


@pytest.mark.parametrize("text", [b"- a list\n", b"a: [1\n", b"\xff\xfe", b"text", b"&a [*a, *b]", b"",
                                  b"[" * 50_000, b"[" * 50_000 + b"]" * 50_000, b"- " * 20_000 + b"x"])  # fmt: skip
def test_gradescope_metadata_that_is_damaged(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(Problem, match=r"submission_metadata\.yml"):
        read(lay(tmp_path, {"submission_metadata.yml": text, "submission_1/gpt.py": GPT}))


def test_gradescope_metadata_of_another_shape(tmp_path: Path) -> None:
    text = b"submission_1: text\nsubmission_2: {':submitters': [x, {':name': [1]}], ':created_at': {}}\n"
    files = {"submission_metadata.yml": text, "submission_1/gpt.py": GPT, "submission_2/gpt.py": GPT}
    found = by_key(read(lay(tmp_path, files)))
    assert loaded(found["submission_1"]) == loaded(found["submission_2"]) == {"gpt.py": GPT}


def test_folders(laid: Laid) -> None:
    intake = read(laid({
        "s1/gpt.py": GPT, "s2/my work/gpt.py": GPT, "s2/my work/.git/HEAD": b"",
        "s3/handed in.ZIP": make_zip({"gpt.py": GPT}),
        "s4/gpt.py": GPT, "s4/data.zip": make_zip({"gpt.py": b"other"}), "s5/work.7z": b"7z\xbc\xaf",
        "Åsa, 1.zip": make_zip({"work/rope.py": ROPE}), "s6/readme.txt": b"", "s7/a.zip": make_zip({"gpt.py": GPT}),
        "s7/b.zip": make_zip({"x/rope.py": ROPE}),
    }))  # fmt: skip
    assert intake.layout == "folders"
    found = by_key(intake)
    assert set(found) == {"s1", "s2", "s3", "s4", "s5", "Åsa, 1", "s6", "s7"}
    assert all(loaded(found[key])["gpt.py"] == GPT for key in ("s1", "s2", "s3", "s4", "s7"))
    assert note_ids(found["s4"]) == ["intake.nested"]
    assert refused(found["s5"]) == "intake.archive-kind"
    assert loaded(found["Åsa, 1"]) == {"rope.py": ROPE}
    assert note_ids(found["s6"]) == ["submission.nothing"]
    assert loaded(found["s7"]) == {"gpt.py": GPT, "rope.py": ROPE}
    assert pickle.loads(pickle.dumps(found["s1"])) == found["s1"]  # noqa: S301  # it goes to another process


def test_loose_files(tmp_path: Path) -> None:
    intake = read(lay(tmp_path, {
        "nova.py": GPT, "zed_gpt.py": GPT, "asa.rar": b"Rar!", "bo.tar.gz": b"", "cy.docx": b"", "scores.csv": b"",
        "dee.zip": b"", "eve.zip": locked(make_zip({"gpt.py": GPT})), "fay.zip": make_zip({"gpt.py": GPT})[:60],
        "gus.zip": zip_of(("../gpt.py", GPT)), "hal.ipynb": b"{}",
        "ian.py.txt": GPT, "jo.txt": GPT,
    }))  # fmt: skip
    assert intake.layout == "folders"
    assert intake.ignored == ["jo.txt (not a folder, .py file, notebook or .zip)"]
    found = by_key(intake)
    refusals = {"asa": "intake.archive-kind", "bo": "intake.archive-kind", "cy": "intake.kind", "dee": "intake.empty",
                "eve": "intake.encrypted", "fay": "intake.not-zip", "ian": "intake.kind"}  # fmt: skip
    assert {key: refused(found[key]) for key in refusals} == refusals
    assert note_ids(found["nova"]) == ["submission.nothing"]
    assert loaded(found["zed_gpt"]) == {"gpt.py": GPT}
    assert note_ids(found["gus"]) == ["intake.name", "submission.nothing"]
    assert loaded(found["hal"]) == {"hal.ipynb": b"{}"}
    only = found["nova"].load(("gpt.py",))
    assert isinstance(only, Submission)
    assert only.files == {"gpt.py": GPT}


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_a_single_folder_that_holds_a_class_is_looked_through(tmp_path: Path, kind: str) -> None:
    def keys(files: dict[str, bytes]) -> list[str]:
        if kind == "folder":
            path = lay(tmp_path / str(uuid.uuid4()), files)
        else:
            path = tmp_path / f"{uuid.uuid4()}.zip"
            path.write_bytes(make_zip(files))
        intake = read(path, expected=EXPECTED)
        assert intake.layout == "folders"
        return [found.key for found in intake.attempts]

    assert keys({"class/ada.py": GPT, "class/bob.py": GPT}) == ["ada", "bob"]
    assert keys({"class/ada.ipynb": b"{}", "class/ada_gpt.py": GPT, "class/list.csv": b""}) == ["ada", "ada_gpt"]
    assert keys({"c/repos/ada/gpt.py": GPT, "c/repos/bob.py": GPT, "c/repos/dora.zip": b""}) == ["ada", "bob", "dora"]
    # A student's own folder stays one submission.
    assert keys({"nova/gpt.py": GPT, "nova/tools.py": b""}) == ["nova"]
    assert keys({"nova/GPT (1).py": GPT, "nova/tools.py": b""}) == ["nova"]
    assert keys({"nova/my work/gpt.py": GPT, "nova/my work/tools.py": b""}) == ["nova"]
    assert keys({"nova/work.zip": make_zip({"gpt.py": GPT}), "nova/plan.txt": b""}) == ["nova"]


def test_files_like_a_course_file_are_not_mistaken_for_it(tmp_path: Path) -> None:
    lay(tmp_path, {"a/test_gpt.py": GPT, "a/gpt2.py": GPT, "b/gpt (1).py": GPT, "b/gpt-2.py": GPT, "c/gpt (1).py": GPT})
    found = by_key(read(tmp_path))
    assert "gpt.py" not in loaded(found["a"])
    assert "gpt.py" not in loaded(found["b"])
    assert loaded(found["c"]) == {"gpt.py": GPT}


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_bytes(b"secret")
    folder = lay(tmp_path / "all", {"s1/rope.py": ROPE})
    try:
        (folder / "s1" / "gpt.py").symlink_to(secret)
        (folder / "s2").symlink_to(tmp_path, target_is_directory=True)
    except OSError:
        pytest.skip("this computer does not let us make links")
    found = by_key(read(folder))
    assert loaded(found["s1"]) == {"rope.py": ROPE}
    assert refused(found["s2"]) == "submission.link"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    lay(tmp_path, {"s1/gpt.py": GPT})
    os.mkfifo(tmp_path / "s1" / "rope.py")
    os.mkfifo(tmp_path / "s2.py")
    found = by_key(read(tmp_path))
    assert loaded(found["s1"]) == {"gpt.py": GPT}
    assert refused(found["s2"]) == "intake.special"


def test_a_folder_nested_deeper_than_the_stack(tmp_path: Path) -> None:
    lay(tmp_path, {"s1/gpt.py": GPT, "s2/gpt.py": GPT})
    (tmp_path / "s1" / ("d/" * 300)).mkdir(parents=True)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(250)
    try:
        assert loaded(by_key(read(tmp_path))["s1"]) == {"gpt.py": GPT}
    finally:
        sys.setrecursionlimit(before)


def test_too_much_is_that_students_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "MAX_BYTES", 100)
    intake = read(lay(tmp_path, {"s1/gpt.py": b"#" * 101, "s2/gpt.py": b"#" * 100}))
    assert refused(by_key(intake)["s1"]) == "intake.too-big"
    assert len(loaded(by_key(intake)["s2"])["gpt.py"]) == 100


def test_several_zips_and_files_share_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "MAX_BYTES", 1000)
    monkeypatch.setattr(submission, "MAX_FILES", 4)

    def zips(sizes: list[int]) -> dict[str, bytes]:
        return {f"{n}.zip": make_zip({f"{n}.py": b"#" * size}) for n, size in enumerate(sizes)}

    students = {
        "fits": zips([400, 500]), "large": zips([400, 700]), "beside": zips([400, 500]) | {"notes.txt": b"#" * 200},
        "many": zips([1, 1, 1]) | {"5.zip": make_zip({"5.py": "", "6.py": ""})}, "four": zips([1, 1, 1, 1]),
        "stored": {"0.zip": make_zip({"gpt.py": b"#" * 700}, zipfile.ZIP_STORED)},
    }  # fmt: skip
    lay(tmp_path, {f"{student}/{name}": data for student, files in students.items() for name, data in files.items()})
    found = by_key(read(tmp_path))
    assert {key: refused(found[key]) for key in ("large", "beside", "many")} == {
        "large": "intake.too-big", "beside": "intake.too-big", "many": "intake.too-many",
    }  # fmt: skip
    assert {key: sum(map(len, loaded(found[key]).values())) for key in ("fits", "four", "stored")} == {
        "fits": 900, "four": 4, "stored": 700,
    }  # fmt: skip


def test_a_submission_that_vanishes_after_it_was_found(laid: Laid) -> None:
    path = laid({"s1/gpt.py": GPT, "s2/gpt.py": GPT})
    found = by_key(read(path))
    if path.is_dir():
        shutil.rmtree(path / "s1")
        assert refused(found["s1"]) == "intake.missing"
        assert loaded(found["s2"]) == {"gpt.py": GPT}
    else:
        path.unlink()
        assert refused(found["s1"]) == "intake.missing"


def git(folder: Path, *arguments: str, date: str = "") -> None:
    ours = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_COMMITTER_DATE": date,
            "GIT_AUTHOR_DATE": date}  # fmt: skip
    command = ["git", "-c", "user.name=N > Q", "-c", "user.email=n@example.org", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=os.environ | ours)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_repositories(tmp_path: Path) -> None:
    files = {"hw-nova/gpt.py": GPT, "hw-zed/gpt.py": GPT, "hw-empty/rope.py": ROPE, "list.txt": b"",
             "carl_gpt.py": GPT, "plain/gpt.py": GPT, "hw-dora.zip": make_zip({"gpt.py": GPT})}  # fmt: skip
    folder = lay(tmp_path / "all", files)
    marker = tmp_path / "ran"
    for name, date in (("hw-nova", "2026-03-01T23:30:00+0530"), ("hw-zed", "2026-03-02T08:00:00-0800")):
        git(folder / name, "init", "-q")
        git(folder / name, "add", ".")
        git(folder / name, "commit", "-q", "-m", "committer Fake <f> 1 +0000", date=date)
        for setting in ("core.fsmonitor", "core.pager", "gpg.program", "core.sshCommand"):
            git(folder / name, "config", setting, f"touch '{marker}'; false")
        git(folder / name, "config", "log.showSignature", "true")
    git(folder / "hw-empty", "init", "-q")
    intake = read(folder)
    assert intake.layout == "repos"
    assert intake.ignored == ["list.txt (neither a repository nor a folder, .py file, notebook or .zip)"]
    found = by_key(intake)
    assert list(found) == ["carl_gpt", "hw-dora", "hw-empty", "hw-nova", "hw-zed", "plain"]
    for key in ("carl_gpt", "hw-dora", "plain"):  # they lie beside, and are as good as others
        assert loaded(found[key]) == {"gpt.py": GPT}
        assert [note.id for note in found[key].notes] == ["intake.no-time.no-repository"]
    assert found["hw-nova"].submitted == datetime.datetime(2026, 3, 1, 18, 0, tzinfo=datetime.UTC)
    assert found["hw-zed"].submitted == datetime.datetime(2026, 3, 2, 16, 0, tzinfo=datetime.UTC)
    assert found["hw-empty"].submitted is None
    assert [note.id for note in found["hw-empty"].notes] == ["intake.no-time.no-commit"]
    assert loaded(found["hw-nova"]) == {"gpt.py": GPT}
    assert not marker.exists()


def commit_object(folder: Path, message: bytes) -> str:
    """Write a commit with this message that HEAD does not name, and give its id."""
    text = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor N <n> 1767225600 +0000\n"
    text += b"committer N <n> 1767225600 +0000\n\n" + message
    done = subprocess.run(["git", "hash-object", "-t", "commit", "-w", "--stdin"], cwd=folder, input=text,
                          check=True, capture_output=True)  # fmt: skip
    return done.stdout.decode().strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_commit_as_large_as_a_bomb_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("hw-nova", 2**21), ("hw-zed", 2**19)):
        folder = lay(tmp_path / "all", {f"{name}/gpt.py": GPT}) / name
        git(folder, "init", "-q")
        git(folder, "update-ref", "HEAD", commit_object(folder, b"#" * size))
    # What stands in place of the last commit is not read either.
    git(folder, "replace", "HEAD", commit_object(folder, b"#" * 2**21))
    answers = []

    def run(*arguments: Any, **settings: Any) -> subprocess.CompletedProcess[bytes]:
        answers.append(real(*arguments, **settings))
        return answers[-1]

    real = subprocess.run
    monkeypatch.setattr(subprocess, "run", run)
    found = by_key(read(tmp_path / "all"))
    assert [note.id for note in found["hw-nova"].notes] == ["intake.no-time.large-commit"]
    assert loaded(found["hw-nova"]) == {"gpt.py": GPT}
    assert found["hw-zed"].submitted == datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    assert max(len(answer.stdout) for answer in answers) < 2**20


def test_an_override(tmp_path: Path) -> None:
    lay(tmp_path, {"Nova Q_1_assignsubmission_file/gpt.py": GPT})
    assert read(tmp_path).layout == "moodle"
    intake = read(tmp_path, layout="folders")
    assert (intake.layout, [found.key for found in intake.attempts]) == ("folders", ["Nova Q_1_assignsubmission_file"])
    with pytest.raises(Problem, match="does not look like the layout 'canvas'") as error:
        read(tmp_path, layout="canvas")
    assert "read as 'moodle'" in error.value.help
    with pytest.raises(Problem, match="no layout 'cavnas'") as error:
        read(tmp_path, layout="cavnas")
    assert "canvas, moodle" in error.value.help


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="There are no submissions"):
        read(tmp_path)
    (tmp_path / "scores.csv").touch()
    with pytest.raises(Problem, match="There are no submissions") as error:
        read(tmp_path)
    assert "scores.csv" in error.value.help
    with pytest.raises(Problem, match="There is no"):
        read(tmp_path / "nowhere")
    with pytest.raises(Problem, match="is empty") as error:
        read(tmp_path / "scores.csv")
    assert "download it again" in error.value.help


def test_a_class_zip_keeps_students_apart_whose_names_differ_by_case(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    path.write_bytes(make_zip({"doe/gpt.py": GPT, "Doe/gpt.py": ROPE, "../evil/gpt.py": GPT}))
    intake = read(path)
    assert {found.key: loaded(found)["gpt.py"] for found in intake.attempts} == {"doe": GPT, "Doe": ROPE}
    assert [note.id for note in intake.notes] == ["intake.name"]


CLASS = make_zip({
    "export/submission_metadata.yml": METADATA.encode(), "export/submission_71/gpt.py": GPT,
    "export/submission_72/w.zip": make_zip({"gpt.py": GPT}),
})  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(changes=st.lists(st.tuples(st.integers(0, len(CLASS) - 1), st.integers(0, 255)), max_size=6),
       cut=st.integers(0, len(CLASS)))  # fmt: skip
def test_a_damaged_class_zip_is_read_or_refused(tmp_path: Path, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(CLASS)
    for at, value in changes:
        data[at] = value
    path = tmp_path / f"{uuid.uuid4()}.zip"
    path.write_bytes(data[: cut or None])
    try:
        attempts = read(path).attempts
    except Problem as problem:
        assert problem.what
    else:
        for found in attempts:
            result = found.load(EXPECTED)
            assert isinstance(result, Submission) or result.render()


def test_torch_is_not_needed() -> None:
    code = "import sys, harness.intake.attempts; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
