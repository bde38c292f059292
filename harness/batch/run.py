"""One run over a class: look up what is known, have the rest judged, keep each result at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Literal, Protocol

from harness import report as reports
from harness.batch import compose
from harness.batch.executor import Executor
from harness.batch.keys import Basis
from harness.batch.marks import Mark, compare, kept
from harness.batch.store import ATTEMPTS, Store, Stored
from harness.batch.work import Plan, Target, Task, same_person
from harness.course import Course, files_of
from harness.judge import JudgeDied, Order
from harness.messages import message
from harness.outcome import Message, Status
from harness.problem import Problem
from harness.report import Report
from harness.submission import Submission

_AHEAD = 2  # orders for each slot: so many submissions are in memory, whatever the size of the class

How = Literal["judged", "reused", "not judged"]


@dataclass(frozen=True)
class Settings:
    """What was asked for.

    Args:
        course: with the limits of this run.
        seed: of the inputs.
        best: the best attempt counts, not the latest.
        marks: by hand, for each folder; None to keep those that are there.
        regrade: folders to judge again, whatever is known.
        only_failed: judge again what could not be judged in full, and nothing else.
        fresh: use nothing that is known, marks by hand neither. Old results go one by one as new ones come, and what
            is left of them at the end.
    """

    course: Course
    seed: int
    best: bool = False
    marks: Mapping[str, list[Mark]] | None = None
    regrade: frozenset[str] = frozenset()
    only_failed: bool = False
    fresh: bool = False


class Watcher(Protocol):
    """Hears how it goes."""

    def finished(self, id: str, report: Report, how: How) -> None:
        """A student's result is kept."""
        ...

    def postponed(self, id: str, why: str) -> None:
        """A submission will be judged once more, alone."""
        ...

    def alone(self, count: int) -> None:
        """From here on, `count` submissions are judged one by one."""
        ...


@dataclass
class _Work:
    """A task on its way: attempts whose report is there."""

    task: Task
    missing: set[int]
    judged: dict[int, _Judged] = field(default_factory=dict)


@dataclass(frozen=True)
class _Judged:
    report: Report
    submission: Submission | None  # None: it could not be read
    how: How
    again: bool = False


@dataclass(frozen=True)
class _Ticket:
    """An attempt that is being judged; `old` holds the exercises that need not be."""

    work: _Work
    index: int
    submission: Submission
    exercises: Sequence[str]
    old: Report | None = None
    alone: bool = False


