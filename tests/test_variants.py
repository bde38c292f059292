"""The known right and wrong answers: how they are read, and spliced into the reference."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.authoring.variants import Variant, VariantError, load_variants

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "reference").glob("*.py")}
VARIANTS = {kind: load_variants(ROOT / "graders" / kind) for kind in ("accepted", "misconceptions", "degenerate")}
EVERY = [variant for kind in VARIANTS.values() for variant in kind]
EXERCISES = ("heads", "order", "rope", "positions", "sharing", "cache", "maps", "pruning", "training")

FILE = '''"""A module."""

SIZE = 2


class Cutter:
    @property
    def size(self):
        """Kept."""
        return SIZE

    def cut(self, x):
        return x[: self.size]


def whole(x):
    return x
'''

VARIANT = '''
class Late:
    """Cuts from the end."""

    id = "cutting.late"
    of = "module.Cutter"
    source = "own: a slip"
    hint = ("You cut "
            "at the end.")
    imports = "import math\\nimport sys"

    @property
    def size(self):
        return math.floor(2.5)

    # A comment between.
    def start(self, x):
        text = """
  an indent of its own"""
        return len(x) - len(text) + len(text)

    def cut(self, x):
        return x[self.start(x) - self.size :]
'''


def write(tmp_path: Path, text: str, kind: str = "misconceptions", name: str = "cutting.py") -> Path:
    (tmp_path / kind).mkdir(exist_ok=True)
    (tmp_path / kind / name).write_text(text, encoding="utf-8")
    return tmp_path / kind


# Reading


def test_a_variant_is_read_with_all_that_it_says(tmp_path: Path) -> None:
    (late,) = load_variants(write(tmp_path, VARIANT))
    assert (late.id, late.exercise, late.kind) == ("cutting.late", "cutting", "misconception")
    assert (late.title, late.source, late.module) == ("Cuts from the end.", "own: a slip", "module")
    assert late.hint == "You cut at the end."
    assert [(function.owner, function.name) for function in late.functions] == [
        ("Cutter", "size"),
        ("Cutter", "start"),
        ("Cutter", "cut"),
    ]
    assert late.functions[0].source.startswith("@property\ndef size(self):\n    return")
    assert late.where == "misconceptions/cutting.py:2"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('    id = "cutting.late"\n', "", "Late lacks id"),
        ('    source = "own: a slip"\n', "", "Late lacks source"),
        ('    """Cuts from the end."""\n', "", "Late lacks a docstring"),
        ('    hint = ("You cut "\n            "at the end.")\n', "", "Late lacks hint"),
        ('"cutting.late"', '"sewing.late"', "must begin with 'cutting.'"),
        ('"own: a slip"', "str(1)", "line 7 is neither"),
        ("source =", "sauce =", "line 7 is neither"),
        ("return math", "return return", r"cutting\.py:14: not Python"),
    ],
)
def test_a_variant_that_lacks_something_is_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in VARIANT
    with pytest.raises(VariantError, match=problem):
        load_variants(write(tmp_path, VARIANT.replace(old, new)))


def test_ids_are_unique_and_hints_are_for_misconceptions(tmp_path: Path) -> None:
    with pytest.raises(VariantError, match=r"'cutting\.late' is taken by misconceptions/cutting\.py:2"):
        load_variants(write(tmp_path, VARIANT + VARIANT))
    with pytest.raises(VariantError, match="only misconceptions have"):
        load_variants(write(tmp_path, VARIANT, kind="accepted"))
    with pytest.raises(VariantError, match="accepted, misconceptions, degenerate"):
        load_variants(tmp_path)


# Splicing


def test_functions_are_replaced_in_place_and_helpers_added(tmp_path: Path) -> None:
    (late,) = load_variants(write(tmp_path, VARIANT))
    files = {"module.py": FILE, "other.py": "x = 1\n"}
    result = late.apply(files)
    assert files["module.py"] == FILE
    assert result["other.py"] == "x = 1\n"
    namespace: dict[str, object] = {}
    exec(result["module.py"], namespace)
    assert namespace["Cutter"]().cut([1, 2, 3]) == [2, 3]  # type: ignore[operator]
    assert namespace["__doc__"] == "A module."
    assert result["module.py"].count("@property") == 1
    assert "Kept" not in result["module.py"]
    assert result["module.py"].endswith("def whole(x):\n    return x\n")


def test_a_class_inside_stands_for_the_class_of_the_module(tmp_path: Path) -> None:
    text = '''class Both:
    """Both."""
    id = "cutting.both"
    of = "module"
    source = "own"
    def whole(x):
        return helper(x)
    def helper(x):
        return x[::-1]
    class Cutter:
        def cut(self, x):
            return whole(x)
'''
    (both,) = load_variants(write(tmp_path, text, kind="accepted"))
    namespace: dict[str, object] = {}
    exec(both.apply({"module.py": FILE})["module.py"], namespace)
    assert namespace["Cutter"]().cut("abc") == "cba"  # type: ignore[operator]
    assert namespace["Cutter"]().size == 2  # type: ignore[operator]


@pytest.mark.parametrize(
    ("files", "change", "problem"),
    [
        ({"other.py": ""}, {}, r"needs module\.py, found only \['other\.py'\]"),
        ({"module.py": "x = 1\n"}, {}, "Cutter, which module.py lacks"),
        ({"module.py": "class Cutter:\n    pass\n"}, {}, "replaces nothing"),
        ({"module.py": FILE}, {"imports": "import"}, "makes module.py invalid"),
    ],
)
def test_what_cannot_be_spliced_is_refused(
    tmp_path: Path, files: dict[str, str], change: dict[str, str], problem: str
) -> None:
    (late,) = load_variants(write(tmp_path, VARIANT))
    with pytest.raises(VariantError, match=problem) as error:
        replace(late, **change).apply(files)
    assert str(error.value).startswith("misconceptions/cutting.py:2: ")


# The course's own variants


def test_there_are_enough_and_ids_are_unique_over_all_kinds() -> None:
    assert len(VARIANTS["accepted"]) >= 25
    assert len(VARIANTS["misconceptions"]) >= 45
    assert {(v.kind, v.exercise) for v in EVERY} == {
        (kind, exercise) for kind in ("accepted", "misconception", "degenerate") for exercise in EXERCISES
    }
    wrong = [v.id for v in EVERY if v.kind != "degenerate"]
    assert len(wrong) == len(set(wrong))


@pytest.mark.parametrize("variant", EVERY, ids=lambda v: f"{v.kind}-{v.id}")
def test_every_variant_applies_and_changes_something(variant: Variant) -> None:
    result = variant.apply(REFERENCE)
    assert {name for name in REFERENCE if result[name] != REFERENCE[name]} == {f"{variant.module}.py"}


@pytest.mark.parametrize("variant", VARIANTS["degenerate"], ids=lambda v: v.id)
def test_a_degenerate_answer_replaces_every_body_that_the_student_writes(variant: Variant) -> None:
    marks = variant.apply(REFERENCE)[f"{variant.module}.py"].count("# --- answer: " + variant.exercise)
    assert marks == 0


def test_hints_speak_to_the_student_and_are_short() -> None:
    for variant in VARIANTS["misconceptions"]:
        assert 40 <= len(variant.hint) <= 240, variant.id
        assert variant.hint[-1] in ".?", variant.id


def test_a_function_at_the_top_of_the_file_goes_to_the_variants_that_call_it(tmp_path: Path) -> None:
    folder = tmp_path / "degenerate"
    folder.mkdir()
    fields = '"""Does."""\n    of = "m"\n    source = "own"'
    variant = f'class {{}}:\n    {fields}\n    id = "e.{{}}"\n\n    def f(x):\n        return {{}}\n'
    shared = "def halved(x):\n    return x / 2\n\n\n"
    classes = [variant.format("A", "a", "halved(x)"), variant.format("B", "b", "x  # not halved")]
    (folder / "e.py").write_text(shared + "\n\n".join(classes), encoding="utf-8")
    calls, alone = load_variants(folder)
    assert [function.name for function in calls.functions] == ["f", "halved"]
    assert [function.name for function in alone.functions] == ["f"]
    assert load_variants(folder, without={"e.b"}) == [calls]
    names: dict[str, object] = {}
    exec(calls.apply({"m.py": "def f(x):\n    return x\n"})["m.py"], names)
    assert names["f"](6) == 3  # type: ignore[operator]
