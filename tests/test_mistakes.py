"""Which known mistakes are tried on a submission: those that fail where it fails, read only then."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness import session
from harness.authoring import fails, prove
from harness.authoring.variants import VariantError, has_conventions, load_variants
from harness.batch.keys import basis
from harness.bench import Bench
from harness.cli import run
from harness.course import read_course
from harness.diagnosis import Diagnosis, Footprint
from harness.mistakes import Candidate, Shelf, candidates
from harness.problem import Problem
from harness.report import Report
from harness.submission import Submission

ROOT = Path(__file__).resolve().parent.parent
GRADERS = ROOT / "graders"
TEMPERATURE = ROOT / "tests" / "courses" / "temperature"
EXERCISES = [path.stem for path in sorted((GRADERS / "misconceptions").glob("*.py"))]

# What is written down


def test_what_is_written_is_read(tmp_path: Path) -> None:
    failing = {"e.one": {"e.a": "close.far", "e.b.c": 'it\'s "so"'}, "e.a name": {}, "e.two": {"e.a": ""}}
    (tmp_path / "misconceptions").mkdir()
    text = fails.text_of("e", failing)
    fails.path_of(tmp_path, "e").write_text(text, encoding="utf-8")
    found = fails.read(tmp_path, "e")
    assert found == failing and list(found) == list(failing)
    assert 'one = { a = "close.far"' in text
    assert fails.read(tmp_path, "other") == {}


@pytest.mark.parametrize("text", ["one = ", 'one = ["a"]', "one = { a = 1 }", "one = 5"])
def test_a_damaged_file_is_told_with_the_way_out(text: str, tmp_path: Path) -> None:
    (tmp_path / "misconceptions").mkdir()
    fails.path_of(tmp_path, "e").write_text(text, encoding="utf-8")
    with pytest.raises(Problem, match=r"e\.toml") as told:
        fails.read(tmp_path, "e")
    assert "--record" in str(told.value.help)


def test_every_mistake_of_the_course_is_written_down_and_nothing_else() -> None:
    """That it is true is proved by check-course; this finds a mistake or a check that came, went or was renamed."""
    checks = {check.id for check in session.collect(read_course())}
    for exercise in EXERCISES:
        known = fails.read(GRADERS, exercise)
        assert list(known) == [mistake.id for mistake in load_variants(GRADERS / "misconceptions", exercise)]
        assert all(known.values())  # each fails something
        assert {check for failed in known.values() for check in failed} <= checks
        text = fails.path_of(GRADERS, exercise).read_text(encoding="utf-8")
        assert text == fails.text_of(exercise, known)


def test_a_stored_result_depends_on_it(tmp_path: Path) -> None:
    shutil.copytree(TEMPERATURE / "graders", tmp_path / "graders")
    course = read_course(tmp_path / "graders")
    before = basis(course, 7, "process")
    text = fails.text_of("temperature", {"temperature.multiplied": {"temperature.values": "close.far"}})
    fails.path_of(course.root / "graders", "temperature").write_text(text, encoding="utf-8")
    after = basis(course, 7, "process")
    assert before.exercises["temperature"] != after.exercises["temperature"]
    assert before.common == after.common  # the other exercises of a course do not depend on it


# What is read


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_shelf_gives_what_may_fail_in_the_order_of_the_file(exercise: str) -> None:
    known = fails.read(GRADERS, exercise)
    every = candidates(load_variants(GRADERS / "misconceptions", exercise), [], known)
    shelf = Shelf(GRADERS)
    for failed in [*map(set, known.values())][::-2]:
        found = shelf.that_may_fail(exercise, failed)
        assert found == [candidate for candidate in every if set(known[candidate.mistake.id]) >= failed]
        assert found
    assert shelf.that_may_fail(exercise, ["quite.another"]) == []
    assert Shelf(GRADERS).that_may_fail(exercise, []) == every


def test_what_is_not_written_down_is_always_tried(tmp_path: Path) -> None:
    graders = tmp_path / "graders"
    shutil.copytree(TEMPERATURE / "graders", graders)
    mistakes = [mistake.id for mistake in load_variants(graders / "misconceptions")]
    assert ids(Shelf(graders).that_may_fail("temperature", ["temperature.values"])) == mistakes
    first, second, third, *_ = mistakes
    known = {first: {"temperature.values": "m"}, third: {"temperature.rows": "m"}, "temperature.gone": {}}
    fails.path_of(graders, "temperature").write_text(fails.text_of("temperature", known), encoding="utf-8")
    shelf = Shelf(graders)
    assert ids(shelf.that_may_fail("temperature", ["temperature.values"])) == [id for id in mistakes if id != third]
    assert ids(shelf.that_may_fail("temperature", ["temperature.rows"])) == [id for id in mistakes if id != first]
    assert ids(shelf.that_may_fail("temperature", [])) == mistakes
    assert second in mistakes


def test_in_another_convention_a_mistake_may_fail_anything(tmp_path: Path) -> None:
    (tmp_path / "misconceptions").mkdir()
    (tmp_path / "accepted").mkdir()
    text = (
        'class {0}:\n    """What."""\n    id = "e.{0}"\n    of = "m"\n    source = "own"\n    {1}\n    def {2}(): ...\n'
    )
    wrong = [text.format(name, 'hint = "h"', function) for name, function in (("one", "f"), ("two", "g"))]
    (tmp_path / "misconceptions" / "e.py").write_text("\n\n".join(wrong), encoding="utf-8")
    (tmp_path / "accepted" / "e.py").write_text(text.format("form", 'convention = "c"', "g"), encoding="utf-8")
    known = {"e.one": {"e.a": "m"}, "e.two": {"e.a": "m"}}
    fails.path_of(tmp_path, "e").write_text(fails.text_of("e", known), encoding="utf-8")

    def found(*checks: str) -> list[tuple[str, str]]:
        shelf = Shelf(tmp_path).that_may_fail("e", checks)
        return [(candidate.mistake.id, candidate.form.id if candidate.form else "") for candidate in shelf]

    assert found("e.a") == [("e.one", ""), ("e.two", ""), ("e.one", "e.form")]
    assert found("e.b") == [("e.one", "e.form")]


def test_a_convention_is_a_field_not_a_word(tmp_path: Path) -> None:
    (tmp_path / "e.py").write_text('"""Every convention counts."""\n\nclass A:\n    id = "e.a"\n', encoding="utf-8")
    assert not has_conventions(tmp_path, "e")
    assert not has_conventions(tmp_path, "f")
    (tmp_path / "f.py").write_text('class A:\n    id = "f.a"\n    convention = "c"\n', encoding="utf-8")
    assert has_conventions(tmp_path, "f")


# Variants that are left out


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_others_are_read_as_if_all_were(exercise: str) -> None:
    every = load_variants(GRADERS / "misconceptions", exercise)
    for start in range(3):
        without = {mistake.id for mistake in every[start::3]}
        left = [mistake for mistake in every if mistake.id not in without]
        assert load_variants(GRADERS / "misconceptions", exercise, without) == left


TRICKY = '''
class First:
    """A line in it looks like a class."""

    id = "e.first"
    of = "m"
    source = "own"
    hint = "h"

    def f():
        return """
