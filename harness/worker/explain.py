"""Why a request got no value, in words for the student: what the submission raised, lacks, or did to its worker."""

from __future__ import annotations

from typing import NoReturn

from harness.outcome import Frame, Message, Status, Stop, StudentError
from harness.worker import objects
from harness.worker.protocol import Import, ProtocolError, Raised, Request


def raise_reply(reply: Raised, what: str) -> NoReturn:
    """Turn a reply that carries an exception into the exception that ends a check."""
    kind, text = reply.kinds[0], reply.text
    if kind == objects.NO_MODULE:
        raise Stop(
            Status.MISSING, _message("missing.module", "There is no {file} in this submission.", file=f"{text}.py")
        )
    if kind == objects.NO_ATTRIBUTE:
        owner, _, name = text.rpartition(".")
        raise Stop(
            Status.MISSING,
            _message("missing.name", "{owner} has no {name}. Was it renamed or deleted? The graders look for this name.",
                     owner=owner, name=name),
        )  # fmt: skip
    if kind == objects.BAD_STATE:
        raise Stop(Status.MISSING, _bad_state(text, what))
    if kind == objects.NOT_DATA:
        raise Stop(
            Status.FAILED,
            _message("answer.not-data", "{what} returned {got}, which cannot be compared with the expected value.",
                     what=what, got=text),
        )  # fmt: skip
    trace = tuple(Frame(*frame, column=reply.caret) for frame in reply.trace)
    raise StudentError(_status(reply), _said(reply, what, trace), kinds=tuple(reply.kinds), said=text, trace=trace)


def _status(reply: Raised) -> Status:
    if reply.stub:
        return Status.NOT_STARTED
    if "MemoryError" in reply.kinds or "can't allocate memory" in reply.text:
        return Status.OUT_OF_MEMORY
    return Status.ERROR


def _said(reply: Raised, what: str, trace: tuple[Frame, ...]) -> Message:
    kind, text = reply.kinds[0], reply.text or "(no message)"
    place = f"{trace[-1].file}, line {trace[-1].line}" if trace else what
    if kind in ("SyntaxError", "IndentationError", "TabError"):
        return _message("error.syntax", "Python cannot read {place}: {text}", place=place, text=text)
    if reply.stub:
        function = trace[-1].function if trace else what
        return _message("not-started", "{function} in {place} is not written yet.", function=function, place=place)
    if kind == "ModuleNotFoundError":
        return _message("error.import", "{place}: {text}. Only torch, numpy and Python's own library are there when "
                        "your work is graded.", place=place, text=text)  # fmt: skip
    return _message(
        "error.raised",
        "{what} raised {kind}: {text} ({place})",
        what=what,
        kind=kind,
        text=text,
        place=place,
    )


def _bad_state(text: str, what: str) -> Message:
    problem, _, rest = text.partition(" ")
    name, _, shapes = rest.partition(" ")
    if problem == "missing":
        return _message("parameters.missing", "{what} has no parameter {name}. The docstring fixes the names of the "
                        "layers, so that known weights can be put in.", what=what, name=name)  # fmt: skip
    if problem == "extra":
        return _message("parameters.extra", "{what} has a parameter {name} that the exercise does not ask for.",
                        what=what, name=name)  # fmt: skip
    if problem == "shape":
        own, _, wanted = shapes.partition(") ")
        return _message("parameters.shape", "The parameter {name} of {what} has shape {own}; it should be {wanted}.",
                        what=what, name=name, own=own + ")", wanted=wanted)  # fmt: skip
    return _message("parameters.not-a-module", "{what} is a {name}, not an nn.Module.", what=what, name=name)


def timeout(request: Request, seconds: float) -> Message:
    if isinstance(request, Import):
        return _message("timeout.import", "Importing {name}.py did not end within {seconds} seconds. Is there a loop or "
                        "a training run at the top level of the file?", name=request.name, seconds=seconds)  # fmt: skip
    return _message("timeout.call", "This call did not end within {seconds} seconds. Is there a loop that never ends?",
                    seconds=seconds)  # fmt: skip


def crashed(request: Request, ending: str) -> Message:
    during = f"importing {request.name}.py" if isinstance(request, Import) else "this call"
    return _message("crashed", "The Python process ended during {during} ({ending}).", during=during, ending=ending)


def broken_protocol(error: ProtocolError) -> Message:
    return _message("blocked.protocol", "The submission wrote to the channel that carries its answers: {error}.",
                    error=str(error))  # fmt: skip


def _message(identity: str, text: str, /, **params: str | int | float) -> Message:
    return Message(identity, text, dict(params))
