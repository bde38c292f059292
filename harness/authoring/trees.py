"""MessagePack values as JSON in which every tensor is a name, and back to the same bytes.

What judge and worker exchange (harness.worker.protocol) is MessagePack with extension types. JSON has neither those nor
numbers that are not finite: each becomes an object of one key, such as {"$tensor": "12"}. The tensors stand elsewhere.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import torch
from msgspec.msgpack import Ext

from harness.worker import protocol
from harness.worker.protocol import DTYPE, REF, TENSOR, TUPLE, ProtocolError

Tree = Any  # what JSON can hold
_encode, _decode = msgspec.msgpack.encode, msgspec.msgpack.decode


class Tensors:
    """Collects tensors: those of the same dtype, shape and bytes are one, named after where it was met first."""

    def __init__(self) -> None:
        self.by_name: dict[str, torch.Tensor] = {}
        self._names: dict[bytes, str] = {}
        self._met: Counter[str] = Counter()

    def name(self, body: bytes, where: str) -> str:
        """The name of a tensor, given as the body of its extension type."""
        if body not in self._names:
            self._names[body] = name = f"{where}/{self._met[where]}"
            self._met[where] += 1
            self.by_name[name] = protocol.unpack(_encode(Ext(TENSOR, body)))
        return self._names[body]


def to_tree(data: bytes, name: Callable[[bytes], str]) -> Tree:
    """One MessagePack value for JSON; `name` takes the body of a tensor's extension type and gives it a name."""
    return _tree(_decode(data), name)


def from_tree(tree: Tree, tensor: Callable[[str], msgspec.Raw]) -> bytes:
    """The very bytes that `to_tree` was given.

    Args:
        tree: what it made of them.
        tensor: gives the packed tensor of a name, or raises KeyError.

    Raises:
        ProtocolError: `to_tree` makes no such tree.
    """
    try:
        return _encode(_plain(tree, tensor))
    except (ValueError, TypeError, LookupError, AttributeError, struct.error, RecursionError) as error:
        raise ProtocolError(f"malformed tree: {type(error).__name__}: {error}") from error


def _tree(value: object, name: Callable[[bytes], str]) -> Tree:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": struct.pack(">d", value).hex()}  # all its bits: there are many NaNs
    if isinstance(value, list):
        return [_tree(item, name) for item in value]
    if isinstance(value, dict):
        found = {key: _tree(item, name) for key, item in value.items()}
        return {"$dict": found} if _is_marked(found) else found
    if isinstance(value, Ext):
        if value.code == TENSOR:
            return {"$tensor": name(bytes(value.data))}
        if value.code == DTYPE:
            return {"$dtype": bytes(value.data).decode("ascii")}
        return {_KINDS[value.code]: _tree(_decode(value.data), name)}
    return value


_KINDS = {TUPLE: "$tuple", REF: "$ref"}
_CODES = {kind: code for code, kind in _KINDS.items()}


def _is_marked(tree: dict[str, Tree]) -> bool:
    return len(tree) == 1 and next(iter(tree)).startswith("$")


def _plain(tree: Tree, tensor: Callable[[str], msgspec.Raw]) -> object:
    if isinstance(tree, list):
        return [_plain(item, tensor) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if not _is_marked(tree):
        return {key: _plain(item, tensor) for key, item in tree.items()}
    ((kind, held),) = tree.items()
    match kind:
        case "$tensor":
            return tensor(held)
        case "$dtype":
            return Ext(DTYPE, held.encode("ascii"))
        case "$float":
            return struct.unpack(">d", bytes.fromhex(held))[0]
        case "$dict":
            return {key: _plain(item, tensor) for key, item in held.items()}
    return Ext(_CODES[kind], _encode(_plain(held, tensor)))
