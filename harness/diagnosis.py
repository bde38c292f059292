"""Names the mistake: which known wrong answer gives exactly what the student's code gave.

The wrong versions of `graders/misconceptions/` are run in this process, which trusts them, on the same inputs and
weights, and what the checks saw of them is compared with what they saw of the student. A mistake is named only if it
reproduces every failing value check of an exercise. Wrong versions run only when something failed, and of those only
the ones that fail where the submission does; the cheapest check first. What they gave is kept for the next submission.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

import pytest
import torch

from harness.authoring import touched
from harness.authoring.variants import Variant
from harness.bench import Bench
from harness.mistakes import Candidate, Mistakes
from harness.observe import Mismatch, alike, observing
from harness.oracle import Modules, Recording, RecordingLink
from harness.outcome import Status
from harness.plugin import Ended, explain, info_of
from harness.report import CheckResult, ExerciseResult, Text
from harness.worker import objects
from harness.worker.client import Link, LocalLink


@dataclass(frozen=True)
class Footprint:
    """How a check ended and what it saw of the answers, in order.

    `ended` is None when the check passed. A footprint that is not `complete` stops at an answer that did not match
    the student's, where running on was useless.
    """

    ended: Ended | None
    seen: Sequence[object]
    complete: bool = True

    @property
    def is_about_values(self) -> bool:
        """Whether numbers were compared, or there was something wrong on the way to them."""
        if self.ended is None:
            return False
        if self.ended.status is Status.FAILED:
            return bool(self.seen) and isinstance(self.seen[-1], torch.Tensor | float)
        return self.ended.status in (Status.ERROR, Status.MISSING)

    def reproduces(self, other: Footprint) -> bool:
        """Whether both failed in the same way on the same answers, but for rounding."""
        if self.ended is None or other.ended is None or self.ended.status is not other.ended.status:
            return False
        if self.ended.status is not Status.FAILED and self._complaint != other._complaint:
            return False
        return self.matches(other.seen)

    @property
    def _complaint(self) -> object:
        assert self.ended is not None
        return self.ended.raised or self.ended.message

    def matches(self, seen: Sequence[object]) -> bool:
        """Whether the answers are alike, as far as this footprint goes."""
        known = len(self.seen)
        if known > len(seen) or (self.complete and known < len(seen)):
            return False
        return all(map(alike, seen, self.seen))


class Diagnosis:
    """Finds the mistake behind failing checks.

    Args:
        known: what can be named.
        modules: the reference's, apart from the oracle's, because they are changed for a while.
        items: the collected checks.
    """

    def __init__(self, known: Mistakes, modules: Modules, items: Sequence[pytest.Item]) -> None:
        self.known = known
        self.modules = modules
        self.tests = {info_of(item).id: item for item in items}
        self.footprints: dict[tuple[Candidate, str, int], Footprint] = {}
        self.called: dict[tuple[str, int], touched.Called] = {}  # by the reference's own run of a check

    def name(
        self,
        exercise: str,
        failed: Mapping[str, Footprint],
        passed: Sequence[str],
        others: Collection[str],
        named: Collection[Candidate],
        bench: Bench,
    ) -> Candidate | None:
        """The known mistake that reproduces all of `failed`, or None.

        Args:
            exercise: whose mistakes are tried.
            failed: footprints of the failing checks by id, cheapest first.
            passed: ids of the checks that passed: of several mistakes that fit, one that fails there does not.
            others: ids of all failing checks of the exercise. Where it is written down what all that fit fail, one
                that explains more goes before one that explains less, and one of `named`, which have been found
                already, before others; else the order of the course decides.
            bench: the oracle and the seed.
        """
        left = list(self.known.that_may_fail(exercise, failed))
        if all(candidate.fails is not None for candidate in left):
            # The best first, so that the others need not be run.
            left.sort(key=lambda candidate: _unlikely(candidate, failed, passed, others, named))
            fits = (all(self.reproduces(candidate, *seen, bench) for seen in failed.items()) for candidate in left)
            return next(itertools.compress(left, fits), None)
        for check, footprint in failed.items():
            left = [candidate for candidate in left if self.reproduces(candidate, check, footprint, bench)]
        if len({candidate.mistake.id for candidate in left}) > 1:
            for check in passed:
                left = [candidate for candidate in left if not self._fails(candidate, check, bench)] or left
        return left[0] if left else None

    def reproduces(self, candidate: Candidate, check: str, footprint: Footprint, bench: Bench) -> bool:
        """Whether `check` fails on a known mistake as it failed on the student's code. Runs what is not known yet."""
        key = (candidate, check, bench.seed)
        known = self.footprints.get(key)
        if known is None or (not known.complete and known.matches(footprint.seen)):
            known = self.footprints[key] = self._run(candidate, check, bench, footprint.seen)
        return known.complete and known.reproduces(footprint)

    def _fails(self, candidate: Candidate, check: str, bench: Bench) -> bool:
        if candidate.fails is not None:
            return check in candidate.fails
        return self._run(candidate, check, bench, None).ended is not None

    def _run(self, candidate: Candidate, check: str, bench: Bench, expected: Sequence[object] | None) -> Footprint:
        modules = self._loaded(bench, check)
        for variant in (candidate.mistake, *([candidate.form] if candidate.form else [])):
            self.modules.load(variant.module)
        is_known_to_fail = candidate.fails is not None and check in candidate.fails
        if not is_known_to_fail and not candidate.can_show(modules, self._called(check, bench)):
            return Footprint(None, [])
        link = LocalLink(objects.Objects(self.modules.load))
        seen: list[object] = []
        try:
            with self._forgetting(), candidate.patched(modules), observing(expected) as seen:
                ended = run_check(self.tests[check], bench, link)
        except Mismatch:
            return Footprint(None, seen, complete=False)
        return Footprint(ended, seen)

    def _loaded(self, bench: Bench, check: str) -> dict[str, ModuleType]:
        """The modules that a check's exercise is about, and what they import, loaded before anything is patched."""
        exercise = info_of(self.tests[check]).exercise
        for name in next(item.files for item in bench.course.exercise if item.id == exercise):
            if name.removesuffix(".py") in self.modules.sources:
                self.modules.load(name.removesuffix(".py"))
        return self.modules.loaded

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        """What is loaded meanwhile would keep the patched functions that it imports: later it is loaded anew."""
        before = set(self.modules.loaded)
        try:
            yield
        finally:
            for name in self.modules.loaded.keys() - before:
                del self.modules.loaded[name]

    def _called(self, check: str, bench: Bench) -> touched.Called:
        """The functions that a check calls of the reference: the same for all candidates that are tried on it."""
        key = (check, bench.seed)
        if key not in self.called:
            with touched.calls() as called:
                run_check(self.tests[check], bench, LocalLink(objects.Objects(self.modules.load)))
            self.called[key] = called
        return self.called[key]


