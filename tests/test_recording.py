"""The recording in a student's bundle: plain safetensors, every tensor once, and all else exactly as it was."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import given, settings
from safetensors import safe_open
from safetensors.torch import load, load_file, save_file

from harness.authoring import recording, trees
from harness.authoring.recording import FILE, Contents, Mistake, Recorded
from harness.authoring.trees import Tensors
from harness.observe import alike, keep, kept
from harness.oracle import Modules, Recording, RecordingLink, ReferenceLink
from harness.outcome import Message, Status
from harness.problem import Problem
from harness.worker import protocol
from harness.worker.client import Check, Handle
from harness.worker.protocol import pack
from tests.test_oracle import SOURCE, ask
from tests.test_protocol import values

VALUE = {"type": "Value", "id": 1}
FAILED = {"status": "failed", "message": {"id": "m", "text": "off"}, "raised": None}
WEIGHTS = torch.arange(6.0).reshape(2, 3)


def tree_of(value: object, tensors: Tensors) -> trees.Tree:
    return trees.to_tree(bytes(pack(value)), lambda body: tensors.name(body, "t"))


def raw(tree: trees.Tree) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(tree))


# Values as JSON


def test_what_json_has_stays_readable() -> None:
    tensors = Tensors()
    value = {"layer": [1, 2.0, None, True, "x"], "weight": WEIGHTS, "shape": (2, 3), "dtype": torch.float16}
    assert tree_of(value, tensors) == {
        "layer": [1, 2.0, None, True, "x"],
        "weight": {"$tensor": "t/0"},
        "shape": {"$tuple": [2, 3]},
        "dtype": {"$dtype": "float16"},
    }
    assert torch.equal(tensors.by_name["t/0"], WEIGHTS)


@given(values)
@settings(max_examples=300, deadline=None)
def test_every_value_comes_back_from_json_with_the_same_bytes(value: object) -> None:
    data, tensors = bytes(pack(value)), Tensors()
    text = msgspec.json.encode(trees.to_tree(data, lambda body: tensors.name(body, "t")))
    json.loads(text, parse_constant=pytest.fail)  # JSON has no NaN
    assert trees.from_tree(msgspec.json.decode(text), lambda name: pack(tensors.by_name[name])) == data


NAN = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]


@pytest.mark.parametrize(
    "value",
    [
        float("inf"), -float("inf"), NAN, -0.0, 1.0, 1, 5e-324, 2**63 - 1, -(2**63), True, "", "\0\"\\ é\u2028",
        (), [], {}, ((),), {"$tensor": "t/0"}, {"$dict": {"$float": 1}}, {"$": (1,)}, {"$a": 1, "b": 2}, {"": {"": []}},
        torch.tensor(NAN, dtype=torch.float64), torch.zeros(0, 3), protocol.Ref(3, "GPT"),
    ],
    ids=repr,
)  # fmt: skip
def test_values_that_are_easily_lost(value: object) -> None:
    data, tensors = bytes(pack(value)), Tensors()
    text = msgspec.json.encode(trees.to_tree(data, lambda body: tensors.name(body, "t")))
    assert trees.from_tree(msgspec.json.decode(text), lambda name: pack(tensors.by_name[name])) == data


@pytest.mark.parametrize(
    "tree",
    [{"$tensor": "none"}, {"$tensor": ["t"]}, {"$new": 1}, {"$dtype": 1}, {"$float": "zz"}, {"$float": "00"},
     {"$dict": []}, {"$dict": 1}, [{"$tuple": {"$new": 1}}], {"$float": 1.5}],
    ids=repr,
)  # fmt: skip
def test_what_is_no_tree_is_refused(tree: trees.Tree) -> None:
    with pytest.raises(protocol.ProtocolError, match="malformed tree"):
        trees.from_tree(tree, {"t": pack(1)}.__getitem__)


# The file


def small() -> tuple[Contents, Tensors]:
    """Two tapes of a reference, and a mistake that saw one of its tensors and something that is not data."""
    tensors, tapes = Tensors(), Recording(5)
    link = RecordingLink(ReferenceLink(Modules({"work": SOURCE}, "there")), tapes)
    for name in ("t.one", "t.two"):
        ask(link, name, 3)
    trees_of = {
        check: [[recording._tree(part, tensors, check) for part in round] for round in tape]
        for check, tape in tapes.tapes.items()
    }
    seen = {
        "status": "failed",
        "message": {"id": "m", "text": "off by {by}", "params": {"by": float("inf")}},
        "raised": None,
        "values": [[tensors.by_name["t.one/0"]], []],
    }
    mistake = Mistake("t.wrong", "t", "A hint.", {"t.one": raw(tree_of(seen, tensors))})
    return Contents(5, {check: raw(tree) for check, tree in trees_of.items()}, [mistake]), tensors


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / FILE
    path.parent.mkdir()
    path.write_bytes(recording.to_bytes(*small()))
    return path


def opened(file: Path) -> Recorded:
    found = recording.read(file.parents[1])
    assert found is not None
    return found


def test_any_reader_of_safetensors_opens_it(file: Path) -> None:
    tensors = load_file(file)
    assert list(tensors) == ["t.one/0", "t.one/1", "t.two/0", "t.two/1"]
    assert torch.equal(tensors["t.one/1"], 2 * tensors["t.one/0"])
    with safe_open(file, framework="numpy") as there:
        assert json.loads(there.metadata()["recording"])["seed"] == 5
        assert there.get_tensor("t.two/0").shape == (3,)


def test_it_answers_and_shows_mistakes_as_before(file: Path) -> None:
    recorded = opened(file)
    link = recording.RecordedLink(recorded)
    assert recorded.reference.tapes == {}  # nothing was read that nobody asked for
    for check in ("t.two", "t.one"):
        assert torch.equal(ask(link, check, 3), load_file(file)[f"{check}/1"])
    with pytest.raises(LookupError, match="something else"):
        ask(link, "t.one", 4)
    with pytest.raises(LookupError, match="holds nothing"):
        ask(link, "t.three", 3)
    footprint = recorded.footprint(0, "t.one")
    assert footprint.ended is not None and footprint.ended.status is Status.FAILED
    assert footprint.ended.message == Message("m", "off by {by}", {"by": float("inf")})
    one, nothing = footprint.seen
    assert alike(one, load_file(file)["t.one/0"]) and not alike(nothing, kept(b""))
    assert recorded.footprint(0, "t.two").ended is None


def test_of_what_a_check_saw_handles_are_kept_as_handles() -> None:
    """A check may look at a list of the student's objects: it is as alike to a recorded one as to a live one."""
    link = ReferenceLink(Modules({"work": SOURCE}, "there"))
    one, other = (Handle(Check(link, "t.one"), number, "poems[0]") for number in (1, 2))
    for seen in (one, ([one, other], [one]), {"first": one, "weights": WEIGHTS}, (1, "a", WEIGHTS)):
        assert alike(seen, seen) and alike(seen, kept(keep(seen)))
    assert not alike([one, other], kept(keep([one]))) and not alike([one, 1], kept(keep([one, one])))
    assert not alike({"first": one}, kept(keep({"second": one})))
    assert not alike({1, 2}, kept(keep({1, 2})))  # no data of a worker's


