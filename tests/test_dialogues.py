"""A check that need not run, because it was answered as one that passed, says what it would have said."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.course import read_course
from harness.dialogues import Dialogues, digest_of
from harness.judge import JudgeProcess, Order
from harness.outcome import Message, Status, Stop
from harness.report import Report
from harness.worker import protocol
from harness.worker.protocol import Begin, Get, Reply, Request, Value
from tests.support.command import ROOT, Command

ASKED: tuple[Request, ...] = (Begin(1, "toy.adds", 7), Get(2, 0, "a"), Get(3, 0, "b"))


def reply(number: int, value: object) -> bytes:
    return protocol.encode_reply(Value(number, protocol.pack(value)))


def said(*values: object) -> list[tuple[bytes, bytes]]:
    """A dialogue in which the questions of `ASKED` were answered by these values."""
    return [
        (protocol.encode_request(request), digest_of(reply(request.id, value)))
        for request, value in zip(ASKED, values, strict=False)
    ]


class Student:
    """A worker's link that answers from a list, and notes what it is asked."""

    confined = True

    def __init__(self, *values: object) -> None:
        self.values, self.asked = values, list[Request]()

    def exchange(self, request: Request, frame: bytes) -> bytes:
        assert frame == protocol.encode_request(request)
        self.asked.append(request)
        value = self.values[request.id - 1]
        if isinstance(value, Exception):
            raise value
        return reply(request.id, value)

    def read(self, request: Request, body: bytes) -> Reply:
        return protocol.decode_reply(body)


def listen(dialogues: Dialogues, student: Student, seed: int = 7):
    return dialogues.listen(student, "toy.adds", seed)  # type: ignore[arg-type]


def test_the_same_answers_pass_and_are_asked_for_once() -> None:
    dialogues, student = Dialogues(), Student(None, 1, 2)
    dialogues.add("toy.adds", 7, said(None, 1, 2))
    assert listen(dialogues, student).rehearse()
    assert student.asked == list(ASKED)


@pytest.mark.parametrize("seed", [7, 8])
def test_at_another_answer_the_check_goes_on_by_itself(seed: int) -> None:
    dialogues, student = Dialogues(), Student(None, 5, 2)
    dialogues.add("toy.adds", 7, said(None, 1, 2))
    listener = listen(dialogues, student, seed)
    assert not listener.rehearse()
    assert student.asked == (list(ASKED[:2]) if seed == 7 else [])  # what follows another answer is not known
    assert [listener.perform(request).data for request in ASKED] == [None, 5, 2]  # type: ignore[union-attr]
    assert student.asked == list(ASKED) and listener.said == said(None, 5, 2)
    dialogues.add("toy.adds", 7, listener.said)
    assert listen(dialogues, Student(None, 5, 2)).rehearse() and listen(dialogues, Student(None, 1, 2)).rehearse()


@pytest.mark.parametrize(
    "stop", [Stop(Status.TIMEOUT, Message("timeout", "too long", {})), OSError("no space left"), RuntimeError("gone")]
)
def test_what_stops_the_rehearsal_stops_the_check(stop: Exception) -> None:
    dialogues = Dialogues()
    dialogues.add("toy.adds", 7, said(None, 1, 2))
    listener = listen(dialogues, Student(None, stop, 2))
    assert not listener.rehearse()
    listener.perform(ASKED[0])
    with pytest.raises(type(stop)) as caught:
        listener.perform(ASKED[1])
    assert caught.value is stop


@pytest.mark.parametrize("ahead", [True, False])
def test_what_was_not_answered_is_no_dialogue(ahead: bool) -> None:
    dialogues, stop = Dialogues(), Stop(Status.TIMEOUT, Message("timeout", "too long", {}))
    if ahead:
        dialogues.add("toy.adds", 7, said(None, 1, 2))
    listener = listen(dialogues, Student(None, stop, 2))
    listener.rehearse()
    for request in ASKED:
        with contextlib.suppress(Stop):  # a check that goes on all the same
            listener.perform(request)
    dialogues.add("toy.adds", 7, listener.said)
    for other in (Student(None, stop, 2), Student(None, 2, 2)):
        assert not listen(dialogues, other).rehearse()


