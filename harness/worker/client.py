"""What a grader holds: handles to objects that live elsewhere, and the links that carry out their requests.

`student.gpt.CausalSelfAttention(config)` reads like ordinary PyTorch. Behind it, a `Link` performs each request on the
submission's worker process, on the reference in this process, or from a recording: a check cannot tell which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from harness.course import Limits
from harness.outcome import Status, Stop
from harness.worker import explain, objects, protocol
from harness.worker.channel import Closed
from harness.worker.guard import Account, Guard, cpu_seconds
from harness.worker.homes import UNCONFINED
from harness.worker.launch import Launcher, Process
from harness.worker.protocol import (
    Begin,
    Call,
    Get,
    Gradients,
    Import,
    Load,
    Raised,
    Ref,
    Reply,
    Request,
    Set,
    Value,
    Watch,
)


class Link(Protocol):
    """Performs requests, wherever the objects are."""

    def perform(self, request: Request) -> Reply: ...


class LocalLink:
    """Performs requests in this process: for the reference, and for a submission under a debugger.

    Values take the same way through the codec as a worker's, so both sides see copies. What is drawn at random here
    does not disturb what the reference, in the same process, draws for its own weights.
    """

    def __init__(self, world: objects.Objects) -> None:
        self.world = world
        self.random = torch.default_generator.get_state()

    def perform(self, request: Request) -> Reply:
        outside = torch.default_generator.get_state()
        torch.default_generator.set_state(self.random)
        try:
            return self.world.perform(request)
        finally:
            self.random = torch.default_generator.get_state()
            torch.default_generator.set_state(outside)


class WorkerLink:
    """Performs requests in a worker process; starts a fresh one after a crash or a time-out.

    Args:
        launcher: how workers are made.
        files: the submission.
        limits: what it may use.
        account: what the submission has used in other links.
    """

    def __init__(
        self, launcher: Launcher, files: Mapping[str, bytes], limits: Limits, account: Account | None = None
    ) -> None:
        self.launcher, self.files, self.limits = launcher, files, limits
        self.account = Account() if account is None else account
        self.process: Process | None = None
        self.printed = ""
        self.endless: dict[str, Stop] = {}  # imports that did not end: each would take as long again

    @property
    def confined(self) -> bool:
        """Whether what the submission may not do is refused to it."""
        return self.launcher.isolation == "sandbox"

    def perform(self, request: Request) -> Reply:
        """Send a request and wait for its reply.

        Raises:
            Stop: TIMEOUT, CRASHED, BLOCKED or OUT_OF_MEMORY; the worker is gone then and the next `Begin` starts
                another.
        """
        return self.read(request, self.exchange(request, protocol.encode_request(request)))

    def exchange(self, request: Request, frame: bytes) -> bytes:
        """Send a request that is already encoded; the encoded reply, as the worker sent it.

        Raises:
            Stop: as `perform`.
        """
        if isinstance(request, Import) and request.name in self.endless:
            raise self.endless[request.name]
        process = self.process
        if isinstance(request, Begin):
            self.account.check(self.limits)
        if process is None:
            if not isinstance(request, Begin):
                raise RuntimeError("the check went on after its worker was stopped")
            process = self.process = self.launcher.launch(self.files, self.limits)
        guard = Guard(process, self.limits, request, self.account)
        try:
            body = process.channel.exchange(frame, guard.look)
            guard.look_at_scratch()
        except Stop as stop:
            self._stop()
            if isinstance(request, Import) and stop.status is Status.TIMEOUT:
                self.endless[request.name] = stop
            raise
        except Closed:
            raise self._ended(request) from None
        except protocol.ProtocolError as error:
            raise self._broken(error) from None
        finally:
            guard.end()
        return body

    def read(self, request: Request, body: bytes) -> Reply:
        """Decode what `exchange` gave.

        Raises:
            Stop: BLOCKED, when it is no answer to the request; the worker is gone then.
        """
        try:
            reply = protocol.decode_reply(body)
            if reply.id != request.id:
                raise protocol.ProtocolError(f"an answer to request {reply.id} where {request.id} was asked")
            if isinstance(reply, Value):
                _ = reply.data  # whoever forged a value is stopped here, and blamed
        except protocol.ProtocolError as error:
            raise self._broken(error) from None
        return reply

    def take_output(self) -> str:
        """What the submission printed since the last call."""
        if self.process is not None:
            self.process.channel.drain()
            self.printed += self.process.channel.output.take()
        text, self.printed = self.printed, ""
        return text

    def close(self) -> None:
        """End the worker, if one runs."""
        if self.process is not None:
            self._stop()

    def _broken(self, error: protocol.ProtocolError) -> Stop:
        if self.process is not None:
            self._stop()
        return Stop(Status.BLOCKED, explain.broken_protocol(error))

    def _ended(self, request: Request) -> Exception:
        ending = self._stop()
        if ending == f"exit {UNCONFINED}":
            return RuntimeError(f"a worker could not be confined: {self.printed.strip()}")
        if ending == "signal SIGXCPU":
            return Stop(Status.TIMEOUT, explain.spent(self.limits.submission_seconds))
        return Stop(Status.CRASHED, explain.crashed(request, ending))

    def _stop(self) -> str:
        assert self.process is not None
        process, self.process = self.process, None
        self.account.cpu += cpu_seconds(process.pid)
        ending = process.end()
        self.printed += process.channel.output.take()
        return ending


class OracleError(Exception):
    """The reference raised, or lacks what a check asks it for. That is never the student's fault."""


