"""What passes between the judge and a worker: requests, replies, and the values inside them.

Frames are a 4-byte length and a MessagePack body (msgspec). Values are data only: None, bool, int, float, str, list,
tuple, dict with text keys, tensors as (dtype, shape, bytes), dtypes by name, and references to objects that stay in the
worker. Nothing is un-pickled or evaluated, and every size is capped before memory is taken for it: the worker's side
is not trusted.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import torch

from harness.worker.survey import MAX_DEPTH, MAX_ITEMS, MAX_TEXT, BadValue, count_items

MAX_FRAME = 16 * 2**20  # bytes; the largest tensor of the lesson is under 1 MiB
HEADER = 4  # bytes
# Of an exception. Its texts end up in the report and on the terminal, so the reader checks what the writer keeps to.
MAX_KINDS, MAX_FRAMES = 50, 12  # classes; lines of a traceback
MAX_MESSAGE, MAX_NAME = 4_000, 400  # characters
MAX_CARET = 100_000

_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128,
        torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
    )
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

TENSOR, REF, TUPLE, DTYPE = 1, 2, 3, 4  # codes of extension types


class ProtocolError(Exception):
    """Bytes that are no valid frame, or a value that cannot be sent. The text says which and why."""


class Ref(msgspec.Struct, frozen=True):
    """An object that stays on the other side. `kind` is its class's name, for messages only."""

    id: int
    kind: str = ""


# Requests, judge -> worker. `id` counts up within a check, so that a late or forged reply is noticed.


class Begin(msgspec.Struct, tag=True, frozen=True):
    """A new check: forget all objects, reset global state of torch, seed every generator."""

    id: int
    check: str
    seed: int


class Import(msgspec.Struct, tag=True, frozen=True):
    id: int
    name: str


class Get(msgspec.Struct, tag=True, frozen=True):
    id: int
    target: int
    name: str


class Set(msgspec.Struct, tag=True, frozen=True):
    id: int
    target: int
    name: str
    value: msgspec.Raw


class Call(msgspec.Struct, tag=True, frozen=True):
    """Call an object, or the method of that name when `method` is not empty."""

    id: int
    target: int
    method: str
    args: msgspec.Raw  # a tuple
    kwargs: msgspec.Raw  # a dict


class Load(msgspec.Struct, tag=True, frozen=True):
    """Copy `state` (name -> tensor) into a module's parameters of the same names and shapes."""

    id: int
    target: int
    state: msgspec.Raw


class Gradients(msgspec.Struct, tag=True, frozen=True):
    """Call a module; the answer is the gradients of the number it returns, by the names of its parameters."""

    id: int
    target: int
    args: msgspec.Raw  # a tuple
    kwargs: msgspec.Raw  # a dict


class Watch(msgspec.Struct, tag=True, frozen=True):
    """From now on, note how a module is called."""

    id: int
    target: int


class Open(msgspec.Struct, tag=True, frozen=True):
    """Read the notebook `file` of the submission, which stands for `modules`; the numbers of its cells come back.

    With `compiled`, which another worker of this submission answered to `Compile`, the file is not read again. The
    cells of `run`, which that worker has told, are run at once.
    """

    id: int
    file: str
    modules: list[str]
    left_out: list[int]
    compiled: bytes = b""
    run: list[int] = []


class Compile(msgspec.Struct, tag=True, frozen=True):
    """Compile cells of the notebook. A tensor of bytes comes back, which only `Open` can read, or None."""

    id: int
    cells: list[int]


class Run(msgspec.Struct, tag=True, frozen=True):
    """Run cells of the notebook, one after the other."""

    id: int
    cells: list[int]


Request = Begin | Import | Get | Set | Call | Load | Gradients | Watch | Open | Compile | Run

# Replies, worker -> judge.


class Value(msgspec.Struct, tag=True, frozen=True, dict=True):
    id: int
    value: msgspec.Raw

    @functools.cached_property
    def data(self) -> Any:
        """The value, decoded once; its tensors do not change.

        Raises:
            ProtocolError: it is not a well-formed value within the caps.
        """
        return unpack(self.value)


_Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]


