"""The codec between judge and worker: every kind of value comes back the same, and no bytes whatever do harm."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
from collections import OrderedDict, namedtuple
from typing import Any

import msgspec
import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.worker import protocol, survey
from harness.worker.protocol import MAX_DEPTH, MAX_ITEMS, ProtocolError, Raised, Ref, Value, pack, unpack
from tests.support.command import ROOT

DTYPES = list(protocol._DTYPES.values())


def bits(tensor: torch.Tensor) -> list[int]:
    dense = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)
    return dense.reshape(-1).view(torch.uint8).tolist() if dense.numel() else []


def same(first: Any, second: Any) -> bool:
    """Equal in value and type, NaN equal to itself, tensors by dtype, shape and bits."""
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return (first.dtype, first.shape, bits(first)) == (second.dtype, second.shape, bits(second))
    if type(first) is not type(second):
        return False
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, float):
        return (first == second and math.copysign(1, first) == math.copysign(1, second)) or first != first != second
    return bool(first == second)


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    """Any dtype; 0-dim, empty, non-contiguous and expanded ones among them; any bits, NaN and infinity too."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    count = math.prod(shape)
    size = torch.empty(0, dtype=dtype).element_size()
    if dtype is torch.bool:
        flat = torch.tensor(draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=dtype)
    else:
        data = draw(st.binary(min_size=count * size, max_size=count * size))
        flat = torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)
    value = flat.view(shape)
    match draw(st.sampled_from(["plain", "transposed", "expanded", "step"])):
        case "transposed" if value.dim() > 1:
            return value.transpose(0, -1)
        case "expanded":
            return value.unsqueeze(0).expand(3, *value.shape)
        case "step" if value.dim() > 0:
            return value[::2]
    return value


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(DTYPES)
    | st.builds(Ref, st.integers(0, 2**40), st.text(max_size=5))
)
values = st.recursive(
    scalars | tensors(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
@settings(max_examples=200, deadline=None)
def test_a_value_comes_back_the_same(value: object) -> None:
    assert same(value, unpack(pack(value)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)], ids=str)
def test_every_dtype_and_shape(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    value = (torch.arange(math.prod(shape)) % 2).to(dtype).view(shape)
    assert same(value, unpack(pack(value)))


def test_tensors_that_are_views_conjugates_or_need_gradients() -> None:
    z = torch.tensor([[1 + 2j, 3 - 1j]])
    assert same(unpack(pack(z.conj())), z.conj().resolve_conj())
    assert same(unpack(pack(z.imag)), z.imag.clone())
    x = torch.ones(2, 3, requires_grad=True)
    assert same(unpack(pack(x * 2)), torch.full((2, 3), 2.0))
    assert same(unpack(pack(torch.nn.Parameter(torch.zeros(2)))), torch.zeros(2))
    assert same(unpack(pack(torch.eye(3).to_sparse())), torch.eye(3))


def test_near_relatives_of_plain_values_become_plain() -> None:
    pair = namedtuple("pair", "a b")
    assert same(unpack(pack(pair(1, 2.0))), (1, 2.0))
    assert same(unpack(pack(OrderedDict(a=1))), {"a": 1})
    assert same(unpack(pack(numpy.float64(0.5))), 0.5)
    assert same(unpack(pack("a\ud800b")), "a?b")  # a lone surrogate has no UTF-8 form
    assert same(unpack(pack({"\ud800": "x"})), {"?": "x"})
    assert len(unpack(pack("é" * 2_000_000))) == survey.MAX_TEXT


def nested(depth: int, kind: type) -> object:
    value: object = kind()
    for _ in range(depth):
        value = {"a": value} if kind is dict else kind([value])
    return value


@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_both_sides_allow_the_same_nesting(kind: type) -> None:
    assert same(unpack(pack(nested(MAX_DEPTH, kind))), nested(MAX_DEPTH, kind))
    with pytest.raises(ProtocolError, match="nesting"):
        pack(nested(MAX_DEPTH + 1, kind))


def test_both_sides_allow_the_same_number_of_items() -> None:
    assert len(unpack(pack([0] * MAX_ITEMS))) == MAX_ITEMS
    assert len(unpack(pack((0,) * MAX_ITEMS))) == MAX_ITEMS
    for value in ([0] * (MAX_ITEMS + 1), ([0] * MAX_ITEMS, [0])):
        with pytest.raises(ProtocolError, match="items"):
            pack(value)


@pytest.mark.filterwarnings("ignore:.*quantized tensor creation:UserWarning")
def test_what_cannot_be_sent_is_named() -> None:
    loop: list[object] = []
    loop.append(loop)
    for value, words in (
        (2**63, "64 bits"),
        ({1: 2}, "keys"),
        (object(), "object"),
        ({1, 2}, "set"),
        (loop, "nesting"),
        (torch.zeros(2, device="meta"), "meta"),
        (torch.zeros(3 * 2**20), "12 MiB"),
        (torch.zeros(1).expand(2**40), "MiB"),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), "quint8"),
    ):
        with pytest.raises(ProtocolError, match=words):
            pack(value)


