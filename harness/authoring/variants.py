"""Right and wrong answers that are known in advance: read and spliced into the reference, never imported.

A file graders/<kind>/<exercise>.py holds one class a variant:

    class ViewWithoutTranspose:
        \"\"\"The heads are cut with view alone.\"\"\"
        id = "heads.view-without-transpose"
        of = "gpt.CausalSelfAttention"   # a module or a class in it: its functions of the same name go
        source = "where it was really seen"
        hint = "what to tell the student"   # misconceptions only
        imports = "import math"             # optional, added at the top of the module
        def split_heads(self, x): ...

Functions that the target lacks are added as helpers; one that several variants call may stand at the top of the file,
before the first class. With a module as target, a class inside the variant
stands for the module's class of that name.
"""

import ast
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Literal

Kind = Literal["accepted", "misconception", "degenerate"]
KINDS: dict[str, Kind] = {
    "accepted": "accepted",
    "misconceptions": "misconception",
    "degenerate": "degenerate",
}
FIELDS = ("id", "of", "source", "hint", "imports", "convention")


class VariantError(ValueError):
    """A variant that cannot be read or applied; the message says where and what to do."""


@dataclass(frozen=True)
class Replacement:
    """One function: its class ("" for none), its name, and its source without indentation."""

    owner: str
    name: str
    source: str


@dataclass(frozen=True)
class Variant:
    """One known answer to an exercise.

    `title` says what is done (right or wrong), `source` where it was seen, `hint` what to tell the student
    (misconceptions only, else empty), `module` the module that it changes, `where` its own file and line.
    `convention` names a right answer whose values differ from the reference's, as the other pairing in RoPE.
    """

    id: str
    exercise: str
    kind: Kind
    title: str
    source: str
    hint: str
    module: str
    functions: tuple[Replacement, ...]
    imports: str
    where: str
    convention: str = ""

    @property
    def line(self) -> int:
        """Where it begins in its file."""
        return int(self.where.rpartition(":")[2])

    @property
    def touches(self) -> set[tuple[str, str, str]]:
        """The functions that it replaces or adds, by module, class and name."""
        return {(self.module, function.owner, function.name) for function in self.functions}

    def apply(self, files: Mapping[str, str]) -> dict[str, str]:
        """The given sources (file name -> text) with this variant's functions in place of those it replaces.

        Raises VariantError when the module or class is missing, when nothing is replaced, or when the result
        is not Python.
        """
        file_name = f"{self.module}.py"
        if file_name not in files:
            raise VariantError(f"{self.where}: {self.id} needs {file_name}, found only {sorted(files)}")
        text, replaced = files[file_name], 0
        for function in self.functions:
            text, hit = self._splice(text, function)
            replaced += hit
        if not replaced:
            names = ", ".join(function.name for function in self.functions)
            raise VariantError(f"{self.where}: {self.id} replaces nothing in {file_name}: no function {names} there")
        text = _with_imports(text, self.imports)
        try:
            compile(text, file_name, "exec", dont_inherit=True)
        except SyntaxError as error:
            problem = f"{error.msg} (line {error.lineno} of the result)"
            raise VariantError(f"{self.where}: {self.id} makes {file_name} invalid: {problem}") from error
        return {**files, file_name: text}

    @contextmanager
    def patched(self, modules: Mapping[str, ModuleType]) -> Iterator[None]:
        """While this lasts, the loaded reference `modules` (by name) have this variant's functions.

        The same answer as `apply` gives, without compiling a module again. Raises KeyError or AttributeError when
        the module or class is missing.
        """
        target = modules[self.module]
        undo: list[tuple[object, str, object]] = []
        try:
            if self.imports:
                names: dict[str, object] = {}
                exec(self.imports, names)
                for name in names.keys() - {"__builtins__"}:
                    _put(undo, target, name, names[name])
            for function in self.functions:
                owner = getattr(target, function.owner) if function.owner else target
                new = _compiled(function, target, owner, self.where)
                old = getattr(owner, function.name, _ABSENT)
                _put(undo, owner, function.name, new)
                for other in modules.values():  # `from rope import apply_rope` in another module
                    if not function.owner and other is not target and vars(other).get(function.name) is old:
                        _put(undo, other, function.name, new)
            yield
        finally:
            for place, name, old in reversed(undo):
                if old is _ABSENT:
                    delattr(place, name)
                else:
                    setattr(place, name, old)

    def _splice(self, text: str, function: Replacement) -> tuple[str, bool]:
        """The text with one function replaced, or added at the end of its owner; and whether it was there."""
        tree = ast.parse(text)
        body, indent, end = tree.body, "", len(text.splitlines())
        if function.owner:
            owners = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == function.owner]
            if not owners:
                raise VariantError(f"{self.where}: {self.id} is of {function.owner}, which {self.module}.py lacks")
            body, indent, end = owners[0].body, "    ", owners[0].end_lineno or 0
        start, hit = end, False
        for node in body:
            if isinstance(node, ast.FunctionDef) and node.name == function.name:
                start, end, hit = _first_line(node) - 1, node.end_lineno or 0, True
        new = _indented(function.source, indent)
        gap = [] if hit else [""] * (1 if function.owner else 2)
        lines = text.splitlines()
        lines[start:end] = [*gap, *new]
        return "\n".join(lines) + "\n", hit


