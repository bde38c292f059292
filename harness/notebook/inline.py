"""`check("heads")` in a running notebook: grades the cells that were run, as they were when they ran.

What was run is taken from IPython and not from the file, which may not have been saved. It is graded by the command
line, in a process of its own, as any submission; "cell 7" in a message is then the cell marked `[7]`. What the course
asks for beside code, such as the answers to a quiz, is taken from the current folder: that of the notebook.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.course import ROOT, read_course
from harness.i18n import LANGUAGES, Translator

_NAME = "notebook.ipynb"


def grade_cells(exercises: Sequence[str], cells: Sequence[str] | None = None) -> str:
    """Grade the sources of cells, and say what the command says.

    Args:
        exercises: ids; all exercises if there is none.
        cells: in the order in which they were run; what this kernel has run by default.

    Raises:
        RuntimeError: this is no notebook.
    """
    if cells is None:
        cells = _cells_run()
    latest = {source: place for place, source in enumerate(cells)}  # one that was run again counts where it last was
    kept = [source if latest[source] == place else "" for place, source in enumerate(cells)]
    words = ["--exercise", ",".join(exercises)] if exercises else []
    plain = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}  # Jupyter's kernels set it
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "notebook")
        work.mkdir()
        (work / _NAME).write_bytes(as_notebook(kept))
        for name, data in _beside().items():
            (work / name).write_bytes(data)
        done = subprocess.run(
            [sys.executable, str(ROOT / "grade.py"), "grade", str(work), *words],
            cwd=folder,
            env=plain | {"PYTHONUTF8": "1", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"},
            stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False,
        )  # fmt: skip
    # The report has gone with its folder.
    gone = {Translator(language).ui("ui.report", file="report.json") for language in LANGUAGES}
    return "\n".join(line for line in (done.stdout + done.stderr).splitlines() if line not in gone)


def _beside() -> dict[str, bytes]:
    """The files in the current folder that the course asks for and that are no code."""
    wanted = {name for exercise in read_course().exercise for name in exercise.files if not name.endswith(".py")}
    found = {}
    for path in map(Path, sorted(wanted)):
        with contextlib.suppress(OSError):  # it is not there, or no file
            found[path.name] = path.read_bytes()
    return found


def as_notebook(cells: Sequence[str]) -> bytes:
    """A notebook, as JSON, of these cells of code and nothing else."""
    blank: dict[str, object] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    document = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [{**blank, "source": s} for s in cells]}
    return json.dumps(document).encode()


def _cells_run() -> list[str]:
    """What the running kernel has run: its `In`, without the empty first entry, so that `[1]` is the first."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        raise RuntimeError("check() works in a notebook; elsewhere, run: python grade.py YOUR_FOLDER")
    return [str(source) for source in shell.user_ns["In"][1:]]
