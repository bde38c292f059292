"""A recorded run replays to the same report, without the reference, and notices a check that asks something else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import torch

from harness import oracle
from harness.oracle import Draw, Modules, Recording, RecordingLink, ReferenceLink, ReplayLink, check_seed
from harness.worker.client import Check, Root
from tests.support.command import ROOT

# Grades as `python grade.py` does, with an oracle that records or replays; imports in the order of harness.cli.
SCRIPT = """
import sys
from pathlib import Path
from harness.worker.torch_import import import_torch
import_torch()
from harness.worker import launch
from harness.course import read_course
from harness.submission import read_submission
course = read_course()
kind, tape, *jobs = sys.argv[1:]
(launcher,) = launch.launchers(launch.best_start_method(), "process")
import msgspec
from harness import report, session
from harness.bench import Bench, reference_modules
from harness.oracle import Recording, RecordingLink, ReferenceLink, ReplayLink
for path, target in zip(jobs[::2], jobs[1::2]):
    if kind == "record":
        recording = Recording(course.seed)
        oracle = RecordingLink(ReferenceLink(reference_modules()), recording)
    else:
        oracle = ReplayLink(msgspec.msgpack.decode(Path(tape).read_bytes(), type=Recording))
    submission = read_submission(Path(path), ("gpt.py",))
    result = session.grade(Bench(submission, course, launcher, oracle, course.seed), course.select("heads"))
    Path(target).write_bytes(report.to_json(result))
    if kind == "record" and target == jobs[1]:
        Path(tape).write_bytes(msgspec.msgpack.encode(recording))
launcher.close()
"""


def run(root: Path, *arguments: Path | str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, arguments)],
        cwd=root,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr


def without_times(file: Path) -> dict[str, object]:
    report = json.loads(file.read_text(encoding="utf-8"))
    for key in ("started", "seconds", "course"):  # the course's digests name the reference, which is away here
        del report[key]
    for exercise in report["exercises"]:
        for check in exercise["checks"]:
            # Naming a mistake takes the reference; everything else must be the same.
            for key in ("seconds", "hint", "misconception", "caused_by"):
                check.pop(key, None)
    return dict(report)


def test_a_recording_gives_the_same_reports_without_the_reference(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    shutil.copytree(ROOT / "reference", wrong, ignore=shutil.ignore_patterns("__pycache__"))
    text = (wrong / "gpt.py").read_text(encoding="utf-8")
    assert text.count("/ D**0.5") == 1
    (wrong / "gpt.py").write_text(text.replace("/ D**0.5", "/ (D + 1) ** 0.5"), encoding="utf-8")
    right = tmp_path / "reference"
    shutil.copytree(ROOT / "reference", right, ignore=shutil.ignore_patterns("__pycache__"))
    bare = tmp_path / "bare"  # a checkout with neither the reference nor anything to diagnose with
    for name in ("harness", "graders"):
        shutil.copytree(ROOT / name, bare / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "pyproject.toml", bare / "pyproject.toml")
    shutil.copytree(bare, tmp_path / "full")
    shutil.copytree(right, tmp_path / "full" / "reference")
    tape = tmp_path / "tape"

    run(tmp_path / "full", "record", tape, right, tmp_path / "r1.json", wrong, tmp_path / "w1.json")
    run(bare, "replay", tape, right, tmp_path / "r2.json", wrong, tmp_path / "w2.json")

    live, replayed = without_times(tmp_path / "r1.json"), without_times(tmp_path / "r2.json")
    assert live == replayed
    assert live["score"]["earned"] == live["score"]["possible"] > 0  # type: ignore[index]
    live, replayed = without_times(tmp_path / "w1.json"), without_times(tmp_path / "w2.json")
    assert live == replayed
    assert 0 < live["score"]["earned"] < live["score"]["possible"]  # type: ignore[index]


# The links themselves, in this process.

SOURCE = "def double(x):\n    return 2 * x\n\ndef fail():\n    raise ValueError('no')\n"


def recorded() -> Recording:
    recording = Recording(5)
    link = RecordingLink(ReferenceLink(Modules({"work": SOURCE}, "there")), recording)
    for name in ("t.one", "t.two"):
        ask(link, name, 3)
    encoded = msgspec.msgpack.encode(recording)
    return msgspec.msgpack.decode(encoded, type=Recording)


def ask(link: RecordingLink | ReplayLink, name: str, size: int) -> torch.Tensor:
    check = Check(link, name, oracle=True)
    check.begin(check_seed(5, name))
    root = Root(check)
    x = root.draw.normal(size)
    return root.work.double(x)  # type: ignore[no-any-return]


def test_a_tape_plays_in_any_order_of_checks_and_again() -> None:
    link = ReplayLink(recorded())
    two, one, again = ask(link, "t.two", 3), ask(link, "t.one", 3), ask(link, "t.two", 3)
    assert torch.equal(two, again)
    assert not torch.equal(one, two)
    assert torch.equal(one, 2 * Draw(check_seed(5, "t.one")).normal(3))


def test_another_question_than_the_recorded_one_is_refused() -> None:
    link = ReplayLink(recorded())
    with pytest.raises(LookupError, match=r"t\.one asked the reference something else"):
        ask(link, "t.one", 4)
    with pytest.raises(LookupError, match=r"holds nothing of t\.three"):
        ask(link, "t.three", 3)
    check = Check(link, "t.one")
    with pytest.raises(LookupError):  # another seed
        check.begin(6)
    check = Check(link, "t.one")
    check.begin(check_seed(5, "t.one"))
    root = Root(check)
    x = root.draw.normal(3)
    with pytest.raises(LookupError):  # what was drawn is right; what is asked about it is not
        root.work.double(x + 1)


def test_more_questions_than_recorded_are_refused() -> None:
    link = ReplayLink(recorded())
    check = Check(link, "t.one")
    check.begin(check_seed(5, "t.one"))
    root = Root(check)
    x = root.draw.normal(3)
    root.work.double(x)
    with pytest.raises(LookupError):
        root.draw.normal(3)


def test_a_question_that_the_tape_does_not_have_is_the_graders_fault() -> None:
    from harness.plugin import explain

    link = ReplayLink(recorded())
    with pytest.raises(LookupError) as caught:
        ask(link, "t.one", 4)
    assert explain(caught.value, "").status == "grader_error"


def test_seeds_differ_by_check_and_run_and_fit_in_63_bits() -> None:
    seeds = {check_seed(seed, name) for seed in (0, 1, 2**63 - 1) for name in ("a.b", "a.c", "b.a")}
    assert len(seeds) == 9
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_compiled_code_is_kept_for_as_long_as_the_text_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "m.py"

    def load(text: str) -> int:
        file.write_text(text, encoding="utf-8")
        os.utime(file, (1, 1))  # as of an unpacked archive
        oracle._compiled.cache_clear()  # another process
        found: int = Modules({"m": text}, str(tmp_path), kept=True).load("m").X
        return found

    assert load("X = 1\n") == 1
    (kept,) = (tmp_path / "__pycache__").iterdir()
    before = kept.stat()
    assert load("X = 1\n") == 1 and kept.stat().st_ino == before.st_ino  # else it is written anew, as another file
    assert load("X = 2\n") == 2 and kept.stat().st_ino != before.st_ino
