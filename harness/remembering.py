"""An oracle that is asked nothing twice: a check that runs again, on another answer, hears what it heard before.

So known mistakes are tried on what the check of the student's code has asked already.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from harness.worker.client import Link
from harness.worker.protocol import Begin, Reply, Request


class Remembering:
    """Answers for a link from memory, as far as the runs of a check so far have come; from there on the link answers.

    A run may have been broken off anywhere, so the link is then brought to where the memory ends: what it was asked
    is asked again. Unlike `oracle.ReplayLink` it needs no run to the end, and unlike it tolerates other questions.

    Args:
        link: an oracle; what it answers depends on nothing but what it was asked since the last `Begin`.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self._tapes: dict[tuple[str, int], list[tuple[Request, Reply]]] = {}
        self._tape: list[tuple[Request, Reply]] = []
        self._place = 0
        self._is_there = False  # whether the link stands where the check does

    def perform(self, request: Request) -> Reply:
        if isinstance(request, Begin):
            self._tape = self._tapes.setdefault((request.check, request.seed), [])
            self._place, self._is_there = 0, False
        if self._place == len(self._tape) or self._tape[self._place][0] != request:
            del self._tape[self._place :]
            self._go_there()
            self._tape.append((request, self.link.perform(request)))
        self._place += 1
        return self._tape[self._place - 1][1]

    def _go_there(self) -> None:
        if not self._is_there and self._tape:
            with _as_it_was():
                for request, _ in self._tape:
                    self.link.perform(request)
        self._is_there = True


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Whoever shares the process is in the middle of a check, and `Begin` puts back what belongs to all.

    torch's generator stays as the link leaves it: a submission here draws from one of its own (see `LocalLink`).
    """
    dtype, gradients, drawn = torch.get_default_dtype(), torch.is_grad_enabled(), random.getstate()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(gradients)
        random.setstate(drawn)