class Raised(msgspec.Struct, tag=True, frozen=True):
    """The submission's code raised, or a request could not be met (`kinds[0]` tells which)."""

    id: int
    kinds: Annotated[list[_Name], msgspec.Meta(min_length=1, max_length=MAX_KINDS)]
    text: Annotated[str, msgspec.Meta(max_length=MAX_MESSAGE)]
    # file, line, function, source line
    trace: Annotated[list[tuple[_Name, int, _Name, _Name]], msgspec.Meta(max_length=MAX_FRAMES)]
    caret: Annotated[int, msgspec.Meta(ge=0, le=MAX_CARET)] = 0  # column of a syntax error, from 1
    stub: bool = False  # a `raise NotImplementedError` of the submission's own


Reply = Value | Raised

_encode = msgspec.msgpack.Encoder().encode
_requests = msgspec.msgpack.Decoder(Request)
_replies = msgspec.msgpack.Decoder(Reply)
_tensor_body = msgspec.msgpack.Decoder(tuple[str, list[int], bytes])
_ref_body = msgspec.msgpack.Decoder(tuple[int, str])


def pack(value: object) -> msgspec.Raw:
    """Encode one value.

    Raises:
        ProtocolError: for a type or size that cannot be sent; the text names it.
    """
    return msgspec.Raw(_encode(_Writer().plain(value, 0)))


class _Writer:
    """Turns everything that MessagePack lacks into extension types, within the same caps as the reader."""

    def __init__(self) -> None:
        self.items = 0

    def plain(self, value: object, depth: int) -> object:
        kind = type(value)
        if value is None or kind in (bool, float):
            return value
        if kind is str:
            # Lone surrogates have no UTF-8 form.
            return value.encode("utf-8", "replace").decode("utf-8")[:MAX_TEXT]  # type: ignore[attr-defined]
        if isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise ProtocolError("int, > 64 bits")
            return int(value)
        if isinstance(value, torch.Tensor):
            return _pack_tensor(value)
        if isinstance(value, torch.dtype):
            return msgspec.msgpack.Ext(DTYPE, str(value).removeprefix("torch.").encode())
        if isinstance(value, Ref):
            return msgspec.msgpack.Ext(REF, _encode((value.id, value.kind)))
        if isinstance(value, tuple | list):
            self.enter(len(value), depth)
            items = [self.plain(item, depth + 1) for item in value]
            return msgspec.msgpack.Ext(TUPLE, _encode(items)) if isinstance(value, tuple) else items
        if isinstance(value, Mapping):
            self.enter(len(value), depth)
            if not all(isinstance(key, str) for key in value):
                raise ProtocolError("dict, keys not str")
            return {self.plain(str(key), 0): self.plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, float | str):  # subclasses: numpy.float64, say
            return self.plain(float(value) if isinstance(value, float) else str(value), depth)
        raise ProtocolError(f"{kind.__name__} object")

    def enter(self, count: int, depth: int) -> None:
        self.items += count
        if self.items > MAX_ITEMS:
            raise ProtocolError(f"> {MAX_ITEMS} items")
        if depth > MAX_DEPTH:
            raise ProtocolError(f"nesting > {MAX_DEPTH}")


def _pack_tensor(tensor: torch.Tensor) -> msgspec.msgpack.Ext:
    name = _NAMES.get(tensor.dtype)
    if name is None:
        raise ProtocolError(f"Tensor, dtype {str(tensor.dtype).removeprefix('torch.')}")
    if tensor.is_meta or tensor.is_quantized:
        raise ProtocolError("Tensor, is_meta or is_quantized")
    if tensor.numel() * tensor.element_size() > MAX_FRAME // 2:
        raise ProtocolError(f"Tensor, {tensor.numel() * tensor.element_size() / 2**20:.0f} MiB")
    dense = tensor.detach().to_dense() if tensor.layout != torch.strided else tensor.detach()
    values = dense.cpu().resolve_conj().resolve_neg()
    if values.dtype is torch.bfloat16:  # which numpy does not know
        values = values.view(torch.int16)
    data = values.numpy().tobytes()  # in row-major order, whatever the strides
    return msgspec.msgpack.Ext(TENSOR, _encode((name, list(tensor.shape), data)))


