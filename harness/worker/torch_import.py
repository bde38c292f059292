"""Loading torch quickly: for one thread, without collecting garbage, and without what exercises hardly ever need.

That is torch's compiler, and how it computes shapes for tensors without data ("meta"). Both are loaded when they are
first asked for, so that no code sees a difference. Call `import_torch` before anything else imports torch. It saves
half of what `import torch` takes, and the two seconds that the first optimizer would take.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_COMPILER = "torch._dynamo"
_SHAPES = "torch._meta_registrations"  # what `import torch` loads of it, and what that loads in turn
_BEHIND_SHAPES = ("_decomp", "_prims", "_refs")
_OBJECTS = 20_000  # new ones before garbage is collected; after Python's 700, one check would do so several times


def import_torch() -> None:
    """Import torch for one thread: faster on the lesson's small models, and a fork of it is safe."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # read when the libraries are loaded
    collecting = gc.isenabled()
    gc.disable()  # else it walks the growing heap again and again, and finds next to nothing
    if "torch" not in sys.modules:
        sys.modules[_SHAPES] = _Later(_SHAPES)
    import torch

    torch.set_num_threads(1)
    leave_compiler_out()
    if isinstance(sys.modules.get(_SHAPES), _Later):
        _make_up_for_shapes()
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


class _Later(ModuleType):
    """A module that is loaded when it is asked for anything."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__path__":  # `inspect` asks every module for its __file__
            raise AttributeError(name)
        return getattr(_load(self.__name__), name)


def _load(name: str) -> ModuleType:
    if isinstance(sys.modules.get(name), _Later):
        del sys.modules[name]
    return importlib.import_module(name)  # as it is, if it was loaded before


def _make_up_for_shapes() -> None:
    """Do what is needed of the module that was left out, and load it when a tensor without data is made."""
    torch = sys.modules["torch"]
    for name in _BEHIND_SHAPES:
        if not hasattr(torch, name):  # torch.broadcast_shapes, for one, asks torch for it
            setattr(torch, name, _Later(f"torch.{name}"))
    try:
        torch._C._set_generator_metaclass(importlib.import_module("torch._opaque_base").OpaqueBaseMeta)
        torch.Generator()
        makers = torch.library.Library("aten", "IMPL")
        for operator in (torch.ops.aten.empty.memory_format, torch.ops.aten.empty_strided.default):
            makers.impl(operator, _loads_shapes_first(operator, makers), "Meta", allow_override=True)
    except (AttributeError, ImportError, RuntimeError):  # another version of torch than this was written for
        _load(_SHAPES)


def _loads_shapes_first(operator: Callable[..., object], makers: Any) -> Callable[..., object]:
    """What takes the place of a function that makes tensors without data until it is first called."""

    def make(*arguments: object, **options: object) -> object:
        makers._destroy()  # from here on torch's own takes the calls
        _load(_SHAPES)
        return operator(*arguments, **options)

    return make


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
        _load(_SHAPES)  # the compiler's modules import one another in an order that takes this one for granted
        return getattr(importlib.import_module(_COMPILER), name)
