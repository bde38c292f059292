"""A course's expected values and known mistakes as data, for a machine that must not hold the answers.

One MessagePack file has the reference's tape of every check, on the course's public seed, and of every known mistake
how each check ends and what it sees. With it a submission gets the same verdicts and hints as beside the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from harness.authoring.variants import Variant
from harness.bench import Bench
from harness.diagnosis import Candidate, Diagnosis, Footprint
from harness.observe import keep, kept
from harness.oracle import Recording
from harness.outcome import Message, Status
from harness.plugin import Ended, info_of
from harness.problem import Problem

FILE = Path("recording") / "course.msgpack"  # in the course's folder


class Seen(msgspec.Struct):
    """How a check ended on a mistake: not at all where it passed; `values` are places in `Recorded.values`."""

    status: Status | None = None
    message: Message | None = None
    raised: tuple[str, str] | None = None
    values: list[int] = []


class Mistake(msgspec.Struct):
    """A known mistake without its code; `checks` are those of its exercise and of all after it."""

    id: str
    exercise: str
    hint: str
    checks: dict[str, Seen] = {}


class Recorded(msgspec.Struct):
    """The whole recording. Values, packed as between judge and worker, are kept once each; b"" can equal nothing."""

    reference: Recording
    mistakes: list[Mistake]
    values: list[bytes]


class RecordedDiagnosis(Diagnosis):
    """Names mistakes from what was recorded of them."""

    def __init__(self, recorded: Recorded, items: Sequence[pytest.Item]) -> None:
        self.recorded = recorded.mistakes  # in the order of `known`: a mistake may be there in several conventions
        self.values = recorded.values
        known = [
            Candidate(Variant(m.id, m.exercise, "misconception", "", "", m.hint, "", (), "", f"recorded:{place}"))
            for place, m in enumerate(recorded.mistakes)
        ]
        super().__init__(known, {}, items)

    def _run(self, candidate: Candidate, check: str, bench: Bench, expected: Sequence[object] | None) -> Footprint:
        seen = self.recorded[self.known.index(candidate)].checks.get(check, Seen())
        if seen.status is None or seen.message is None:
            return Footprint(None, [])
        values = [kept(self.values[place]) for place in seen.values]
        return Footprint(Ended(status=seen.status, message=seen.message, raised=seen.raised), values)


def read(root: Path) -> Recorded | None:
    """The recording of the course in `root`, if it has one.

    Raises:
        Problem: it is damaged.
    """
    try:
        return msgspec.msgpack.decode((root / FILE).read_bytes(), type=Recorded)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise Problem(f"{FILE} is damaged: {error}", "Unpack the course's zip again.") from error


def record(
    reference: Recording, live: Diagnosis, bench: Bench, items: Sequence[pytest.Item], left_out: set[str]
) -> Recorded:
    """Run every known mistake through its checks and keep what was seen.

    Args:
        reference: the reference's tapes.
        live: knows the mistakes.
        bench: with an oracle that answers from the tapes.
        items: all checks.
        left_out: ids of checks of which nothing must be told.
    """
    places: dict[bytes, int] = {}
    order = [exercise.id for exercise in bench.course.exercise]
    wanted = [info for info in map(info_of, items) if info.id not in left_out]
    mistakes: list[Mistake] = []
    for candidate in live.known:
        own = candidate.mistake
        mistake = Mistake(own.id, own.exercise, own.hint)
        mistakes.append(mistake)
        for info in wanted:
            if order.index(info.exercise) < order.index(own.exercise):
                continue
            footprint = live._run(candidate, info.id, bench, None)
            if footprint.ended is not None:
                ended = footprint.ended
                values = [places.setdefault(keep(value), len(places)) for value in footprint.seen]
                mistake.checks[info.id] = Seen(ended.status, ended.message, ended.raised, values)
    tapes = {check: tape for check, tape in reference.tapes.items() if check not in left_out}
    return Recorded(Recording(reference.seed, tapes), mistakes, list(places))
