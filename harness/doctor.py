"""What this machine offers for grading work of others, in words."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from harness.worker.offer import Offer

_MEANS = {
    "sandbox": "Submissions run in the sandbox: files, programs and the network of this machine are closed to them.",
    "process": "There is no sandbox here. Submissions run in processes of their own, but as you: they can read and "
    "write your files and use the network. Grade only work that you trust.",
}


def lines(offer: Offer) -> list[str]:
    """A line for each thing that was looked at, then what it means and what to do about what is missing."""
    rows = [
        ("System", f"{offer.os} {offer.kernel}, {offer.machine}"),
        ("Landlock", f"ABI {offer.landlock_abi}" if offer.landlock_abi else "not available"),
        ("seccomp", "works" if offer.seccomp else "not available"),
        (
            "Workers",
            "forked from one process" if offer.start_method == "fork" else "started anew, one for each exercise",
        ),
        ("Cores", str(offer.cores)),
        ("Memory", f"{offer.memory_bytes / 2**30:.1f} GiB"),
        ("Python", platform.python_version()),
        ("torch", _torch()),
        ("Isolation", offer.isolation),
    ]
    return [*(f"{name:<10} {value}" for name, value in rows), "", _MEANS[offer.isolation], *offer.missing]


def _torch() -> str:
    try:
        return version("torch")  # importing it takes seconds
    except PackageNotFoundError:
        return "not installed: python -m pip install -r requirements.txt"