def test_a_check_that_is_no_function_of_its_answers_is_found_out() -> None:
    dialogues = Dialogues()
    dialogues.add("toy.adds", 7, said(None, 1, 2))
    listener = listen(dialogues, Student(None, 5, 2))
    listener.rehearse()
    with pytest.raises(RuntimeError, match="asked something else"):
        listener.perform(ASKED[1])


def test_only_so_many_are_kept() -> None:
    dialogues = Dialogues()
    for number in range(200):
        dialogues.add("toy.adds", 7, said(None, number, 2))
    known = [number for number in range(200) if listen(dialogues, Student(None, number, 2)).rehearse()]
    assert known == list(range(64))


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3)), st.lists(st.integers(0, 2), min_size=3, max_size=3)
)
def test_exactly_what_was_heard_is_known(heard: Sequence[Sequence[int]], other: Sequence[int]) -> None:
    dialogues = Dialogues()
    for values in heard:
        dialogues.add("toy.adds", 7, said(*values))
    assert listen(dialogues, Student(*other)).rehearse() is (list(other) in [list(values) for values in heard])


RIGHT = (ROOT / "reference" / "gpt.py").read_text(encoding="utf-8")
FORWARD = "        q, k, v = map(self.split_heads"
ABOVE = """import os, time
CALLS = []
class Loud:
    def __del__(self):
        print('loud ' * 3000)  # when the next check begins
"""


def changed(line: str) -> str:
    """The reference, with a line ahead of its attention's forward."""
    assert FORWARD in RIGHT
    return ABOVE + RIGHT.replace(FORWARD, f"        {line}\n{FORWARD}")


CLASS = {
    "right": RIGHT,
    "prints": changed("print('looking at', tuple(x.shape))"),
    "prints-when-forgotten": changed("self.last = getattr(self, 'last', None) or Loud()"),
    "rounds": RIGHT.replace("self.qkv(x).chunk", "(self.qkv(x) * 3 / 3).chunk"),
    "rounds-again": RIGHT.replace("self.qkv(x).chunk", "(self.qkv(x) * 3 / 3).chunk") + "\n",
    "wrong": RIGHT.replace("/ D**0.5", "/ D"),
    "tires": changed("CALLS.append(x); x = x * (len(CALLS) < 20)"),
    "raises": changed("assert x.shape[1] < 9, 'too long'"),
    "leaves": changed("x.shape[1] < 9 or os._exit(3)"),
    "hangs": changed("x.shape[1] < 9 or time.sleep(3600)"),
    "right-again": RIGHT + "\n",
}


def test_a_class_is_judged_as_each_alone(command: Command, tmp_path: Path) -> None:
    """In one warm process, one after the other, and by `grade`, which knows no dialogues."""
    course = read_course()
    limits = msgspec.structs.replace(course.limits, call_seconds=2.0)
    judge = JudgeProcess(root=ROOT)
    files = sorted({name for exercise in course.exercise for name in exercise.files})
    rest = {name: (ROOT / "reference" / name).read_bytes() for name in files if (ROOT / "reference" / name).exists()}
    try:
        for name, text in CLASS.items():
            assert name.startswith("right") or text != RIGHT
            order = Order(name=name, files={**rest, "gpt.py": text.encode()}, exercises=["heads"], seed=course.seed,
                          limits=limits)  # fmt: skip
            warm = judge.grade(order)
            (tmp_path / name).mkdir()
            for file, content in order.files.items():
                (tmp_path / name / file).write_bytes(content)
            command.run("grade", tmp_path / name, "--exercise", "heads", "--isolation", "process", "--json",
                        tmp_path / "alone.json", "--limit", "call_seconds=2")  # fmt: skip
            alone = msgspec.json.decode((tmp_path / "alone.json").read_bytes(), type=Report)
            assert told(warm) == told(alone), name
            everything = all(check.status is Status.PASSED for check in warm.exercises[0].checks)
            assert everything is (name.partition("-")[0] in ("right", "prints", "rounds")), name
            if name == "prints":
                assert "looking at (" in "".join(check.output for check in warm.exercises[0].checks)
    finally:
        judge.close()


def told(report: Report) -> list[object]:
    """A report's checks but for their times."""
    checks = [msgspec.to_builtins(check) for exercise in report.exercises for check in exercise.checks]
    return [check.pop("seconds") is None or check for check in checks]
