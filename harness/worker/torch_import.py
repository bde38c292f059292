"""Loading torch quickly: for one thread, without collecting garbage, without its compiler.

Call `import_torch` before anything else imports torch. It saves a third of what `import torch` takes, and the two
seconds that the first optimizer would take.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from types import ModuleType

_COMPILER = "torch._dynamo"
_OBJECTS = 20_000  # new ones before garbage is collected; after Python's 700, one check would do so several times


def import_torch() -> None:
    """Import torch for one thread: faster on the lesson's small models, and a fork of it is safe."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # read when the libraries are loaded
    collecting = gc.isenabled()
    gc.disable()  # else it walks the growing heap again and again, and finds next to nothing
    import torch

    torch.set_num_threads(1)
    leave_compiler_out()
    gc.freeze()  # what is there now stays; walking it would cost, and in a fork copy, every page of it
    gc.set_threshold(_OBJECTS)
    if collecting:
        gc.enable()


def leave_compiler_out() -> None:
    """Let optimizers work without torch's compiler, which they import only to tell it that they are not for it.

    The real one is loaded when somebody asks it for anything else, as `torch.compile` does.
    """
    if _COMPILER in sys.modules:
        return
    torch = sys.modules["torch"]
    torch._dynamo = sys.modules[_COMPILER] = _NoCompiler(_COMPILER)  # type: ignore[attr-defined]


class _NoCompiler(ModuleType):
    """`torch._dynamo` of a process that compiles nothing."""

    @staticmethod
    def graph_break(*_: object, **__: object) -> None:
        """Nothing is traced, so there is no graph to break."""

    @staticmethod
    def disable(fn: object = None, *_: object, **__: object) -> object:
        """Nothing compiles `fn`, so it is what it was; without it, the decorator that says so."""
        return (lambda decorated: decorated) if fn is None else fn

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__path__":  # `inspect` asks every module for its __file__
            raise AttributeError(name)
        if sys.modules.get(_COMPILER) is self:
            del sys.modules[_COMPILER]
        return getattr(importlib.import_module(_COMPILER), name)
