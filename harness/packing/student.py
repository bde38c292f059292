"""What a course hands out: everything that grades, and a recording where the answers would be.

Left out: the reference, right and wrong answers known in advance, hidden checks, and exercises whose graders hold keys.
"""

from __future__ import annotations

import ast
import gettext
import io
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from harness.authoring.recording import FILE
from harness.course import Course
from harness.packing import contents
from harness.packing.contents import Content
from harness.problem import Problem

_PAGES = ("students.md", "instructors.md", "cluster.md", "report-schema.md", "threat-model.md")  # with all they link to
_HIDDEN = re.compile(r"""(?m)^hidden[ \t]*=[ \t]*\[(?:[^]#"']|"[^"\n]*"|'[^'\n]*'|#[^\n]*)*\][^\n]*\n""")
_LIST = """
import json
from harness import session
from harness.course import read_course
print(json.dumps([check.id for check in session.collect(read_course())]))
"""
_README = """\
# {title}

Write your answers in `student_template/`, or in a copy of it.{notebook}

## Set up

Python 3.11 or newer. From the folder of this file, best in a virtual environment:

```sh
python -m pip install -r requirements.txt
```

## Work

```sh
python grade.py                      # what is right in student_template/, what is not, and why
python grade.py my_work              # any folder, .py file or notebook
python grade.py pack my_work         # the one file to hand in
```

[docs/students.md](docs/students.md) says more. `MANIFEST.sha256` has the digest of every file here.
"""


def pack(out: Path, course: Course) -> list[str]:
    """Write the zip: the same course gives the same bytes.

    Args:
        out: the file to write.
        course: what is handed out; its seed becomes known with it.

    Returns:
        The names of the files in it.

    Raises:
        Problem: there is no reference or the template is not what it gives, the graders cannot be run, the reference
            fails a check, a check cannot be recorded, the bundle would hold a check that is kept back, or does not
            work, or the file cannot be written.
    """
    contents.need_answers(course)
    content = public_files(course) | {FILE.as_posix(): _recording(course)}
    from harness import session  # which loads torch; `_recording` has seen to how

    _try(content, {check.id for check in session.collect(_public(course))} - set(course.hidden))
    return contents.write(out, content)


def public_files(course: Course) -> Content:
    """All of the bundle but the recording and the manifest, by name.

    Raises:
        Problem: the template is not what the reference gives, or course.toml cannot be cut.
    """
    graders = course.root / "graders"
    kept = [exercise for exercise in course.exercise if exercise.bundled]
    content = contents.program() | contents.pages(_PAGES) | _template(course)
    content["README.md"] = _readme(course)
    content["graders/course.toml"] = settings((graders / "course.toml").read_text(encoding="utf-8"), course)
    for exercise in kept:
        source = (graders / exercise.grader).read_text(encoding="utf-8")
        content[f"graders/{exercise.grader}"] = without_checks(source, set(course.hidden)).encode()
    if (graders / "conftest.py").exists():
        content["graders/conftest.py"] = (graders / "conftest.py").read_bytes()
    for path in sorted((graders / "locale").rglob("*.mo")):
        content[path.relative_to(course.root).as_posix()] = catalogue(path.read_bytes(), _secrets(course))
    return content


def _template(course: Course) -> Content:
    """student_template/, after making sure that nobody has solved an exercise in it.

    Raises:
        Problem: it is not what the reference gives.
    """
    from harness.authoring import lesson, template

    content = contents.beneath(course.root / "student_template")
    reference = course.root / "reference"
    try:
        made = template.contents(reference, lesson.notebooks(reference, course))
    except (template.MarkerError, OSError, UnicodeDecodeError) as error:
        raise Problem(f"The template could not be made: {error}") from error
    for name, data in made.items():
        if content.get(f"student_template/{name}") != data:
            raise Problem(f"student_template/{name} is not what the reference gives: it may hold answers.",
                          "Run `python grade.py template`, look at what changes, and pack again.")  # fmt: skip
    return content


def _readme(course: Course) -> bytes:
    notebook = " Its notebook, `lesson.ipynb`, has the same exercises as the .py files: choose one or the other."
    has_one = (course.root / "student_template" / "lesson.ipynb").is_file()
    text = _README.format(title=course.title, notebook=notebook if has_one else "")
    later = [exercise.title for exercise in course.exercise if not exercise.bundled]
    if later:
        text += f"\nGraded only when it is handed in: {', '.join(later)}.\n"
    if course.hidden:
        text += "\nFurther checks run when it is handed in.\n"
    return text.encode()