_ABSENT = object()


def _put(undo: list[tuple[object, str, object]], place: object, name: str, value: object) -> None:
    undo.append((place, name, vars(place).get(name, _ABSENT)))
    setattr(place, name, value)


def _compiled(function: Replacement, module: ModuleType, owner: object, where: str) -> object:
    """The function as it would be in `module`; `super()` finds its class through the cell `__class__`."""
    names: dict[str, Callable[[object], object]] = {}
    exec(_shim(function, where), module.__dict__, names)
    return names["_shim"](owner)


@lru_cache(maxsize=1024)  # a mistake is tried on several checks
def _shim(function: Replacement, where: str) -> CodeType:
    shim = "\n".join(["def _shim(__class__):", *_indented(function.source, "    "), f"    return {function.name}"])
    return compile(shim, where, "exec", dont_inherit=True)


def has_conventions(folder: Path, exercise: str) -> bool:
    """Whether a variant of an exercise may have a `convention`: looked up in the text, without parsing it."""
    return any(_CONVENTION.search(path.read_text(encoding="utf-8")) for path in folder.glob(f"{exercise}.py"))


def load_variants(folder: Path, exercise: str = "*", without: Container[str] = ()) -> list[Variant]:
    """Every variant of a folder called accepted, misconceptions or degenerate, in the order of the files.

    With `exercise`, only those of one exercise; to read all takes tenths of a second. Those whose ids are in `without`
    are left out, and cost nothing. Raises VariantError for a folder of another name, for a file that is not Python,
    and for a variant that lacks what it needs, has an id of another exercise, or one that is taken.
    """
    if folder.name not in KINDS:
        raise VariantError(f"{folder}: variants are kept in folders called {', '.join(KINDS)}")
    variants: list[Variant] = []
    for path in sorted(folder.glob(f"{exercise}.py")):
        variants += [variant for variant in _read(path, KINDS[folder.name], without) if variant.id not in without]
    seen: dict[str, Variant] = {}
    for variant in variants:
        if variant.id in seen:
            raise VariantError(f"{variant.where}: the id {variant.id!r} is taken by {seen[variant.id].where}")
        seen[variant.id] = variant
    return variants


def _read(path: Path, kind: Kind, without: Container[str]) -> list[Variant]:
    text = path.read_text(encoding="utf-8")
    name = f"{path.parent.name}/{path.name}"
    if without:
        blanked = _CLASS.sub(lambda found: "\n" * found[0].count("\n") if found["id"] in without else found[0], text)
        # It does not parse where what looked like a class was the middle of a string.
        with suppress(SyntaxError):
            return _of_classes(ast.parse(blanked), blanked, kind, path.stem, name)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise VariantError(f"{name}:{error.lineno}: not Python: {error.msg}") from error
    return _of_classes(tree, text, kind, path.stem, name)


_CONVENTION = re.compile(r"^[^\S\n]+convention\b\s*=", re.M)

