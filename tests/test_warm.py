"""Slow modules are imported once before the fork where many are judged, and not at all where nobody needs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.course import ROOT, Course, Exercise

PROGRAM = """
import sys, torch
torch.set_num_threads(1)
from harness.course import Limits
from harness.worker.client import Check, Root, WorkerLink
from harness.worker.launch import ForkLauncher

SOURCE = b"import sys\\nWARM, SLOW = 'colorsys' in sys.modules, 'torch._dynamo' in sys.modules"
for warm in ((), ("colorsys",)):
    launcher = ForkLauncher("process", warm)
    link = WorkerLink(launcher, {"work.py": SOURCE}, Limits())
    check = Check(link, "t.t")
    check.begin(0)
    work = Root(check).work
    print(work.WARM, work.SLOW)
    link.close()
    launcher.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")
def test_a_zygote_imports_what_it_is_told_and_no_more() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n") == ["False False", "True False", ""], done.stderr


def test_a_course_names_each_slow_module_once() -> None:
    exercises = tuple(
        Exercise(id=id, title=id, files=(), warm=warm) for id, warm in (("a", ("x", "y")), ("b", ()), ("c", ("y", "z")))
    )
    assert Course(id="c", title="c", seed=0, exercise=exercises).warm == ("x", "y", "z")
