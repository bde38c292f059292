"""Where expected values come from: the live reference, or a recording of what it said.

An oracle has the face of a student's handles, `reference.gpt.CausalSelfAttention(config)`, and gives the seeded inputs
too (`draw`). Both go over one tape per check: in the order of the check, each request with its reply. A tape can be
played back without the reference, because a check never lets its questions depend on the student's answers; a check
that does is found out when the tape does not fit.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import importlib.util
import linecache
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, ModuleType

import msgspec
import torch

from harness.worker import objects, protocol
from harness.worker.client import Link
from harness.worker.protocol import Begin, Reply, Request

DRAW = "draw"  # the oracle's module of seeded inputs


def check_seed(seed: int, check: str) -> int:
    """The seed of one check: 63 bits of SHA-256 over the run's seed and the check's id."""
    digest = hashlib.sha256(f"{seed}:{check}".encode()).digest()
    return int.from_bytes(digest[:8]) >> 1


class Draw:
    """Seeded inputs of a check. A generator of its own: what else draws in the process changes nothing here."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
        """Independent normal values with mean 0 and standard deviation `scale`."""
        return torch.randn(shape, generator=self.generator, dtype=dtype) * scale

    def integers(self, low: int, high: int, *shape: int) -> torch.Tensor:
        """Independent integers from `low` up to and without `high`."""
        return torch.randint(low, high, shape, generator=self.generator)

    def permutation(self, n: int) -> torch.Tensor:
        """A random order of 0 ... n - 1."""
        return torch.randperm(n, generator=self.generator)


class Modules:
    """A set of modules given as source text, imported under their own names but kept apart from all others.

    The reference's `gpt` and a wrong version's `gpt` can so live in one process. While code of the set runs its
    imports, the names stand for the set; afterwards `sys.modules` is as before.

    Args:
        sources: module name -> source text.
        label: shown as the folder in tracebacks.
        kept: the sources are those of the files in the folder `label`, and what Python compiles of them may be kept
            beside them, as an import does.
    """

    def __init__(self, sources: Mapping[str, str], label: str, *, kept: bool = False) -> None:
        self.sources, self.label, self.kept = sources, label, kept
        self.loaded: dict[str, ModuleType] = {}

    def load(self, name: str) -> ModuleType:
        """Import one module of the set.

        Raises:
            ModuleNotFoundError: the set has no such module.
        """
        if name not in self.loaded:
            if name not in self.sources:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            with self._in_place():
                importlib.import_module(name)
        return self.loaded[name]

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        hidden = {name: sys.modules.pop(name) for name in self.sources if name in sys.modules}
        sys.modules.update(self.loaded)
        sys.meta_path.insert(0, self)  # type: ignore[arg-type]
        try:
            yield
        finally:
            sys.meta_path.remove(self)  # type: ignore[arg-type]
            for name in self.sources:
                module = sys.modules.pop(name, None)
                if module is not None:
                    self.loaded[name] = module
            sys.modules.update(hidden)

    # The import system's finder and loader protocols.

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name not in self.sources:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=f"{self.label}/{name}.py")  # type: ignore[arg-type]

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        file, source = f"{self.label}/{name}.py", self.sources[name]
        module.__file__ = file  # what lies beside a module is found through it
        # For tracebacks and a debugger: there may be no such file where we are.
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        exec(_compiled(name, source, file, self.kept), module.__dict__)


@functools.lru_cache(maxsize=64)  # more than a course's modules
def _compiled(name: str, source: str, file: str, kept: bool) -> CodeType:
    """Once for all sets: the reference is loaded by the oracle, and anew by whoever wants to change it."""
    if kept:
        code = _Kept(name, file, source).get_code(name)
        assert code is not None, "source has code"
        return code
    return compile(source, file, "exec")


class _Kept(importlib.machinery.SourceFileLoader):
    """Compiles as an import does, and keeps the result as one does, but goes by what a file holds, not by its time:
    the files of an unpacked archive all have the same."""

    def __init__(self, name: str, file: str, source: str) -> None:
        super().__init__(name, file)
        self.source = source.encode()

    def get_data(self, path: str) -> bytes:
        return self.source if path == self.path else super().get_data(path)

    def path_stats(self, path: str) -> dict[str, int]:
        return {"mtime": int.from_bytes(importlib.util.source_hash(self.source)[:4]), "size": len(self.source)}


class ReferenceLink:
    """Performs requests on the live reference, with `draw` beside its modules."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self.world = objects.Objects(self._import)
        self.draw = Draw(0)

    def perform(self, request: Request) -> Reply:
        if isinstance(request, Begin):
            self.draw = Draw(request.seed)
        return self.world.perform(request)

    def _import(self, name: str) -> object:
        return self.draw if name == DRAW else self.modules.load(name)


class Recording(msgspec.Struct, dict=True):
    """What an oracle was asked and answered: check id -> (request, reply) frames, in order, for one seed."""

    seed: int
    tapes: dict[str, list[tuple[bytes, bytes]]] = {}

    @functools.cached_property
    def _replies(self) -> dict[tuple[str, int], Reply]:
        return {}

    def reply(self, check: str, position: int) -> Reply:
        """One reply of a tape. It is decoded once, and the same for every submission: nothing in it can be changed."""
        known = self._replies
        if (check, position) not in known:
            known[check, position] = protocol.decode_reply(self.tapes[check][position][1])
        return known[check, position]


class RecordingLink:
    """Passes requests on and keeps what was said."""

    def __init__(self, link: Link, recording: Recording) -> None:
        self.link, self.recording = link, recording
        self.tape: list[tuple[bytes, bytes]] = []

    def perform(self, request: Request) -> Reply:
        if isinstance(request, Begin):
            self.tape = self.recording.tapes[request.check] = []
        reply = self.link.perform(request)
        self.tape.append((protocol.encode_request(request), protocol.encode_reply(reply)))
        return reply


class ReplayLink:
    """Answers from a recording.

    `perform` raises LookupError when a check is not recorded, or asks what it did not ask when it was recorded.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.check, self.position = "", 0

    def perform(self, request: Request) -> Reply:
        if isinstance(request, Begin):
            self.check, self.position = request.check, 0
        tape = self.recording.tapes.get(self.check)
        if tape is None:
            raise LookupError(f"the recording holds nothing of {self.check}")
        if self.position == len(tape) or tape[self.position][0] != protocol.encode_request(request):
            raise LookupError(f"{self.check} asked the reference something else than when it was recorded")
        self.position += 1
        return self.recording.reply(self.check, self.position - 1)