def _recording(course: Course) -> bytes:
    from harness import cli

    cli.make_launcher("none", None)  # one thread, from before torch is loaded: the same bytes on every machine
    from harness.authoring.record import record

    return record(_public(course), set(course.hidden))


def _public(course: Course) -> Course:
    return msgspec.structs.replace(course, exercise=tuple(e for e in course.exercise if e.bundled))


def _secrets(course: Course) -> tuple[str, ...]:
    """Hidden checks and exercises that stay: nothing that belongs to one of these ids may be told."""
    return (*course.hidden, *(exercise.id for exercise in course.exercise if not exercise.bundled))


def _try(content: Content, checks: set[str]) -> None:
    """Unpack the bundle, and let it list its checks in a process of its own.

    Args:
        content: of the bundle.
        checks: ids of those that students may have.

    Raises:
        Problem: it lists others: a hidden check that is declared in an unusual way was not cut out. Or it lists none,
            because a grader needs something that is not in it.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, data in content.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        done = subprocess.run(
            [sys.executable, "-c", _LIST], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
            env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "HEADCHECK_COURSE")},
            check=False,
        )  # fmt: skip
    if done.returncode:
        raise Problem("A grader needs something that the bundle does not hold, so nothing was written.",
                      (done.stdout + done.stderr)[-2000:])  # fmt: skip
    found = set(json.loads(done.stdout.splitlines()[-1]))
    if found != checks:
        raise Problem(f"The bundle would hold other checks than it should: {', '.join(sorted(found ^ checks))}.",
                      "Declare a hidden check as @check(\"its id\", ...) above a function of its own.")  # fmt: skip


def without_checks(source: str, hidden: set[str]) -> str:
    """A grader's source without the tests that are checks of these ids."""
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.FunctionDef) and hidden & set(_ids(node)):
            del lines[min(decorator.lineno for decorator in node.decorator_list) - 1 : node.end_lineno]
    return "".join(lines)


def _ids(node: ast.FunctionDef) -> list[str]:
    return [
        str(decorator.args[0].value)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and decorator.args and isinstance(decorator.args[0], ast.Constant)
    ]


def settings(text: str, course: Course) -> bytes:
    """course.toml without the names of hidden checks, and without the exercises that are not handed out.

    Raises:
        Problem: it is written in a way that cannot be cut.
    """
    left_out = {exercise.id for exercise in course.exercise if not exercise.bundled}
    head, *tables = re.split(r"(?m)^(?=\[)", _HIDDEN.sub("", text))
    result = "".join([head, *(table for table in tables if not _is_of(table, left_out))])
    wanted: dict[str, Any] = tomllib.loads(text)
    wanted.pop("hidden", None)
    wanted["exercise"] = [exercise for exercise in wanted["exercise"] if exercise["id"] not in left_out]
    try:
        unchanged = tomllib.loads(result) == wanted
    except tomllib.TOMLDecodeError:
        unchanged = False
    if not unchanged:
        raise Problem("course.toml is written in a way that cannot be cut for students.",
                      "Write `hidden = [...]` and each [[exercise]] at the beginning of a line.")  # fmt: skip
    return result.encode()


def _is_of(table: str, left_out: set[str]) -> bool:
    if not table.startswith("[[exercise]]"):
        return False
    try:
        return tomllib.loads(table)["exercise"][0]["id"] in left_out
    except tomllib.TOMLDecodeError:  # cut in the middle; what comes out is compared with what should
        return False


def catalogue(data: bytes, secret: tuple[str, ...]) -> bytes:
    """A gettext catalogue without the sentences that belong to one of `secret`: `ID` itself, and all `ID.more`.

    The format is that of the GNU gettext manual, section "The Format of GNU MO Files".
    """
    if not secret:
        return data
    catalogue: dict[object, str] = gettext.GNUTranslations(io.BytesIO(data))._catalog  # type: ignore[attr-defined]
    beneath = tuple(f"{id}." for id in secret)
    kept = {
        str(id).encode(): text.encode()
        for id, text in catalogue.items()
        if str(id) not in secret and not str(id).startswith(beneath)
    }
    table, strings, start = [], b"", 28 + 16 * len(kept)
    for texts in (sorted(kept), [kept[id] for id in sorted(kept)]):
        for text in texts:
            table += [len(text), start + len(strings)]
            strings += text + b"\0"
    header = (0x950412DE, 0, len(kept), 28, 28 + 8 * len(kept), 0, 28 + 16 * len(kept))
    return struct.pack(f"<7I{len(table)}I", *header, *table) + strings