class Second:
    id = "e.second"
"""


class Second:
    """Its id is written otherwise."""

    id = ("e.second")
    of = "m"
    source = "own"
    hint = "h"

    def f(): ...


class Third:
    """As usual."""

    id = "e.third"
    of = "m"
    source = "own"
    hint = "h"

    def f(): ...
'''


@pytest.mark.parametrize("without", [set(), {"e.first"}, {"e.second"}, {"e.third"}, {"e.first", "e.third"}], ids=str)
def test_what_only_looks_like_a_class_misleads_nobody(without: set[str], tmp_path: Path) -> None:
    (tmp_path / "misconceptions").mkdir()
    (tmp_path / "misconceptions" / "e.py").write_text(TRICKY, encoding="utf-8")
    every = load_variants(tmp_path / "misconceptions")
    assert [mistake.id for mistake in every] == ["e.first", "e.second", "e.third"]
    assert "class Second" in every[0].functions[0].source
    found = load_variants(tmp_path / "misconceptions", "e", without)
    assert found == [mistake for mistake in every if mistake.id not in without]


def test_a_file_that_is_not_python_is_told_whatever_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "misconceptions").mkdir()
    (tmp_path / "misconceptions" / "e.py").write_text(f"{TRICKY}\n)\n", encoding="utf-8")
    with pytest.raises(VariantError, match="not Python"):
        load_variants(tmp_path / "misconceptions", "e", {"e.first"})


# What is run


def test_only_mistakes_that_fail_there_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same name with what is written down and without; with it, fewer mistakes are run on fewer checks."""
    plain, quick = tmp_path / "plain", tmp_path / "quick"
    for folder in (plain, quick):
        shutil.copytree(TEMPERATURE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    runs: list[tuple[str, str]] = []
    diagnose = Diagnosis._run

    def counted(
        self: Diagnosis, candidate: Candidate, check: str, bench: Bench, expected: Sequence[object] | None
    ) -> Footprint:
        runs.append((candidate.mistake.id, check))
        return diagnose(self, candidate, check, bench, expected)

    monkeypatch.setattr(Diagnosis, "_run", counted)
    mistakes = load_variants(TEMPERATURE / "graders" / "misconceptions")
    source = (TEMPERATURE / "reference" / "sampling.py").read_text(encoding="utf-8")
    works = {mistake.id: mistake.apply({"sampling.py": source})["sampling.py"].encode() for mistake in mistakes}
    before = judged(plain, works)
    failing = {id: {check: said for check, said, _ in checks} for id, checks in before.items()}
    assert all({name for _, _, name in checks} == {id} for id, checks in before.items())
    tried = len(runs)
    fails.path_of(quick / "graders", "temperature").write_text(fails.text_of("temperature", failing), encoding="utf-8")
    runs.clear()
    assert judged(quick, works) == before
    assert set(runs) <= {(id, check) for id, failed in failing.items() for check in failed}
    assert len(runs) < tried


def test_what_is_written_down_comes_back_when_its_making_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(TEMPERATURE, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    path = fails.path_of(tmp_path / "graders", "temperature")
    path.write_text(fails.text_of("temperature", {"temperature.multiplied": {}}), encoding="utf-8")
    before, there = path.read_bytes(), []

    def stopped(*arguments: object, **named: object) -> None:
        there.append(path.exists())
        raise KeyboardInterrupt

    monkeypatch.setattr(prove, "prove", stopped)
    assert run(["check-course", "--quick", "--record", "--course", str(tmp_path)]) == 130
    assert there == [False] and path.read_bytes() == before


def judged(root: Path, works: dict[str, bytes]) -> dict[str, list[tuple[str, str, str]]]:
    """Each work's failing checks, with what they say and the mistake that is named."""
    course = read_course(root / "graders")
    reports: list[Report] = []
    jobs = (
        session.Job(
            Bench(Submission(id, {"sampling.py": work}), course, None, None, course.seed),
            course.exercise,
            reports.append,
        )
        for id, work in works.items()
    )
    session.grade_all(jobs, course.exercise, root=course.root)
    return {
        id: [
            (check.id, check.message.id if check.message else "", check.misconception)
            for check in report.exercises[0].checks
            if not check.points
        ]
        for id, report in zip(works, reports, strict=True)
    }


def ids(found: Sequence[Candidate]) -> list[str]:
    return [candidate.mistake.id for candidate in found]