@pytest.mark.parametrize("shape", [(), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int64], ids=str)
def test_an_in_place_change_of_an_answer_raises(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    answer = unpack(pack(torch.ones(shape, dtype=dtype)))
    for change in (answer.zero_, lambda: answer.copy_(answer), lambda: answer.view(-1).zero_()):
        with pytest.raises(RuntimeError, match=r"[Ii]nplace|inference"):
            change()
    with pytest.raises(RuntimeError):
        answer[...] = 0
    assert bool((answer.clone().zero_() == 0).all())  # a copy of one's own may be changed


# Bytes that no honest worker sends.


def only_protocol_error(decode: Any, data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode(data)


@given(st.binary(max_size=200))
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_a_value_or_a_protocol_error(data: bytes) -> None:
    only_protocol_error(unpack, data)
    only_protocol_error(protocol.decode_reply, data)


@given(values, st.data())
@settings(max_examples=300, deadline=None)
def test_a_mutated_frame_is_a_value_or_a_protocol_error(value: object, data: st.DataObject) -> None:
    frame = bytearray(protocol.encode_reply(Value(1, pack(value))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(frame) - 1))
        match data.draw(st.sampled_from(["set", "cut", "insert"])):
            case "set":
                frame[at] = data.draw(st.integers(0, 255))
            case "cut":
                del frame[max(1, at) :]
            case "insert":
                frame[at:at] = data.draw(st.binary(min_size=1, max_size=4))

    def decode(body: bytes) -> None:
        reply = protocol.decode_reply(body)
        if isinstance(reply, Value):
            unpack(reply.value)

    only_protocol_error(decode, bytes(frame))


@given(values)
@settings(max_examples=40, deadline=None)
def test_every_truncation_is_refused(value: object) -> None:
    raw = bytes(pack(value))
    for end in range(len(raw)):
        with pytest.raises(ProtocolError):
            unpack(raw[:end])
    with pytest.raises(ProtocolError):
        unpack(raw + b"\xc0")


json_like = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
)


@given(json_like)
@settings(deadline=None)
def test_the_survey_agrees_with_msgspec_on_what_one_value_is(value: object) -> None:
    data = msgspec.msgpack.encode(value)

    def items(part: object) -> int:
        if isinstance(part, dict):
            return len(part) + sum(map(items, part.values()))
        return len(part) + sum(map(items, part)) if isinstance(part, list) else 0

    assert survey.count_items(data) == items(value)
    with pytest.raises(survey.BadValue):
        survey.count_items(data[:-1])
    with pytest.raises(survey.BadValue):
        survey.count_items(data + b"\x00")


def tensor_bytes(dtype: object, shape: object, data: object) -> bytes:
    body = msgspec.msgpack.encode((dtype, shape, data))
    return msgspec.msgpack.encode(msgspec.msgpack.Ext(protocol.TENSOR, body))


@pytest.mark.parametrize(
    "raw",
    [
        tensor_bytes("float32", [2], b"\0" * 7),  # bytes that do not fit
        tensor_bytes("float32", [-1], b"\0" * 4),
        tensor_bytes("float32", [-1, -1], b"\0" * 4),
        tensor_bytes("float32", [2**62, 4], b""),
        tensor_bytes("float32", [0, 2**31 - 1, 2**31 - 1], b""),
        tensor_bytes("float32", [1] * 40, b"\0" * 4),
        tensor_bytes("quint8", [1], b"\0"),
        tensor_bytes("os.system", [1], b"\0"),
        tensor_bytes("float32", "ab", b""),
        tensor_bytes(1, [1], b"\0"),
        tensor_bytes("float32", [1.0], b"\0" * 4),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(protocol.TENSOR, b"")),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(protocol.TUPLE, b"\x01")),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(protocol.DTYPE, b"float33")),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(protocol.DTYPE, b"\xff")),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(protocol.REF, b"\x01")),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(99, b"\x01")),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(-1, b"\x01\x02\x03\x04")),
        b"\x81\x01\x02",  # {1: 2}
        b"\xc1",
        b"",
        b"\xa2\xff\xff",  # text that is not UTF-8
        b"\x91" * 100_000 + b"\xc0",
        b"\xdd\xff\xff\xff\xff",  # four milliard items to come
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x01",
    ],
)
def test_crooked_values_are_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        unpack(raw)


