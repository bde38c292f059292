"""The one file to hand in: made from a folder or a notebook, after a look at whether all is there."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import files
from harness.course import Course
from harness.export.archive import Archive
from harness.notebook import cells, choose
from harness.notebook.magics import without_magics
from harness.problem import Problem
from harness.submission import read_submission

_LEFT_OUT = (".zip", ".html", ".pdf", ".pt", ".pth", ".ckpt")  # of the work's own making, and not graded


@dataclass(frozen=True)
class Packed:
    """What was packed.

    Args:
        names: the files in the zip.
        unwritten: a line for each function that still raises NotImplementedError.
        troubles: what is missing or cannot be read; empty unless packed anyway.
    """

    names: list[str]
    unwritten: list[str]
    troubles: list[str]


def pack(path: Path, out: Path, course: Course, *, anyway: bool = False) -> Packed:
    """Write the zip: the same files give the same bytes. A notebook goes in without its outputs.

    Args:
        path: a folder, a .py file or a notebook.
        out: the file to write.
        course: says what is needed.
        anyway: pack although something is missing or cannot be read.

    Raises:
        Problem: there is nothing to pack, something is missing, or the file cannot be written.
    """
    expected = tuple(dict.fromkeys(name for exercise in course.exercise for name in exercise.files))
    content = read_submission(path, expected).files
    notebook = choose.notebook_of(content)
    chosen = {name: data for name, data in content.items() if _is_wanted(name, notebook)}
    troubles: list[str] = []
    if notebook:
        chosen[notebook] = _without_outputs(chosen[notebook], notebook)
        sources = {
            f"{notebook}, cell {i}": without_magics(s) for i, s in enumerate(cells.read_cells(chosen[notebook]), 1)
        }
    else:
        troubles = [f"{name} is missing." for name in expected if name not in chosen]
        sources = {name: chosen[name].decode("utf-8", "replace") for name in expected if name in chosen}
    unwritten: list[str] = []
    for place, source in sources.items():
        try:
            unwritten += [f"Not written yet: {name} in {place}." for name in _unwritten(ast.parse(source), "")]
        except (SyntaxError, ValueError) as error:
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            troubles.append(f"Python cannot read {place}{line}.")
    if not sources:
        raise Problem(f"There is nothing to hand in at {path}.", f"The course asks for {', '.join(expected)}.")
    if troubles and not anyway:
        raise Problem(" ".join(troubles), "Mend that first, or pack it as it is with --anyway.")
    try:
        with files.replacing(out) as file, Archive(file) as archive:
            for name in sorted(chosen):
                archive.add(name, chosen[name])
    except OSError as error:
        raise Problem(f"{out} could not be written: {error.strerror}.", "Name another file with --out.") from error
    if read_submission(out, expected).files != chosen:
        raise Problem(f"{out} does not read back as what was packed.", "Rename files that differ by case alone.")
    return Packed(sorted(chosen), unwritten, troubles)


def _is_wanted(name: str, notebook: str) -> bool:
    if name.lower().endswith(choose.SUFFIX):
        return name == notebook
    return not name.lower().endswith(_LEFT_OUT) and name.rpartition("/")[2] != "report.json"


def _without_outputs(data: bytes, name: str) -> bytes:
    try:
        cells.read_cells(data)  # says what is wrong with it, if anything is
        document = json.loads(data.decode("utf-8-sig"))
    except (cells.BadNotebook, ValueError, RecursionError) as error:
        raise Problem(f"{name} cannot be read as a notebook ({error}).", "Open it in Jupyter and save it.") from error
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
        else:
            yield from _unwritten(child, prefix)
