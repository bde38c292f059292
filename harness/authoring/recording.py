"""A course's expected values and known mistakes as data, for a machine that must not hold the answers.

One safetensors file has the reference's tape of every check, on the course's public seed, and of every known mistake
how each check ends and what it sees. With it a submission gets the same verdicts and hints as beside the reference.
Each tensor is there once; how they belong together is JSON in the file's metadata (harness.authoring.trees). The file
tells its own digest, which is compared when it is opened: one wrong byte could be a wrong verdict.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from harness.authoring import trees
from harness.authoring.trees import Tensors
from harness.authoring.variants import Variant
from harness.bench import Bench
from harness.diagnosis import Diagnosis, Footprint
from harness.messages import message
from harness.mistakes import Candidate, Listed
from harness.observe import keep, kept
from harness.oracle import Modules, Recording, ReplayLink
from harness.outcome import Message, Status
from harness.plugin import Ended, info_of
from harness.problem import Problem
from harness.worker import protocol
from harness.worker.protocol import Begin, Reply, Request

FILE = Path("recording") / "course.safetensors"  # in the course's folder
_KEY = "recording"  # of the metadata: the only one, because safetensors writes several in any order
_ZEROS = "0" * 64
_DIGEST_KEY = rb"\"digest\":\""  # JSON within JSON, so the quotes of a text in it have more backslashes
MAX_HEADER = 100_000_000  # bytes; safetensors reads no file with more
# All that every version of the format has. Complex numbers came late, and half of them never.
_DTYPES = {torch.float64, torch.float32, torch.float16, torch.bfloat16,
           torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool}  # fmt: skip


class Seen(msgspec.Struct):
    """How a check ended on a mistake: not at all where it passed.

    Each item of `values` is a list of one value; or of none, for what was not data and can equal nothing.
    """

    status: Status | None = None
    message: Message | None = None
    raised: tuple[str, str] | None = None
    values: list[list[msgspec.Raw]] = []


class Mistake(msgspec.Struct):
    """A known mistake without its code; `checks` are those of its exercise and of all after it, each a `Seen`."""

    id: str
    exercise: str
    hint: str
    checks: dict[str, msgspec.Raw] = {}


class Contents(msgspec.Struct):
    """What the metadata say. A tape is a list of requests, each with its reply; it and `Seen` are trees.

    `digest` is the SHA-256 of the file with zeros in its place; see `_digest`.
    """

    seed: int
    tapes: dict[str, msgspec.Raw]
    mistakes: list[Mistake]
    digest: str = ""


class Recorded:
    """A whole recording, open for reading: tensors stay in the file until they are needed.

    Args:
        path: the file.

    Raises:
        SafetensorError, msgspec.DecodeError, ProtocolError, OSError: it is damaged, or cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _open(path, "numpy")  # maps the file, and sees that none of it is missing
        self.contents = msgspec.json.decode((self._file.metadata() or {}).get(_KEY, ""), type=Contents)
        if self.contents.digest != _digest(path.read_bytes(), self.contents.digest):
            raise protocol.ProtocolError("its bytes are not those that were written")
        self.reference = Recording(self.contents.seed)  # with the tapes that were loaded

    def load(self, check: str) -> None:
        """Read the reference's tape of a check, if there is one.

        Raises:
            Problem: the file is damaged.
        """
        if check in self.contents.tapes and check not in self.reference.tapes:
            with _telling_damage():
                rounds = msgspec.json.decode(self.contents.tapes[check], type=list[tuple[trees.Tree, trees.Tree]])
                self.reference.tapes[check] = [(self._plain(asked), self._plain(said)) for asked, said in rounds]
                for place in range(len(rounds)):  # each is asked for soon, and decoded once
                    reply = self.reference.reply(check, place)
                    if isinstance(reply, protocol.Value):
                        _ = reply.data

    def footprint(self, mistake: int, check: str) -> Footprint:
        """How a check ended on the mistake of that place, and what it saw.

        Raises:
            Problem: the file is damaged.
        """
        tree = self.contents.mistakes[mistake].checks.get(check)
        if tree is None:
            return Footprint(None, [])
        with _telling_damage():
            seen = msgspec.msgpack.decode(self._plain(msgspec.json.decode(tree)), type=Seen)
            if seen.status is None or seen.message is None:
                raise protocol.ProtocolError(f"{check} neither passed nor failed")
            values = [kept(b"".join(map(bytes, value))) for value in seen.values]
        return Footprint(Ended(status=seen.status, message=seen.message, raised=seen.raised), values)

    def _plain(self, tree: trees.Tree) -> bytes:
        return trees.from_tree(tree, lambda name: protocol.pack(self.tensor(name)))

    def tensor(self, name: str) -> torch.Tensor:
        """One tensor. By way of NumPy where that has the dtype: it takes an eighth of the time."""
        try:
            return torch.from_numpy(self._file.get_tensor(name))
        except TypeError:
            return _open(self.path, "pt").get_tensor(name)  # type: ignore[no-any-return]


def _open(path: Path, framework: str) -> Any:  # the library has no types
    return safe_open(path, framework=framework)


class RecordedLink(ReplayLink):
    """Answers as the reference did. A check's tape is read when it begins."""

    def __init__(self, recorded: Recorded) -> None:
        super().__init__(recorded.reference)
        self.recorded = recorded

    def perform(self, request: Request) -> Reply:
        if isinstance(request, Begin):
            self.recorded.load(request.check)
        return super().perform(request)