def test_tuples_within_tuples_are_counted_through() -> None:
    raw = b"\x90"
    for _ in range(MAX_DEPTH + 2):
        raw = msgspec.msgpack.encode([msgspec.msgpack.Ext(protocol.TUPLE, raw)])
    with pytest.raises(ProtocolError):
        unpack(raw)
    many = msgspec.msgpack.Ext(protocol.TUPLE, msgspec.msgpack.encode([0] * (MAX_ITEMS // 2)))
    with pytest.raises(ProtocolError):
        unpack(msgspec.msgpack.encode([many, many]))


def test_a_bool_tensor_of_odd_bytes_holds_proper_bools() -> None:
    value = unpack(tensor_bytes("bool", [3], b"\x00\x02\xff"))
    assert value.view(torch.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"kinds": []},
        {"kinds": ["E"] * 10_000},
        {"kinds": ["E" * 10_000]},
        {"text": "x" * 1_000_000},
        {"trace": [("f", 1, "g", "s")] * 1000},
        {"trace": [("f" * 100_000, 1, "g", "s")]},
        {"caret": 2**60},
        {"caret": -1},
        {"id": "one"},
        {"stub": "yes"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_exception_without_measure_is_refused(change: dict[str, object]) -> None:
    reply = {"type": "Raised", "id": 1, "kinds": ["E"], "text": "t", "trace": [], "caret": 0}
    assert isinstance(protocol.decode_reply(msgspec.msgpack.encode(reply)), Raised)
    with pytest.raises(ProtocolError):
        protocol.decode_reply(msgspec.msgpack.encode({**reply, **change}))


HUNGRY = {
    "empty lists": r'b"\xdd" + n.to_bytes(4) + b"\x90" * n',
    "empty dicts": r'b"\xdd" + n.to_bytes(4) + b"\x80" * n',
    "lists of lists": r'b"\xdd" + (n // 2).to_bytes(4) + b"\x91\x90" * (n // 2)',
    "floats": r'b"\xdd" + (n // 9).to_bytes(4) + b"\xcb12345678" * (n // 9)',
    "a tuple of lists": r'b"\xc9" + (n + 5).to_bytes(4) + b"\x03\xdd" + n.to_bytes(4) + b"\x90" * n',
    "keys that collide": r"""b"\xdf" + (n // 10).to_bytes(4)
        + b"".join(b"\xcf" + (i * (2**61 - 1) % 2**64).to_bytes(8) + b"\xc0" for i in range(n // 10))""",
}


@pytest.mark.skipif(sys.platform == "win32", reason="the resource module is POSIX's")
def test_no_frame_takes_much_more_memory_than_its_own_size() -> None:
    """In a process of its own: tracemalloc does not see what msgspec asks malloc for, the peak of the process does."""
    script = f"""
import resource
from harness.worker import protocol
n = protocol.MAX_FRAME - 100
frames = [{", ".join(f"lambda: ({text})" for text in HUNGRY.values())}]
head = b"\\x83\\xa4type\\xa5Value\\xa2id\\x01\\xa5value"
for make in frames:
    raw = make()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for decode, data in ((protocol.unpack, raw), (protocol.decode_reply, head + raw)):
        try:
            reply = decode(data)
            if decode is protocol.decode_reply:
                protocol.unpack(reply.value)
        except protocol.ProtocolError:
            continue
        raise SystemExit("decoded")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, encoding="utf-8", check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    grown = [int(line) * unit for line in done.stdout.split()]
    assert len(grown) == len(HUNGRY)
    assert max(grown) < 4 * protocol.MAX_FRAME, dict(zip(HUNGRY, grown, strict=True))