def unpack(raw: bytes | memoryview | msgspec.Raw, *, writable: bool = False) -> Any:
    """Decode one value. Tensors are fresh copies; an in-place change of one raises (inference tensors) unless
    `writable`.

    Raises:
        ProtocolError: for anything but a well-formed value within the caps.
    """
    return _Reader(writable).read(raw)


class _Reader:
    """Decodes one value, counting depth and items over all extension types within it."""

    def __init__(self, writable: bool) -> None:
        self.writable = writable
        self.depth = 0
        self.items = 0
        self.decode = msgspec.msgpack.Decoder(ext_hook=self.extension).decode

    def read(self, raw: bytes | memoryview | msgspec.Raw) -> Any:
        try:
            self.items += count_items(memoryview(raw), room=MAX_ITEMS - self.items)
            return self.decode(raw)
        except (BadValue, msgspec.DecodeError, UnicodeDecodeError, RecursionError, MemoryError) as error:
            raise ProtocolError(f"malformed value: {error}") from None

    def extension(self, code: int, data: memoryview) -> object:
        if code == TENSOR:
            return _unpack_tensor(data, self.writable)
        if code == TUPLE:
            self.depth += 1
            if self.depth > MAX_DEPTH + 1:
                raise ProtocolError("a value with too many or too deeply nested items")
            items = self.read(data)
            self.depth -= 1
            if not isinstance(items, list):
                raise ProtocolError("a tuple without items")
            return tuple(items)
        try:
            if code == REF:
                return Ref(*_ref_body.decode(data))
            if code == DTYPE:
                return _DTYPES[bytes(data).decode("ascii")]
        except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
            raise ProtocolError(f"malformed extension {code}: {error}") from None
        raise ProtocolError(f"unknown extension {code}")


def _unpack_tensor(data: memoryview, writable: bool) -> torch.Tensor:
    try:
        name, shape, body = _tensor_body.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(f"malformed tensor: {error}") from None
    dtype = _DTYPES.get(name)
    if dtype is None:
        raise ProtocolError("a tensor of unknown dtype")
    if len(shape) > MAX_DEPTH or any(not 0 <= size < 2**31 for size in shape):
        raise ProtocolError("a tensor of impossible shape")
    if math.prod(shape) * dtype.itemsize != len(body):
        raise ProtocolError("a tensor whose bytes do not fit its shape")
    if 0 in shape and math.prod(size for size in shape if size) > MAX_FRAME:
        raise ProtocolError("a tensor of impossible shape")
    if writable:
        return _tensor_of(body, dtype, shape).clone()  # whoever owns a tensor may resize it, too
    with torch.inference_mode():
        return _tensor_of(body, dtype, shape)


def _tensor_of(body: bytes, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
    if not body:
        return torch.empty(shape, dtype=dtype)
    if dtype is torch.bool:  # any byte but 0 and 1 in such a tensor would be undefined behaviour
        return (torch.frombuffer(bytearray(body), dtype=torch.uint8) != 0).reshape(shape)
    return torch.frombuffer(bytearray(body), dtype=dtype).reshape(shape)


def encode_request(request: Request) -> bytes:
    return _encode(request)


def encode_reply(reply: Reply) -> bytes:
    """Encode a reply; one beyond `MAX_FRAME` raises ProtocolError."""
    body = _encode(reply)
    if len(body) > MAX_FRAME:
        raise ProtocolError(f"{len(body) / 2**20:.0f} MiB")
    return body


def decode_request(body: bytes) -> Request:
    return _requests.decode(body)


def decode_reply(body: bytes | bytearray) -> Reply:
    """Decode a worker's reply.

    Raises:
        ProtocolError: for anything that is not exactly one reply.
    """
    try:
        count_items(body, depth=MAX_DEPTH + 2)  # the struct and its value's containers
        return _replies.decode(body)
    except (BadValue, msgspec.DecodeError, UnicodeDecodeError, RecursionError, MemoryError) as error:
        raise ProtocolError(f"malformed reply: {error}") from None
