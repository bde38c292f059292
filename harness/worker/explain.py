"""Why a request got no value, in words for the student: what the submission raised, lacks, or did to its worker."""

from __future__ import annotations

from typing import NoReturn

from harness.course import Limits
from harness.messages import message
from harness.notebook import cells
from harness.outcome import Frame, Message, Status, Stop, StudentError
from harness.worker import objects
from harness.worker.protocol import Compile, Import, Open, ProtocolError, Raised, Request, Run

# What the system's refusals say: C's words for ENOMEM, EPERM, EACCES and EFBIG, and torch's own.
_NO_MEMORY = ("can't allocate memory", "Cannot allocate memory")
_REFUSED = ("Operation not permitted", "Permission denied")
_TOO_LARGE = "File too large"
_SYNTAX = ("SyntaxError", "IndentationError", "TabError")


def raise_reply(reply: Raised, what: str, *, confined: bool = False) -> NoReturn:
    """Turn a reply that carries an exception into the exception that ends a check.

    Args:
        reply: what came back.
        what: the expression that was asked for, as a student would write it.
        confined: it came out of the sandbox, so that "not permitted" is the sandbox's word.
    """
    kind, text = reply.kinds[0], reply.text
    if kind == objects.NO_MODULE:
        raise Stop(Status.MISSING, message("missing.module", file=f"{text}.py"))
    if kind == objects.NO_ATTRIBUTE:
        owner, _, name = text.rpartition(".")
        raise Stop(Status.MISSING, message("missing.name", owner=owner, name=name))
    if kind == objects.BAD_STATE:
        raise Stop(Status.MISSING, _bad_state(text, what))
    if kind == objects.NOT_DATA:
        raise Stop(Status.FAILED, message("answer.not-data", what=what, got=text))
    trace = tuple(Frame(*frame, column=reply.caret) for frame in reply.trace)
    status = _status(reply, confined)
    raise StudentError(status, _said(reply, what, trace, status), kinds=tuple(reply.kinds), said=text, trace=trace)


def timeout(request: Request, seconds: float) -> Message:
    """The deadline of this request passed."""
    if isinstance(request, Import):
        return message("timeout.import", name=request.name, seconds=seconds)
    if numbers := _cells(request):
        return message("notebook.timeout", cell=numbers[0], seconds=seconds)
    return message("timeout.call", seconds=seconds)


def spent(seconds: float) -> Message:
    """The submission used up its CPU time."""
    return message("timeout.submission", seconds=seconds)


def scratch(limits: Limits) -> Message:
    """It wrote more than it may."""
    return message("blocked.scratch", mebibytes=limits.scratch_bytes // 2**20, files=limits.scratch_files)


def crashed(request: Request, ending: str) -> Message:
    """The worker ended during this request; `ending` is its exit status or signal."""
    if numbers := _cells(request):
        return message("notebook.crashed", cell=numbers[0], ending=ending)
    if isinstance(request, Import):
        return message("crashed.import", name=request.name, ending=ending)
    return message("crashed.call", ending=ending)


def _cells(request: Request) -> list[int]:
    """The numbers of a notebook's cells that a request compiles or runs."""
    return request.run if isinstance(request, Open) else request.cells if isinstance(request, Compile | Run) else []


def during(said: Message, what: str) -> Message:
    """The same, with the expression that was asked for where that is known, as a student would write it."""
    return message("crashed.during", what=what, **said.params) if what and said.id == "crashed.call" else said


def broken_protocol(error: ProtocolError) -> Message:
    """The worker sent what is no answer."""
    return message("blocked.protocol", error=str(error))


def _status(reply: Raised, confined: bool) -> Status:
    if reply.stub:
        return Status.NOT_STARTED
    system = {"OSError", "RuntimeError"} & set(reply.kinds)  # torch wraps what the system said in RuntimeError
    if "MemoryError" in reply.kinds or (system and any(text in reply.text for text in _NO_MEMORY)):
        return Status.OUT_OF_MEMORY
    if confined and system and any(text in reply.text for text in (*_REFUSED, _TOO_LARGE)):
        return Status.BLOCKED
    return Status.ERROR


def _said(reply: Raised, what: str, trace: tuple[Frame, ...], status: Status) -> Message:
    kind, text = reply.kinds[0], reply.text or "..."
    if status is Status.OUT_OF_MEMORY:
        return message("out-of-memory", what=what)
    if status is Status.BLOCKED:
        if _TOO_LARGE in text:
            return message("blocked.file", what=what)
        return message("blocked.refused", what=what, kind=kind, text=text)
    if not trace:
        return (
            message("not-started.bare", what=what)
            if reply.stub
            else message("error.raised.bare", what=what, kind=kind, text=text)
        )
    file, line = trace[-1].file, trace[-1].line
    if kind in _SYNTAX:
        return message("error.syntax", file=file, line=line, text=text)
    if reply.stub:
        return message("not-started", function=trace[-1].function, file=file, line=line)
    if kind == "ModuleNotFoundError":
        return message("error.import", file=file, line=line, text=text)
    if trace[0].function == "<module>" and cells.NAME.fullmatch(trace[0].file):
        return message("notebook.broken", what=what, kind=kind, text=text, file=trace[0].file, line=trace[0].line)
    return message("error.raised", what=what, kind=kind, text=text, file=file, line=line)


def _bad_state(text: str, what: str) -> Message:
    """From `problem name (own shape) (wanted shape)`, as `objects.load` writes it."""
    problem, _, rest = text.partition(" ")
    name, _, shapes = rest.partition(" ")
    if problem == "shape":
        own, _, wanted = shapes.partition(") ")
        return message("parameters.shape", what=what, name=name, own=own + ")", wanted=wanted)
    if problem == "missing":
        return message("parameters.missing", what=what, name=name, found=shapes)
    problem = problem if problem == "extra" else "not-a-module"
    return message(f"parameters.{problem}", what=what, name=name)
