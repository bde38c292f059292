"""The reference's modules, under the names by which they know one another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

REFERENCE = Path(__file__).resolve().parent.parent.parent / "reference"
ALL = tuple(path.stem for path in sorted(REFERENCE.glob("*.py")))


@contextmanager
def loaded(*names: str) -> Iterator[SimpleNamespace]:
    """These modules of the reference as attributes; afterwards none of its modules is left in `sys.modules`.

    Other tests load modules of the same names from elsewhere.
    """
    torch.set_num_threads(1)  # toy models only wait for a second thread
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REFERENCE))
        for name in ALL:
            patch.delitem(sys.modules, name, raising=False)
        try:
            yield SimpleNamespace(**{name: __import__(name) for name in names})
        finally:
            for name in ALL:
                sys.modules.pop(name, None)