@dataclass(frozen=True)
class Step:
    """One request of a check and what came of it, for whoever must see everything."""

    side: str  # student or reference
    what: str
    value: object


@dataclass
class Check:
    """The check that is running: numbers its requests, and names what they are about in messages.

    What stops a request is the submission's doing; with `oracle`, it is the course's.
    """

    link: Link
    name: str
    oracle: bool = False
    journal: list[Step] | None = None  # every step is noted here
    next_id: int = 0
    modules: dict[str, Any] = field(default_factory=dict)  # handles of modules, and of what they define

    def begin(self, seed: int) -> None:
        """Forget the objects of the check before, and seed the generators."""
        self.ask(lambda number: Begin(number, self.name, seed), "")

    def ask(self, make: Callable[[int], Request], what: str) -> Any:
        """Perform one request; its value has handles in place of references.

        Args:
            make: builds the request from its number.
            what: the expression it stands for, as a student would write it.

        Raises:
            Stop: the submission raised, lacks what was asked for, or was stopped.
            OracleError: the reference did.
        """
        try:
            value = self._ask(make, what)
            self._note(what, value)
            return value
        except Stop as stop:
            self._note(what, stop.message.render())
            if self.oracle:
                raise OracleError(f"the reference, asked for {what}: {stop}") from stop
            raise

    def _note(self, what: str, value: object) -> None:
        if self.journal is not None and what:
            self.journal.append(Step("reference" if self.oracle else "student", what, value))

    def _ask(self, make: Callable[[int], Request], what: str) -> Any:
        self.next_id += 1
        request = make(self.next_id)
        try:
            reply = self.link.perform(request)
        except Stop as stop:
            stop.message = explain.during(stop.message, what)
            raise
        if isinstance(reply, Raised):
            confined = getattr(self.link, "confined", False)
            explain.raise_reply(reply, what, confined=confined)
        return self._handles(reply.data, what)

    def _handles(self, value: Any, what: str) -> Any:
        if isinstance(value, Ref):
            return Handle(self, value.id, what)
        if isinstance(value, tuple | list):
            return type(value)(self._handles(item, f"{what}[{i}]") for i, item in enumerate(value))
        if isinstance(value, dict):
            return {key: self._handles(item, f"{what}[{key!r}]") for key, item in value.items()}
        return value


