"""The template as notebooks: generated, valid, without answers; filled in, worth what the files are worth."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from harness import report
from harness.authoring.lesson import LANGUAGES, notebooks
from harness.authoring.template import MarkerError, find_regions
from harness.course import Course, Exercise, read_course
from harness.notebook.cells import read_cells
from tests.support.command import ROOT, Command

REFERENCE, TEMPLATE = ROOT / "reference", ROOT / "student_template"


def taught() -> list[Exercise]:
    """The exercises that the notebooks have: those that the lesson's texts explain."""
    text = (REFERENCE / "lesson" / "en.md").read_text(encoding="utf-8")
    return [exercise for exercise in read_course().exercise if f"\n## exercise {exercise.id}\n" in text]


def programmed() -> list[Exercise]:
    """Those of them with something to program, whose checks students have; the quiz is answered in a file."""
    return [exercise for exercise in taught() if exercise.bundled]


def test_the_notebooks_have_every_exercise() -> None:
    assert taught() == list(read_course().exercise)
    assert [exercise.id for exercise in taught() if exercise not in programmed()] == ["quiz"]


def test_each_exercise_has_what_is_to_be_written_for_it_and_nothing_of_a_later_one() -> None:
    """`pruning` uses train.py, of which the student writes some in `training`."""
    ids = [exercise.id for exercise in programmed()]
    for cell in json.loads((TEMPLATE / "lesson.ipynb").read_bytes())["cells"]:
        asked = re.findall(r"# TODO \((\w+)\)", "".join(cell["source"]))
        assert all(cell["id"].startswith(f"{id}-") for id in asked)
        ids = [id for id in ids if id not in asked]
    assert not ids


@pytest.fixture(scope="module")
def filled() -> bytes:
    """The English notebook with the reference's answers in it."""
    return notebooks(REFERENCE, read_course(), lambda text, name: text)["lesson.ipynb"]


def test_the_committed_notebooks_are_the_generated_ones() -> None:
    made = notebooks(REFERENCE, read_course())
    assert sorted(made) == sorted(path.name for path in TEMPLATE.glob("*.ipynb")) == sorted(LANGUAGES.values())
    for name, data in made.items():
        assert (TEMPLATE / name).read_bytes() == data, f"run `python grade.py template`: {name} differs"


@pytest.mark.parametrize("name", LANGUAGES.values())
def test_a_notebook_is_valid_and_has_no_outputs(name: str) -> None:
    notebook = nbformat.reads((TEMPLATE / name).read_text(encoding="utf-8"), as_version=4)
    nbformat.validate(notebook)
    assert notebook.nbformat_minor >= 5
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None
    for exercise in programmed():
        own = [cell for cell in notebook.cells if cell.id.startswith(f"{exercise.id}-")]
        assert own[0].cell_type == "markdown" and own[-1].source == f'check("{exercise.id}")'
        assert any("# TODO (" in cell.source for cell in own)


def test_the_languages_differ_in_words_alone() -> None:
    codes = [read_cells((TEMPLATE / name).read_bytes()) for name in LANGUAGES.values()]
    assert codes[0] == codes[1] == codes[2]
    words = [
        [cell["source"] for cell in json.loads((TEMPLATE / name).read_bytes())["cells"] if cell["cell_type"] != "code"]
        for name in LANGUAGES.values()
    ]
    assert len(words[0]) == len(words[1]) == len(words[2])
    assert all(len({*map(str, versions)}) == 3 for versions in zip(*words, strict=True))


def test_no_line_of_an_answer_is_in_a_notebook() -> None:
    text = "\n".join("\n".join(read_cells((TEMPLATE / name).read_bytes())) for name in LANGUAGES.values())
    answers = 0
    for file in {file for exercise in programmed() for file in exercise.files}:
        source = (REFERENCE / file).read_text(encoding="utf-8")
        lines = source.splitlines()
        for region in find_regions(source, file):
            for line in lines[region.start + len(region.more) : region.end - 1]:
                code = line.partition("  # ")[0].strip()
                if len(code) > 8:
                    answers += 1
                    assert code not in text, f"{file}: {code}"
    assert answers > 30


def test_filled_with_the_answers_it_scores_what_the_files_score(
    filled: bytes, command: Command, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "lesson.ipynb").write_bytes(filled)
    shutil.copy(REFERENCE / "quiz_answers.toml", work)
    verdicts = []
    for path in (REFERENCE, work):
        done = command.run(path, "--exercise", ",".join(exercise.id for exercise in taught()), cwd=tmp_path)
        assert done.status == 0, done.stdout + done.stderr
        result = report.from_json((tmp_path / "report.json").read_bytes())
        verdicts.append([(c.id, c.status, c.points) for exercise in result.exercises for c in exercise.checks])
    assert verdicts[0] == verdicts[1]


def test_as_handed_out_it_is_not_started(command: Command) -> None:
    done = command.run(TEMPLATE / "lesson.zh.ipynb")
    assert done.status == 1
    assert "Score 0 /" in done.stdout and "Next: write CausalSelfAttention.__init__ in cell 3" in done.stdout


@pytest.mark.slow
def test_it_runs_in_a_real_kernel_and_grades_itself(filled: bytes, tmp_path: Path) -> None:
    for name in ("harness", "graders", "reference", "student_template"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("grade.py", "pyproject.toml"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    folder = tmp_path / "my_work"
    shutil.copytree(TEMPLATE, folder)
    (folder / "lesson.ipynb").write_bytes(filled)
    done = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output-dir", str(tmp_path),
         "lesson.ipynb"],
        cwd=folder, env=os.environ | {"FORCE_COLOR": "1"},
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    executed = nbformat.read(tmp_path / "lesson.ipynb", as_version=4)
    shown = [str(cell.outputs) for cell in executed.cells if cell.cell_type == "code"]
    assert not any("Nothing to show" in output or "Not written yet" in output for output in shown)
    assert any("0 of 11 answered; still blank: split-shape" in output for output in shown)
    for exercise in programmed():
        (cell,) = [cell for cell in executed.cells if cell.source == f'check("{exercise.id}")']
        printed = "".join(output.text for output in cell.outputs)
        assert exercise.title in printed and "✗" not in printed
        figures = re.findall(r"(\d+) / (\d+)", printed[printed.index("Score ") :])
        assert figures and all(earned == possible for earned, possible in figures)
        assert max(int(earned) for earned, _ in figures) > 0


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"a": "import b\n", "b": "x = 1\n"}, "from ... import"),
        ({"a": "from b import f as g\n", "b": "def f(): ...\n"}, "its own name"),
        ({"a": "from b import g\n\ndef f(): ...\n", "b": "def f(): ...\n\ndef g(): ...\n"}, "room for one"),
    ],
)
def test_a_module_that_does_not_fit_is_refused(files: dict[str, str], problem: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "lesson").mkdir()
    for language in LANGUAGES:
        text = "".join(f"## {name}\n\nwords\n\n" for name in ("intro", "given", "write", "look", "check", "exercise e"))
        (tmp_path / "lesson" / f"{language}.md").write_text(text, encoding="utf-8")
    course = Course(id="c", title="C", seed=1, exercise=(Exercise(id="e", title="E", files=("a.py",)),))
    with pytest.raises(MarkerError, match=problem):
        notebooks(tmp_path, course)
