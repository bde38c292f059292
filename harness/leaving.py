"""Ending a process that holds torch: Python would take half a second to take its heap apart, object by object."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from typing import NoReturn


def leave(status: int) -> NoReturn:
    """End this process with `status`, after all that was registered for its end, but with its memory left as it is."""
    if threading.active_count() > 1:  # somebody is still at work
        sys.exit(status)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # nobody reads on, or it was closed
                stream.flush()
    os._exit(status)
