"""The folder of results: whole files, one writer, what happens when it is full, closed to writing or damaged."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harness import files
from harness.batch.store import Store, pack
from harness.batch.summary import rebuild
from harness.problem import Problem
from tests.support.fake_judge import POINTS, Class


@pytest.fixture
def three(tmp_path: Path) -> Class:
    return Class(tmp_path, {"ada": "heads.a failed", "ben": "", "cy": "heads.a failed\nheads.a! heads.x"})


def test_a_result_holds_the_submitted_bytes(three: Class) -> None:
    three.run()
    archive = three.store.path / "ada" / "submission.zip"
    with zipfile.ZipFile(archive) as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == {"gpt.py": b"heads.a failed"}


def test_the_same_files_give_the_same_archive_whatever_their_names() -> None:
    odd = {"b.py": b"1", "a\udcff.py": b"2", "con.txt": b"3", "a:b?.py": b"4"}
    assert pack(odd) == pack(dict(reversed(odd.items())))
    assert len(zipfile.ZipFile(io.BytesIO(pack(odd))).namelist()) == 4


@pytest.mark.parametrize("name", ["report.json", "key.json"])
@pytest.mark.parametrize("damage", ["gone", "empty", "half", "other"])
def test_a_damaged_result_is_made_again(three: Class, name: str, damage: str) -> None:
    three.run()
    path = three.store.path / "ada" / name
    whole = path.read_bytes()
    path.write_bytes({"gone": b"", "empty": b"", "half": whole[: len(whole) // 2], "other": b"[1]"}[damage])
    if damage == "gone":
        path.unlink()
    three.run()
    assert three.judged == ["ada"]
    assert three.report("ada").score.earned == three.report("ben").score.earned - POINTS


def test_a_crash_between_any_two_writes_leaves_whole_files_and_is_made_good(
    three: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step of a save fails once; the results afterwards are those of an undisturbed run."""
    three.run()
    undisturbed = _contents(three.store.path)
    steps = 0
    real = files.write_atomically
    for failing in range(1, 10):
        with three.store.locked():
            three.store.forget()
        count = 0

        def write(path: Path, data: bytes, failing: int = failing) -> None:
            nonlocal count
            count += 1
            if count == failing:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(path, data)

        monkeypatch.setattr(files, "write_atomically", write)
        with pytest.raises(Problem, match="No space left"):
            three.run()
        monkeypatch.setattr(files, "write_atomically", real)
        steps += 1
        three.run()
        assert _contents(three.store.path) == undisturbed
    assert steps == 9  # three files for each of three results


def _contents(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != ".lock":
            data = path.read_bytes()
            found[path.relative_to(folder).as_posix()] = _timeless(data) if path.name == "report.json" else data
    return found


def _timeless(data: bytes) -> object:
    return {key: value for key, value in json.loads(data).items() if key not in ("started", "seconds")}


def test_what_could_not_be_read_is_kept_beside_the_new_report(three: Class) -> None:
    three.run()
    path = three.store.path / "ada" / "report.json"
    damaged = path.read_bytes()[:100]
    path.write_bytes(damaged)
    three.run()
    assert three.store.read("ada") is not None
    assert (path.parent / "report.damaged.json").read_bytes() == damaged


def test_a_report_of_a_newer_version_is_not_written_over(three: Class) -> None:
    three.run()
    path = three.store.path / "ada" / "report.json"
    newer = path.read_bytes().replace(b'"schema_version": "1"', b'"schema_version": "2"')
    path.write_bytes(newer)
    with pytest.raises(Problem, match=r"report\.json"):
        three.run()
    assert path.read_bytes() == newer


def test_fresh_forgets_results_and_leaves_what_is_not_theirs(three: Class) -> None:
    three.run()
    note = three.store.path / "ada" / "note.txt"
    note.write_text("mine", encoding="utf-8")
    with three.store.locked():
        three.store.forget()
    assert three.store.ids() == []
    assert note.read_text(encoding="utf-8") == "mine"
    assert not (three.store.path / "ben").exists()


def test_a_second_writer_is_refused_and_the_lock_of_a_dead_one_is_taken_over(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c",
         "import sys; from pathlib import Path; from harness.batch.store import Store\n"
         "with Store(Path(sys.argv[1])).locked():\n print('held', flush=True); sys.stdin.read()", str(tmp_path / "r")],
        cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(Problem, match="Another batch is writing"), Store(tmp_path / "r").locked():
            pass
    finally:
        holder.kill()
        holder.communicate()
    with Store(tmp_path / "r").locked():
        pass


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(Problem, match="could not be written"), Store(tmp_path / "file" / "results").locked():
        pass


@pytest.fixture
def tiny(tmp_path: Path):  # type: ignore[no-untyped-def]
    """A file system of 64 KiB."""
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("mounting a small file system takes root on Linux")
    folder = tmp_path / "results"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"no file system may be mounted here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_loses_nothing_that_was_finished(tiny: Path, tmp_path: Path) -> None:
    cls = Class(tmp_path, {f"s{number:02}": str(number) for number in range(40)})
    with pytest.raises(Problem, match="No space left"):
        cls.run()
    kept = cls.store.ids()
    assert 0 < len(kept) < 40
    assert not list(tiny.rglob(".*.json*")), "no half-written file stays"
    subprocess.run(["mount", "-o", "remount,size=4m", str(tiny)], check=True)
    cls.run()
    assert len(cls.store.ids()) == 40
    assert len(cls.judged) <= 40 - len(kept) + 1


def test_a_results_folder_that_is_read_only(tiny: Path, tmp_path: Path) -> None:
    cls = Class(tmp_path, {"ada": ""})
    subprocess.run(["mount", "-o", "remount,ro", str(tiny)], check=True)
    with pytest.raises(Problem, match="Read-only file system"):
        cls.run()
    assert cls.executor.orders == []


def test_figures_of_a_class(three: Class) -> None:
    three.hand_in("dee", "heads.a failed\nheads.b failed\nrope.a failed\nrope.b failed")
    three.run()
    summary = rebuild(three.store)
    heads = {check.id: check for check in summary.checks}
    assert (heads["heads.a"].pass_rate, heads["heads.b"].pass_rate, heads["order.a"].pass_rate) == (0.25, 0.75, 1.0)
    # heads.a is 0, 4, 0, 0 and the rest of the score 20, 20, 20, 8: r = 12 / (sqrt(12) * sqrt(108))
    assert heads["heads.a"].discrimination == pytest.approx(1 / 3, abs=1e-3)
    assert heads["order.a"].discrimination is None
    assert [(item.id, item.students, item.checks) for item in summary.misconceptions] == [("heads.x", 1, ["heads.a"])]
    assert summary.scores is not None and (summary.scores.mean, summary.scores.median) == (18, 20)
    lines = (three.store.path / "scores.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("id,name,email,section,state,final") and len(lines) == 5
    assert json.loads((three.store.path / "summary.json").read_bytes())["results"] == 4


def test_a_name_that_a_spreadsheet_would_compute_is_text(tmp_path: Path) -> None:
    cls = Class(tmp_path, {"ada": ""})
    roster = tmp_path / "roster.csv"
    roster.write_text('id,name,github\n=1+1,"=HYPERLINK(1)",ada\n', encoding="utf-8")
    cls.run(plan=cls.plan(roster))
    rebuild(cls.store)
    assert "'=1+1,'=HYPERLINK(1)," in (cls.store.path / "scores.csv").read_text(encoding="utf-8")
