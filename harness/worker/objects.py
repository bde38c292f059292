"""Carries out requests on live objects: inside a worker on the student's, in the judge on the reference's.

Both sides run this same code, so a check cannot tell the student's handle from the oracle's.
"""

from __future__ import annotations

import opcode
import random
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import torch

from harness.notebook import cells
from harness.text import utf8
from harness.worker import protocol
from harness.worker.protocol import (
    MAX_CARET,
    MAX_FRAMES,
    MAX_KINDS,
    MAX_MESSAGE,
    MAX_NAME,
    Begin,
    Call,
    Compile,
    Get,
    Gradients,
    Import,
    Load,
    Open,
    Raised,
    Ref,
    Reply,
    Request,
    Run,
    Set,
    Value,
    Watch,
)

# What `raise` compiles to.
_RAISE = opcode.opmap["RAISE_VARARGS"]

# Kinds that tell the judge a request could not be met. No class of a submission can have such a name.
NO_MODULE, NO_ATTRIBUTE, NOT_DATA, BAD_STATE = "!no-module", "!no-attribute", "!not-data", "!bad-state"


class Unmet(Exception):
    """A request that names something the submission does not have, or an answer that is not data."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Objects:
    """The objects that a check has made so far, and the requests that act on them.

    Args:
        import_module: how a module of the submission is imported by name; raises ModuleNotFoundError.
        folder: where the submission lies; tracebacks show only files beneath it.
    """

    def __init__(self, import_module: Callable[[str], object], folder: Path | None = None) -> None:
        self.import_module = import_module
        self.folder = folder
        self.table: list[object] = []
        self.notebook: cells.Notebook | None = None

    def perform(self, request: Request) -> Reply:
        """Carry out one request; whatever the submission raises becomes a reply."""
        try:
            return Value(request.id, protocol.pack(self._act(request)))
        except protocol.ProtocolError as error:
            return Raised(request.id, [NOT_DATA], utf8(str(error), MAX_MESSAGE), [])
        except cells.BadNotebook as error:
            return Raised(request.id, [cells.BROKEN], error.reason, [])
        except Unmet as error:
            return Raised(request.id, [error.kind], utf8(str(error), MAX_MESSAGE), [])
        except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt are answers too
            return self._raised(request.id, error)

    def _raised(self, request_id: int, error: BaseException) -> Raised:
        if self.notebook is not None:
            error = self.notebook.cause(error)
        if isinstance(error, cells.LeftOut):
            return Raised(request_id, [cells.LEFT_OUT], str(error.cell), [])
        return describe(request_id, error, self.folder)

    def _act(self, request: Request) -> object:
        match request:
            case Begin(seed=seed):
                self.table.clear()
                reset(seed)
                return None
            case Import(name=name):
                return self._refer(self._import(name))
            case Get(target=target, name=name):
                return self._answer(self._attribute(target, name))
            case Set(target=target, name=name, value=value):
                setattr(self.table[target], name, self._argument(protocol.unpack(value, writable=True)))
                return None
            case Call(target=target, method=method, args=args, kwargs=kwargs):
                function = self._attribute(target, method) if method else self.table[target]
                positional = self._argument(protocol.unpack(args, writable=True))
                named = self._argument(protocol.unpack(kwargs, writable=True))
                return self._answer(function(*positional, **named))  # type: ignore[operator,misc,arg-type]
            case Load(target=target, state=state):
                load(self.table[target], protocol.unpack(state, writable=True))
                return None
            case Gradients(target=target, args=args, kwargs=kwargs):
                positional = self._argument(protocol.unpack(args, writable=True))
                named = self._argument(protocol.unpack(kwargs, writable=True))
                return gradients(self.table[target], positional, named)  # type: ignore[arg-type]
            case Watch(target=target):
                return self._refer(Watched(_module(self.table[target])))
            case Open(file=file, modules=modules, left_out=left_out, compiled=compiled, run=numbers):
                assert self.folder is not None, "a notebook lies in a submission's folder"
                self.notebook = cells.Notebook(self.folder, file, modules, left_out, compiled)
                self.notebook.run_all(numbers)
                return self.notebook.cells(left_out)
            case Compile(cells=numbers):
                assert self.notebook is not None, "a notebook is opened before its cells are compiled"
                made = self.notebook.compiled(numbers)
                return None if made is None else torch.frombuffer(bytearray(made), dtype=torch.uint8)
            case Run(cells=numbers):
                assert self.notebook is not None, "a notebook is opened before its cells are run"
                self.notebook.run_all(numbers)
                return None

    def _import(self, name: str) -> object:
        try:
            return self.import_module(name)
        except ModuleNotFoundError as error:
            if error.name == name:
                raise Unmet(NO_MODULE, name) from None
            raise

    def _attribute(self, target: int, name: str) -> object:
        owner = self.table[target]
        try:
            return getattr(owner, name)
        except AttributeError as error:
            # A property that fails inside is the student's error; a name that is not there is a missing name.
            # (nn.Module hides the first behind the second: a property is found on the class.)
            if error.obj is owner and error.name == name and not hasattr(type(owner), name):
                raise Unmet(NO_ATTRIBUTE, utf8(f"{_describe_owner(owner)}.{name}", MAX_NAME)) from None
            raise

    def _argument(self, value: object) -> object:
        """`value` with references replaced by the objects they stand for."""
        if isinstance(value, Ref):
            return self.table[value.id]
        if isinstance(value, tuple | list):
            return type(value)(self._argument(item) for item in value)
        if isinstance(value, dict):
            return {key: self._argument(item) for key, item in value.items()}
        return value

    def _answer(self, value: object) -> object:
        """`value` as data where it is data, else a reference to it."""
        if value is None or isinstance(value, bool | int | float | str | torch.Tensor | torch.dtype):
            return value
        if isinstance(value, tuple | list):
            items = [self._answer(item) for item in value]
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, Mapping):
            return {key: self._answer(item) for key, item in value.items()}
        return self._refer(value)

    def _refer(self, value: object) -> Ref:
        self.table.append(value)
        return Ref(len(self.table) - 1, utf8(_describe_owner(value), MAX_NAME))


def _describe_owner(owner: object) -> str:
    name = getattr(owner, "__name__", None)
    return name if isinstance(name, str) else type(owner).__name__


def reset(seed: int) -> None:
    """Put the process-wide state of torch back to its defaults and seed every generator with `seed`."""
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    if torch.are_deterministic_algorithms_enabled():  # the setter imports torch's compiler: two seconds
        torch.use_deterministic_algorithms(False)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed records a whole stack for CUDA, each time
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def load(module: object, state: dict[str, torch.Tensor]) -> None:
    """Copy `state` into the parameters of `module`. Buffers of the student's own (a mask, say) are left alone.

    Raises:
        Unmet: BAD_STATE when a parameter is missing, has another shape, or is there in addition; the text is
            `problem name [shape here, shape wanted]`.
    """
    module = _module(module)
    own = dict(module.named_parameters(remove_duplicate=False))
    holders = {**dict(module.named_buffers(remove_duplicate=False)), **own}
    for name, value in state.items():
        if name not in holders:
            there = ", ".join(list(own)[:8]) or "-"
            raise Unmet(BAD_STATE, f"missing {name} {there}")
        if holders[name].shape != value.shape:
            raise Unmet(BAD_STATE, f"shape {name} {tuple(holders[name].shape)} {tuple(value.shape)}")
    extra = [name for name in own if name not in state]
    if extra:
        raise Unmet(BAD_STATE, f"extra {extra[0]}")
    with torch.no_grad():
        for name, value in state.items():
            holders[name].copy_(value)


def gradients(module: object, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, torch.Tensor | None]:
    """The gradients of the number that a module returns for these arguments, by parameter; None where it has none.

    The number is the only tensor of one element among the items of what comes back that depends on a parameter. The
    parameters' own `grad` stays as it is.

    Raises:
        Unmet: it is no module, or there is no such number.
    """
    module = _module(module)
    with torch.enable_grad():
        answer = module(*args, **kwargs)
        items = answer if isinstance(answer, tuple | list) else [answer]
        numbers = [x for x in items if isinstance(x, torch.Tensor) and x.numel() == 1 and x.requires_grad]
        if len(numbers) != 1:
            raise Unmet(NOT_DATA, "no single number that depends on the parameters")
        own = dict(module.named_parameters())
        trained = {name: value for name, value in own.items() if value.requires_grad}
        found = torch.autograd.grad(numbers[0].sum(), list(trained.values()), allow_unused=True)
    return {**dict.fromkeys(own), **dict(zip(trained, found, strict=True))}


class Watched:
    """How a module was called while it was watched.

    `calls` has for each call whether the module was in training mode, and whether what it returned (a tensor) depends
    on parameters in a way that gradients could follow.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self.calls: list[tuple[bool, bool]] = []
        module.register_forward_hook(self._note)

    def _note(self, module: torch.nn.Module, inputs: object, output: object) -> None:
        self.calls.append((module.training, isinstance(output, torch.Tensor) and output.requires_grad))


