"""Bundles. The student's grades as the course does, from an empty folder, and holds no answer; the others hold all.

A small course, with a hidden check and a quiz whose keys stay with the graders, goes through everything here; the
course itself takes minutes, and is left to the slow tests.
"""

from __future__ import annotations

import gettext
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from harness import report
from harness.authoring import recording
from harness.authoring.recording import FILE
from harness.authoring.template import find_regions
from harness.authoring.trees import Tensors
from harness.authoring.variants import load_variants
from harness.course import ROOT, Course, read_course
from harness.files import read_sources
from harness.judge import JudgeProcess, Order
from harness.notebook.cells import read_cells
from harness.packing import instructor, student
from harness.packing.contents import MANIFEST
from harness.problem import Problem
from tests.support.command import Command, Finished

SMALL = ROOT / "tests" / "courses" / "pooling"
# What graders and harness, which are other code, share with an answer by chance.
BY_CHANCE = {"with torch.no_grad():", "model.eval()"}
# A check of `evaluate` adds the losses up itself, from what the student's own pieces give.
BY_CHANCE |= {"total = 0.0", "return total / (len(data) - 1)"}


def small() -> Course:
    return read_course(SMALL / "graders")


def unzip(file: Path, folder: Path) -> Path:
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def bundle(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small course's zip for students."""
    out = tmp_path_factory.mktemp("bundle") / "student.zip"
    done = command.run("bundle", "student", "--out", out, "--course", SMALL)
    assert done.status == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def unzipped(bundle: Path) -> Path:
    return unzip(bundle, bundle.parent / "course")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course's own bundle for students, unzipped. Made by a plain `python grade.py`, as its instructor does."""
    folder = tmp_path_factory.mktemp("whole")
    done = alone(ROOT, folder, "bundle", "student", "--out", folder / "student.zip")
    assert done.status == 0, done.stderr
    return unzip(folder / "student.zip", folder / "course")


def alone(root: Path, cwd: Path, *words: str | Path) -> Finished:
    """Run the grade.py of a folder, with nothing of this repository on Python's path."""
    done = subprocess.run(
        [sys.executable, str(root / "grade.py"), *map(str, words)],
        cwd=cwd, capture_output=True, encoding="utf-8", check=False,
        env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HEADCHECK_COURSE")}
        | {"PYTHONUTF8": "1", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    return Finished(done.returncode, done.stdout, done.stderr)


# No answer is in it


def answers(reference: Path) -> list[str]:
    """Lines of code between answer marks that are long enough to mean something."""
    found = []
    for path in sorted(reference.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        for region in find_regions(source, path.name):
            found += [bare(line) for line in lines[region.start + len(region.more) : region.end - 1]]
    return [line for line in found if len(line) > 8 and not line.startswith(("#", "import "))]


def bare(line: str) -> str:
    """A line of code without indentation and comment."""
    return line.partition("  # ")[0].strip()


def text_of(name: str, data: bytes) -> str:
    """A file's code as bare lines; of a notebook, that of its cells."""
    text = "\n".join(read_cells(data)) if name.endswith(".ipynb") else data.decode("utf-8", "replace")
    return "\n".join(map(bare, text.splitlines()))


def look_for_answers(content: dict[str, bytes], course: Course) -> None:
    """The scan: no line of an answer, no function of a wrong or right version, in any file."""
    folders = ("reference/", "graders/accepted/", "graders/misconceptions/", "graders/degenerate/")
    assert not [name for name in content if name.startswith(folders)]
    texts = {name: text_of(name, data) for name, data in content.items()}
    lines = {line for text in texts.values() for line in text.splitlines()}
    wanted = answers(course.root / "reference")
    assert wanted and not {line for line in wanted if line in lines} - BY_CHANCE
    joined = "\n".join(texts.values())
    for kind in ("misconceptions", "accepted"):
        for variant in load_variants(course.root / "graders" / kind):
            for function in variant.functions:
                source = "\n".join(map(bare, function.source.splitlines()))
                assert source.count("\n") < 2 or source not in joined, variant.id
    checks = "\n".join(text for name, text in texts.items() if name.startswith("graders/"))
    recorded = recorded_text(content[FILE.as_posix()])  # it has what the checks say, "model(idx) should be a tensor"
    assert not [line for line in wanted if line in recorded and line not in checks]


def recorded_text(data: bytes) -> str:
    """All that can be read in a recording: its bytes as they are, and its texts without their escapes."""
    told = json.loads(load_metadata(data)) if data else {}
    return "\n".join([data.decode("utf-8", "replace"), *texts_in(told)])


def load_metadata(data: bytes) -> str:
    """The format is that of safetensors: eight bytes for the length of a JSON header, the header, the tensors."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return str(header["__metadata__"]["recording"])


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_in(item)


def contents_of(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_no_line_of_an_answer_is_in_it(bundle: Path, tmp_path: Path) -> None:
    look_for_answers(contents_of(unzip(bundle, tmp_path)), small())


def test_the_scan_finds_an_answer(bundle: Path, tmp_path: Path) -> None:
    """In a comment, in a cell of a notebook, in the recording: the test above can fail."""
    content = contents_of(unzip(bundle, tmp_path))
    line = answers(SMALL / "reference")[0]
    notebook = content["student_template/lesson.ipynb"].replace(b"# TODO", f"    {line}\\n# TODO".encode())
    assert notebook != content["student_template/lesson.ipynb"]
    leaks = {"docs/students.md": f"\n    {line}\n".encode(), "student_template/lesson.ipynb": notebook,
             FILE.as_posix(): content[FILE.as_posix()] + line.encode()}  # fmt: skip
    for name, data in leaks.items():
        with pytest.raises(AssertionError):
            look_for_answers(content | {name: data}, small())
    recorded = recording.read(tmp_path)
    assert recorded is not None
    recorded.contents.mistakes[0].hint = f'"quoted", {line}'
    changed = recording.to_bytes(recorded.contents, Tensors())
    assert f'"quoted", {line}' in recorded_text(changed)
    with pytest.raises(AssertionError):
        look_for_answers(content | {FILE.as_posix(): changed}, small())


def test_no_line_of_an_answer_is_in_the_courses_own_files() -> None:
    """All of it but the recording, which takes minutes to make."""
    look_for_answers(student.public_files(read_course()) | {FILE.as_posix(): b""}, read_course())
    assert len(answers(ROOT / "reference")) > 60


@pytest.mark.slow
def test_no_line_of_an_answer_is_in_the_courses_own_bundle(whole: Path) -> None:
    look_for_answers(contents_of(whole), read_course())


# What must stay, stays


def test_keys_and_hidden_checks_are_not_in_it(unzipped: Path) -> None:
    content = contents_of(unzipped)
    graders = {name: data for name, data in content.items() if name.startswith("graders/")}
    graders[FILE.as_posix()] = recorded_text(content[FILE.as_posix()]).encode()
    assert sorted(name for name in graders if name.endswith(".py")) == ["graders/test_pool.py"]
    for secret in (
        rb"pool\.padding(?!-counted)",
        rb"test_padding",
        rb"1e6",
        rb"quiz\.first",
        rb"KEYS",
        rb'"order"',
        rb"is lost",
    ):
        assert not [name for name, data in graders.items() if re.search(secret, data)], secret
    recorded = recording.read(unzipped)
    assert recorded is not None
    shown = {"pool.values", "pool.short"}
    assert set(recorded.contents.tapes) == shown
    assert {check for mistake in recorded.contents.mistakes for check in mistake.checks} <= shown
    left = read_course(unzipped / "graders")
    assert [exercise.id for exercise in left.exercise] == ["pool"] and left.hidden == ()
    assert left.late == small().late and left.seed == small().seed
    assert "student_template/quiz.py" in content  # its questions are for students
    told = content["README.md"].decode("utf-8")
    assert "Graded only when it is handed in: Two questions." in told and "Further checks run when" in told


def test_the_notebook_does_not_ask_for_checks_that_students_do_not_have() -> None:
    code = read_cells((SMALL / "student_template" / "lesson.ipynb").read_bytes())
    assert 'check("pool")' in code and 'check("quiz")' not in code
    assert any("def first()" in source for source in code)


@pytest.mark.parametrize(
    ("usual", "unusual"),
    [
        ('@check(\n    "pool.padding"', 'HARD = "pool.padding"\n\n\n@check(\n    HARD'),
        ('@check(\n    "pool.padding"', "@check(\n    f\"pool.{'padding'}\""),
        ("from harness.grading import", "from pathlib import Path\n\nFROM = Path(__file__).parents[1] / 'reference'\n"
         "WORDS = (FROM / 'lesson' / 'en.md').read_text(encoding='utf-8')\nfrom harness.grading import"),
    ],
    ids=["named-by-a-constant", "named-by-a-formula", "reads-the-reference"],
)  # fmt: skip
def test_what_cannot_be_cut_out_or_does_not_work_stops_the_bundle(
    usual: str, unusual: str, tmp_path: Path, command: Command
) -> None:
    root = copied(tmp_path)
    grader = root / "graders" / "test_pool.py"
    text = grader.read_text(encoding="utf-8")
    assert usual in text
    grader.write_text(text.replace(usual, unusual), encoding="utf-8")
    done = command.run("bundle", "student", "--out", tmp_path / "b.zip", "--course", root)
    told = (
        "needs something that the bundle does not hold"
        if "Path" in unusual
        else "other checks than it should: pool.pad"
    )
    assert done.status == 2 and told in done.stderr
    assert not (tmp_path / "b.zip").exists()


def test_a_solved_template_stops_the_bundle(tmp_path: Path, command: Command) -> None:
    root = copied(tmp_path)
    shutil.copyfile(root / "reference" / "pooling.py", root / "student_template" / "pooling.py")
    done = command.run("bundle", "student", "--out", tmp_path / "b.zip", "--course", root)
    assert done.status == 2 and "student_template/pooling.py is not what the reference gives" in done.stderr
    assert not (tmp_path / "b.zip").exists()


def copied(folder: Path) -> Path:
    root = folder / "course"
    shutil.copytree(SMALL, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('hidden = ["a.b"]\n[[exercise]]\nid = "a"\n[[exercise]]\nid = "q"\n[limits]\nthreads = 1\n', True),
        ('hidden = [\n  "a.b", # ]\n]\n[[exercise]]\nid = "a"\n# q\n[[exercise]]\nid = "q"\n', True),
        ('[[exercise]]\nid = "q"\n\n[[exercise]]\nid = "a"\n', True),
        (' hidden = ["a.b"]\n[[exercise]]\nid = "a"\n[[exercise]]\nid = "q"\n', False),
        ('exercise = [{id = "a"}, {id = "q"}]\n', False),
        ('[[exercise]]\nid = "a"\n [[exercise]]\nid = "q"\n', False),
    ],
)
def test_settings_are_cut_or_refused(text: str, kept: bool) -> None:
    exercises = tuple(msgspec.structs.replace(small().exercise[0], id=id, bundled=id != "q") for id in ("a", "q"))
    course = msgspec.structs.replace(small(), exercise=exercises, hidden=("a.b",))
    if not kept:
        with pytest.raises(Problem, match="cannot be cut"):
            student.settings(text, course)
        return
    cut = student.settings(text, course).decode("utf-8")
    assert 'id = "a"' in cut and '"q"' not in cut and "a.b" not in cut and ("[limits]" in cut) == ("[limits]" in text)


def test_a_catalogue_without_secrets_is_still_a_catalogue() -> None:
    data = next((ROOT / "graders" / "locale").rglob("*.mo")).read_bytes()
    whole = gettext.GNUTranslations(io.BytesIO(data))._catalog  # type: ignore[attr-defined]
    cut = gettext.GNUTranslations(io.BytesIO(student.catalogue(data, ("heads",))))._catalog  # type: ignore[attr-defined]
    expected = {id: text for id, text in whole.items() if not id.startswith("heads.")}
    assert cut == expected and 1 < len(cut) < len(whole)


# It grades


def test_it_grades_from_an_empty_folder_and_refuses_other_seeds(unzipped: Path, tmp_path: Path) -> None:
    shutil.copytree(SMALL / "reference", tmp_path / "right")
    right = alone(unzipped, tmp_path, "right")
    assert right.status == 0 and "Score 6 / 6" in right.stdout, right.stdout + right.stderr
    template = alone(unzipped, tmp_path)
    assert template.status == 1 and "Score 0 / 6" in template.stdout, template.stdout + template.stderr
    other = alone(unzipped, tmp_path, "right", "--seed", "1")
    assert other.status == 2 and "Leave --seed away" in other.stderr
    packed = alone(unzipped, tmp_path, "pack", unzipped / "student_template")
    assert packed.status == 0 and "quiz.py" in packed.stdout
    again = alone(unzipped, tmp_path, "bundle", "student", "--out", "b.zip")
    assert again.status == 2 and "holds no answers" in again.stderr


def test_verdicts_and_hints_are_those_of_the_live_reference(unzipped: Path) -> None:
    same_verdicts(unzipped, small(), {"pool.padding-counted", "pool.divided-by-all"})


@pytest.mark.slow
def test_the_course_grades_from_an_empty_folder(whole: Path, tmp_path: Path) -> None:
    right = alone(whole, tmp_path, ROOT / "reference")
    assert right.status == 0, right.stdout + right.stderr
    assert re.search(r"Score (\d+) / \1\b", right.stdout)
    template = alone(whole, tmp_path)
    assert template.status == 1 and "Score 0 /" in template.stdout, template.stdout + template.stderr


@pytest.mark.slow
def test_verdicts_and_hints_of_the_course_are_those_of_the_live_reference(whole: Path) -> None:
    same_verdicts(whole, read_course(), set())


def same_verdicts(unzipped: Path, course: Course, named: set[str]) -> None:
    """Every known mistake gets from the bundle what it gets from the course, in all that a student sees."""
    reference = {
        name: text.decode("utf-8") for name, text in read_sources(course.root / "reference", ("*.py",)).items()
    }
    everything = [exercise.id for exercise in course.exercise if exercise.bundled]
    judges = [JudgeProcess(root=unzipped), JudgeProcess(root=course.root)]
    through_all: set[str] = set()
    found: set[str] = set()
    different: dict[str, list[tuple[object, object]]] = {}
    try:
        for variant in load_variants(course.root / "graders" / "misconceptions"):
            if variant.exercise not in everything:
                continue
            files = {name: text.encode() for name, text in variant.apply(reference).items()}
            exercises = everything if variant.exercise not in through_all else [variant.exercise]
            through_all.add(variant.exercise)  # one of each: a mistake explains failures in later exercises
            order = Order(name=variant.id, files=files, exercises=exercises, seed=course.seed, trusted=True)
            with ThreadPoolExecutor() as both:
                reports = both.map(lambda judge, order=order: judge.grade(order), judges)
                here, there = (told(report, course) for report in reports)
            assert [check.id for check in here] == [check.id for check in there]
            if here != there:
                different[variant.id] = [pair for pair in zip(here, there, strict=True) if pair[0] != pair[1]]
            found |= {check.misconception for check in here}
    finally:
        for judge in judges:
            judge.close()
    assert not different
    assert named <= found


def told(result: report.Report, course: Course) -> list[report.CheckResult]:
    """What students see of each check that they have, but for times."""
    assert not result.review
    checks = [check for exercise in result.exercises for check in exercise.checks if check.id not in course.hidden]
    cause = {id: "" for id in course.hidden}  # they do not have it, so it explains nothing to them
    return [
        msgspec.structs.replace(
            check, seconds=0.0, trace=[], output="", caused_by=cause.get(check.caused_by, check.caused_by)
        )
        for check in checks
    ]


# The same bytes


def test_the_same_course_gives_the_same_bytes(bundle: Path, tmp_path: Path, command: Command) -> None:
    again = tmp_path / "again.zip"
    assert command.run("bundle", "student", "--out", again, "--course", copied(tmp_path)).status == 0
    assert again.read_bytes() == bundle.read_bytes()


def check_manifest(folder: Path) -> None:
    listed = dict(reversed(line.split("  ", 1)) for line in (folder / MANIFEST).read_text("utf-8").splitlines())
    content = contents_of(folder)
    assert set(listed) == set(content) - {MANIFEST}
    assert listed == {name: hashlib.sha256(content[name]).hexdigest() for name in listed}


# For instructors, and for Gradescope (tests/test_gradescope.py runs that one)


def test_an_instructors_bundle_holds_all_and_makes_the_others(bundle: Path, tmp_path: Path, command: Command) -> None:
    out = tmp_path / "instructor.zip"
    assert command.run("bundle", "instructor", "--out", out, "--course", SMALL).status == 0
    folder = unzip(out, tmp_path / "there")
    check_manifest(folder)
    content = contents_of(folder)
    for path in (path for path in SMALL.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        assert content[path.relative_to(SMALL).as_posix()] == path.read_bytes()
    done = alone(folder, tmp_path, folder / "reference")
    assert done.status == 0 and "Score 12 / 12" in done.stdout, done.stdout + done.stderr
    done = alone(folder, tmp_path, "bundle", "student", "--out", "student.zip")
    assert done.status == 0, done.stderr
    assert (tmp_path / "student.zip").read_bytes() == bundle.read_bytes()


@pytest.mark.parametrize("kind", ["instructor", "gradescope"])
def test_the_others_are_the_same_each_time_and_listed(kind: str, tmp_path: Path, command: Command) -> None:
    for name in ("a.zip", "b.zip"):
        done = command.run("bundle", kind, "--out", tmp_path / name)
        assert done.status == 0, done.stderr
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    folder = unzip(tmp_path / "a.zip", tmp_path / kind)
    check_manifest(folder)
    there = contents_of(folder)
    wanted = {"grade.py", "requirements.txt", "harness/cli.py", "graders/course.toml", "reference/gpt.py",
              "graders/misconceptions/heads.py", "student_template/gpt.py", "schema/report.schema.json"}  # fmt: skip
    assert wanted <= set(there) and not [name for name in there if name.startswith(("tests/", "."))]


def test_a_students_manifest_covers_every_file(bundle: Path, tmp_path: Path) -> None:
    check_manifest(unzip(bundle, tmp_path))


def test_links_between_the_pages_of_a_bundle_lead_somewhere(unzipped: Path, tmp_path: Path) -> None:
    instructor.pack(tmp_path / "i.zip", small())
    for folder in (unzipped, unzip(tmp_path / "i.zip", tmp_path / "i")):
        links = 0
        for page in folder.rglob("*.md"):
            for target in re.findall(r"\]\(([^)\s#:]+)[^)\s:]*\)", page.read_text(encoding="utf-8")):
                links += 1
                assert (page.parent / target).exists(), f"{page.relative_to(folder)} links to {target}"
        assert links > 3


def test_a_bundle_is_no_source_of_an_instructors(tmp_path: Path) -> None:
    root = copied(tmp_path)
    shutil.rmtree(root / "reference")
    with pytest.raises(Problem, match="holds no answers"):
        instructor.pack(tmp_path / "i.zip", read_course(root / "graders"))


def test_where_a_bundle_cannot_go_is_told_before_it_is_made(command: Command, tmp_path: Path) -> None:
    done = command.run("bundle", "student", "--out", tmp_path / "nowhere" / "student.zip")
    assert done.status == 2 and "could not be written" in done.stderr and "--out" in done.stderr