def _unlikely(
    candidate: Candidate,
    failed: Mapping[str, Footprint],
    passed: Sequence[str],
    others: Collection[str],
    named: Collection[Candidate],
) -> tuple[object, ...]:
    """Orders mistakes whose failing checks are known; see `Diagnosis.name`. Those that make a check say what it said
    go before others, which may be tried in vain."""
    fails = candidate.fails or {}
    said = {check: footprint.ended.message.id for check, footprint in failed.items() if footprint.ended is not None}
    return (
        [check in fails for check in passed],
        candidate not in named,
        -len(fails.keys() & set(others)),
        -sum(fails.get(check) == id for check, id in said.items()),
    )


def record_check(
    item: pytest.Item, bench: Bench, recording: Recording, modules: Modules, answers: Recording | None = None
) -> Ended | None:
    """Let the reference take a check itself and record what the oracle is asked; None when it passed.

    Args:
        item: the check.
        bench: its oracle, seed and course count.
        recording: gets the tape.
        modules: the reference's, apart from the oracle's.
        answers: gets a tape of what the check asks of it as a student.
    """
    asked = Bench(bench.submission, bench.course, None, RecordingLink(bench.oracle, recording), bench.seed)
    link = LocalLink(objects.Objects(modules.load))
    return run_check(item, asked, link if answers is None else RecordingLink(link, answers))