def _module(value: object) -> torch.nn.Module:
    if not isinstance(value, torch.nn.Module):
        raise Unmet(BAD_STATE, f"not-a-module {type(value).__name__}")
    return value


def describe(request_id: int, error: BaseException, folder: Path | None) -> Raised:
    """An exception as data: class names, text, and the lines of the submission it passed through."""
    kinds = [utf8(kind.__name__, MAX_NAME) for kind in type(error).__mro__ if kind is not object][:MAX_KINDS]
    if isinstance(error, SyntaxError) and error.filename:
        file = _relative(error.filename, folder)
        if file is not None:  # else it is of something that the submission evaluates, and has an ordinary traceback
            place = (utf8(file, MAX_NAME), error.lineno or 0, "", utf8(error.text or "", MAX_NAME).rstrip())
            caret = min(max(error.offset or 0, 0), MAX_CARET)
            return Raised(request_id, kinds, utf8(str(error.msg), MAX_MESSAGE), [place], caret)
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - __str__ is the student's code too
        text = f"<str() of the exception raised {type(second).__name__}>"
    frames = _frames(error.__traceback__, folder)
    return Raised(request_id, kinds, utf8(text, MAX_MESSAGE), frames, stub=_is_stub(error, folder))


def _is_stub(error: BaseException, folder: Path | None) -> bool:
    """Whether a line of the submission says `raise NotImplementedError`.

    torch raises this class too, for a dtype that a function does not take; such work has been started.
    """
    trace = error.__traceback__
    if not isinstance(error, NotImplementedError) or trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return _relative(code.co_filename, folder) is not None and code.co_code[trace.tb_lasti] == _RAISE


def _frames(trace: TracebackType | None, folder: Path | None) -> list[tuple[str, int, str, str]]:
    frames = []
    for frame, line in traceback.walk_tb(trace):
        file = _relative(frame.f_code.co_filename, folder)
        if file is not None:
            summary = traceback.FrameSummary(frame.f_code.co_filename, line, frame.f_code.co_qualname)
            texts = (utf8(text, MAX_NAME) for text in (file, frame.f_code.co_qualname, summary.line or ""))
            name, function, source = texts
            frames.append((name, line, function, source))
    return frames if len(frames) <= MAX_FRAMES else frames[: MAX_FRAMES // 2] + frames[-MAX_FRAMES // 2 :]


def _relative(file: str, folder: Path | None) -> str | None:
    if folder is None:
        return None
    if file.startswith(cells.PLACE):
        return file.removeprefix(cells.PLACE)
    path = Path(file)
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else None


def encoded(reply: Reply) -> bytes:
    """`reply` as bytes; one that is too large, or cannot be encoded, becomes a reply that says so."""
    try:
        return protocol.encode_reply(reply)
    except protocol.ProtocolError as error:
        return protocol.encode_reply(Raised(reply.id, [NOT_DATA], str(error), []))
