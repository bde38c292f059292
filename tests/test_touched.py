"""What need not be tried: a mistake in functions that a check does not run cannot show in it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from harness.authoring.touched import calls, can_show
from harness.authoring.variants import load_variants
from harness.oracle import Modules

SOURCE = """
from functools import cache
from torch import nn

class Base(nn.Module):
    def used(self): return 1
    def unused(self): return 2
    @property
    def size(self): return 3
    @staticmethod
    def helper(): return 4
    @cache
    def kept(self): return 5

class Sub(Base):
    def forward(self): return self.used() + self.size + self.helper()

def alone(): return 6
"""


@pytest.mark.parametrize(
    ("of", "function", "expected"),
    [
        ("m.Base", "def used(self): return 0", True),
        ("m.Base", "def unused(self): return 0", False),
        ("m.Base", "@property\n    def size(self): return 0", True),
        ("m.Base", "@staticmethod\n    def helper(): return 0", True),
        ("m.Base", "@cache\n    def kept(self): return 0", True),  # what a cache answers is no call
        ("m.Sub", "def used(self): return 0", True),  # hides what is called
        ("m.Sub", "def unused(self): return 0", False),  # hides what is not
        ("m.Sub", "def _call_impl(self): return 0", True),  # hides something of torch's that is called
        ("m.Sub", "def eval(self): return 0", False),
        ("m.Sub", "def __len__(self): return 0", True),  # Python calls it
        ("m.Sub", "def quite_new(self): return 0", False),  # nobody knows it
        ("m", "def alone(): return 0", False),
    ],
)
def test_can_show(of: str, function: str, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "misconceptions").mkdir()
    text = f'class V:\n    """What it does."""\n    id = "e.v"\n    of = "{of}"\n    source = "own"\n    hint = "h"\n\n'
    (tmp_path / "misconceptions" / "e.py").write_text(f"{text}    {function}\n", encoding="utf-8")
    (variant,) = load_variants(tmp_path / "misconceptions")
    modules = Modules({"m": SOURCE}, "reference")
    made = modules.load("m").Sub()
    with calls() as called:
        assert made() == 8
    assert can_show(variant, modules.loaded, called) is expected


def test_calls_end_with_their_block() -> None:
    def early() -> None: ...

    @cache
    def late() -> None: ...

    with calls() as called:
        early()
    late()
    codes = {code for code, _ in called}
    assert early.__code__ in codes and late.__wrapped__.__code__ not in codes


def test_the_same_code_in_another_set_of_modules_is_another_function() -> None:
    one, other = (Modules({"m": SOURCE}, "reference").load("m") for _ in range(2))
    assert one.alone.__code__ is other.alone.__code__  # compiled once
    with calls() as called:
        one.alone()
    assert [(it.alone.__code__, id(it.alone.__globals__)) in called for it in (one, other)] == [True, False]
