"""Where lines may break in Chinese and Japanese: between any two characters, but not before 。 nor after 「."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.console import Console, JustifyMethod, OverflowMethod
from rich.containers import Lines
from rich.text import Text

_OPENING = "（「『【《〈“‘"
_CLOSING = "）」』】》〉”’、。，．：；？！・ーっゃゅょッャュョァィゥェォ々…"
_WIDE = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
# What stays on one line: a wide character or a run of others, with its punctuation and the spaces behind it.
_UNIT = re.compile(rf"[{_OPENING}]*(?:[{_WIDE}]|[^\s{_WIDE}{_OPENING}{_CLOSING}]+|.)[{_CLOSING}]*\s*|\s+", re.DOTALL)
_HAS_WIDE = re.compile(f"[{_WIDE}]")


class Prose(Text):
    """rich's Text, which breaks lines at spaces only, with the rules of Chinese and Japanese where they apply."""

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        if no_wrap or not _HAS_WIDE.search(self.plain):
            return super().wrap(console, width, justify=justify, overflow=overflow, tab_size=tab_size, no_wrap=no_wrap)
        lines = Lines()
        for paragraph in self.split(allow_blank=True):
            lines.extend(paragraph.divide(breaks(paragraph.plain, width)))
        for line in lines:
            line.rstrip()
        return lines


def breaks(text: str, width: int) -> list[int]:
    """The offsets at which new lines begin, so that none is wider than `width` columns."""
    found: list[int] = []
    used = 0
    for unit in _UNIT.finditer(text):
        wanted = cell_len(unit[0].rstrip())
        if used and used + wanted > width:
            found.append(unit.start())
            used = 0
        for place, character in enumerate(unit[0], unit.start()):
            columns = cell_len(character)
            if used and used + columns > width and not character.isspace():  # one unit, wider than a line
                found.append(place)
                used = 0
            used += columns
    return found
