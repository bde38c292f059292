"""The one file to hand in: made from a folder or a notebook, after a look at whether all is there."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.course import Course
from harness.i18n import Translator
from harness.messages import message
from harness.notebook import cells, choose
from harness.notebook.magics import without_magics
from harness.outcome import Message
from harness.packing import contents
from harness.problem import Problem
from harness.report import as_text
from harness.submission import read_submission

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

    Args:
        path: a folder, a .py file or a notebook.
        out: the file to write.
        course: says what is needed; files that only bonus exercises ask for may be missing.
        words: the language of what is said.
        anyway: pack although something is missing or cannot be read.

    Raises:
        Problem: there is nothing to pack, something is missing, or the file cannot be written.
    """
    expected = tuple(dict.fromkeys(name for exercise in course.exercise for name in exercise.files))
    content = read_submission(path, expected, course.root).files
    notebook = choose.notebook_of(content, course.root)
    chosen = {name: data for name, data in content.items() if _is_wanted(name, notebook)}
    troubles: list[Message] = []
    notes: list[Message] = []
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
