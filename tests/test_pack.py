"""`grade.py pack`: the one file to hand in is complete, the same each time, and graded like what it was made from."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import msgspec
import pytest

from harness.course import Exercise, read_course
from harness.i18n import Translator
from harness.notebook.inline import as_notebook
from harness.outcome import Message
from harness.packing.hand_in import pack
from harness.problem import Problem
from harness.submission import read_submission
from tests.support.command import ROOT, Command

ENGLISH = Translator("en")
REFERENCE, TEMPLATE = ROOT / "reference", ROOT / "student_template"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    shutil.copytree(REFERENCE, folder, ignore=shutil.ignore_patterns("__pycache__", "lesson", "data"))
    shutil.copyfile(TEMPLATE / "lesson.ipynb", folder / "lesson.ipynb")
    (folder / "report.json").write_text("{}", encoding="utf-8")
    (folder / "mine.csv").write_text("1,2", encoding="utf-8")
    return folder


def test_a_folder_becomes_one_file_that_reads_back(work: Path, tmp_path: Path, command: Command) -> None:
    done = command.run("pack", work, cwd=tmp_path)
    assert done.status == 0 and done.stderr == "", done.stderr
    out = tmp_path / f"{read_course().id}.zip"
    names = zipfile.ZipFile(out).namelist()
    assert {"gpt.py", "rope.py", "heads_positions.py", "mine.csv"} <= set(names)
    assert not {"lesson.ipynb", "report.json"} & set(names)
    assert read_submission(out, ("gpt.py",)).files["gpt.py"] == (REFERENCE / "gpt.py").read_bytes()
    before = out.read_bytes()
    pack(work, out, read_course(), ENGLISH)
    assert out.read_bytes() == before


def said(messages: list[Message]) -> list[str]:
    return [message.render() for message in messages]


def test_what_is_missing_or_cannot_be_read_is_told_and_nothing_written(work: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.zip"
    (work / "rope.py").unlink()
    with pytest.raises(Problem, match=r"rope\.py is missing"):
        pack(work, out, read_course(), ENGLISH)
    (work / "rope.py").write_text("def broken(:\n", encoding="utf-8")
    with pytest.raises(Problem, match=r"Python cannot read rope\.py, line 1"):
        pack(work, out, read_course(), ENGLISH)
    assert not out.exists()
    packed = pack(work, out, read_course(), ENGLISH, anyway=True)
    assert said(packed.troubles) == ["Python cannot read rope.py, line 1."]
    assert out.exists()


def test_files_of_bonus_exercises_may_be_missing(work: Path, tmp_path: Path) -> None:
    (work / "sharing.py").unlink()
    packed = pack(work, tmp_path / "out.zip", read_course(), ENGLISH)
    assert not packed.troubles
    assert said(packed.notes) == ["sharing.py is not there; only bonus exercises ask for it."]


def test_what_is_not_written_yet_is_told(tmp_path: Path, command: Command) -> None:
    done = command.run("pack", TEMPLATE, "--out", tmp_path / "out.zip")
    assert done.status == 0
    assert "Not written yet: CausalSelfAttention.split_heads in gpt.py." in done.stdout
    assert "Not written yet: apply_rope in rope.py." in done.stdout
    in_japanese = command.run("pack", TEMPLATE, "--out", tmp_path / "out.zip", "--lang", "ja")
    assert "まだ書かれていません：rope.py の apply_rope。" in in_japanese.stdout
    assert "Not written" not in in_japanese.stdout


QUIZ = "quiz_answers.toml"


def test_what_is_judged_and_what_is_the_students_own_is_packed_and_nothing_else(tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(TEMPLATE, work, ignore=shutil.ignore_patterns("__pycache__"))
    (work / "helpers").mkdir()
    for name in ("my_layers.py", "helpers/__init__.py", "helpers/rope.py", "runs.csv", "notes.md"):
        (work / name).write_text("x = 1\n", encoding="utf-8")
    (work / "data" / "mine.txt").write_text("a poem\n", encoding="utf-8")
    poems = (work / "data" / "poems.txt").read_bytes()
    (work / "data" / "poems.txt").write_bytes(poems.replace(b"\n", b"\r\n"))  # as git may do on Windows
    packed = pack(work, tmp_path / "out.zip", read_course(), ENGLISH)
    code = {path.name for path in TEMPLATE.glob("*.py")}
    own = {"my_layers.py", "helpers/__init__.py", "helpers/rope.py", "runs.csv", "notes.md", "data/mine.txt"}
    assert set(packed.names) == code | own | {QUIZ}
    assert f"{QUIZ} is as it was handed out: the quiz is not answered." in said(packed.notes)
    told = "Not packed, because the course has it: data/README.md, data/poems.txt, data/small.safetensors."
    assert told in said(packed.notes)

    (work / "data" / "poems.txt").write_bytes(poems + b"more\n")
    (work / QUIZ).write_text('heads = "b"\n', encoding="utf-8")
    packed = pack(work, tmp_path / "out.zip", read_course(), ENGLISH)
    assert "data/poems.txt" in packed.names and not any("quiz" in note for note in said(packed.notes))
    (work / QUIZ).unlink()
    packed = pack(work, tmp_path / "out.zip", read_course(), ENGLISH)
    assert sum(QUIZ in note for note in said(packed.notes)) == 1


def test_a_students_course_does_not_know_the_quiz_but_packs_it(work: Path, tmp_path: Path) -> None:
    """`bundled = false` takes the exercise out of course.toml; the sheet is still in the template."""
    course = read_course()
    course = msgspec.structs.replace(course, exercise=tuple(e for e in course.exercise if e.bundled))
    (work / QUIZ).unlink(missing_ok=True)
    packed = pack(work, tmp_path / "out.zip", course, ENGLISH)
    assert f"{QUIZ} is not there, so the quiz is not answered." in said(packed.notes)
    shutil.copyfile(TEMPLATE / QUIZ, work / QUIZ)
    assert QUIZ in pack(work, tmp_path / "out.zip", course, ENGLISH).names


def test_a_single_notebook_brings_the_quiz_and_its_own_modules(tmp_path: Path) -> None:
    code = as_notebook(["import torch, mine\n%time", "from gpt import GPT"])
    (tmp_path / "a.ipynb").write_bytes(code)
    for name, text in {"mine.py": "from deeper.part import x\nimport deep\n", "deep.py": "import mine\n", "gpt.py": "",
                       "other.py": "", QUIZ: 'heads = "b"\n'}.items():  # fmt: skip
        (tmp_path / name).write_text(text, encoding="utf-8")
    packed = pack(tmp_path / "a.ipynb", tmp_path / "out.zip", read_course(), ENGLISH)
    assert packed.names == ["a.ipynb", "deep.py", "mine.py", QUIZ]
    assert read_submission(tmp_path / "out.zip", ("gpt.py",)).files.keys() == set(packed.names)
    (tmp_path / QUIZ).unlink()
    packed = pack(tmp_path / "a.ipynb", tmp_path / "out.zip", read_course(), ENGLISH)
    assert f"{QUIZ} is not there, so the quiz is not answered." in said(packed.notes)


def test_files_that_are_not_python_go_in_unread(tmp_path: Path) -> None:
    course = read_course()
    quiz = Exercise(id="quiz", title="Quiz", files=("answers.toml",))
    course = msgspec.structs.replace(course, exercise=(*course.exercise[:1], quiz))
    (tmp_path / "gpt.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(Problem, match=r"answers\.toml is missing"):
        pack(tmp_path, tmp_path / "out.zip", course, ENGLISH)
    (tmp_path / "answers.toml").write_text('heads = ["b"\n', encoding="utf-8")
    assert pack(tmp_path, tmp_path / "out.zip", course, ENGLISH).names == ["answers.toml", "gpt.py"]


def test_a_notebook_goes_in_without_its_outputs(tmp_path: Path) -> None:
    document = json.loads(as_notebook(["x = 1", "%time\ndef f():\n    raise NotImplementedError"]))
    document["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "secret"}]
    (tmp_path / "a.ipynb").write_text(json.dumps(document), encoding="utf-8")
    packed = pack(tmp_path / "a.ipynb", tmp_path / "out.zip", read_course(), ENGLISH)
    assert packed.names == ["a.ipynb"]
    no_quiz = f"{QUIZ} is not there, so the quiz is not answered."
    assert said(packed.notes) == [no_quiz, "Not written yet: f in a.ipynb, cell 2."]
    kept = read_submission(tmp_path / "out.zip", ()).files["a.ipynb"]
    assert b"secret" not in kept and json.loads(kept)["cells"][0]["source"] == "x = 1"


def test_a_notebook_that_cannot_be_read_is_not_packed(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text("{", encoding="utf-8")
    with pytest.raises(Problem, match=r"a\.ipynb is damaged"):
        pack(tmp_path / "a.ipynb", tmp_path / "out.zip", read_course(), ENGLISH)
    with pytest.raises(Problem, match="nothing to hand in"):
        (tmp_path / "empty").mkdir()
        pack(tmp_path / "empty", tmp_path / "out.zip", read_course(), ENGLISH)


@pytest.mark.parametrize("line", ["X = " + "1+" * 3000 + "1", "X = " + "-" * 20000 + "1"])
def test_source_too_deep_for_python_is_told(work: Path, tmp_path: Path, line: str) -> None:
    with (work / "gpt.py").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    try:
        pack(work, tmp_path / "out.zip", read_course(), ENGLISH)
    except Problem as problem:
        assert "gpt.py" in problem.what  # a Python that can read it packs it
