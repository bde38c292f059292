"""What checks asked and were answered where they passed: who answers the same has passed as well.

A check is a function of what it hears: on one seed it asks the same, and ends the same, for as long as it is answered
the same. In a class most answers are, bit for bit, what the reference or another student's code gave. So a check's
questions are first put to a submission as they were put before, one by one; if every answer is that of a dialogue in
which the check has passed, it passes here too, and need not run. At the first other answer it runs as ever: it is told
what was heard so far, and goes on from there. The worker is asked the same in the same order either way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from harness.worker import protocol
from harness.worker.client import WorkerLink
from harness.worker.protocol import Reply, Request

_MOST = 64  # dialogues kept of a check: memory must not grow with the class
_NO_ANSWER = b""  # in place of a digest: the worker was stopped, or there was none


class _Turn:
    """A question, and what follows each answer that is known. At the end of a dialogue there is no question."""

    __slots__ = ("frame", "passed", "request", "then")

    def __init__(self) -> None:
        self.frame, self.request, self.passed = b"", None, False  # type: bytes, Request | None, bool
        self.then: dict[bytes, _Turn] = {}


class Dialogues:
    """What is known of each check on each seed."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, int], _Turn] = {}
        self._count: dict[tuple[str, int], int] = {}
        self._frames: dict[bytes, bytes] = {}  # each question once, however many dialogues have it

    def add(self, check: str, seed: int, said: Iterable[tuple[bytes, bytes]]) -> None:
        """Remember a dialogue in which `check` has passed.

        Args:
            check: its id.
            seed: of the run.
            said: encoded requests, each with the digest of its encoded reply. If one was not replied to, nothing is
                remembered.
        """
        key, said = (check, seed), list(said)
        if self._count.get(key, 0) == _MOST or any(answer == _NO_ANSWER for _, answer in said):
            return
        turn, new = self._first.setdefault(key, _Turn()), False
        for frame, answer in said:
            if turn.request is None:
                if turn.passed:
                    return  # it asked on where it had ended before: not a function of what it hears
                turn.frame = self._frames.setdefault(frame, frame)
                turn.request = protocol.decode_request(frame)
            elif turn.frame != frame:
                return
            new = new or answer not in turn.then
            turn = turn.then.setdefault(answer, _Turn())
        if turn.request is None:
            turn.passed = True
            self._count[key] = self._count.get(key, 0) + new

    def listen(self, link: WorkerLink, check: str, seed: int) -> Listener:
        """The student's link for one check."""
        return Listener(link, self._first.get((check, seed)))


class Listener:
    """A student's link that puts known questions ahead of the check, and notes what is said.

    Args:
        link: to the worker.
        first: where the known dialogues of this check begin.
    """

    def __init__(self, link: WorkerLink, first: _Turn | None) -> None:
        self.link, self.first = link, first
        self.said: list[tuple[bytes, bytes]] = []
        self._heard: list[bytes | Exception] = []  # to what was asked ahead, until the check asks it
        self._told = 0

    @property
    def confined(self) -> bool:
        return self.link.confined

    @property
    def has_begun(self) -> bool:
        """Whether the check's first question has been asked ahead."""
        return bool(self._heard)

    def rehearse(self, begun: Callable[[], None] = lambda: None) -> bool:
        """Ask what is known to be asked, as long as the answers are known; whether the check passes with them.

        Args:
            begun: called when the first question, by which a check begins, has been asked.
        """
        turn, self.first = self.first, None
        while turn is not None and turn.request is not None:
            answer: bytes | Exception
            try:
                answer = self.link.exchange(turn.request, turn.frame)
            except Exception as error:  # noqa: BLE001 - whatever it is, the check is to meet it in its turn
                answer = error
            self._heard.append(answer)
            if len(self._heard) == 1:
                begun()
            digest = _NO_ANSWER if isinstance(answer, Exception) else digest_of(answer)
            self.said.append((turn.frame, digest))
            turn = turn.then.get(digest)
        return turn is not None and turn.passed

    def perform(self, request: Request) -> Reply:
        """As the worker's link; what was asked ahead is not asked again."""
        frame = protocol.encode_request(request)
        if self._told < len(self._heard):
            asked, heard = self.said[self._told][0], self._heard[self._told]
            if asked != frame:
                raise RuntimeError("a check asked something else than when it was answered the same before")
            self._heard[self._told] = b""  # it may be large, and is not asked for again
            self._told += 1
            if isinstance(heard, Exception):
                raise heard
        else:
            self.said.append((frame, _NO_ANSWER))
            heard = self.link.exchange(request, frame)
            self.said[-1] = (frame, digest_of(heard))
        return self.link.read(request, heard)


def digest_of(answer: bytes) -> bytes:
    """SHA-256 of an encoded reply."""
    return hashlib.sha256(answer).digest()