class Run:
    """Judges what has to be judged and keeps every result as soon as it is known.

    Args:
        settings: what was asked for.
        basis: what results depend on.
        store: where they are kept; it is locked.
        executor: judges.
        watcher: hears how it goes.
    """

    def __init__(self, settings: Settings, basis: Basis, store: Store, executor: Executor, watcher: Watcher) -> None:
        self.settings, self.basis, self.store = settings, basis, store
        self.executor, self.watcher = executor, watcher
        self._expected = files_of(settings.course.exercise)
        self.left: list[str] = []  # earlier results of students whose work is not there any more
        self._sources: set[str] = set()  # what the work is called that is there
        self._skeleton: Report | None = None
        self._running: dict[Future[Report], _Ticket] = {}
        self._alone: deque[tuple[_Work, int]] = deque()
        self._saved: set[str] = set()  # places that hold a result of this run

    def run(self, plan: Plan) -> None:
        """Make all results of the plan.

        Raises:
            Problem: the graders cannot be run, or the results cannot be written.
            KeyboardInterrupt: the user stopped it; what is finished is kept.
        """
        self._sources = {found.source for task in plan.tasks for found in task.entry.attempts}
        if self.settings.marks:
            compare(self.settings.marks, self._known(plan) or self._all_checks())
        for target in plan.absent:
            self._keep_absent(target)
        for task in plan.tasks:
            self._open(task)
        while self._running:
            self._collect()
        if self._alone:
            self.watcher.alone(len(self._alone))
        while self._alone:
            work, index = self._alone.popleft()
            submission = work.task.entry.attempts[index].load(self._expected)
            if isinstance(submission, Submission):
                self._judge(_Ticket(work, index, submission, list(self.basis.exercises), alone=True))
                while self._running:
                    self._collect()
            else:  # it vanished meanwhile
                self._take_unreadable(work, index, submission)
        if self.settings.fresh:
            self.store.forget(self._saved)

    def _known(self, plan: Plan) -> Report | None:
        """A stored report with all checks of the course as it is now."""
        for task in plan.tasks:
            stored = self._stored(task.id)
            if stored is not None and stored.report.exercises:
                stale = self.basis.stale(stored.key, stored.report.submission.digest)
                there = {exercise.id for exercise in stored.report.exercises}
                return stored.report if not stale and there == set(self.basis.exercises) else None
        return None

    def _open(self, task: Task) -> None:
        stored = self._stored(task.id)
        if self.settings.only_failed and (stored is None or not _is_shaky(stored.report)):
            return
        attempts = task.entry.attempts
        work = _Work(task, set(range(len(attempts))) if self.settings.best else {len(attempts) - 1})
        for index in sorted(work.missing):
            loaded = attempts[index].load(self._expected)
            if isinstance(loaded, Submission):
                self._look_up(work, index, loaded)
            else:
                self._take_unreadable(work, index, loaded)

    def _look_up(self, work: _Work, index: int, submission: Submission) -> None:
        """Use what is known of these files, and have the rest judged."""
        known = None
        targets = {target.id for target in work.task.targets}
        anew = self.settings.only_failed or self.settings.fresh
        if not targets & self.settings.regrade and not anew:
            known = self.store.find(work.task.id, submission.digest)
        if known is not None and known.key is not None and known.key.again and not self.basis.stale(
            known.key, submission.digest
        ):  # fmt: skip
            self._postpone(work, index, "judged once already")
            return
        broken = known is not None and Status.GRADER_ERROR in compose.statuses(known.report)
        if known is None or broken or (known.key is not None and known.key.again):
            self._judge(_Ticket(work, index, submission, list(self.basis.exercises)))
            return
        stale = self.basis.stale(known.key, submission.digest)
        before, order = compose.stripped(known.report), list(self.basis.exercises)
        there = [exercise.id for exercise in before.exercises]
        # Some may be gone, or stand in another place.
        judged = before if stale or there == order else compose.merge(before, None, order)
        if judged is None or not set(order) - set(there) <= set(stale):
            self._judge(_Ticket(work, index, submission, order))
        elif stale:
            self._judge(_Ticket(work, index, submission, stale, judged))
        else:
            self._take(work, index, _Judged(judged, submission, "reused"))

    def _judge(self, ticket: _Ticket) -> None:
        while len(self._running) >= (1 if ticket.alone else self.executor.slots * _AHEAD):
            self._collect()
        order = Order(
            name=ticket.submission.name, files=ticket.submission.files, exercises=list(ticket.exercises),
            seed=self.settings.seed, limits=self.settings.course.limits,
        )  # fmt: skip
        self._running[self.executor.submit(order)] = ticket

    def _collect(self) -> None:
        """Wait for a report, and deal with all that are there."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        for future in done:
            ticket = self._running.pop(future)
            try:
                report = future.result()
            except JudgeDied:
                if ticket.alone:
                    self._take(ticket.work, ticket.index,
                               _Judged(self._undecided(ticket), ticket.submission, "judged"))  # fmt: skip
                else:
                    self._postpone(ticket.work, ticket.index, "its judge ended")
                continue
            self._receive(ticket, report)

    def _receive(self, ticket: _Ticket, report: Report) -> None:
        if ticket.old is not None:
            merged = compose.merge(ticket.old, report, list(self.basis.exercises))
            if merged is None:
                self._judge(_Ticket(ticket.work, ticket.index, ticket.submission, list(self.basis.exercises)))
                return
            report = merged
        shaky = compose.SHAKY & compose.statuses(report)
        again = bool(shaky) and not ticket.alone
        self._take(ticket.work, ticket.index, _Judged(report, ticket.submission, "judged", again))
        if again:
            self._postpone(ticket.work, ticket.index, ", ".join(sorted(shaky)))

    def _postpone(self, work: _Work, index: int, why: str) -> None:
        work.judged.pop(index, None)
        work.missing.add(index)
        self._alone.append((work, index))
        self.watcher.postponed(work.task.id, why)

    def _take_unreadable(self, work: _Work, index: int, why: Message) -> None:
        found = work.task.entry.attempts[index]
        self._take(work, index, _Judged(
            compose.not_judged(found.source, [why], self.basis, self.settings.seed), None, "not judged"
        ))  # fmt: skip

    def _take(self, work: _Work, index: int, judged: _Judged) -> None:
        """Keep an attempt's report, and the student's result once all attempts have theirs."""
        work.judged[index] = judged
        work.missing.discard(index)
        if self.settings.best and judged.submission is not None and len(work.task.entry.attempts) > 1:
            adjusted = self._adjusted(work, index, work.task.targets[0])
            self._save(work, index, f"{work.task.id}/{ATTEMPTS}/{index + 1}", adjusted)
        if work.missing:
            return
        for target in work.task.targets:
            index, report = max(
                ((index, self._adjusted(work, index, target)) for index in work.judged),
                key=lambda pair: (bool(pair[1].exercises), pair[1].score.final, pair[0]),
            )
            self._save(work, index, target.id, report)
            if not any(judged.again for judged in work.judged.values()):  # else it is told when that is over
                self.watcher.finished(target.id, report, work.judged[index].how)

    def _save(self, work: _Work, index: int, place: str, report: Report) -> None:
        judged = work.judged[index]
        key = self.basis.key(report.submission.digest, again=judged.again)
        if judged.how == "not judged":
            report = self._as_before(place, report)
        self.store.save(place, report, key, judged.submission.files if judged.submission is not None else None)
        self._saved.add(place)

    def _adjusted(self, work: _Work, index: int, target: Target) -> Report:
        judged, entry, marks = work.judged[index], work.task.entry, self._marks(target)
        report = judged.report
        if marks and not any(other.report.exercises for other in work.judged.values()):
            report = self._blank(target, report)
        return compose.adjusted(
            report,
            student=target.student,
            entry=entry,
            counting=entry.attempts[index],
            course=self.settings.course,
            marks=marks,
            notes=judged.submission.notes if judged.submission is not None else (),
        )

    def _marks(self, target: Target) -> list[Mark]:
        if self.settings.marks is not None:
            return self.settings.marks.get(target.id, [])
        stored = self._stored(target.id)
        return kept(stored.report) if stored is not None and _is_of(stored, target) else []

    def _keep_absent(self, target: Target) -> None:
        """Keep the result of a student of whose work nothing is there.

        A result of work that is gone altogether is left: what was handed in then may be nowhere else. Work that is
        there and is another's now was never this student's.
        """
        stored = self._stored(target.id)
        if stored is not None and stored.report.submission.digest and _is_of(stored, target) and (
            stored.report.submission.name not in self._sources
        ):  # fmt: skip
            report = stored.report
            if self.settings.marks is not None:
                report = compose.remarked(report, self._marks(target))
                self.store.rewrite(target.id, report)
            self._saved.add(target.id)
            self.left.append(target.id)
            self.watcher.finished(target.id, report, "reused")
            return
        report = compose.not_judged("", [message("batch.nothing")], self.basis, self.settings.seed)
        if marks := self._marks(target):
            report = compose.marked(self._blank(target, report), marks)
        report.student = target.student
        report = self._as_before(target.id, report)
        self.store.save(target.id, report, self.basis.key(""), None)
        self._saved.add(target.id)
        self.watcher.finished(target.id, report, "not judged")

    def _as_before(self, place: str, report: Report) -> Report:
        """What was not judged has no time of its own: an equal result keeps the first one's."""
        stored = self._stored(place)
        if stored is not None and not stored.report.submission.digest:
            report.started = stored.report.started
        return report

    def _blank(self, target: Target, report: Report) -> Report:
        """The report of what was not judged, with every check, for a person's marks."""
        stored = self._stored(target.id)
        there = [exercise.id for exercise in stored.report.exercises] if stored is not None else []
        if stored is not None and there == list(self.basis.exercises) and not self.basis.stale(stored.key, ""):
            return compose.blank(stored.report, report)
        return compose.blank(self._all_checks(), report)

    def _all_checks(self) -> Report:
        """What a judge says of nothing at all.

        Raises:
            Problem: it dies even of that.
        """
        if self._skeleton is None:
            order = Order(name="", files={}, exercises=list(self.basis.exercises), seed=self.settings.seed)
            try:
                self._skeleton = self.executor.submit(order).result()
            except JudgeDied:
                raise Problem(
                    "The judging process ends by itself, whatever it judges.",
                    "Does `python grade.py reference` work here? Is there memory enough?",
                ) from None
        return self._skeleton

    def _stored(self, place: str) -> Stored | None:
        """An earlier result that may be used."""
        return None if self.settings.fresh else self.store.read(place)

    def _undecided(self, ticket: _Ticket) -> Report:
        """The report of a submission whose judge died twice."""
        submission = ticket.submission
        info = reports.SubmissionInfo(name=submission.name, digest=submission.digest, files=submission.file_digests())
        return compose.undecided(self._all_checks(), submission.name, info)


def _is_of(stored: Stored, target: Target) -> bool:
    return stored.report.student is None or same_person(stored.report.student, target.student)


def _is_shaky(report: Report) -> bool:
    """Whether a result is not what its submission alone made it: it could not be read, or not be judged in full."""
    if not report.submission.digest:
        return bool(report.submission.name)
    return bool(compose.statuses(report) & (compose.SHAKY | {Status.GRADER_ERROR}))