def test_the_same_recording_has_the_same_bytes() -> None:
    assert recording.to_bytes(*small()) == recording.to_bytes(*small())


@pytest.mark.parametrize("dtype", sorted(recording._DTYPES, key=str), ids=str)
def test_a_tensor_of_every_dtype_is_read_back(dtype: torch.dtype, tmp_path: Path) -> None:
    tensors, path = Tensors(), tmp_path / "one.safetensors"
    for tensor in (torch.arange(6).reshape(2, 3).to(dtype), torch.ones((), dtype=dtype), torch.ones(0, 2, dtype=dtype)):
        tree_of(tensor, tensors)
    path.write_bytes(recording.to_bytes(Contents(0, {}, []), tensors))
    there = Recorded(path)
    assert all(bytes(pack(there.tensor(name))) == bytes(pack(it)) for name, it in tensors.by_name.items())


def test_tensors_that_differ_in_dtype_shape_or_one_bit_are_kept_apart() -> None:
    tensors = Tensors()
    zero = torch.zeros(2, 2)
    nan = torch.tensor([NAN, float("nan")], dtype=torch.float64)
    several = [zero, zero.clone(), zero.T, zero.to(torch.int32), zero.reshape(4), -zero, nan, nan.flip(0)]
    names = [tree_of(tensor, tensors)["$tensor"] for tensor in several]
    assert names == ["t/0", "t/0", "t/0", "t/1", "t/2", "t/3", "t/4", "t/5"]
    there = load(recording.to_bytes(Contents(0, {}, []), tensors))
    assert torch.equal(there["t/4"].view(torch.int64), nan.view(torch.int64))


