"""The known mistakes that may be behind failing checks, read from the course only as they are needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Protocol

from harness.authoring import fails, touched
from harness.authoring.fails import Fails
from harness.authoring.variants import Variant, has_conventions, load_variants


@dataclass(frozen=True)
class Candidate:
    """A known mistake, in the reference's convention or in another that is as right (`form`).

    `fails` has the checks of its exercise that it fails, each with the id of what it says, or is None where that is not
    known.
    """

    mistake: Variant
    form: Variant | None = None
    fails: Fails | None = field(default=None, compare=False)

    def may_fail(self, checks: Collection[str]) -> bool:
        """Whether it can be what made all of these checks of its exercise fail."""
        return self.fails is None or self.fails.keys() >= set(checks)

    def can_show(self, modules: Mapping[str, ModuleType], called: touched.Called) -> bool:
        """Whether a check that calls these functions of the loaded reference may end otherwise here."""
        return any(touched.can_show(variant, modules, called) for variant in (self.mistake, self.form) if variant)

    @contextmanager
    def patched(self, modules: Mapping[str, ModuleType]) -> Iterator[None]:
        with ExitStack() as stack:
            if self.form is not None:
                stack.enter_context(self.form.patched(modules))
            stack.enter_context(self.mistake.patched(modules))
            yield


def candidates(
    mistakes: Sequence[Variant], accepted: Sequence[Variant], failing: Mapping[str, Fails] | None = None
) -> list[Candidate]:
    """Every known mistake alone, then in every accepted convention that leaves the mistaken function alone.

    Args:
        mistakes: the misconceptions.
        accepted: right answers; those with a `convention` give other values than the reference.
        failing: what a mistake fails, by its id. In another convention these may be others.
    """
    failing = failing or {}
    return [Candidate(mistake, None, failing.get(mistake.id)) for mistake in mistakes] + [
        Candidate(mistake, form)
        for form in accepted
        for mistake in mistakes
        if form.convention and form.exercise == mistake.exercise and not form.touches & mistake.touches
    ]


class Mistakes(Protocol):
    """What can be named."""

    def that_may_fail(self, exercise: str, checks: Collection[str]) -> Sequence[Candidate]:
        """The mistakes in an exercise that can make all of these of its checks fail, always in the same order."""
        ...


class Listed:
    """Mistakes that are all at hand."""

    def __init__(self, known: Sequence[Candidate]) -> None:
        self.known = known

    def that_may_fail(self, exercise: str, checks: Collection[str]) -> Sequence[Candidate]:
        return [known for known in self.known if known.mistake.exercise == exercise and known.may_fail(checks)]


class Shelf:
    """The mistakes of a course, in its files.

    To read all takes longer than most diagnoses: where the course says which checks they fail, only those are read
    that can have failed the checks that are asked for.

    Args:
        graders: the course's folder of that name.
    """

    def __init__(self, graders: Path) -> None:
        self.graders = graders
        self._failing: dict[str, dict[str, Fails]] = {}
        self._read: dict[str, dict[str, Variant]] = {}
        self._forms: dict[str, list[Variant]] = {}

    def that_may_fail(self, exercise: str, checks: Collection[str]) -> Sequence[Candidate]:
        first = exercise not in self._read
        if first:
            accepted = self.graders / "accepted"
            self._forms[exercise] = load_variants(accepted, exercise) if has_conventions(accepted, exercise) else []
            self._failing[exercise] = fails.read(self.graders, exercise)
            self._read[exercise] = {}
        failing, read, forms = self._failing[exercise], self._read[exercise], self._forms[exercise]
        needless = {id for id, failed in failing.items() if not failed.keys() >= set(checks)} if not forms else set()
        known = needless | read.keys()
        if first or not failing.keys() <= known:  # those that are not written down are read the first time
            new = load_variants(self.graders / "misconceptions", exercise, without=known)
            read.update((variant.id, variant) for variant in new)
        mistakes = sorted(read.values(), key=lambda variant: variant.line)
        return [candidate for candidate in candidates(mistakes, forms, failing) if candidate.may_fail(checks)]
