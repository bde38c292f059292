"""What graders hold: the same face over this process and over a real worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.course import Limits
from harness.oracle import Modules
from harness.outcome import Status, Stop, StudentError
from harness.worker import objects
from harness.worker.client import Check, Link, LocalLink, OracleError, Root, WorkerLink
from harness.worker.launch import SpawnLauncher

SOURCE = """
import torch
from torch import nn

MODE = "start"
LIMITS = {"low": 1, "high": [2, 3.5], "pair": (4, None)}


class Layer(nn.Module):
    kind = "layer"

    def __init__(self, width=3):
        super().__init__()
        self.width = width
        self.first = nn.Linear(width, 2)
        self.register_buffer("mask", torch.ones(2))

    def forward(self, x, scale=1.0):
        return self.first(x) * scale * self.mask

    def both(self, x):
        return x, {"sum": float(x.sum()), "layer": self, "shapes": [x.shape, tuple(x.shape)]}

    @property
    def broken(self):
        return self.nothing_of_the_kind


class Scored(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.idle = nn.Parameter(torch.zeros(1))
        self.frozen = nn.Parameter(torch.ones(1), requires_grad=False)

    def forward(self, x, loss=True):
        return x, (self.weight * self.weight * x).sum() if loss else None


def unwatched(layer, x):
    with torch.no_grad():
        layer.eval()(x)


def add_in_place(x):
    x += 1
    return x


def same(first, second):
    return first is second


def kind_of(value):
    return type(value).__name__


def fail(kind):
    raise {"value": ValueError("no 3"), "stub": NotImplementedError("later"), "exit": SystemExit(3)}[kind]


def make(name):
    return {"set": {1}, "lambda": lambda: 1, "huge": 2**70, "keys": {1: 2}, "loop": loop}[name]


loop = []
loop.append(loop)
"""


@pytest.fixture(scope="module", params=["local", "worker"])
def link(request: pytest.FixtureRequest) -> Iterator[Link]:
    if request.param == "local":
        yield LocalLink(objects.Objects(Modules({"work": SOURCE}, "here").load, Path("here")))
        return
    worker = WorkerLink(SpawnLauncher("process"), {"work.py": SOURCE.encode()}, Limits())
    yield worker
    worker.close()


@pytest.fixture
def check(link: Link) -> Check:
    made = Check(link, "t.t")
    made.begin(7)
    return made


@pytest.fixture
def work(check: Check) -> Any:
    return Root(check).work


def stopped(call: Callable[[], object]) -> Stop:
    with pytest.raises(Stop) as caught:
        call()
    return caught.value


def test_data_comes_as_data(work: Any) -> None:
    assert work.MODE == "start"
    assert work.LIMITS == {"low": 1, "high": [2, 3.5], "pair": (4, None)}
    layer = work.Layer()
    assert (layer.kind, layer.width) == ("layer", 3)
    assert layer.first.weight.shape == (2, 3)
    assert not layer.first.weight.requires_grad


def test_set_and_get(work: Any) -> None:
    layer = work.Layer()
    layer.width = 5
    assert layer.width == 5
    layer.mask = torch.tensor([1.0, 0.0])
    x = torch.ones(1, 3)
    assert layer(x)[0, 1] == 0
    layer.first = work.Layer(4).first  # a handle may be set as well
    assert layer.first.weight.shape == (2, 4)


def test_gradients_of_the_number_that_a_module_returns(work: Any) -> None:
    scored, x = work.Scored(), torch.tensor([3.0, 5.0])
    for _ in range(2):  # they are not added up
        found = scored.gradients(x)
        assert found["weight"].tolist() == [6.0, 20.0]
        assert found["idle"] is None and found["frozen"] is None
    assert scored.weight.grad is None
    no_loss = stopped(lambda: scored.gradients(x, loss=False))
    assert no_loss.status is Status.FAILED and "no single number" in str(no_loss)
    assert stopped(lambda: work.add_in_place.gradients(x)).status is Status.MISSING


def test_watching_how_a_module_is_called(work: Any) -> None:
    layer, x = work.Layer(), torch.ones(1, 3)
    layer(x)
    seen = layer.watch()
    assert seen.calls == []
    work.unwatched(layer, x)
    layer.train()
    layer(x)
    assert seen.calls == [(False, False), (True, True)]


def test_call_with_positional_and_named_arguments(work: Any) -> None:
    layer = work.Layer(width=3)
    x = torch.arange(3.0)[None]
    state = layer.first.state_dict()
    expected = x @ state["weight"].T + state["bias"]
    assert torch.allclose(layer(x), expected)
    assert torch.allclose(layer(x, scale=2.0), 2 * expected)
    assert torch.allclose(layer.forward(x, 2.0), 2 * expected)


def test_answers_within_answers(work: Any) -> None:
    layer = work.Layer()
    x = torch.ones(2, 3)
    first, more = layer.both(x)
    assert torch.equal(first, x)
    assert more["sum"] == 6.0
    assert more["shapes"] == [(2, 3), (2, 3)]
    assert work.same(more["layer"], layer) is True
    assert work.same([layer][0], work.Layer()) is False


def test_arguments_are_copies(work: Any) -> None:
    x = torch.zeros(2)
    assert torch.equal(work.add_in_place(x), torch.ones(2))
    assert torch.equal(x, torch.zeros(2))
    y = work.add_in_place(x)  # an answer may be handed back, and changed over there
    assert torch.equal(work.add_in_place(y), torch.full((2,), 2.0))
    assert torch.equal(y, torch.ones(2))
    with pytest.raises(RuntimeError):
        y += 1


@pytest.mark.parametrize(
    ("value", "kind"),
    [((1, 2), "tuple"), ([1], "list"), ({"a": 1}, "dict"), (torch.float64, "dtype"), (None, "NoneType")],
)
def test_arguments_keep_their_type(work: Any, value: object, kind: str) -> None:
    assert work.kind_of(value) == kind


def test_train_eval_and_to(work: Any) -> None:
    layer = work.Layer()
    layer.eval()
    assert layer.training is False
    layer.train()
    assert layer.training is True
    layer.to(torch.float64)
    assert layer.first.weight.dtype is torch.float64
    assert layer(torch.ones(1, 3, dtype=torch.float64)).dtype is torch.float64


def test_load_state_dict_copies_parameters_and_leaves_extra_buffers(work: Any) -> None:
    layer = work.Layer()
    layer.mask = torch.tensor([3.0, 4.0])
    state = {"first.weight": torch.ones(2, 3), "first.bias": torch.zeros(2)}
    layer.load_state_dict(state)
    assert torch.equal(layer(torch.ones(1, 3)), torch.tensor([[9.0, 12.0]]))
    layer.load_state_dict({**state, "mask": torch.ones(2)})
    assert torch.equal(layer.mask, torch.ones(2))
    layer.to(torch.float64)
    layer.load_state_dict(state)
    assert layer.first.weight.dtype is torch.float64


@pytest.mark.parametrize(
    ("state", "id", "text"),
    [
        ({"first.weight": (2, 3)}, "parameters.extra", "first.bias"),
        ({"first.weight": (2, 3), "first.bias": (2,), "second": (1,)}, "parameters.missing", "second"),
        ({"first.weight": (2, 4), "first.bias": (2,)}, "parameters.shape", "has shape (2, 3); it should be (2, 4)"),
        ({"one.weight": (2, 3), "first.bias": (2,)}, "parameters.missing", "one.weight"),
        ({"first.weight": (), "first.bias": (2,)}, "parameters.shape", "has shape (2, 3); it should be ()"),
    ],
)
def test_a_state_that_does_not_fit(work: Any, state: dict[str, tuple[int, ...]], id: str, text: str) -> None:
    layer = work.Layer()
    before = layer.first.weight
    stop = stopped(lambda: layer.load_state_dict({name: torch.zeros(shape) for name, shape in state.items()}))
    assert (stop.status, stop.message.id) == (Status.MISSING, id)
    assert text in stop.message.render()
    assert torch.equal(layer.first.weight, before)  # nothing was half loaded


def test_a_state_for_what_is_no_module(work: Any) -> None:
    stop = stopped(lambda: work.add_in_place.load_state_dict({}))
    assert stop.message.id == "parameters.not-a-module"


def test_what_is_missing_is_named(check: Check, work: Any) -> None:
    stop = stopped(lambda: Root(check).absent)
    assert (stop.status, stop.message.render()) == (Status.MISSING, "There is no absent.py in this submission.")
    stop = stopped(lambda: work.Layer.nothing)
    assert stop.status is Status.MISSING
    assert stop.message.render().startswith("Layer has no nothing.")
    stop = stopped(lambda: work.Layer().broken)  # a property that fails inside is an error, not a missing name
    assert isinstance(stop, StudentError)
    assert stop.kinds[0] == "AttributeError"


def test_what_is_raised_comes_with_its_classes_and_place(work: Any) -> None:
    stop = stopped(lambda: work.fail("value"))
    assert isinstance(stop, StudentError)
    assert (stop.status, stop.said) == (Status.ERROR, "no 3")
    assert stop.kinds[:2] == ("ValueError", "Exception")
    (frame,) = stop.trace
    assert (frame.file, frame.function) == ("work.py", "fail")
    assert SOURCE.splitlines()[frame.line - 1].strip() == frame.source
    assert stopped(lambda: work.fail("stub")).status is Status.NOT_STARTED
    assert stopped(lambda: work.fail("exit")).status is Status.ERROR
    assert work.MODE == "start"  # and the worker goes on


@pytest.mark.parametrize("name", ["huge", "keys", "loop"])
def test_an_answer_that_cannot_be_sent_is_a_wrong_answer_or_an_error(work: Any, name: str) -> None:
    assert stopped(lambda: work.make(name)).status in (Status.FAILED, Status.ERROR)
    assert work.MODE == "start"


def test_what_is_no_data_is_a_handle(work: Any) -> None:
    assert work.make("lambda")() == 1
    assert work.kind_of(work.make("set")) == "set"


def test_handles_of_another_check_or_side_are_refused(check: Check, link: Link, work: Any) -> None:
    other = Check(LocalLink(objects.Objects(Modules({"work": SOURCE}, "there").load)), "t.t")
    other.begin(7)
    theirs = Root(other).work.Layer()
    for value in (theirs, [theirs], {"a": (theirs,)}):
        with pytest.raises(ValueError, match="belongs to another check"):
            work.kind_of(value)
    with pytest.raises(ValueError, match="belongs to another check"):
        work.Layer().first = theirs
    again = Check(link, "t.u")
    mine = work.Layer()
    again.begin(7)
    with pytest.raises(ValueError, match="belongs to another check"):
        Root(again).work.kind_of(mine)


def test_each_check_starts_from_the_same_seed_and_settings(link: Link) -> None:
    def first_weights(seed: int) -> torch.Tensor:
        made = Check(link, "t.t")
        made.begin(seed)
        return Root(made).work.Layer().first.weight  # type: ignore[no-any-return]

    one = first_weights(1)
    assert not torch.equal(first_weights(2), one)
    assert torch.equal(first_weights(1), one)


def test_what_stops_the_oracle_is_not_the_students_fault() -> None:
    made = Check(LocalLink(objects.Objects(Modules({"work": SOURCE}, "there").load)), "t.t", oracle=True)
    made.begin(1)
    for call in (lambda: Root(made).absent, lambda: Root(made).work.absent, lambda: Root(made).work.fail("value")):
        with pytest.raises(OracleError):
            call()
