"""The self-proof of a course: its graders judge every answer whose verdict is known in advance.

The reference must get everything, the template nothing, every accepted form everything in its exercise; every
misconception must lose points there and be named as itself; answers without content must earn nothing; and other seeds
must not change one verdict. An answer that waits for a person counts as right: no more can be said of it here.
What each misconception fails must be what the course has written down of it, if it has (harness.authoring.fails).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from harness.authoring import fails
from harness.authoring.fails import Fails
from harness.authoring.quiz_cases import sheets
from harness.authoring.template import find_regions
from harness.authoring.variants import Variant, load_variants
from harness.course import Course
from harness.files import read_sources, write_atomically
from harness.judge import JudgeDied, JudgeProcess, Order
from harness.outcome import Status
from harness.problem import Problem
from harness.quiz import SHEET, read_quiz
from harness.report import CheckResult, Report

WHOLE = ("reference", "template")
_DECIDED = (Status.PASSED, Status.PENDING)


@dataclass(frozen=True)
class Case:
    """One answer whose verdict is known: a whole submission, or a variant of the reference in one exercise."""

    kind: str  # reference, template, accepted, misconception or degenerate
    id: str
    exercise: str
    files: dict[str, bytes] = field(repr=False, hash=False, compare=False)


@dataclass(frozen=True)
class Verdict:
    """What became of a case; `problems` is empty when all is as it must be. `fails` is what it failed, and what was
    said, on the course's own seed."""

    case: Case
    problems: tuple[str, ...]
    fails: Fails = field(default_factory=dict, compare=False)


def cases(course: Course) -> list[Case]:
    """Every case of a course: the reference and the template once an exercise, then all variants.

    Raises:
        VariantError: a variant does not fit the reference.
    """
    root = course.root
    reference = {name: text.decode("utf-8") for name, text in read_sources(root / "reference", ("*.py",)).items()}
    template = {name: text.decode("utf-8") for name, text in read_sources(root / "student_template", ("*.py",)).items()}
    whole = {"reference": root / "reference", "template": root / "student_template"}
    found = [
        Case(kind, f"{exercise.id}.{kind}", exercise.id, read_sources(whole[kind], ("*.py", "*.toml")))
        for exercise in course.exercise
        for kind in WHOLE
    ]
    for folder in ("accepted", "misconceptions", "degenerate"):
        found += [_case(variant, reference, template) for variant in load_variants(root / "graders" / folder)]
    if any(exercise.id == "quiz" and SHEET in exercise.files for exercise in course.exercise):
        right = (root / "reference" / SHEET).read_text(encoding="utf-8")
        known = sheets(read_quiz(root / "graders" / "quiz.toml"), right)
        found += [Case(kind, id, "quiz", files) for kind, id, files in known]
    return found


def _case(variant: Variant, reference: dict[str, str], template: dict[str, str]) -> Case:
    if variant.kind == "degenerate":  # it is to earn nothing: no other file may hold a right answer to its exercise
        others = [name for name in reference if name != f"{variant.module}.py" and name in template]
        answered = [n for n in others if any(r.exercise == variant.exercise for r in find_regions(reference[n], n))]
        reference = {**reference, **{name: template[name] for name in answered}}
    files = {name: text.encode("utf-8") for name, text in variant.apply(reference).items()}
    return Case(variant.kind, variant.id, variant.exercise, files)


