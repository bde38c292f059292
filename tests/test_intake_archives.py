"""Zip archives from strangers: what is read, what is left out, what is refused, and that nothing else can happen."""

from __future__ import annotations

import stat
import struct
import unicodedata
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import submission
from harness.intake import archives
from harness.submission import Unreadable, read_submission
from tests.support.archive import locked, make_zip, with_raw_name, zip_of

EXPECTED = ("gpt.py", "rope.py")
GPT = b"import torch\n"


def read(data: bytes) -> tuple[dict[str, bytes], list[str]]:
    found, notes = archives.read_zip(data, "work.zip", EXPECTED)
    for note in notes:
        assert note.render()
    return found, [note.id for note in notes]


def refusal(data: bytes) -> str:
    with pytest.raises(Unreadable) as error:
        archives.read_zip(data, "work.zip", EXPECTED)
    assert "work.zip" in error.value.message.render()
    return error.value.message.id


def test_an_ordinary_archive() -> None:
    assert read(make_zip({"gpt.py": GPT, "notes/plan.txt": "x"})) == ({"gpt.py": GPT, "notes/plan.txt": b"x"}, [])


def test_what_systems_add_is_ignored() -> None:
    noise = {
        "__MACOSX/._gpt.py": "x",
        ".DS_Store": "x",
        "a/.DS_Store": "x",
        "__pycache__/gpt.pyc": "x",
        ".git/HEAD": "x",
    }
    assert read(make_zip({"gpt.py": GPT, **noise})) == ({"gpt.py": GPT}, [])


@pytest.mark.parametrize("folder", ["work/", "my work/heads/", "./work//"])
def test_folders_around_the_course_files_are_unwrapped(folder: str) -> None:
    found, _ = read(make_zip({f"{folder}gpt.py": GPT, f"{folder}extra/a.py": "", "__MACOSX/work/._gpt.py": "x"}))
    assert set(found) == {"gpt.py", "extra/a.py"}


@pytest.mark.parametrize("names", [("work/a.py",), ("work/gpt.py", "b.py"), ("a/gpt.py", "b/rope.py")])
def test_other_folders_are_left_as_they_are(names: tuple[str, ...]) -> None:
    assert set(read(make_zip(dict.fromkeys(names, "")))[0]) == set(names)


@pytest.mark.parametrize(
    "name", ["../gpt.py", "a/../../gpt.py", "a\\..\\..\\b.py", "/etc/x.py", "\\\\host\\x.py", "C:/x.py", "c:x.py",
             "a\nb.py", "a\x1b[2Jb.py", "\u202eyp.tpg", "x" * 256 + ".py", "a/" * 600 + "b.py",
             "a/" * 60 + "b.py"],
)  # fmt: skip
def test_names_that_lead_astray_are_left_out(name: str) -> None:
    found, notes = read(make_zip({"gpt.py": GPT, name: "bad"}))
    assert (found, notes) == ({"gpt.py": GPT}, ["intake.name"])


def test_a_name_with_a_null_byte_is_left_out() -> None:
    found, notes = read(with_raw_name(make_zip({"gpt.py": GPT, "rope.pyQ": "bad"}), b"rope.pyQ", b"rope.py\0"))
    assert (found, notes) == ({"gpt.py": GPT}, ["intake.name"])


def test_backslashes_separate_folders() -> None:
    assert set(read(make_zip({"work\\gpt.py": GPT, "work\\sub\\": "", "work\\sub\\a.py": ""}))[0]) == {
        "gpt.py",
        "sub/a.py",
    }


def test_the_last_of_two_equal_names_counts_and_is_named() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # zipfile warns of what this test is about
        data = zip_of(("gpt.py", b"first"), ("gpt.py", b"second"))
    assert read(data) == ({"gpt.py": b"second"}, ["intake.duplicate"])


def test_of_names_that_differ_by_case_the_course_file_counts() -> None:
    for names in (("gpt.py", "GPT.py"), ("GPT.py", "gpt.py")):
        found, notes = read(make_zip({name: name for name in names}))
        assert (found, notes) == ({"gpt.py": b"gpt.py"}, ["intake.same-name"])


def test_names_are_compared_in_one_unicode_form() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        data = zip_of(*((unicodedata.normalize(form, "éa.txt"), form.encode()) for form in ("NFC", "NFD")))
    assert read(data)[0] == {"éa.txt": b"NFD"}


def test_a_file_cannot_also_be_a_folder() -> None:
    found, notes = read(make_zip({"gpt.py": GPT, "GPT.py/rope.py": "x"}))
    assert (found, notes) == ({"gpt.py": GPT}, ["intake.inside-file"])


def test_links_and_pipes_are_left_out() -> None:
    for kind, note in ((stat.S_IFLNK, "submission.link"), (stat.S_IFIFO, "intake.special-entry")):
        assert read(zip_of(("gpt.py", b"/etc/passwd"), mode=kind | 0o777)) == ({}, [note])