class RecordedDiagnosis(Diagnosis):
    """Names mistakes from what was recorded of them."""

    def __init__(self, recorded: Recorded, items: Sequence[pytest.Item]) -> None:
        # A mistake may be there in several conventions: `where` tells them apart, as the lines of a file would.
        self.recorded = recorded
        known = [
            Candidate(
                Variant(m.id, m.exercise, "misconception", "", "", m.hint, "", (), "", f"recorded:{place}"),
                fails=dict.fromkeys(m.checks, ""),
            )
            for place, m in enumerate(recorded.contents.mistakes)
        ]
        super().__init__(Listed(known), Modules({}, "reference"), items)

    def _run(self, candidate: Candidate, check: str, bench: Bench, expected: Sequence[object] | None) -> Footprint:
        return self.recorded.footprint(candidate.mistake.line, check)


def read(root: Path) -> Recorded | None:
    """The recording of the course in `root`, if it has one.

    Raises:
        Problem: it is damaged.
    """
    path = root / FILE
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    with _telling_damage():
        return _opened(path, found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=1)
def _opened(path: Path, changed: int, size: int) -> Recorded:
    """Opened once for all that need it, while the file stays the same."""
    return Recorded(path)


@contextmanager
def _telling_damage() -> Iterator[None]:
    try:
        yield
    except (SafetensorError, msgspec.DecodeError, protocol.ProtocolError, RecursionError, OSError) as error:
        said = message("problem.recording", file=str(FILE), problem=str(error))
        raise Problem(said, message("problem.recording.help")) from error


def record(
    reference: Recording,
    known: Sequence[Candidate],
    live: Diagnosis,
    bench: Bench,
    items: Sequence[pytest.Item],
    left_out: set[str],
) -> bytes:
    """Run every known mistake through its checks and keep what was seen.

    Args:
        reference: the reference's tapes.
        known: the mistakes.
        live: runs them.
        bench: with an oracle that answers from the tapes.
        items: all checks.
        left_out: ids of checks of which nothing must be told.

    Returns:
        The file: the same course gives the same bytes.

    Raises:
        Problem: it cannot hold what a check is about.
    """
    tensors = Tensors()
    order = [exercise.id for exercise in bench.course.exercise]
    wanted = [info for info in map(info_of, items) if info.id not in left_out]
    tapes = {
        check: msgspec.Raw(msgspec.json.encode([[_tree(part, tensors, check) for part in round] for round in tape]))
        for check, tape in reference.tapes.items()
        if check not in left_out
    }
    mistakes: list[Mistake] = []
    for candidate in known:
        own = candidate.mistake
        mistake = Mistake(own.id, own.exercise, own.hint)
        mistakes.append(mistake)
        for info in wanted:
            if order.index(info.exercise) < order.index(own.exercise):
                continue
            footprint = live._run(candidate, info.id, bench, None)
            if footprint.ended is not None:
                ended = footprint.ended
                values = [[msgspec.Raw(data)] if data else [] for data in map(keep, footprint.seen)]
                seen = msgspec.msgpack.encode(Seen(ended.status, ended.message, ended.raised, values))
                tree = _tree(seen, tensors, f"{own.id}/{info.id}")
                mistake.checks[info.id] = msgspec.Raw(msgspec.json.encode(tree))
    return to_bytes(Contents(reference.seed, tapes, mistakes), tensors)


def to_bytes(contents: Contents, tensors: Tensors) -> bytes:
    """The file of a recording.

    Raises:
        Problem: safetensors cannot hold a tensor, or so many.
    """
    for name, tensor in tensors.by_name.items():
        if tensor.dtype not in _DTYPES:
            raise Problem(f"A recording cannot hold the {tensor.dtype} tensor of {name}.",
                          "Let the check look at its real and its imaginary part.")  # fmt: skip
    contents = msgspec.structs.replace(contents, digest=_ZEROS)
    data: bytes = save(tensors.by_name, {_KEY: msgspec.json.encode(contents).decode("utf-8")})
    header = int.from_bytes(data[:8], "little")
    if header > MAX_HEADER:
        most = MAX_HEADER / 1e6
        raise Problem(f"Beside its tensors the recording would have {header / 1e6:.0f} MB, and {most:.0f} can be read.",
                      "Let the checks ask less, or bundle fewer exercises.")  # fmt: skip
    return _with_digest(data, _ZEROS, _digest(data, _ZEROS))


def _digest(data: bytes, own: str) -> str:
    """The SHA-256 of a file in which `own` stands where its digest belongs, counted as if zeros stood there."""
    return hashlib.sha256(_with_digest(data, own, _ZEROS)).hexdigest()


def _with_digest(data: bytes, old: str, new: str) -> bytes:
    """A file with another digest: the last of what the metadata say."""
    before, key, after = data.rpartition(_DIGEST_KEY)
    if not after.startswith(old.encode()):
        raise protocol.ProtocolError("it has no digest")
    return b"".join((before, key, new.encode(), after[len(old) :]))


def _tree(data: bytes, tensors: Tensors, where: str) -> trees.Tree:
    return trees.to_tree(data, functools.partial(tensors.name, where=where))