class Root:
    """Modules by name: `student.gpt`. A module is asked for once a check."""

    def __init__(self, check: Check) -> None:
        self._check = check

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        modules = self._check.modules
        if name not in modules:
            modules[name] = self._check.ask(lambda number: Import(number, name), name)
        return modules[name]


class Handle:
    """An object on the other side: call it, get and set its attributes, load a state into it.

    What comes back is data where it is data, else another handle. Tensors are copies: changing one in place raises.
    A handle is good until its check ends.
    """

    __slots__ = ("_check", "_id", "_what")
    __hash__ = object.__hash__

    def __init__(self, check: Check, number: int, what: str) -> None:
        for slot, value in (("_check", check), ("_id", number), ("_what", what)):
            object.__setattr__(self, slot, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        check, what = self._check, f"{self._what}.{name}"
        if self._what not in check.modules:
            return self._get(name, what)
        if what not in check.modules:  # a module's classes and functions stay what they are
            check.modules[what] = self._get(name, what)
        return check.modules[what]

    def _get(self, name: str, what: str) -> Any:
        return self._check.ask(lambda number: Get(number, self._id, name), what)

    def __setattr__(self, name: str, value: object) -> None:
        packed = protocol.pack(_references(value, self._check))
        self._check.ask(lambda number: Set(number, self._id, name, packed), f"{self._what}.{name} = ...")

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self._call("", args, kwargs)

    def to(self, *args: object, **kwargs: object) -> Any:
        """`Module.to` over there."""
        return self._call("to", args, kwargs)

    def train(self, mode: bool = True) -> Any:
        """`Module.train` over there."""
        return self._call("train", (mode,), {})

    def eval(self) -> Any:
        """`Module.eval` over there."""
        return self._call("eval", (), {})

    def state_dict(self) -> Any:
        """`Module.state_dict` over there: name -> tensor, copies."""
        return self._call("state_dict", (), {})

    def _call(self, method: str, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        packed = protocol.pack(_references(args, self._check))
        named = protocol.pack(_references(kwargs, self._check))
        what = f"{_short(self._what, self._check.modules)}{'.' + method if method else ''}(...)"
        return self._check.ask(lambda number: Call(number, self._id, method, packed, named), what)

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Copy `state` into the parameters of this module; the student's extra buffers stay as they are.

        Raises:
            Stop: MISSING when a parameter has another name or shape, or is there in addition.
        """
        packed = protocol.pack(dict(state))
        self._check.ask(lambda number: Load(number, self._id, packed), self._what)

    def gradients(self, *args: object, **kwargs: object) -> Any:
        """Call this module over there; name -> gradient of the number it returns (alone or in a tuple), or None.

        Raises:
            Stop: it is no module, or returns no single number that depends on its parameters.
        """
        packed = protocol.pack(_references(args, self._check))
        named = protocol.pack(_references(kwargs, self._check))
        what = f"{self._what}(...)"
        return self._check.ask(lambda number: Gradients(number, self._id, packed, named), what)

    def watch(self) -> Any:
        """Note each call of this module from now on. `calls` of what comes back has (training mode, gradients kept)
        for each; see `objects.Watched`."""
        return self._check.ask(lambda number: Watch(number, self._id), f"{self._what}")

    def __repr__(self) -> str:
        return f"<{self._what}>"


def _references(value: object, check: Check) -> object:
    if isinstance(value, Handle):
        if value._check is not check:
            raise ValueError(f"{value!r} belongs to another check, or to the other side")
        return Ref(value._id)
    if isinstance(value, tuple | list):
        items = [_references(item, check) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, dict):
        return {key: _references(item, check) for key, item in value.items()}
    return value


def _short(what: str, modules: Iterable[str]) -> str:
    """`gpt.CausalSelfAttention(...).split_heads` -> `CausalSelfAttention.split_heads`: how a student would say it."""
    name = what.replace("(...)", "")
    module, _, rest = name.partition(".")
    return rest if rest and module in modules else name
