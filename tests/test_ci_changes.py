"""What a pull request changes, on real repositories: which submissions, which of their files, and what is refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.ci import changes
from harness.ci.git import Repository
from harness.course import read_course
from harness.problem import Problem
from harness.submission import MAX_BYTES, Submission, Unreadable
from tests.support.repository import Upstream, answer

FILES = ("sampling.py",)


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream(tmp_path / "upstream")


def find(upstream: Upstream, under: str | None = None, base: str = "main", head: str = "pr") -> changes.Changes:
    course = read_course(upstream.folder / "graders")
    return changes.find(Repository(upstream.folder), base, head, course, under)


def read(upstream: Upstream, folder: changes.Folder) -> Submission:
    return changes.read(Repository(upstream.folder), folder, FILES)


def paths(found: changes.Changes) -> list[str]:
    return [folder.path for folder in found.folders]


def test_only_what_changed_is_graded_with_all_of_its_files(upstream: Upstream) -> None:
    upstream.commit({"work/anna/helper.py": "x = 1\n", "work/anna/.env": "hidden\n"})
    upstream.pull_request({"work/anna/sampling.py": answer()})
    found = find(upstream)
    assert paths(found) == ["work/anna"]
    assert not found.ignored and not found.removed and not found.misplaced
    submission = read(upstream, found.folders[0])
    assert submission.files == {"sampling.py": answer().encode(), "helper.py": b"x = 1\n"}
    assert submission.name == "work/anna" and not submission.notes


def test_what_the_base_did_since_is_not_the_pull_requests(upstream: Upstream) -> None:
    upstream.pull_request({"work/anna/sampling.py": answer()})
    upstream.commit({"work/ben/sampling.py": answer(wrong=True), "README.md": "Changed.\n"})
    found = find(upstream)
    assert paths(found) == ["work/anna"] and not found.ignored


def test_a_helper_file_alone_makes_its_submission_graded(upstream: Upstream) -> None:
    upstream.pull_request({"work/anna/deep/helper.py": "x = 1\n"})
    assert paths(find(upstream)) == ["work/anna"]


def test_several_students_and_the_template(upstream: Upstream) -> None:
    upstream.pull_request({
        "work/anna/sampling.py": answer(),
        "work/ben/sampling.py": answer(wrong=True),
        "work/carla/sampling.py": answer(),
        "student_template/sampling.py": answer(),
    })  # fmt: skip
    assert paths(find(upstream)) == ["student_template", "work/anna", "work/ben", "work/carla"]
    found = find(upstream, under="work/b")
    assert paths(found) == []  # a folder, not a prefix of names
    assert paths(find(upstream, under="work/ben/")) == ["work/ben"]


def test_a_submission_within_another_is_its_own(upstream: Upstream) -> None:
    upstream.pull_request({"work/sampling.py": answer(), "work/helper.py": "x = 1\n"})
    found = find(upstream)
    assert paths(found) == ["work"]
    assert set(read(upstream, found.folders[0]).files) == {"sampling.py", "helper.py"}  # nobody else's


def test_work_at_the_top_of_a_students_own_repository(upstream: Upstream, tmp_path: Path) -> None:
    course = read_course(upstream.folder / "graders")
    own = Upstream(tmp_path / "own")
    own.git("rm", "-rq", "graders", "reference", "student_template", "work")
    own.commit({"sampling.py": answer(wrong=True)})
    own.pull_request({"sampling.py": answer(), ".github/workflows/grade.yml": "on: push\n"})
    found = changes.find(Repository(own.folder), "main", "pr", course)
    assert [folder.name for folder in found.folders] == ["."]
    submission = changes.read(Repository(own.folder), found.folders[0], FILES)
    assert set(submission.files) == {"sampling.py", "README.md"}
    assert found.ignored == (".github/workflows/grade.yml",)


def test_a_file_of_the_course_beside_the_graders_does_not_make_them_a_submission(upstream: Upstream) -> None:
    upstream.pull_request({"sampling.py": answer(), "graders/test_temperature.py": "# nothing\n"})
    found = find(upstream)
    assert paths(found) == [""] and found.ignored == ("graders/test_temperature.py",)
    assert set(read(upstream, found.folders[0]).files) == {"sampling.py", "README.md"}


def test_a_grader_edited_in_the_pull_request_is_listed_and_not_used(upstream: Upstream) -> None:
    edited = {"graders/test_temperature.py": "# nothing\n", "reference/sampling.py": "x = 1\n",
              ".github/workflows/grade.yml": "on: push\n", "work/anna/sampling.py": answer()}  # fmt: skip
    upstream.pull_request(edited)
    found = find(upstream)
    assert paths(found) == ["work/anna"]
    assert set(found.ignored) == set(edited) - {"work/anna/sampling.py"}


def test_a_checkout_of_the_pull_request_must_not_judge(upstream: Upstream) -> None:
    upstream.pull_request({"graders/test_temperature.py": "# nothing\n", "work/anna/sampling.py": answer()})
    upstream.git("checkout", "-q", "pr")
    with pytest.raises(Problem, match="graders in this checkout is not that of the base") as caught:
        find(upstream)
    assert "git checkout --detach" in caught.value.help


def test_nothing_gradable(upstream: Upstream) -> None:
    upstream.pull_request({"README.md": "Changed.\n", "docs/x.md": "New.\n"})
    found = find(upstream)
    assert not found.folders and found.ignored == ("README.md", "docs/x.md")


def test_work_outside_the_folder_that_is_asked_for(upstream: Upstream) -> None:
    upstream.pull_request({"elsewhere/sampling.py": answer(), "elsewhere/notes.txt": "x\n"})
    found = find(upstream, under="work")
    assert not found.folders
    assert found.misplaced == ("elsewhere/sampling.py",) and found.ignored == ("elsewhere/notes.txt",)


@pytest.mark.parametrize("under", ["../work", "/work", "work/../../x", "C:/work"])
def test_a_folder_outside_the_repository(upstream: Upstream, under: str) -> None:
    upstream.pull_request({"work/anna/sampling.py": answer()})
    with pytest.raises(Problem, match="--path"):
        find(upstream, under=under)


def test_deleted_files(upstream: Upstream) -> None:
    upstream.commit({"work/anna/helper.py": "x = 1\n", "work/ben/helper.py": "x = 1\n"})
    upstream.pull_request({"work/anna/helper.py": None, "work/ben/sampling.py": None})
    found = find(upstream)
    assert paths(found) == ["work/anna", "work/ben"]
    assert set(read(upstream, found.folders[0]).files) == {"sampling.py"}
    without = read(upstream, found.folders[1])
    assert set(without.files) == {"helper.py"}
    assert [note.id for note in without.notes] == ["submission.nothing"]


def test_a_folder_that_is_gone_is_not_graded(upstream: Upstream) -> None:
    upstream.pull_request({"work/ben/sampling.py": None})
    found = find(upstream)
    assert not found.folders and found.removed == ("work/ben",)


def test_links_and_submodules_are_not_followed(upstream: Upstream) -> None:
    commit = upstream.git("rev-parse", "main")
    upstream.raw_pull_request({
        b"work/mallory/sampling.py": ("120000", b"../../reference/sampling.py"),
        b"work/mallory/secret.py": ("120000", b"/etc/passwd"),
        b"work/mallory/module": ("160000", commit.encode()),
        b"work/nina": ("120000", b"anna"),
        b".gitmodules": ("100644", b'[submodule "m"]\npath = work/mallory/module\nurl = --upload-pack=touch x\n'),
    })  # fmt: skip
    found = find(upstream)
    assert paths(found) == ["work/mallory"]
    submission = read(upstream, found.folders[0])
    assert submission.files == {}
    assert sorted(note.id for note in submission.notes) == [
        "intake.special-entry", "submission.link", "submission.link", "submission.nothing",
    ]  # fmt: skip
    assert "work/nina" in found.ignored


def test_names_that_no_system_should_see_are_left_out(upstream: Upstream) -> None:
    upstream.raw_pull_request({
        b"work/mallory/sampling.py": ("100644", answer().encode()),
        b"work/mallory/a\n::error::b.py": ("100644", b"x"),
        b"work/mallory/\xff.py": ("100644", b"x"),
        b"work/mallory/..\\..\\up.py": ("100644", b"x"),
        b"work/mallory/SAMPLING.py": ("100644", b"x"),
    })  # fmt: skip
    submission = read(upstream, find(upstream).folders[0])
    assert submission.files == {"sampling.py": answer().encode()}
    assert [note.id for note in submission.notes].count("intake.name") == 3
    assert all("\n" not in note.render() for note in submission.notes)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.pull_request({"work/anna/sampling.py": answer(), "work/anna/big.bin": "0" * (MAX_BYTES + 1)})
    folder = find(upstream).folders[0]

    def contents(*_: object) -> list[bytes]:
        raise AssertionError("read in spite of its size")

    monkeypatch.setattr(Repository, "contents", contents)
    with pytest.raises(Unreadable, match="work/anna holds more than 50 MiB"):
        read(upstream, folder)


def test_a_shallow_clone_says_what_it_lacks(upstream: Upstream, tmp_path: Path) -> None:
    base = upstream.git("rev-parse", "main")
    head = upstream.pull_request({"work/anna/sampling.py": answer()})
    shallow = clone(upstream, tmp_path / "shallow", "--depth=1", "--branch=pr")
    with pytest.raises(Problem, match="There is no commit") as caught:
        find(shallow, base=base, head="HEAD")
    assert "fetch-depth: 0" in caught.value.help and "GIT_DEPTH" in caught.value.help
    deep = clone(upstream, tmp_path / "deep", "--depth=2", "--branch=pr")
    assert paths(find(deep, base=base, head=head)) == ["work/anna"]  # as deep as the pull request is enough


def test_a_shallow_clone_without_common_history(upstream: Upstream, tmp_path: Path) -> None:
    upstream.pull_request({"work/anna/sampling.py": answer()})
    upstream.commit({"README.md": "Later.\n"})
    shallow = clone(upstream, tmp_path / "shallow", "--depth=1", "--no-single-branch")
    with pytest.raises(Problem, match="no common history") as caught:
        find(shallow, base="origin/main", head="origin/pr")
    assert "fetch-depth: 0" in caught.value.help


def test_unrelated_histories(upstream: Upstream) -> None:
    upstream.git("checkout", "-q", "--orphan", "pr")
    upstream.commit({"README.md": "Another beginning.\n"})
    upstream.git("checkout", "-q", "main")
    with pytest.raises(Problem, match="no common history") as caught:
        find(upstream)
    assert "--base" in caught.value.help


def test_a_clone_without_the_blobs_fetches_nothing(upstream: Upstream, tmp_path: Path) -> None:
    upstream.git("config", "uploadpack.allowFilter", "true")
    upstream.pull_request({"work/anna/sampling.py": answer()})
    partial = clone(upstream, tmp_path / "partial", "--filter=blob:none", "--no-checkout")
    with pytest.raises(Problem):
        found = find(partial, base="origin/main", head="origin/pr")
        read(partial, found.folders[0])
    assert len(partial.git("rev-list", "--objects", "--all", "--missing=print").split("?")) > 1


def test_a_name_that_looks_like_an_option(upstream: Upstream) -> None:
    for name in ("--upload-pack=touch x", "-h", "nowhere", "main..pr"):
        with pytest.raises(Problem, match="There is no commit"):
            find(upstream, head=name)


def test_not_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="not in a git checkout"):
        Repository(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="programs are made with a mode")
def test_no_program_of_the_repositorys_settings_is_started(upstream: Upstream, tmp_path: Path) -> None:
    program, trace = tmp_path / "program", tmp_path / "was-run"
    program.write_text(f"#!/bin/sh\ntouch '{trace}'\n", encoding="utf-8")
    program.chmod(0o755)
    upstream.commit({".gitattributes": "*.py diff=evil filter=evil\n"})
    upstream.pull_request({"work/anna/sampling.py": answer()})
    for setting in ("core.fsmonitor", "core.pager", "diff.external", "diff.evil.command", "diff.evil.textconv",
                    "filter.evil.smudge", "core.sshCommand"):  # fmt: skip
        upstream.git("config", setting, str(program))
    found = find(upstream)
    assert read(upstream, found.folders[0]).files
    assert not trace.exists()
    subprocess.run(["git", "-C", str(upstream.folder), "diff", "main", "pr"], check=False, capture_output=True)
    assert trace.exists()  # an ordinary git does start them


def clone(upstream: Upstream, folder: Path, *options: str) -> Upstream:
    """A clone over git's protocol, as CI makes one."""
    upstream.git("clone", "-q", *options, upstream.folder.as_uri(), str(folder))
    made = object.__new__(Upstream)
    made.folder = folder
    return made