def prove(
    course: Course,
    chosen: Sequence[Case],
    seeds: Sequence[int],
    *,
    jobs: int = 0,
    done: Callable[[], None] = lambda: None,
) -> list[Verdict]:
    """Judge each case on each seed, in parallel.

    A judge takes all cases of one exercise on one seed, for it remembers what the known mistakes give there.

    Args:
        course: gives the exercises.
        chosen: what to judge.
        seeds: the first is the course's own; the others must give the same verdicts.
        jobs: how many judges; 0 for one a core.
        done: called after each case, on each seed.

    Raises:
        Problem: the graders cannot be run, or a judge died twice on the same case.
    """
    jobs = jobs or os.cpu_count() or 1
    all_judges = [JudgeProcess(root=course.root) for _ in range(jobs)]
    judges: SimpleQueue[JudgeProcess] = SimpleQueue()
    for judge in all_judges:
        judges.put(judge)

    reports: dict[tuple[Case, int], Report] = {}

    def judge_all(some: Sequence[Case], seed: int) -> None:
        judge = judges.get()
        try:
            for case in some:
                reports[case, seed] = _grade(judge, case, seed)
                done()
        finally:
            judges.put(judge)

    exercises = dict.fromkeys(case.exercise for case in chosen)
    stripes = -(-jobs // max(1, len(exercises) * len(seeds)))  # more than one where there is less than a piece a judge
    pieces = [
        ([case for case in chosen if case.exercise == exercise][stripe::stripes], seed)
        for exercise in exercises
        for seed in seeds
        for stripe in range(stripes)
    ]
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for running in [pool.submit(judge_all, *piece) for piece in pieces]:
                running.result()
        except BaseException:
            for judge in all_judges:
                judge.end()  # else Ctrl-C would wait for what they judge
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            for _ in range(jobs):
                judges.get().close()
    known = {id: it for exercise in exercises for id, it in fails.read(course.root / "graders", exercise).items()}
    verdicts = []
    for case in chosen:
        own = [reports[case, seed] for seed in seeds]
        failed = _fails(own[0])
        problems = [*_problems(case, own, seeds), *_strays(case, failed, known)]
        verdicts.append(Verdict(case, tuple(problems), failed))
    return verdicts


@contextlib.contextmanager
def forgotten(course: Course, exercises: Iterable[str]) -> Iterator[None]:
    """Without what is written down of the mistakes of these exercises: they are judged as if nothing were known.

    If what is done meanwhile does not end well, it is back.
    """
    paths = [fails.path_of(course.root / "graders", exercise) for exercise in exercises]
    kept = {path: path.read_bytes() for path in paths if path.exists()}
    try:
        for path in kept:
            path.unlink()
        yield
    except BaseException:
        for path, content in kept.items():
            write_atomically(path, content)
        raise


def record(course: Course, verdicts: Sequence[Verdict]) -> list[Path]:
    """Write down what the known mistakes fail; the files, one for each exercise that has mistakes in its code.

    Args:
        course: its `graders` get the files.
        verdicts: of all mistakes of the exercises that are to be written down.
    """
    written = []
    for exercise in dict.fromkeys(verdict.case.exercise for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.case.exercise == exercise]
        failing = {verdict.case.id: verdict.fails for verdict in own if verdict.case.kind == "misconception"}
        if (course.root / "graders" / "misconceptions" / f"{exercise}.py").exists():
            path = fails.path_of(course.root / "graders", exercise)
            write_atomically(path, fails.text_of(exercise, failing).encode("utf-8"))
            written.append(path)
    return written


def _fails(report: Report) -> dict[str, str]:
    ended = (Status.FAILED, Status.ERROR, Status.MISSING)  # no time-out, which a busy machine may have caused
    failed = [check for check in report.exercises[0].checks if check.status in ended]
    return {check.id: check.message.id if check.message else "" for check in failed}


def _strays(case: Case, failed: Fails, known: Mapping[str, Fails]) -> Iterator[str]:
    """Where a mistake fails something else than the course has written down. A course need not write it down."""
    if case.kind != "misconception" or not any(id.startswith(f"{case.exercise}.") for id in known):
        return
    if case.id not in known:
        yield f"is not in graders/misconceptions/{case.exercise}.toml; make that anew: {fails.RECORD}"
    elif failed != known[case.id]:
        others = sorted(dict(failed.items() ^ known[case.id].items()))
        file = f"graders/misconceptions/{case.exercise}.toml"
        yield f"does not fail as {file} says, in {', '.join(others)}; make that anew: {fails.RECORD}"


def _grade(judge: JudgeProcess, case: Case, seed: int) -> Report:
    order = Order(name=case.id, files=case.files, exercises=[case.exercise], seed=seed, trusted=True)
    for _ in range(2):
        try:
            return judge.grade(order)
        except JudgeDied:
            continue
    raise Problem(f"The judge died twice on {case.id}.")


def _problems(case: Case, reports: Sequence[Report], seeds: Sequence[int]) -> Iterator[str]:
    first = reports[0].exercises[0]
    for check in first.checks:
        if check.status is Status.GRADER_ERROR:
            yield f"{check.id} breaks down: {check.detail.strip().splitlines()[-1] if check.detail else check.message}"
    if case.kind in ("reference", "accepted"):
        for check in first.checks:
            if check.status not in (Status.PASSED, Status.PENDING):
                yield f"{check.id} is {check.status}, and should pass"
    elif first.earned >= first.possible:
        yield "loses no points"
    if case.kind in ("template", "degenerate"):
        for check in first.checks:
            if check.points:
                yield f"{check.id} gives {check.points:g} points"
    if case.kind == "misconception":
        names = {check.misconception for check in first.checks if check.status not in _DECIDED}
        if names != {case.id}:
            yield "is named " + (", ".join(sorted(name or "(nothing)" for name in names)))
    for seed, report in zip(seeds[1:], reports[1:], strict=True):
        for check, other in zip(first.checks, report.exercises[0].checks, strict=True):
            if (check.status, check.misconception) != (other.status, other.misconception):
                yield f"{check.id} is {_verdict(check)} on seed {seeds[0]} and {_verdict(other)} on seed {seed}"


def _verdict(check: CheckResult) -> str:
    return f"{check.status} ({check.misconception})" if check.misconception else str(check.status)
