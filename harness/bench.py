"""What the checks of one submission run against: the student's workers and the oracle."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from harness import files
from harness.course import ROOT, Course
from harness.dialogues import Listener
from harness.grading import CheckInfo
from harness.messages import message
from harness.notebook import choose
from harness.notebook.link import Known, NotebookLink
from harness.oracle import DRAW, Modules, ReferenceLink, check_seed
from harness.problem import Problem
from harness.remembering import Remembering
from harness.submission import Submission
from harness.worker import objects
from harness.worker.client import Check, Handle, Link, LocalLink, Root, Step, WorkerLink
from harness.worker.guard import Account
from harness.worker.launch import Launcher
from harness.worker.protocol import Reply, Request


def reference_modules(folder: Path = ROOT / "reference") -> Modules:
    """The course's own answers, to be loaded when they are first asked."""
    sources = files.read_sources(folder, ("*.py",))
    texts = {name.removesuffix(".py"): text.decode("utf-8") for name, text in sources.items()}
    return Modules(texts, str(folder), kept=True)


def _oracle(course: Course, seed: int) -> Link:
    """The course's recording where it has one, else its reference.

    Raises:
        Problem: the recording is of another seed.
    """
    from harness.authoring import recording  # it needs this module

    recorded = recording.read(course.root)
    if recorded is None:
        return Remembering(ReferenceLink(reference_modules(course.root / "reference")))
    if seed != recorded.contents.seed:
        raise Problem(message("problem.seed"), message("problem.seed.help"))
    return recording.RecordedLink(recorded)


class Bench:
    """Gives each check its handles. One worker serves one exercise, so no exercise inherits another's state.

    Args:
        submission: what is judged.
        course: its limits apply.
        launcher: makes the workers; None runs the submission in this process, for authors under a debugger only.
        oracle: answers for the reference and draws the inputs.
        seed: of this run; each check derives its own.
        journal: gets every step of every check, when there is one.

    Raises:
        Problem: no worker can be made here.
    """

    def __init__(
        self,
        submission: Submission,
        course: Course,
        launcher: Launcher | None,
        oracle: Link | None,
        seed: int,
        journal: list[Step] | None = None,
    ) -> None:
        if launcher is not None:
            launcher.ready()
        self.submission, self.course, self.launcher, self.seed = submission, course, launcher, seed
        self.journal = journal
        self.oracle: Link = oracle if oracle is not None else _oracle(course, seed)
        self.notebook = Known()
        self._exercise = ""
        self._link: Link | None = None
        self.listener: Listener | None = None  # between the running check and its link, when there is one
        self._account = Account()

    def student(self, info: CheckInfo) -> Root:
        """The submission, ready for this check.

        Raises:
            Stop: its worker could not be started.
        """
        link = self.link(info)
        return self.begin(link if self.listener is None else self.listener, info)

    def link(self, info: CheckInfo) -> Link:
        """To the worker of this check's exercise."""
        if self._link is None or self._exercise != info.exercise:
            self.close()
            self._exercise, self._link = info.exercise, self._make_link()
        return self._link

    def reference(self, info: CheckInfo) -> Root:
        """The oracle, ready for this check; its inputs are the `draw` of `inputs`."""
        return self.begin(self.oracle, info, oracle=True)

    @staticmethod
    def inputs(reference: Root) -> Handle:
        """The seeded inputs, from the same tape as the reference's answers."""
        draw: Handle = getattr(reference, DRAW)
        return draw

    def output(self) -> str:
        """What the submission printed since the last call."""
        return self._link.take_output() if isinstance(self._link, WorkerLink) else ""

    def close(self) -> None:
        """End the worker, if one runs."""
        if isinstance(self._link, WorkerLink):
            self._link.close()
        self._link = None

    def begin(self, link: Link, info: CheckInfo, *, oracle: bool = False) -> Root:
        """Whatever is behind `link`, ready for this check."""
        check = Check(link, info.id, oracle, self.journal)
        check.begin(check_seed(self.seed, info.id))
        return Root(check)

    def _make_link(self) -> Link:
        file = choose.notebook_of(self.submission.files, self.course.root)
        if file and self.launcher is None:
            raise Problem("A notebook is not run in this process.", "Leave --isolation none away.")
        if file and self.launcher is not None:
            modules = sorted(name.removesuffix(".py") for name in choose.course_files(self.course.root))
            return NotebookLink(
                self.launcher, self.submission.files, self.course.limits, file, modules, self.notebook, self._account
            )
        if self.launcher is not None:
            return WorkerLink(self.launcher, self.submission.files, self.course.limits, self._account)
        sources = {
            name.removesuffix(".py"): content.decode("utf-8", "replace")
            for name, content in self.submission.files.items()
            if name.endswith(".py") and "/" not in name
        }
        return _Visible(objects.Objects(Modules(sources, self.submission.name).load, Path(self.submission.name)))


class _Visible(LocalLink):
    """The submission in this process, under a debugger: what it prints is seen, though pytest's own output is not."""

    def perform(self, request: Request) -> Reply:
        with contextlib.redirect_stdout(sys.__stdout__), contextlib.redirect_stderr(sys.__stderr__):
            return super().perform(request)
