"""A student's notebook inside the worker: read, and run cell by cell.

It is read here and not by the judge, because it may hold any amount of anything, and here memory is bounded; with
msgspec, which skips outputs and metadata without building them, and not with nbformat, whose import alone takes two
seconds. What nbformat's schema would refuse beyond this (missing cell ids, say) harms nobody.

All cells share one namespace, as in Jupyter, and it stands for every module of the course: `gpt`, `rope`, ... A cell
that fails costs only the names that it would have defined: whoever asks for one of them gets the cell's own error.
"""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import NoReturn

import msgspec

from harness.notebook import WORKER
from harness.notebook.magics import without_magics

BROKEN, LEFT_OUT = "!notebook", "!left-out"  # kinds of replies, beside those of worker.objects
MAX_CELLS = 2_000
MAX_SOURCE = 4 * 2**20  # characters of all cells
NAMESPACE = "notebook"  # the module that cells run in
_DEFINITION = re.compile(r"(?m)^(?:class|def|async[ \t]+def)[ \t]+(\w+)|^(\w+)[ \t]*=(?!=)")


class BadNotebook(Exception):
    """It cannot be read: `reason` is the last part of a message's id."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LeftOut(Exception):
    """A name of a cell that is not run, because it was stopped the last time."""

    def __init__(self, cell: int) -> None:
        super().__init__(f"cell {cell} was left out")
        self.cell = cell


class Cell(msgspec.Struct):
    """What is read of a cell."""

    cell_type: str
    source: str | list[str] = ""

    @property
    def text(self) -> str:
        return self.source if isinstance(self.source, str) else "".join(self.source)


class Document(msgspec.Struct):
    """What is read of a notebook."""

    nbformat: int
    cells: list[Cell] = []
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


class _Version(msgspec.Struct):
    nbformat: int | None = None


def read_cells(data: bytes) -> list[str]:
    """The sources of the code cells, in order, as they stand in the file.

    Raises:
        BadNotebook: it is damaged, of another version than 4, too large, or not for Python.
    """
    try:
        data = data.removeprefix(b"\xef\xbb\xbf")
        if not data.strip():
            raise BadNotebook("empty")
        version = msgspec.json.decode(data, type=_Version).nbformat
        if version != 4:
            raise BadNotebook("no-notebook" if version is None else "old" if version < 4 else "new")
        document = msgspec.json.decode(data, type=Document)
    except msgspec.ValidationError:
        raise BadNotebook("no-notebook") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadNotebook("damaged") from None
    except MemoryError:
        raise BadNotebook("too-large") from None
    if _language(document.metadata) not in ("", "python", "ipython"):
        raise BadNotebook("language")
    sources = [cell.text for cell in document.cells if cell.cell_type == "code"]
    if len(sources) > MAX_CELLS or sum(map(len, sources)) > MAX_SOURCE:
        raise BadNotebook("too-large")
    return sources


def _language(metadata: msgspec.Raw) -> str:
    """The language that the kernel's metadata name, in lower case without its version; "" where they name none."""
    try:
        found = msgspec.json.decode(metadata)
    except (msgspec.DecodeError, RecursionError):
        return ""
    for section, key in (("kernelspec", "language"), ("language_info", "name")):
        part = found.get(section) if isinstance(found, dict) else None
        name = part.get(key) if isinstance(part, dict) else None
        if isinstance(name, str):
            return name.lower().rstrip("0123456789. ")
    return ""


class _Namespace(ModuleType):
    """What the cells define, and for what they failed to define, why."""

    def __init__(self) -> None:
        super().__init__(NAMESPACE)
        self.__dict__["_failed"] = {}

    def __getattr__(self, name: str) -> object:
        failed: dict[str, BaseException] = self.__dict__["_failed"]
        if name in failed:
            raise failed[name]
        raise AttributeError(f"the notebook has no {name}", name=name, obj=self)


