"""torch without its compiler: optimizers need none, looking round loads none, and whoever asks for it gets it."""

from __future__ import annotations

import subprocess
import sys

from harness.course import ROOT

PROGRAM = """
import inspect, sys
from harness.worker.torch_import import import_torch
import_torch()
import torch

def loaded():
    return hasattr(sys.modules["torch._dynamo"], "__file__")

layer = torch.nn.Linear(2, 2)
optimizer = torch.optim.AdamW(layer.parameters())
layer(torch.ones(1, 2)).sum().backward()
before = layer.weight.detach().clone()
optimizer.step()
optimizer.zero_grad()
inspect.getmodule(inspect.currentframe())  # asks all modules
print(bool((layer.weight != before).all()), loaded(), torch.get_num_threads())
plain, called = (compiled(lambda: 5) for compiled in (torch.compiler.disable, torch.compiler.disable()))
print(plain(), called())
print(callable(torch._dynamo.optimize), loaded())
"""


def test_the_compiler_is_loaded_for_those_alone_who_ask_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n") == ["True False 1", "5 5", "True True", ""], done.stderr
