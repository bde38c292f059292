"""Notebooks: graded as submissions, handed out as a template, given back with feedback.

`from harness.notebook import check` is what a notebook itself imports: `check("heads")` grades what was run so far.
"""

from __future__ import annotations

import os

WORKER = "HEADCHECK_WORKER"  # set where a notebook is being graded: there `check` has nothing to do


def check(*exercises: str) -> None:
    """Grade the cells that have been run in this notebook and show the result below this one.

    Args:
        exercises: ids, such as "heads"; all exercises without one.
    """
    if WORKER not in os.environ:
        from harness.notebook.inline import grade_cells

        print(grade_cells(exercises))
