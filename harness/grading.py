"""What an author of checks imports: `check` declares one, `expect` compares, `Outcome` is never needed by name.

@check("heads.split-shape", title="split_heads gives every head its own axis", points=3, hint="...")
def test_split_shape(student, reference, draw):
    ...
    expect.close(student_layer.split_heads(x), reference_layer.split_heads(x), atol=0, what="split_heads(x)")
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from harness import expect

__all__ = ["CheckInfo", "check", "expect"]

_ID = re.compile(r"[a-z][a-z0-9]*\.[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True)
class CheckInfo:
    """What a check says of itself.

    Args:
        id: `exercise.what-it-shows`.
        title: one line in the report.
        points: at most two decimals.
        hint: what a student most likely got wrong when this check fails, in plain words.
        reproduce: lines that show the failure at a Python prompt beside the student's files.
    """

    id: str
    title: str
    points: float
    hint: str
    reproduce: str = ""

    @property
    def exercise(self) -> str:
        return self.id.partition(".")[0]


def check(id: str, *, title: str, points: float, hint: str, reproduce: str = "") -> Callable[..., pytest.MarkDecorator]:
    """Mark a pytest test as a check that counts.

    Raises:
        ValueError: the id is not of the form `exercise.what-it-shows`, or the points have more than two decimals.
    """
    if not _ID.fullmatch(id):
        raise ValueError(f"check id {id!r} is not of the form exercise.what-it-shows, in lower case")
    if points < 0 or round(points, 2) != points:
        raise ValueError(f"points of {id} must be at least 0 and have at most two decimals, not {points}")
    return pytest.mark.check(CheckInfo(id, title, points, hint, reproduce.strip("\n")))
