"""An oracle that remembers answers as the one behind it does, wherever the runs before were broken off."""

from __future__ import annotations

import random

import pytest
import torch

from harness.oracle import Modules, ReferenceLink, check_seed
from harness.remembering import Remembering
from harness.worker.client import Check, Link, Root
from harness.worker.protocol import Begin, Reply, Request

SOURCE = """
import torch

class Counter:
    def __init__(self, start):
        self.count = start
        self.noise = torch.rand(3)

    def up(self, by):
        self.count += by
        return self.count
"""


class Counting:
    """Notes how often the link behind it is asked."""

    def __init__(self, link: Link) -> None:
        self.link, self.asked = link, 0

    def perform(self, request: Request) -> Reply:
        self.asked += 1
        return self.link.perform(request)


def live() -> Counting:
    return Counting(ReferenceLink(Modules({"work": SOURCE}, "there")))


def run(link: Link, steps: int, by: int = 1, check: str = "e.c") -> list[object]:
    """A check that makes a counter, draws, and counts up so many times; what it heard."""
    asking = Check(link, check, True, None)
    asking.begin(check_seed(7, check))
    oracle = Root(asking)
    counter = oracle.work.Counter(10)
    heard: list[object] = [counter.noise.tolist()]
    for _ in range(steps):
        heard += [oracle.draw.normal(2).tolist(), counter.up(by)]
    return heard


@pytest.mark.parametrize("runs", [(3, 3), (1, 4), (4, 1, 4), (0, 2, 1, 3, 3)])
def test_what_is_heard_is_what_the_oracle_says(runs: tuple[int, ...]) -> None:
    memory = Remembering(live())
    for steps in runs:
        assert run(memory, steps) == run(live(), steps)


def test_what_was_heard_is_not_asked_again() -> None:
    link = live()
    memory = Remembering(link)
    run(memory, 3)
    asked = link.asked
    assert asked > 6
    run(memory, 3)
    run(memory, 1)
    assert link.asked == asked
    run(memory, 4)
    assert link.asked > 2 * asked  # brought to where the memory ended, and on


def test_checks_are_remembered_apart_and_for_the_next_oracle() -> None:
    memory = Remembering(live())
    first = run(memory, 2, check="e.one")
    assert run(memory, 2, check="e.two") != first
    memory.link = link = live()
    assert run(memory, 2, check="e.one") == first
    assert link.asked == 0
    assert run(memory, 3, check="e.one") == run(live(), 3, check="e.one")


def test_other_questions_are_answered_too() -> None:
    memory = Remembering(live())
    run(memory, 3)
    assert run(memory, 3, by=5) == run(live(), 3, by=5)
    assert run(memory, 3) == run(live(), 3)


def test_to_catch_up_changes_nothing_for_others() -> None:
    memory = Remembering(live())
    run(memory, 1)
    check = Check(memory, "e.c", True, None)
    check.begin(check_seed(7, "e.c"))
    oracle = Root(check)
    counter = oracle.work.Counter(10)
    random.seed(3)
    expected = random.random()
    random.seed(3)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            assert counter.up(7) == 17  # not what was asked before
            assert torch.get_default_dtype() is torch.float64
            assert not torch.is_grad_enabled()
            assert random.random() == expected
    finally:
        torch.set_default_dtype(torch.float32)


def test_it_begins_where_the_check_begins() -> None:
    link = live()
    memory = Remembering(link)
    begin = Begin(1, "e.c", 5)
    assert memory.perform(begin) == memory.perform(begin)
    assert link.asked == 1