def test_archives_inside_are_kept_closed() -> None:
    inner = make_zip({"rope.py": "x"})
    found, notes = read(make_zip({"gpt.py": GPT, "more.ZIP": inner}))
    assert (set(found), notes) == ({"gpt.py", "more.ZIP"}, ["intake.nested"])


@pytest.mark.parametrize(
    ("raw", "name"),
    [("说明.txt".encode("gbk"), "说明.txt"), ("説明é.txt".encode(), "説明é.txt"),
     ("été.txt".encode("cp437"), "été.txt"), ("übung.txt".encode("cp437"), "übung.txt")],
)  # fmt: skip
def test_names_in_another_encoding(raw: bytes, name: str) -> None:
    placeholder = b"Q" * len(raw)
    found, _ = read(with_raw_name(make_zip({placeholder.decode(): "x", "gpt.py": GPT}), placeholder, raw))
    assert set(found) == {name, "gpt.py"}


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=40))
def test_no_name_is_lost_to_its_encoding(raw: bytes) -> None:
    info = zipfile.ZipInfo()
    info.orig_filename = raw.decode("cp437")
    name = archives.original_name(info)
    assert raw in (name.encode(encoding, "replace") for encoding in ("utf-8", "gbk", "cp437"))


def test_a_password() -> None:
    assert refusal(locked(make_zip({"gpt.py": GPT}))) == "intake.encrypted"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_cannot_be_held_to_a_size(method: int) -> None:
    assert refusal(make_zip({"gpt.py": GPT}, method)) == "intake.method"


def test_not_a_zip() -> None:
    whole = make_zip({"gpt.py": GPT * 500})
    assert refusal(whole[: len(whole) // 2]) == "intake.not-zip"
    assert refusal(b"") == "intake.empty"
    assert refusal(b"hello") == "intake.not-zip"
    assert refusal(b"Rar!\x1a\x07\x01\x00rest") == "intake.archive-kind"


def test_damage_inside() -> None:
    data = bytearray(make_zip({"gpt.py": GPT * 100}, zipfile.ZIP_STORED))
    data[60] ^= 0xFF
    assert refusal(bytes(data)) == "intake.corrupt-file"


def test_bombs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(make_zip({"gpt.py": GPT, "zeros.bin": bytes(4 * 2**20)})) == "intake.bomb"
    monkeypatch.setattr(submission, "MAX_BYTES", 1000)
    assert refusal(make_zip({f"{i}.py": bytes(range(250)) for i in range(5)})) == "intake.too-big"
    monkeypatch.setattr(submission, "MAX_FILES", 3)
    assert refusal(make_zip({f"{i}.py": "" for i in range(4)})) == "intake.too-many"


def test_a_size_that_lies_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_zip({"gpt.py": bytes(range(256)) * 100})
    monkeypatch.setattr(submission, "MAX_BYTES", 10_000)
    small = data.replace(struct.pack("<L", 25_600), struct.pack("<L", 10))
    assert small != data
    assert refusal(small) == "intake.corrupt-file"
    assert refusal(data) == "intake.too-big"


def test_a_table_of_contents_that_is_too_large() -> None:
    assert refusal(make_zip({"x" * 200 + f"/{i}.py": "" for i in range(5000)})) == "intake.directory"


def test_read_submission_takes_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "work.zip"
    path.write_bytes(make_zip({"work/gpt.py": GPT, "../x.py": "x"}))
    read_in = read_submission(path, EXPECTED)
    assert read_in.files == {"gpt.py": GPT}
    assert [note.id for note in read_in.notes] == ["intake.name"]


def test_a_name_that_is_not_utf8_is_left_out_and_said(tmp_path: Path) -> None:
    """Such names come from old disks; nothing that a report or a judge is told could hold them."""
    folder = tmp_path / "caf\udce9"
    try:
        folder.mkdir()
        (folder / "caf\udce9.txt").write_bytes(b"x")
    except OSError as error:
        pytest.skip(f"this system has no such names: {error}")
    (folder / "gpt.py").write_bytes(GPT)
    read_in = read_submission(folder, EXPECTED)
    assert (read_in.name, read_in.files) == ("caf?", {"gpt.py": GPT})
    assert [(note.id, note.params) for note in read_in.notes] == [("submission.name", {"file": "caf?.txt"})]


BASE = make_zip({"work/gpt.py": GPT * 20, "work/说明.txt": "x", "rope.py": "y"})


@settings(deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, len(BASE) - 1), st.integers(0, 255)), max_size=8),
    cut=st.integers(0, len(BASE)),
    extra=st.binary(max_size=30),
)
def test_mutated_archives_are_read_or_refused(changes: list[tuple[int, int]], cut: int, extra: bytes) -> None:
    data = bytearray(BASE)
    for at, value in changes:
        data[at] = value
    try:
        found, notes = archives.read_zip(bytes(data[: cut or None]) + extra, "work.zip", EXPECTED)
    except Unreadable as refused:
        assert refused.message.render()
    else:
        assert all(archives.clean_name(name) == name for name in found)
        assert all(note.render() for note in notes)
