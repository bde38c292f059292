"""The student's bundle: grades as the course does, from an empty folder, and holds no answer."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness import report
from harness.authoring.bundle import _catalogue, _settings, pack, public_files, without_checks
from harness.authoring.recording import FILE
from harness.authoring.template import find_regions
from harness.authoring.variants import load_variants
from harness.course import read_course
from harness.files import read_sources
from harness.judge import JudgeProcess, Order
from tests.support.command import ROOT

REFERENCE = ROOT / "reference"


@pytest.fixture(scope="module")
def unzipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("bundle")
    done = subprocess.run(
        [sys.executable, "grade.py", "bundle", "student", "--out", str(folder / "student.zip")],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(folder / "student.zip") as archive:
        archive.extractall(folder / "course")
    yield folder / "course"


def answers() -> list[str]:
    """Lines of code between answer marks that are long enough to mean something."""
    found = []
    for path in sorted(REFERENCE.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        for region in find_regions(source, path.name):
            inside = lines[region.start + len(region.more) : region.end - 1]
            found += [line.partition("  # ")[0].strip() for line in inside]
    return [line for line in found if len(line) > 8 and not line.startswith(("#", "import "))]


def test_no_line_of_an_answer_is_in_its_files() -> None:
    """Graders and harness are other code: what they share with an answer by chance is listed here."""
    content = public_files(read_course())
    assert not any(
        name.startswith(("reference/", "graders/accepted", "graders/mis", "graders/deg")) for name in content
    )
    text = "\n".join(data.decode("utf-8", "replace") for data in content.values())
    lines = {line.strip().partition("  # ")[0] for line in text.splitlines()}
    wanted = answers()
    assert len(wanted) > 60
    assert {line for line in wanted if line in lines} <= {
        "with torch.no_grad():", "model.eval()"
    }  # fmt: skip


@pytest.mark.slow
def test_the_recording_holds_values_and_no_code(unzipped: Path) -> None:
    recording = (unzipped / FILE).read_bytes()
    for line in answers():
        assert line.encode() not in recording, line
    for variant in load_variants(ROOT / "graders" / "misconceptions"):
        for function in variant.functions:
            assert function.source.encode() not in recording


@pytest.mark.slow
def test_the_manifest_covers_every_file(unzipped: Path) -> None:
    listed = dict(
        reversed(line.split("  ", 1)) for line in (unzipped / "MANIFEST.sha256").read_text("utf-8").splitlines()
    )
    there = {path.relative_to(unzipped).as_posix() for path in unzipped.rglob("*") if path.is_file()}
    assert set(listed) == {name for name in there if "__pycache__" not in name and name != "MANIFEST.sha256"}
    for name, digest in listed.items():
        assert hashlib.sha256((unzipped / name).read_bytes()).hexdigest() == digest


@pytest.mark.slow
def test_it_grades_from_an_empty_folder_and_refuses_other_seeds(unzipped: Path, tmp_path: Path) -> None:
    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(unzipped / "grade.py"), *map(str, words)],
            cwd=tmp_path, capture_output=True, encoding="utf-8", check=False,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )  # fmt: skip

    right = run(REFERENCE)
    assert right.returncode == 0, right.stdout + right.stderr
    assert "Score 100 / 100" in right.stdout
    template = run()
    assert template.returncode == 1 and "Score 0 / 100" in template.stdout, template.stdout + template.stderr
    other = run(REFERENCE, "--seed", "1")
    assert other.returncode == 2 and "Leave --seed away" in other.stderr


@pytest.mark.slow
def test_verdicts_and_hints_are_those_of_the_live_reference(unzipped: Path) -> None:
    course = read_course()
    reference = {name: text.decode("utf-8") for name, text in read_sources(REFERENCE, ("*.py",)).items()}
    everything = [exercise.id for exercise in course.exercise]
    with_recording, live = JudgeProcess(root=unzipped), JudgeProcess()
    whole: set[str] = set()
    try:
        for variant in load_variants(ROOT / "graders" / "misconceptions"):
            files = {name: text.encode() for name, text in variant.apply(reference).items()}
            exercises = everything if variant.exercise not in whole else [variant.exercise]
            whole.add(variant.exercise)  # one of each goes through all exercises: a mistake explains later ones
            order = Order(name=variant.id, files=files, exercises=exercises, seed=course.seed, trusted=True)
            assert told(with_recording.grade(order)) == told(live.grade(order)), variant.id
    finally:
        with_recording.close()
        live.close()


def told(result: report.Report) -> list[object]:
    assert not result.review
    return [
        (check.id, check.status, check.points, check.message, check.hint, check.misconception, check.caused_by,
         check.evidence)
        for exercise in result.exercises
        for check in exercise.checks
    ]  # fmt: skip


def test_hidden_checks_and_exercises_that_stay_are_cut_out(tmp_path: Path) -> None:
    course = read_course()
    hidden = "heads.split-lesson"
    source = (ROOT / "graders" / "test_heads.py").read_text(encoding="utf-8")
    assert hidden in source
    cut = without_checks(source, {hidden})
    assert f'"{hidden}"' not in cut and cut.count("@check(") == source.count("@check(") - 1
    compile(cut, "test_heads.py", "exec")

    root = tmp_path / "course"
    shutil.copytree(ROOT / "graders", root / "graders", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "student_template", root / "student_template")
    settings = (root / "graders" / "course.toml").read_text(encoding="utf-8")
    first, *rest = settings.split("[limits]")
    settings = f'{first}hidden = ["{hidden}"]\n\n[limits]{"[limits]".join(rest)}'
    settings = settings.replace('id = "rope"\n', 'id = "rope"\nbundled = false\n')
    (root / "graders" / "course.toml").write_text(settings, encoding="utf-8")
    changed = read_course(root / "graders")
    assert changed.hidden == (hidden,)
    content = public_files(changed)
    assert "graders/test_rope.py" not in content
    graders = b"".join(data for name, data in content.items() if name.startswith("graders/"))
    assert hidden.encode() not in graders and b"rope." not in _settings(settings, changed)
    (tmp_path / "out").mkdir()
    for name, data in content.items():
        if name.startswith("graders/"):
            target = tmp_path / "out" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    left = read_course(tmp_path / "out" / "graders")
    assert [exercise.id for exercise in left.exercise] == [e.id for e in course.exercise if e.id != "rope"]
    assert left.hidden == ()


def test_a_catalogue_without_secrets_is_still_a_catalogue() -> None:
    import gettext

    data = next((ROOT / "graders" / "locale").rglob("*.mo")).read_bytes()
    whole = gettext.GNUTranslations(io.BytesIO(data))._catalog  # type: ignore[attr-defined]
    cut = gettext.GNUTranslations(io.BytesIO(_catalogue(data, ("heads.",))))._catalog  # type: ignore[attr-defined]
    expected = {id: text for id, text in whole.items() if not id.startswith("heads.")}
    assert cut == expected and 1 < len(cut) < len(whole)


def test_the_same_course_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the recording, which takes minutes to make."""
    monkeypatch.setattr("harness.authoring.bundle._recording", lambda course: msgspec.msgpack.encode([]))
    for name in ("a.zip", "b.zip"):
        pack(tmp_path / name, read_course())
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
