"""The one file to hand in: made from a folder or a notebook, after a look at whether all is there."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from harness import quiz
from harness.course import Course, files_of
from harness.i18n import Translator
from harness.messages import message
from harness.notebook import cells, choose
from harness.notebook.magics import without_magics
from harness.outcome import Message
from harness.packing import contents
from harness.problem import Problem
from harness.report import as_text
from harness.submission import read_submission, unread

_LEFT_OUT = (".zip", ".html", ".pdf", ".pt", ".pth", ".ckpt")  # of the work's own making, and not graded


@dataclass(frozen=True)
class Packed:
    """What was packed.

    Args:
        names: the files in the zip.
        notes: what is not written yet, and which bonus files are not there.
        troubles: what is missing or cannot be read; empty unless packed anyway.
    """

    names: list[str]
    notes: list[Message]
    troubles: list[Message]


def pack(path: Path, out: Path, course: Course, words: Translator, *, anyway: bool = False) -> Packed:
    """Write the zip: the same files give the same bytes. A notebook goes in without its outputs.

    What the course handed out stays out while it is unchanged, unless it is code or asked for.

    Args:
        path: a folder, a .py file or a notebook; of a file, its own modules and the quiz lie beside it.
        out: the file to write.
        course: says what is needed; files that only bonus exercises ask for may be missing.
        words: the language of what is said.
        anyway: pack although something is missing or cannot be read.

    Raises:
        Problem: there is nothing to pack, something is missing, or the file cannot be written.
    """
    expected = files_of(course.exercise)
    handed_out = {name: choose.plain(data) for name, data in _template(course).items()}
    content = read_submission(path, expected, course.root).files
    if path.is_file() and path.suffix != ".zip":
        try:
            content |= _beside(path, content[path.name], set(expected) - {quiz.SHEET})
        except OSError as error:
            raise unread(path, error) from error
    notebook = choose.notebook_of(content, course.root)
    wanted = {name: data for name, data in content.items() if _is_wanted(name, notebook)}
    asked = {*expected, quiz.SHEET, notebook}
    own = {name for name in wanted if name in asked or name.endswith(".py")}
    chosen = {name: data for name, data in wanted.items() if name in own or handed_out.get(name) != choose.plain(data)}
    troubles: list[Message] = []
    notes = _of_quiz(chosen, handed_out, told=not notebook and quiz.SHEET in expected)
    if len(chosen) < len(wanted):
        notes.append(message("pack.handed-out", files=", ".join(sorted(wanted.keys() - chosen.keys()))))
    if notebook:
        chosen[notebook] = _without_outputs(chosen[notebook], notebook, words)
        cells_of_code = enumerate(cells.read_cells(chosen[notebook]), 1)
        sources = {f"{notebook}, cell {number}": without_magics(source) for number, source in cells_of_code}
    else:
        core = {name for exercise in course.exercise if not exercise.bonus for name in exercise.files}
        for name in expected:
            if name not in chosen:
                (troubles if name in core else notes).append(
                    message("pack.missing" if name in core else "pack.no-bonus", file=name)
                )
        code = [name for name in expected if name in chosen and name.endswith(".py")]
        sources = {name: chosen[name].decode("utf-8", "replace") for name in code}
    for place, source in sources.items():
        try:
            found = _unwritten(ast.parse(source), "")
            notes += [message("pack.not-written", function=name, file=place) for name in dict.fromkeys(found)]
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = error.lineno if isinstance(error, SyntaxError) else None
            told = {"file": place} if line is None else {"file": place, "line": line}
            troubles.append(message("pack.unreadable.line" if line else "pack.unreadable", **told))
    if not sources:
        raise Problem(
            words.ui("ui.pack.nothing", path=str(path)), words.ui("ui.pack.nothing.help", files=", ".join(expected))
        )
    if troubles and not anyway:
        raise Problem("\n".join(words.text(as_text(trouble)) for trouble in troubles), words.ui("ui.pack.help"))
    contents.write_zip(out, chosen)
    if read_submission(out, expected, course.root).files != chosen:
        raise Problem(words.ui("ui.pack.differs", file=str(out)), words.ui("ui.pack.differs.help"))
    return Packed(sorted(chosen), notes, troubles)


def _template(course: Course) -> dict[str, bytes]:
    folder = course.root / "student_template"
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _of_quiz(chosen: Mapping[str, bytes], handed_out: Mapping[str, bytes], *, told: bool) -> list[Message]:
    """What to say of the answers to the quiz. A student's course may not know that exercise: its graders hold keys.

    Args:
        chosen: what is packed.
        handed_out: the template, without what differs between systems.
        told: it is said elsewhere that they are missing.
    """
    if quiz.SHEET not in handed_out:
        return []
    if quiz.SHEET not in chosen:
        return [] if told else [message("pack.no-answers", file=quiz.SHEET)]
    unchanged = choose.plain(chosen[quiz.SHEET]) == handed_out[quiz.SHEET]
    return [message("pack.not-answered", file=quiz.SHEET)] if unchanged else []


def _beside(path: Path, data: bytes, course_files: Set[str]) -> dict[str, bytes]:
    """What belongs to a single file and lies in its folder: the quiz, and modules of the student's own.

    Raises:
        OSError: one of them cannot be read.
    """
    found: dict[str, bytes] = {}
    waiting = [quiz.SHEET, *_imported(path.name, data)]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in course_files and (path.parent / name).is_file():
            found[name] = (path.parent / name).read_bytes()
            waiting += _imported(name, found[name])
    return found


def _imported(name: str, data: bytes) -> list[str]:
    """Names of files that the code of a file would import from its folder, if they are there."""
    try:
        if name.lower().endswith(choose.SUFFIX):
            sources = [without_magics(source) for source in cells.read_cells(data)]
        else:
            sources = [data.decode("utf-8")] if name.endswith(".py") else []
        nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    except (cells.BadNotebook, SyntaxError, ValueError, RecursionError, MemoryError):  # told elsewhere
        return []
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return [f"{module.partition('.')[0]}.py" for module in modules]


def _is_wanted(name: str, notebook: str) -> bool:
    if name.lower().endswith(choose.SUFFIX):
        return name == notebook
    return not name.lower().endswith(_LEFT_OUT) and name.rpartition("/")[2] != "report.json"


def _without_outputs(data: bytes, name: str, words: Translator) -> bytes:
    try:
        cells.read_cells(data)  # says what is wrong with it, if anything is
        document = json.loads(data.decode("utf-8-sig"))
    except (cells.BadNotebook, ValueError, RecursionError) as error:
        reason = error.reason if isinstance(error, cells.BadNotebook) else "damaged"
        raise Problem(words.text(as_text(message(f"notebook.{reason}", file=name)))) from error
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    return f"{json.dumps(document, ensure_ascii=False, indent=1)}\n".encode("utf-8", "replace")


def _unwritten(node: ast.AST, prefix: str) -> Iterator[str]:
    """Qualified names of the functions in which something still raises NotImplementedError."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _unwritten(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.Raise) and "NotImplementedError" in ast.dump(child):
            yield prefix.removesuffix(".")
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):  # expressions can be very deep
            yield from _unwritten(child, prefix)