@pytest.mark.parametrize("dtype", protocol._DTYPES.values(), ids=str)
def test_a_dtype_is_kept_or_refused(dtype: torch.dtype) -> None:
    tensors = Tensors()
    tree_of(torch.ones(2, dtype=dtype), tensors)
    if dtype.is_complex:
        with pytest.raises(Problem, match=rf"cannot hold the {dtype} tensor of t/0"):
            recording.to_bytes(Contents(0, {}, []), tensors)
    else:
        there = load(recording.to_bytes(Contents(0, {}, []), tensors))
        assert there["t/0"].dtype is dtype and there["t/0"].tolist() == [1, 1]


def test_a_header_that_no_reader_takes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    contents, tensors = small()
    size = int.from_bytes(recording.to_bytes(contents, tensors)[:8], "little")
    monkeypatch.setattr(recording, "MAX_HEADER", size)
    recording.to_bytes(contents, tensors)
    monkeypatch.setattr(recording, "MAX_HEADER", size - 1)
    with pytest.raises(Problem, match="Beside its tensors"):
        recording.to_bytes(contents, tensors)


def rewritten(file: Path, change: dict[str, Any]) -> None:
    """Write the file again with other metadata."""
    with safe_open(file, framework="pt") as there:
        contents = json.loads(there.metadata()["recording"])
    tensors = Tensors()
    tensors.by_name = load_file(file)
    changed = msgspec.json.decode(msgspec.json.encode(contents | change), type=Contents)
    file.write_bytes(recording.to_bytes(changed, tensors))


def test_a_damaged_file_is_told(file: Path) -> None:
    whole = file.read_bytes()
    damages = [
        whole[:-1],
        whole + b"\0",
        b"",
        whole[:100],
        b"\xff" * 8 + whole[8:],
        whole.replace(b'\\"seed', b'\\"sead'),
    ]
    for damage in damages:
        file.write_bytes(damage)
        with pytest.raises(Problem, match=r"course\.safetensors is damaged"):
            opened(file)
    some = range(0, len(whole), 7)
    for place in some:  # one bit, in the header, the texts or the numbers
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(Problem, match=r"course\.safetensors is damaged"):
            opened(file)
    save_file({"a": WEIGHTS}, file)
    with pytest.raises(Problem, match="is damaged"):
        opened(file)
    file.unlink()
    assert recording.read(file.parents[1]) is None


@pytest.mark.parametrize(
    "tree",
    [[[{"$tensor": "gone"}, 1]], [[{"$new": 1}, 1]], [[1]], 5, [[1, 2]], [[1, VALUE | {"value": {"$dtype": "int99"}}]]],
    ids=repr,
)
def test_damage_within_a_check_is_told_when_it_is_read(file: Path, tree: trees.Tree) -> None:
    rewritten(file, {"tapes": {"t.one": tree}})
    with pytest.raises(Problem, match="is damaged"):
        opened(file).load("t.one")


@pytest.mark.parametrize(
    "tree",
    [{"values": [[{"$tensor": "gone"}]]}, {"status": "unheard"}, 5, {}, FAILED | {"values": [[{"$dtype": "int99"}]]}],
    ids=repr,
)
def test_damage_within_a_mistake_is_told_when_it_is_read(file: Path, tree: trees.Tree) -> None:
    rewritten(file, {"mistakes": [{"id": "a", "exercise": "t", "hint": "", "checks": {"t.one": tree}}]})
    with pytest.raises(Problem, match="is damaged"):
        opened(file).footprint(0, "t.one")
