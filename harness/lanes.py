"""Judging one submission on two cores: some of its exercises in a fork of this process.

An exercise has workers of its own and a check has a seed of its own, so where one is judged changes no result. Only the
limit on the time of a whole submission counts in each lane for itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from harness.observe import keep, kept
from harness.plugin import Ended, GradingPlugin


class Record(msgspec.Struct):
    """What is known of some checks once they have run: pytest's record of each, and the plugin's."""

    tests: list[dict[str, Any]]
    ended: dict[str, Ended]
    output: dict[str, str]
    seen: dict[str, list[bytes]]

    @classmethod
    def of(cls, tests: list[dict[str, Any]], plugin: GradingPlugin) -> Record:
        seen = {check: [keep(value) for value in values] for check, values in plugin.seen.items()}
        return cls(tests, plugin.ended, plugin.output, seen)

    def add_to(self, plugin: GradingPlugin) -> None:
        """Tell `plugin` all of this but pytest's record."""
        plugin.ended |= self.ended
        plugin.output |= self.output
        plugin.seen |= {check: [kept(value) for value in values] for check, values in self.seen.items()}


def share(
    count: int,
    work: Callable[[int], None],
    aside: Callable[[], AbstractContextManager[None]],
    record: Callable[[], Record],
) -> Record:
    """Do pieces of work 0, 1, ... here, and ..., `count` - 1 in a fork of this process, until the two meet.

    What the fork leaves undone, because it ended early, is done here.

    Args:
        count: how many pieces there are, at most a few hundred.
        work: does one piece.
        aside: what the fork enters before its first piece and leaves after its last, however it ends.
        record: called in the fork when its pieces are done.

    Returns:
        What `record` gave, or an empty record.
    """
    left, tokens = os.pipe()  # a byte for each piece that nobody has taken
    os.write(tokens, bytes(count))
    os.close(tokens)
    answer, answers = os.pipe()
    parent = os.getpid()
    pid: int | None = None
    with contextlib.suppress(OSError):  # no room for another process: all pieces are taken here
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(answer)
            _end_with(parent)
            with aside():
                for place in reversed(range(count)):
                    if not os.read(left, 1):
                        break
                    work(place)
                body = msgspec.msgpack.encode(record())
            with os.fdopen(answers, "wb") as pipe:
                pipe.write(body)
            status = 0
        finally:
            os._exit(status)  # an exception here must not climb into the code that the other process runs
    os.close(answers)
    done, status = 0, 1
    with os.fdopen(answer, "rb") as pipe, os.fdopen(left, "rb", buffering=0) as pieces:
        try:
            while pieces.read(1):
                work(done)
                done += 1
            body = pipe.read()
        except BaseException:
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGINT)  # which lets it end its workers
            raise
        finally:
            if pid is not None:
                _, status = os.waitpid(pid, 0)
    if status == 0:
        return msgspec.msgpack.decode(body, type=Record)
    for place in range(done, count):
        work(place)
    return Record([], {}, {}, {})


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        from harness.worker.confine import die_with

        die_with(parent)