# From the margin to the next class there, or to the end. Without an id it is no match, and stays.
_CLASS = re.compile(r'^class \w(?:(?!^class ).)*?^    id = "(?P<id>[^"\n]*)"(?:(?!^class ).)*', re.M | re.S)


def _of_classes(tree: ast.Module, text: str, kind: Kind, exercise: str, name: str) -> list[Variant]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    lines = text.splitlines()
    shared = _functions([node for node in tree.body if isinstance(node, ast.FunctionDef)], lines, "")
    return [_variant(node, lines, shared, kind, exercise, f"{name}:{node.lineno}") for node in classes]


def _variant(
    node: ast.ClassDef, lines: list[str], shared: Sequence[Replacement], kind: Kind, exercise: str, where: str
) -> Variant:
    fields = _fields(node, where)
    module, _, owner = fields.get("of", "").partition(".")
    own = _functions(node.body, lines, owner)
    functions = (*own, *(helper for helper in shared if any(_mentions(f.source, helper.name) for f in own)))
    title = ast.get_docstring(node) or ""
    wanted = ["id", "of", "source", *(["hint"] if kind == "misconception" else [])]
    missing = [name for name in wanted if not fields.get(name)]
    missing += ["a docstring"] if not title else []
    missing += ["a function"] if not functions else []
    if missing:
        raise VariantError(f"{where}: {node.name} lacks {' and '.join(missing)}")
    if kind != "misconception" and "hint" in fields:
        raise VariantError(f"{where}: {node.name} has a hint, which only misconceptions have")
    if not fields["id"].startswith(f"{exercise}."):
        raise VariantError(f"{where}: the id {fields['id']!r} must begin with {exercise + '.'!r}, as the file does")
    hint, imports = fields.get("hint", ""), fields.get("imports", "")
    return Variant(
        fields["id"], exercise, kind, title, fields["source"], hint, module, functions, imports, where,
        fields.get("convention", ""),
    )  # fmt: skip


def _mentions(source: str, name: str) -> bool:
    """Whether the code has this name. Where only its text has it, it is parsed; that takes longer than all the rest."""
    return name in source and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(ast.parse(source)))


def _fields(node: ast.ClassDef, where: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(value))) if name in FIELDS:
                fields[name] = value
            case ast.FunctionDef() | ast.ClassDef() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                known = ", ".join(FIELDS)
                raise VariantError(f"{where}: line {statement.lineno} is neither a function nor a string: {known}")
    return fields


def _functions(body: Sequence[ast.stmt], lines: list[str], owner: str) -> tuple[Replacement, ...]:
    found: list[Replacement] = []
    for child in body:
        if isinstance(child, ast.ClassDef):
            found += _functions(child.body, lines, child.name)
        elif isinstance(child, ast.FunctionDef):
            first = _first_line(child)
            whole = lines[first - 1 : child.end_lineno]
            kept = _inside_strings(child, "\n".join(whole))
            source = [line if number in kept else line[child.col_offset :] for number, line in enumerate(whole, first)]
            found.append(Replacement(owner, child.name, "\n".join(source)))
    return tuple(found)


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _inside_strings(node: ast.AST | None, source: str) -> set[int]:
    """The lines that begin inside a string: to change their indentation would change the string.

    Without a node, `source` is parsed, unless there cannot be such a line.
    """
    if not any(mark in source for mark in ('"""', "'''", "\\\n")):
        return set()
    node = node or ast.parse(source)
    strings = [n for n in ast.walk(node) if isinstance(n, ast.JoinedStr | ast.Constant)]
    return {line for n in strings for line in range(n.lineno + 1, (n.end_lineno or 0) + 1)}


def _indented(source: str, indent: str) -> list[str]:
    kept = _inside_strings(None, source)
    lines = enumerate(source.splitlines(), 1)
    return [line if number in kept or not line else indent + line for number, line in lines]


def _with_imports(text: str, imports: str) -> str:
    if not imports:
        return text
    first, *_ = ast.parse(text).body
    docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    place = (first.end_lineno or 0) if docstring else first.lineno - 1
    lines = text.splitlines()
    lines[place:place] = imports.splitlines()
    return "\n".join(lines) + "\n"