class Notebook:
    """The notebook of a submission; made once a worker.

    Args:
        folder: the submission's.
        file: the notebook in it.
        modules: names of the course's modules: each is the namespace, unless the submission has a file for it.
        left_out: numbers of cells not to run.

    Raises:
        BadNotebook: it cannot be read.
    """

    def __init__(self, folder: Path, file: str, modules: Sequence[str], left_out: Sequence[int]) -> None:
        sources = read_cells((folder / file).read_bytes())
        self.folder, self.sources = folder, [without_magics(source) for source in sources]
        self.namespace = _Namespace()
        self.names = vars(self.namespace)
        self.names.update(input=_input, get_ipython=_nothing, display=_nothing, __annotations__={})
        os.environ["MPLBACKEND"] = "Agg"
        os.environ[WORKER] = "1"
        for name in (NAMESPACE, *modules):
            if not (folder / f"{name}.py").exists():
                sys.modules[name] = self.namespace
        for number in left_out:
            self._miss(names_defined(self._source(number)), LeftOut(number))

    def cells(self, left_out: Sequence[int]) -> list[int]:
        """The numbers of the code cells to run, counted from 1; empty ones and those left out are skipped."""
        numbered = enumerate(self.sources, 1)
        return [number for number, source in numbered if source.strip() and number not in left_out]

    def run(self, number: int) -> None:
        """Run one cell. Whatever it raises is kept for those who ask for what it should have defined.

        An import of a package that is not here costs its names alone, not the cell.
        """
        source, file = self._source(number), self._file(number)
        try:
            code: CodeType | None = compile(source, file, "exec", dont_inherit=True)
            body: list[ast.stmt] | None = None
            while code is not None:
                try:
                    exec(code, self.names)
                    return
                except ModuleNotFoundError as error:
                    body = self._after(ast.parse(source).body if body is None else body, error)
                    code = compile(ast.Module(body, []), file, "exec", dont_inherit=True) if body else None
        except BaseException as error:  # noqa: BLE001 - SystemExit ends a cell in Jupyter too, not the notebook
            self._miss(names_defined(source), error)
            print(f"cell {number}: {type(error).__name__}", file=sys.stderr)

    def _after(self, body: list[ast.stmt], error: ModuleNotFoundError) -> list[ast.stmt]:
        """The statements after an import that failed; its names are missed.

        Raises:
            ModuleNotFoundError: it came from another statement than an import of the cell's own.
        """
        frame = error.__traceback__.tb_next if error.__traceback__ else None
        line = frame.tb_lineno if frame else 0
        at = next((i for i, s in enumerate(body) if s.lineno <= line <= (s.end_lineno or 0)), None)
        if at is None or not isinstance(body[at], ast.Import | ast.ImportFrom):
            raise error
        self._miss(set(_bound(body[at])), error)
        return body[at + 1 :]

    def _miss(self, names: set[str], error: BaseException) -> None:
        """Remember why these names are not there; one that an earlier cell defined stays what it is."""
        failed: dict[str, BaseException] = self.names["_failed"]
        failed.update(dict.fromkeys(names, error))

    def _source(self, number: int) -> str:
        source, file = self.sources[number - 1], self._file(number)
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # for tracebacks
        return source

    def _file(self, number: int) -> str:
        return f"{self.folder}{os.sep}cell {number}"


def names_defined(source: str) -> set[str]:
    """The names that a cell would define at its top level; of one that Python cannot read, those that are plain."""
    try:
        return {name for statement in ast.parse(source).body for name in _bound(statement)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {name for pair in _DEFINITION.findall(source) for name in pair if name}


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement, or the statements within it, may define in the namespace."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.alias(name=name, asname=asname):
            yield asname or name.partition(".")[0]
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


class _Nothing:
    """Stands for what a notebook asks of its frontend: takes anything, does nothing."""

    def __call__(self, *args: object, **kwargs: object) -> None:
        return None

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()


def _nothing(*args: object, **kwargs: object) -> object:
    return _Nothing()


def _input(prompt: object = "") -> NoReturn:
    raise RuntimeError("nobody can answer input() while your work is graded: write the value into the cell")
