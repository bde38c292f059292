"""Measures a MessagePack value without building it.

A byte can cost the reader eighty: 16 MiB of empty lists would become 1.3 GB of objects. So what a worker sends is
walked first, and only what keeps within the caps is decoded. The layout of the bytes is MessagePack's specification
(github.com/msgpack/msgpack, spec.md).
"""

from __future__ import annotations

MAX_DEPTH = 16  # containers within containers
MAX_ITEMS = 100_000  # elements of all containers of one value together
MAX_TEXT = 1_000_000  # characters of one string


class BadValue(ValueError):
    """Bytes that are no MessagePack value, or one beyond the caps."""


# First byte -> bytes of payload that follow it.
_FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2,
          0xD2: 4, 0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}  # fmt: skip
# First byte -> bytes of a length that follows it, and what stands between the length and the payload.
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1),
          0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}  # fmt: skip
# First byte -> bytes of a length that stand before the extension type's code.
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD4: 0, 0xD5: 0, 0xD6: 0, 0xD7: 0, 0xD8: 0}
_ARRAYS, _MAPS, _TEXTS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}, (0xD9, 0xDA, 0xDB)


def count_items(data: bytes | bytearray | memoryview, *, room: int = MAX_ITEMS, depth: int = MAX_DEPTH) -> int:
    """The elements of all containers in one MessagePack value; what is inside extension types is not looked at.

    Args:
        data: exactly one value.
        room: elements that it may have.
        depth: containers within containers.

    Raises:
        BadValue: malformed, truncated, beyond the caps, or a map with keys that are not text.
    """
    data = memoryview(data)
    position, items = 0, 0
    open_containers: list[list[int]] = []  # [values still to come, 1 for a map]
    while True:
        size, children, is_map, is_text = _head(data, position)
        position = size
        if position > len(data):
            raise BadValue("the bytes end within a value")
        if open_containers:
            container = open_containers[-1]
            if container[1] and container[0] % 2 == 0 and not is_text:
                raise BadValue("a dict whose keys are not all text")
            container[0] -= 1
        if children >= 0:
            items += children
            if items > room or len(open_containers) > depth:
                raise BadValue("a value with too many or too deeply nested items")
            open_containers.append([children * 2 if is_map else children, int(is_map)])
        while open_containers and open_containers[-1][0] == 0:
            open_containers.pop()
        if not open_containers:
            break
    if position != len(data):
        raise BadValue("bytes after the value")
    return items


def _head(data: memoryview, at: int) -> tuple[int, int, bool, bool]:
    """What starts at `at`: where its own bytes end, its number of children (-1: no container), map?, text?"""
    if at >= len(data):
        raise BadValue("the bytes end within a value")
    first = data[at]
    if first < 0x80 or first >= 0xE0:
        return at + 1, -1, False, False
    if first < 0x90:
        return at + 1, first & 0x0F, True, False
    if first < 0xA0:
        return at + 1, first & 0x0F, False, False
    if first < 0xC0:
        return at + 1 + (first & 0x1F), -1, False, True
    if first in _EXTENSIONS:
        code_at = at + 1 + _EXTENSIONS[first]
        if code_at < len(data) and data[code_at] > 0x7F:  # MessagePack's own, a date say, which msgspec would build
            raise BadValue("an extension type that is not of this protocol")
    if first in _FIXED:
        return at + 1 + _FIXED[first], -1, False, False
    width = _ARRAYS.get(first) or _MAPS.get(first)
    if width:
        return at + 1 + width, int.from_bytes(data[at + 1 : at + 1 + width]), first in _MAPS, False
    if first not in _SIZED:
        raise BadValue("a byte that starts no value")
    width, between = _SIZED[first]
    length = int.from_bytes(data[at + 1 : at + 1 + width])
    is_text = first in _TEXTS
    if is_text and length > 4 * MAX_TEXT:  # a character has at most four bytes
        raise BadValue("a text of over a million characters")
    return at + 1 + width + between + length, -1, False, is_text
