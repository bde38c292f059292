"""torch without its compiler and without shapes of tensors that hold no data: most work needs neither, looking round
loads neither, and whoever asks for them gets them."""

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


SHAPES = """
import sys
if sys.argv[1] == "quick":
    from harness.worker.torch_import import import_torch
    import_torch()
import torch
from torch import nn

def loaded():
    return any(hasattr(sys.modules.get(f"torch.{name}"), "__file__") for name in ("_meta_registrations", "_refs"))

layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
layer(torch.ones(1, 3, 8)).sum().backward()
draw = torch.Generator().manual_seed(5)
before = loaded()
print(torch.rand(2, generator=draw).tolist(), isinstance(draw, torch.Generator), torch.nn.Module().state_dict())
print(torch.broadcast_shapes((2, 1), (1, 3)), torch.func.jvp(torch.sin, (torch.ones(1),), (torch.ones(1),)))
with torch.device("meta"):
    whole = nn.Sequential(nn.Embedding(5, 4), nn.LayerNorm(4), nn.Linear(4, 3), nn.GELU())
    print(sum(p.numel() for p in whole.parameters()), whole(torch.zeros(2, 7, dtype=torch.long)).softmax(-1).shape)
    try:
        torch.zeros(3).min().item()
    except RuntimeError as error:
        print(type(error).__name__, error)
print(torch.ones(3).to("meta").min().shape, torch.empty_strided((2, 3), (1, 2), device="meta").stride())
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    print(nn.Linear(3, 4)(torch.ones(2, 3)).shape)
print(torch._meta_registrations.__name__, torch._prims.__name__, loaded(), file=sys.stderr)
print(before, file=sys.stderr)
"""


def test_tensors_without_data_are_as_they_are_in_torch_imported_as_ever() -> None:
    quick, plain = (
        subprocess.run([sys.executable, "-c", SHAPES, how], cwd=ROOT, capture_output=True, text=True, check=False)
        for how in ("quick", "plain")
    )
    names = "torch._meta_registrations torch._prims True"
    assert plain.stderr.split("\n") == [names, "True", ""]
    assert quick.stderr.split("\n") == [names, "False", ""], "nothing before asked for them"
    assert quick.stdout == plain.stdout
