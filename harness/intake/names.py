"""Comparing the names of people as different systems spell them, and names that are safe for folders."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # Windows' devices


def plain(text: str) -> str:
    """For comparing ids and addresses: Unicode's form KC, no case, no space around."""
    return unicodedata.normalize("NFKC", text).casefold().strip()


def compact(name: str) -> str:
    """For comparing names: letters and digits alone, without case. `Müller, Åsa` becomes `mülleråsa`.

    Accents are kept: they tell people apart.
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(character for character in text if character.isalnum() or unicodedata.category(character) == "Mn")


def spellings(name: str) -> frozenset[str]:
    """`compact` for every order that keeps the words' sequence but for where it starts.

    Canvas writes `Last, First`, others `First Last`, and a last name may have several words.
    """
    words = [word for word in re.split(r"[\s,]+", name) if compact(word)]
    return frozenset(compact(" ".join(words[start:] + words[:start])) for start in range(len(words)))


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key by which `attempt 10` comes after `attempt 2`."""
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    return tuple((0, int(part), part) if part[0] in "0123456789" else (1, 0, part) for part in parts)


def folder_names(keys: Iterable[str]) -> list[str]:
    """A folder name for each key: letters, digits, `.`, `_`, `-`, `+`, `@` and `~`; distinct on every computer."""
    taken: set[str] = set()
    names = []
    for key in keys:
        text = unicodedata.normalize("NFC", key)
        name = re.sub(r"[^\w.@+-]", "_", text)[:100].strip(".") or "_"
        while len(name.encode()) > 200:
            name = name[:-1]
        name = f"_{name}" if _RESERVED.fullmatch(name) or name.startswith("-") else name
        unique, number = name, 2
        while plain(unique) in taken:
            unique, number = f"{name}~{number}", number + 1
        taken.add(plain(unique))
        names.append(unique)
    return names
