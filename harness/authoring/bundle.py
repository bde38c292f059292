"""What a course hands out: everything that grades, and a recording where the answers would be.

Left out: the reference, right and wrong answers known in advance, hidden checks, and exercises whose graders hold keys.
"""

from __future__ import annotations

import ast
import gettext
import hashlib
import io
import re
import struct
import tomllib
from pathlib import Path

import msgspec

from harness import files
from harness.authoring.recording import FILE
from harness.course import ROOT, Course
from harness.export.archive import Archive
from harness.problem import Problem

MANIFEST = "MANIFEST.sha256"
_ENGINE = ("grade.py", "pyproject.toml", "requirements.txt", "LICENSE", "schema/report.schema.json")
_DOCS = ("students.md", "instructors.md", "report-schema.md", "threat-model.md")
_README = """\
# {title}

Write your answers in `student_template/` (or in a copy of it), in the .py files or in a notebook, `lesson.ipynb`.

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
        Problem: the graders cannot be run, the reference fails a check, or the file cannot be written.
    """
    content = public_files(course) | {FILE.as_posix(): _recording(course)}
    manifest = "".join(f"{hashlib.sha256(content[name]).hexdigest()}  {name}\n" for name in sorted(content))
    content[MANIFEST] = manifest.encode()
    try:
        with files.replacing(out) as file, Archive(file) as archive:
            for name in sorted(content):
                archive.add(name, content[name])
    except OSError as error:
        raise Problem(f"{out} could not be written: {error.strerror}.", "Name another file with --out.") from error
    return sorted(content)


def public_files(course: Course) -> dict[str, bytes]:
    """All of the bundle but the recording, by name."""
    graders = course.root / "graders"
    kept = [exercise for exercise in course.exercise if exercise.bundled]
    content = {name: (ROOT / name).read_bytes() for name in _ENGINE}
    content |= {
        f"docs/{name}": (ROOT / "docs" / name).read_bytes() for name in _DOCS if (ROOT / "docs" / name).exists()
    }
    content |= {f"harness/{name}": data for name, data in _beneath(ROOT / "harness").items()}
    content |= {f"student_template/{name}": data for name, data in _beneath(course.root / "student_template").items()}
    content["README.md"] = _README.format(title=course.title).encode()
    content["graders/course.toml"] = _settings((graders / "course.toml").read_text(encoding="utf-8"), course)
    for exercise in kept:
        source = (graders / exercise.grader).read_text(encoding="utf-8")
        content[f"graders/{exercise.grader}"] = without_checks(source, set(course.hidden)).encode()
    if (graders / "conftest.py").exists():
        content["graders/conftest.py"] = (graders / "conftest.py").read_bytes()
    secret = (*course.hidden, *(f"{exercise.id}." for exercise in course.exercise if not exercise.bundled))
    for path in sorted((graders / "locale").rglob("*.mo")):
        content[path.relative_to(course.root).as_posix()] = _catalogue(path.read_bytes(), secret)
    return content


def _beneath(folder: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in parts):
            found["/".join(parts)] = path.read_bytes()
    return found


def _recording(course: Course) -> bytes:
    from harness import cli, session

    cli.make_launcher("none", None)  # one thread, from before torch is loaded: the same bytes on every machine
    public = msgspec.structs.replace(course, exercise=tuple(e for e in course.exercise if e.bundled))
    return msgspec.msgpack.encode(session.record(public, set(course.hidden)))


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


def _settings(text: str, course: Course) -> bytes:
    """course.toml without the names of hidden checks, and without the exercises that are not handed out."""
    text = re.sub(r"(?ms)^hidden\s*=\s*\[.*?\][^\n]*\n", "", text)
    head, *blocks = re.split(r"(?m)^(?=\[\[exercise\]\])", text)
    left_out = {exercise.id for exercise in course.exercise if not exercise.bundled}
    kept = [block for block in blocks if tomllib.loads(block)["exercise"][0]["id"] not in left_out]
    result = "".join([head, *kept])
    assert "hidden" not in tomllib.loads(result), "hidden checks are named in some other way"
    return result.encode()


def _catalogue(data: bytes, secret: tuple[str, ...]) -> bytes:
    """A gettext catalogue without the sentences whose ids begin with one of `secret`.

    The format is that of the GNU gettext manual, section "The Format of GNU MO Files".
    """
    if not secret:
        return data
    catalogue: dict[object, str] = gettext.GNUTranslations(io.BytesIO(data))._catalog  # type: ignore[attr-defined]
    kept = {str(id).encode(): text.encode() for id, text in catalogue.items() if not str(id).startswith(secret)}
    table, strings, start = [], b"", 28 + 16 * len(kept)
    for texts in (sorted(kept), [kept[id] for id in sorted(kept)]):
        for text in texts:
            table += [len(text), start + len(strings)]
            strings += text + b"\0"
    header = (0x950412DE, 0, len(kept), 28, 28 + 8 * len(kept), 0, 28 + 16 * len(kept))
    return struct.pack(f"<7I{len(table)}I", *header, *table) + strings
