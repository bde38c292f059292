"""Makes the template's notebooks from the reference's files and the texts in its folder `lesson`.

A text is Markdown in sections: `intro`, `given`, `write`, `look`, `check`, and `exercise ID` for each
exercise that the notebook is to have. A block of Python at the end of an exercise's English section is the cell that
shows something, in every language.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.authoring.template import MarkerError, find_regions, render
from harness.course import Course, Exercise

LANGUAGES = {"en": "lesson.ipynb", "ja": "lesson.ja.ipynb", "zh": "lesson.zh.ipynb"}
_SECTION = re.compile(r"(?m)^## (.+)\n")
_TODO = re.compile(r"# (?:TODO \(|--- answer: )([\w-]+)")
_SHOWN = re.compile(r"\n```python\n(.*?)```\s*\Z", re.DOTALL)
_SETUP = """\
# Finds the folder of grade.py, so that this notebook can check itself.
import sys
from pathlib import Path

here = Path.cwd().resolve()
sys.path += [str(folder) for folder in (here, *here.parents) if (folder / "harness" / "notebook").is_dir()]
from harness.notebook import check"""

Source = Callable[[str, str], str]


@dataclass(frozen=True)
class Piece:
    """A stretch of a module that becomes a cell; `todo` names the exercises for which there is something to write."""

    code: str
    todo: tuple[str, ...] = ()


def notebooks(reference: Path, course: Course, source: Source = render) -> dict[str, bytes]:
    """Every notebook of the template, by file name: valid, without outputs, the same bytes from the same sources.

    Args:
        reference: the folder of the reference; without `lesson/` in it there are no notebooks.
        course: whose exercises, in their order.
        source: makes a module's text for the student from the reference's text and name.

    Raises:
        MarkerError: a module cannot be put into a notebook.
        OSError: a file is missing.
    """
    if not (reference / "lesson").is_dir():
        return {}
    texts = {
        language: _sections((reference / "lesson" / f"{language}.md").read_text(encoding="utf-8"))
        for language in LANGUAGES
    }
    exercises = [exercise for exercise in course.exercise if f"exercise {exercise.id}" in texts["en"]]
    code = {exercise.id: pieces for exercise, pieces in _code(reference, exercises, source)}
    return {
        file: _notebook(language, texts[language], texts["en"], exercises, code) for language, file in LANGUAGES.items()
    }


def _sections(text: str) -> dict[str, str]:
    _, *parts = _SECTION.split(text)
    return {name.strip(): body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _code(
    reference: Path, exercises: list[Exercise], source: Source
) -> Iterator[tuple[Exercise, list[Piece]]]:  # fmt: skip
    """The pieces of the modules that each exercise needs first, with what these import from one another.

    In a module that an exercise only imports, what is to be written for a later one waits until then.
    """
    siblings = {path.stem for path in reference.glob("*.py")}
    defined: dict[str, str] = {}  # top-level name -> module
    done: set[str] = set()
    waiting: dict[str, list[Piece]] = {exercise.id: [] for exercise in exercises}

    def pieces(module: str) -> Iterator[tuple[str, Piece]]:
        if module in done:
            return
        done.add(module)
        name = f"{reference.name}/{module}.py"
        text = (reference / f"{module}.py").read_text(encoding="utf-8")
        todo = {region.exercise for region in find_regions(text, name)} - {""}
        rendered = source(text, name)
        for imported in _imported(rendered, siblings, name):
            yield from pieces(imported)
        for piece, names in _cut(rendered, siblings, bool(todo)):
            for top in names:
                if defined.setdefault(top, module) != module:
                    raise MarkerError(
                        name, 1, f"{top} is also defined in {defined[top]}.py; a notebook has room for one"
                    )
            yield module, piece

    for exercise in exercises:
        own = [file.removesuffix(".py") for file in exercise.files if file.endswith(".py")]
        here = waiting.pop(exercise.id)
        for module, piece in (found for name in own for found in pieces(name)):
            later = [id for id in piece.todo if id in waiting]
            wait = module not in own and len(later) == len(piece.todo) > 0
            (waiting[later[0]] if wait else here).append(piece)
        yield exercise, here


def _imported(text: str, siblings: set[str], name: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import) and any(alias.name in siblings for alias in node.names):
            raise MarkerError(name, node.lineno, "write 'from ... import ...': in a notebook there are no modules")
        if isinstance(node, ast.ImportFrom) and node.module in siblings:
            if any(alias.asname for alias in node.names):
                raise MarkerError(name, node.lineno, "import it under its own name: a notebook has no other")
            yield str(node.module)


def _cut(text: str, siblings: set[str], has_todo: bool) -> Iterator[tuple[Piece, list[str]]]:
    """A module's text in pieces: each class or function with something to write alone, all between them together.

    What a notebook has no use for goes: the module's docstring, imports of its siblings, `main`.
    """
    lines, tree, start = text.splitlines(), ast.parse(text), 0
    given: list[str] = []
    names: list[str] = []
    for node in tree.body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        above = lines[start : first - 1]
        code, start = lines[first - 1 : node.end_lineno], node.end_lineno or 0
        if _is_dropped(node, siblings):
            continue
        own = [node.name] if isinstance(node, ast.ClassDef | ast.FunctionDef) else []
        todo = tuple(dict.fromkeys(_TODO.findall("\n".join(code)))) if own and has_todo else ()
        if todo:
            if "".join(given).strip():
                yield Piece("\n".join(given).strip("\n")), names
            given, names = [], []
            yield Piece("\n".join([*above, *code]).strip("\n"), todo), own
        else:
            given += [*above, *code]
            names += own
    if "".join(given).strip():
        yield Piece("\n".join(given).strip("\n")), names


def _is_dropped(node: ast.stmt, siblings: set[str]) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())) | ast.FunctionDef(name="main"):
            return True
        case ast.ImportFrom(module=module):
            return module in siblings
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return False


def _notebook(
    language: str, texts: dict[str, str], english: dict[str, str], exercises: list[Exercise],
    code: dict[str, list[Piece]],
) -> bytes:  # fmt: skip
    import nbformat
    from nbformat import v4

    cells: list[Any] = []

    def add(name: str, make: Callable[..., Any], text: str) -> None:
        cells.append(make(text, id=f"{name}-{len(cells)}"))

    add("intro", v4.new_markdown_cell, texts["intro"])
    add("setup", v4.new_code_cell, _SETUP)
    for exercise in exercises:
        id, heading = exercise.id, f"exercise {exercise.id}"
        shown = _SHOWN.search(english[heading])
        add(id, v4.new_markdown_cell, f"## {exercise.id}\n\n{_SHOWN.sub('', texts.get(heading) or english[heading])}")
        for piece in code[id]:
            add(id, v4.new_markdown_cell, texts["write" if piece.todo else "given"])
            add(id, v4.new_code_cell, piece.code)
        if shown is not None:
            add(id, v4.new_markdown_cell, texts["look"])
            add(id, v4.new_code_cell, shown[1].strip())
        if exercise.bundled:  # else students have no checks of it
            add(id, v4.new_markdown_cell, texts["check"])
            add(id, v4.new_code_cell, f'check("{id}")')
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "headcheck": {"language": language},
    }
    notebook = v4.new_notebook(  # type: ignore[no-untyped-call]
        cells=cells, metadata=metadata
    )
    nbformat.validate(notebook)
    text: str = nbformat.writes(notebook, indent=1, ensure_ascii=False)  # type: ignore[no-untyped-call]
    return f"{text.rstrip()}\n".encode()
