"""The judge's end of a notebook: has its cells run before a check gets its first module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from harness.course import Limits
from harness.messages import message
from harness.notebook import cells
from harness.outcome import Message, Status, Stop
from harness.worker import protocol
from harness.worker.client import WorkerLink
from harness.worker.guard import Account
from harness.worker.launch import Launcher, Process
from harness.worker.protocol import Begin, Compile, Import, Open, Raised, Reply, Request, Run, Value

MAX_LEFT_OUT = 5  # cells of one notebook: after so many stops it is given up


@dataclass
class Known:
    """What the workers of one submission know of its notebook from those before them.

    left_out: number of a cell that is not run -> why. compiled: the cells, for workers alone to read; see
    harness.notebook.cells. numbers: of these cells.
    """

    left_out: dict[int, Message] = field(default_factory=dict)
    compiled: bytes = b""
    numbers: list[int] = field(default_factory=list)


class NotebookLink(WorkerLink):
    """A worker for a submission that is a notebook.

    A cell that hangs, or ends the process, costs itself alone: a fresh worker runs the others again.

    Args:
        launcher: how workers are made.
        files: the submission.
        limits: what it may use; each cell has the seconds of an import.
        file: the notebook among the files.
        modules: names of the course's modules.
        known: from the submission's other workers. What is found here is added.
        account: what the submission has used in other links.
    """

    def __init__(
        self, launcher: Launcher, files: Mapping[str, bytes], limits: Limits,
        file: str, modules: Sequence[str], known: Known, account: Account,
    ) -> None:  # fmt: skip
        super().__init__(launcher, files, limits, account)
        self.file, self.modules, self.known = file, list(modules), known
        self.ready: Process | None = None  # the worker in which the cells have been run
        self.begin: Begin | None = None
        self.stepwise = False  # whether all cells together were stopped once

    def exchange(self, request: Request, frame: bytes) -> bytes:
        """As a worker's; the first `Import` has the cells run before it.

        Raises:
            Stop: as there, and where the notebook cannot be read.
        """
        if isinstance(request, Begin):
            self.begin = request
        elif isinstance(request, Import) and self.ready is not self.process:
            self._run_cells()
        return super().exchange(request, frame)

    def read(self, request: Request, body: bytes) -> Reply:
        """As a worker's.

        Raises:
            Stop: as there, and where a name was to come from a cell left out.
        """
        reply = super().read(request, body)
        if isinstance(reply, Raised) and reply.kinds[0] == cells.LEFT_OUT:
            raise self._why(reply.text)
        return reply

    def _run_cells(self) -> None:
        """Run all cells by one request, which is quick; if that is stopped, one by one, to learn which cell it was.

        Once they have been compiled, the same request opens the notebook.
        """
        known = self.known
        if not self.stepwise:
            before = self.account.cpu, self.account.waited
            try:
                if known.compiled:
                    self._open([number for number in known.numbers if number not in known.left_out])
                else:
                    known.numbers = self._open()
                    known.compiled = self._compile(known.numbers)
                    self._ask(Run(0, known.numbers))
                self.ready = self.process
                return
            except Stop as stop:
                if not _is_of_a_cell(stop):
                    raise
                self.stepwise = True
                self.account.cpu, self.account.waited = before  # together they had the time that each one has
                self._start_anew()
        while True:
            cell = 0
            try:
                for cell in self._open():
                    self._ask(Run(0, [cell]))
            except Stop as stop:
                if not cell or not _is_of_a_cell(stop) or len(known.left_out) == MAX_LEFT_OUT:
                    raise
                known.left_out[cell] = stop.message
                self._start_anew()
                continue
            self.ready = self.process
            return

    def _start_anew(self) -> None:
        assert self.begin is not None, "a check begins before it asks for anything"
        self._perform(self.begin)  # in a fresh worker

    def _open(self, run: Sequence[int] = ()) -> list[int]:
        known = self.known
        numbers = self._ask(Open(0, self.file, self.modules, sorted(known.left_out), known.compiled, list(run)))
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise Stop(Status.BLOCKED, message("blocked.protocol", error="a list of cells was expected"))
        return numbers

    def _compile(self, numbers: list[int]) -> bytes:
        made = self._ask(Compile(0, numbers)) if numbers else None
        if made is None:
            return b""
        if not isinstance(made, torch.Tensor) or made.dtype is not torch.uint8 or made.numel() > cells.MAX_COMPILED:
            raise Stop(Status.BLOCKED, message("blocked.protocol", error="compiled cells were expected"))
        return made.numpy().tobytes()

    def _perform(self, request: Request) -> Reply:
        return super().read(request, super().exchange(request, protocol.encode_request(request)))

    def _ask(self, request: Request) -> object:
        reply = self._perform(request)
        if isinstance(reply, Value):
            return reply.data
        identity = f"notebook.{reply.text}"
        if reply.kinds[0] != cells.BROKEN or identity not in _READING:
            raise Stop(Status.ERROR, message("notebook.damaged", file=self.file))
        raise Stop(Status.ERROR, message(identity, file=self.file))

    def _why(self, cell: str) -> Stop:
        said = self.known.left_out.get(int(cell)) if cell.isdecimal() and len(cell) < 9 else None
        if said is None:
            return Stop(Status.BLOCKED, message("blocked.protocol", error="a cell that was not left out"))
        return Stop(Status.TIMEOUT if said.id == "notebook.timeout" else Status.CRASHED, said)


def _is_of_a_cell(stop: Stop) -> bool:
    return stop.message.id in ("notebook.timeout", "notebook.crashed")


_READING = {
    f"notebook.{reason}" for reason in ("empty", "damaged", "no-notebook", "old", "new", "language", "too-large")
}