def run_check(item: pytest.Item, bench: Bench, link: Link) -> Ended | None:
    """Run one check outside pytest, with `link` as the student; how it ended, or None when it passed."""
    assert isinstance(item, pytest.Function)
    info = info_of(item)
    wanted = inspect.signature(item.function).parameters
    reference = bench.reference(info) if {"reference", "draw"} & wanted.keys() else None
    given: dict[str, Callable[[], object]] = {
        "student": lambda: bench.begin(link, info),
        "reference": lambda: reference,
        "draw": lambda: reference and bench.inputs(reference),
        "handed_in": lambda: bench.submission.files,
    }
    try:
        item.function(**{name: make() for name, make in given.items() if name in wanted})
    except Exception as error:  # noqa: BLE001 - explained below, as pytest's report of it would be
        return explain(error, "")
    return None


def judges_files(item: pytest.Item) -> bool:
    """Whether a check reads what was handed in as data: what it finds there is no matter of a mistake in the code, and
    it asks nothing of the reference."""
    return "handed_in" in item.fixturenames  # type: ignore[attr-defined]


def asks_student(item: pytest.Item) -> bool:
    """Whether a check asks anything of the student's code."""
    return "student" in item.fixturenames  # type: ignore[attr-defined]


def tell(
    diagnosis: Diagnosis, results: Sequence[ExerciseResult], footprints: Mapping[str, Footprint], bench: Bench
) -> None:
    """Name mistakes in a report's results, and link what follows from an earlier failure to it.

    Args:
        diagnosis: what can be named.
        results: of one submission, in the course's order: a mistake in one exercise explains failures in those after
            it. `hint`, `misconception` and `caused_by` are filled in.
        footprints: what each check saw of this submission.
        bench: the oracle and the seed.
    """
    named: list[tuple[Candidate, str]] = []  # with the check that tells its story
    for result in results:
        about_code = [check for check in result.checks if not judges_files(diagnosis.tests[check.id])]
        failing = [check for check in about_code if footprints[check.id].is_about_values]
        for candidate, root in named:
            for check in failing:
                if diagnosis.reproduces(candidate, check.id, footprints[check.id], bench):
                    check.caused_by, check.misconception = root, candidate.mistake.id
        failing = [check for check in failing if not check.caused_by]
        passed = [check.id for check in result.checks if check.status is Status.PASSED]
        others = [
            c
            for c in about_code
            if c.status is Status.FAILED and c not in failing and not c.caused_by and footprints[c.id].seen
        ]  # what saw no answer of the code is not a matter of the code
        unexplained = [check.id for check in (*failing, *others)]
        for group in (failing, *([check] for check in others)):
            ordered = {check.id: footprints[check.id] for check in sorted(group, key=lambda check: check.seconds)}
            before = [candidate for candidate, _ in named]
            found = ordered and diagnosis.name(result.id, ordered, passed, unexplained, before, bench)
            if found:
                named.append((found, group[0].id))
                _name(group, found.mistake)
    _link_equal_errors([check for result in results for check in result.checks])


def _name(group: Sequence[CheckResult], mistake: Variant) -> None:
    for check in group:
        check.misconception = mistake.id
        check.hint = Text(f"{mistake.id}.hint", mistake.hint)
    for check in group[1:]:
        check.caused_by = group[0].id


def _link_equal_errors(checks: Sequence[CheckResult]) -> None:
    """Code that raises raises in every check that runs it: told once, at the first."""
    first: dict[tuple[object, ...], str] = {}
    for check in checks:
        if check.caused_by or check.message is None or check.status not in (Status.ERROR, Status.MISSING):
            continue
        place = check.trace[-1] if check.trace else None
        kind = str(check.message.params.get("kind", ""))
        key = (check.status, place.file, place.line, kind) if place else (check.status, check.message.text)
        if key in first:
            check.caused_by = first[key]
        else:
            first[key] = check.id
