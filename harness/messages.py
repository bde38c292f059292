"""Every sentence that the engine says to a student, by id. Checks bring their own titles and hints.

Ids are what reports store and translations key on: a sentence may be reworded, its id stays.
"""

from __future__ import annotations

from harness.outcome import Message, Scalar

ENGLISH = {
    # What stopped a check.
    "not-started": "{function} in {place} is not written yet.",
    "missing.module": "There is no {file} in this submission.",
    "missing.name": "{owner} has no {name}. Was it renamed or deleted? The graders look for this name.",
    "parameters.missing": "{what} has no parameter {name}. The docstring fixes the names of the layers, so that known "
    "weights can be put in.",
    "parameters.extra": "{what} has a parameter {name} that the exercise does not ask for.",
    "parameters.shape": "The parameter {name} of {what} has shape {own}; it should be {wanted}.",
    "parameters.not-a-module": "{what} is a {name}, not an nn.Module.",
    "error.syntax": "Python cannot read {place}: {text}",
    "error.import": "{place}: {text}. Only torch, numpy and Python's own library are there when your work is graded.",
    "error.raised": "{what} raised {kind}: {text} ({place})",
    "timeout.import": "Importing {name}.py did not end within {seconds} seconds. Is there a loop or a training run at "
    "the top level of the file?",
    "timeout.call": "This call did not end within {seconds} seconds. Is there a loop that never ends?",
    "timeout.submission": "This submission used up its {seconds} seconds of computing time.",
    "blocked.scratch": "The code wrote more than {mebibytes} MiB or {files} files.",
    "crashed": "The Python process ended during {during} ({ending}).",
    "blocked.protocol": "The submission wrote to the channel that carries its answers: {error}.",
    "answer.not-data": "{what} returned {got}, which cannot be compared with the expected value.",
    "check.assertion": "{text}",
    "grader-error": "This check broke down ({kind}). That is the grader's fault, not yours; it costs no points.",
    "grader-error.lost": "This check did not run to its end. That is the grader's fault, not yours; it costs you "
    "nothing.",
    # What a comparison saw.
    "expect.tensor": "{what} should be a tensor; it is {actual}.",
    "expect.real": "{what} should hold real numbers; its dtype is {actual}.",
    "expect.shape": "{what} has shape {actual}; it should be {expected}.",
    "expect.finite": "{what} contains {actual} at {where}.",
    "expect.dtype": "{what} has dtype {actual}; it should be {expected}.",
    "expect.close": "{what} differs from the expected values, first at {where}.",
    "expect.number": "{what} should be a number; it is {actual}.",
    "expect.real-number": "{what} should be a finite number; it is {actual}.",
    "expect.handle": "{what} should be an object to work with; it is {actual}.",
    "expect.items": "{what} should be {expected}; it is {actual}.",
    "expect.number-close": "{what} is {actual}; it should be {expected}.",
    "expect.equal": "{what} is {actual}; it should be {expected}.",
    "expect.same": "{what} should not change here, but it does, first at {where}.",
    "expect.varies": "{what} should change here, but it stays the same.",
    "expect.raises": "{what} should raise {expected}; it returned {actual}.",
    "expect.raises-kind": "{what} should raise {expected}; it raised {actual}.",
    "expect.raises-text": "The {kind} of {what} should name the numbers concerned: {expected}.",
    # What is odd about the files.
    "submission.nothing": "None of the files of this course is here: {files}.",
    "submission.folder": "{file} is a folder; it should be a file.",
    "submission.link": "{file} is a link; links are not followed.",
    "submission.encoding": "{file} is not saved as UTF-8 text ({problem}). Open it in your editor and save it with the "
    "encoding UTF-8.",
}


def message(identity: str, /, **params: Scalar) -> Message:
    """The sentence of that id, to be filled in with `params`.

    Raises:
        KeyError: there is no such id.
    """
    return Message(identity, ENGLISH[identity], dict(params))
