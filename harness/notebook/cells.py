"""A student's notebook inside the worker: read, and run cell by cell.

It is read here and not by the judge, because it may hold any amount of anything, and here memory is bounded; with
msgspec, which skips outputs and metadata without building them, and not with nbformat, whose import alone takes two
seconds. What nbformat's schema would refuse beyond this (missing cell ids, say) harms nobody.

All cells share one namespace, as in Jupyter, and it stands for every module of the course: `gpt`, `rope`, ... A cell
that fails costs only the names that it would have defined: whoever asks for one of them gets the cell's own error.

Every exercise has a worker of its own, and compiling takes longer than running. So the first worker compiles, before
it runs a cell, and the others get what it made. That is marshalled code: the judge passes it on as bytes without a look
inside, and only to workers of the same submission, which are as confined as the one that it came from.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import linecache
import marshal
import operator
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import NoReturn

import msgspec

from harness.notebook import WORKER
from harness.notebook.magics import without_magics

BROKEN, LEFT_OUT = "!notebook", "!left-out"  # kinds of replies, beside those of worker.objects
MAX_CELLS = 2_000
MAX_SOURCE = 4 * 2**20  # characters of all cells
MAX_COMPILED = 4 * 2**20  # bytes that workers hand on; the course's own notebook has 0.1 MiB
NAMESPACE = "notebook"  # the module that cells run in
NAME = re.compile(r"cell \d+")  # how a cell is called, where a file would have its name
PLACE = "<notebook>/"  # stands before "cell 3" in tracebacks, as a folder before a file: the same in every worker
_DEFINITION = re.compile(r"(?:class|def|async[ \t]+def)[ \t]+(\w+)|(\w+)[ \t]*(?::[^=]*)?=(?!=)")
_Failure = tuple[BaseException, TracebackType | None]
_PIECES = re.compile(r"(?m)^(?=[^\s)\]}])")
_FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


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

    def __init__(self, failed: Mapping[str, _Failure]) -> None:
        super().__init__(NAMESPACE)
        self.__dict__["_failed"] = failed

    def __getattr__(self, name: str) -> object:
        failed: Mapping[str, _Failure] = self.__dict__["_failed"]
        if name in failed:
            error, trace = failed[name]
            raise error.with_traceback(trace)  # it may have been raised before, and have gathered other lines
        raise AttributeError(f"the notebook has no {name}", name=name, obj=self)


class Notebook:
    """The notebook of a submission; made once a worker.

    Args:
        folder: the submission's.
        file: the notebook in it.
        modules: names of the course's modules: each is the namespace, unless the submission has a file for it.
        left_out: numbers of cells not to run.
        compiled: what another worker's notebook has compiled, or nothing.

    Raises:
        BadNotebook: it cannot be read.
    """

    def __init__(
        self, folder: Path, file: str, modules: Sequence[str], left_out: Sequence[int], compiled: bytes = b""
    ) -> None:
        self.path = folder / file
        self.numbers: list[int]  # of the cells that are not empty
        self.codes: dict[int, CodeType] = {}
        if compiled:  # from the judge, who has it from a worker that had run nothing of the submission
            self.numbers, self.codes = marshal.loads(compiled)  # noqa: S302
        else:
            self.numbers = [number for number, source in enumerate(self.sources, 1) if source.strip()]
        for number in self.numbers:  # for tracebacks, which most cells never need
            linecache.cache[_file(number)] = (functools.partial(self._source, number),)
        self.future = 0  # flags of what a cell imports from __future__: in Jupyter they hold for the cells after it
        self.failed: dict[str, _Failure] = {}
        self.namespace = _Namespace(self.failed)
        self.names = vars(self.namespace)
        self.names.update(input=_input, get_ipython=_nothing, display=_nothing, __annotations__={})
        os.environ["MPLBACKEND"] = "Agg"
        os.environ[WORKER] = "1"
        handed_in = {path.name for path in folder.iterdir()}
        for name in (NAMESPACE, *modules):
            if f"{name}.py" not in handed_in:
                sys.modules[name] = self.namespace
        for number in left_out:
            self._miss(names_defined(self._source(number)), LeftOut(number))

    @functools.cached_property
    def sources(self) -> list[str]:
        """The code of all cells, without magics. Where the cells came compiled, the file is read when it is needed.

        Raises:
            BadNotebook: it cannot be read.
        """
        return [without_magics(source) for source in read_cells(self.path.read_bytes())]

    def cells(self, left_out: Sequence[int]) -> list[int]:
        """The numbers of the code cells to run, counted from 1; empty ones and those left out are skipped."""
        return [number for number in self.numbers if number not in left_out]

    def compiled(self, numbers: Sequence[int]) -> bytes | None:
        """The cells, compiled, for other workers of this submission; None if that is more than they take.

        A cell that is no Python is not among them: each worker finds that out for itself, with the error.
        """
        for number in numbers:
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                self._code(number)
        try:
            made = marshal.dumps((self.numbers, self.codes))
        except (ValueError, MemoryError):  # nested too deeply to be written, though it would run
            return None
        return made if len(made) <= MAX_COMPILED else None

    def run_all(self, numbers: Sequence[int]) -> None:
        """Run cells, one after the other."""
        for number in numbers:
            self.run(number)

    def run(self, number: int) -> None:
        """Run one cell. Whatever it raises is kept for those who ask for what it should have defined.

        An import of a package that is not here costs its names alone, not the cell.
        """
        try:
            code: CodeType | None = self._code(number)
            body: list[ast.stmt] | None = None
            while code is not None:
                try:
                    exec(code, self.names)
                    return
                except ModuleNotFoundError as error:
                    body = self._after(ast.parse(self._source(number)).body if body is None else body, error)
                    code = self._made(ast.Module(body, []), number) if body else None
        except BaseException as error:  # noqa: BLE001 - SystemExit ends a cell in Jupyter too, not the notebook
            print(f"cell {number}: {type(error).__name__}", file=sys.stderr)
            self._miss(names_defined(self._source(number)), self.cause(error))

    def cause(self, error: BaseException) -> BaseException:
        """Why a name is not there, where that is what `error` says and a cell was to define the name; else `error`."""
        if type(error) is NameError and isinstance(error.name, str) and error.name in self.failed:
            cause, trace = self.failed[error.name]
            return BaseException.with_traceback(cause, trace)
        return error

    def _code(self, number: int) -> CodeType:
        if number not in self.codes:
            self.codes[number] = self._made(self._source(number), number)
        self.future |= self.codes[number].co_flags & _FUTURE
        return self.codes[number]

    def _made(self, code: str | ast.Module, number: int) -> CodeType:
        made: CodeType = compile(code, _file(number), "exec", self.future, dont_inherit=True)
        return made

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
        self.failed.update(dict.fromkeys(names, (error, error.__traceback__)))

    def _source(self, number: int) -> str:
        """The code of a cell; none, so that its names are missing, if the file is no longer what it was."""
        try:
            return self.sources[number - 1]
        except (OSError, BadNotebook, IndexError):
            return ""


def _file(number: int) -> str:
    return f"{PLACE}cell {number}"


def names_defined(source: str) -> set[str]:
    """The names that a cell would define at its top level; of one that Python cannot read, those that are plain."""
    try:
        return {name for statement in ast.parse(source).body for name in _bound(statement)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(_plain_names(source))


def _plain_names(source: str) -> Iterator[str]:
    """The names that are defined in a text that as a whole is no Python: it is read piece by piece.

    A piece begins at the margin, where no bracket closes.
    """
    for piece in _PIECES.split(source):
        found = _statements(piece) or _statements(piece.partition("\n")[0])
        if found:
            for statement in found:
                yield from _bound(statement)
        elif (definition := _DEFINITION.match(piece)) is not None:
            yield definition[1] or definition[2]


def _statements(source: str) -> list[ast.stmt]:
    """Those of a piece of code; none if it is no Python."""
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


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
