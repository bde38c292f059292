"""Which files a submission may reach: Landlock rules.

Readable: Python's own library folders, the installed packages, the system's shared libraries and a handful
of system files that libc, torch and Python look at. Writable: the private scratch folder. Everything else is
refused, whoever the worker runs as: Landlock binds root too. The right to execute is granted nowhere
(loading a shared library needs only the right to read).
"""

from __future__ import annotations

import ctypes
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from harness.worker import linux

# Each is looked at when a worker starts or when torch, numpy or libc is first used; a missing one does no
# harm.
_SYSTEM_FILES = (
    "/etc/ld.so.cache",  # the loader's index of libraries
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/usr/lib/locale",
    "/proc/cpuinfo",  # torch's cpuinfo complains on stderr without it
    "/sys/devices/system/cpu",  # how many processors there are
    "/dev/urandom",
    "/dev/random",
)
_PACKAGE_FOLDERS = ("site-packages", "dist-packages", "lib-dynload")

_RULE_PATH_BENEATH = 1
_NET_BIND_AND_CONNECT_TCP = 3
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3


def readable_paths() -> tuple[str, ...]:
    """What a worker may read beside its own folders: absolute real paths, none inside another.

    Computed from this process: sysconfig, sys.path and the shared libraries that are loaded. An entry of
    sys.path counts only when it is a package folder, because others (the folder that holds the harness, an
    editable install) may lie beside the reference and the graders. A prefix such as /usr is never opened as
    a whole.
    """
    candidates = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    candidates.update(site.getsitepackages())
    candidates.update(entry for entry in sys.path if Path(entry).name in _PACKAGE_FOLDERS)
    candidates.update(_library_folders())
    candidates.update(_SYSTEM_FILES)
    return _outermost(candidates)


def _library_folders() -> set[str]:
    """Folders of the shared libraries in this process; the file alone where that is no library folder."""
    folders: set[str] = set()
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    for name in set(re.findall(r"(/.+\.so(?:\.[\w.]+)?)$", maps, re.MULTILINE)):
        folder = Path(name).parent
        is_library_folder = any(part.startswith("lib") for part in folder.parts)
        folders.add(str(folder) if is_library_folder else name)
    return folders


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Existing paths as real paths, without those that lie beneath another of them."""
    kept: list[Path] = []
    for path in sorted({Path(p).resolve() for p in paths if Path(p).exists()}):
        if not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return tuple(str(path) for path in kept)


def restrict(readable: Iterable[str], scratch: str, abi: int) -> None:
    """Confine the calling thread to reading beneath `readable` and writing beneath `scratch`; `abi` is
    Landlock's.

    The rights follow the ABI: 2 adds moving files between folders, 3 truncation, 4 TCP ports, 5 device
    ioctls, 6 abstract sockets and signals. Needs no_new_privs. Raises OSError (the package's LandlockError
    among them) when refused.
    """
    from landlock import FSAccess
    from landlock.plumbing import get_restrict_self

    ctypes.set_errno(0)  # the package takes any errno left over from an earlier call for its own failure
    # All rights that this kernel knows are handled; what no rule grants is refused. One ruleset for all: a
    # second one, even for ports only, would refuse moves between folders of the scratch folder.
    net = _NET_BIND_AND_CONNECT_TCP if abi >= 4 else 0
    scoped = _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if abi >= 6 else 0
    ruleset = linux.landlock_ruleset(FSAccess.all(), net, scoped)
    read_file = FSAccess.READ_FILE
    read_folder = FSAccess.READ_FILE | FSAccess.READ_DIR
    write_file = FSAccess.READ_FILE | FSAccess.WRITE_FILE
    write_folder = write_file | FSAccess.READ_DIR | FSAccess.REMOVE_DIR | FSAccess.REMOVE_FILE
    write_folder |= FSAccess.MAKE_DIR | FSAccess.MAKE_REG
    if abi >= 2:
        write_folder |= FSAccess.REFER
    if abi >= 3:
        write_file |= FSAccess.TRUNCATE
        write_folder |= FSAccess.TRUNCATE
    for path in readable:
        _allow(ruleset, path, read_folder if Path(path).is_dir() else read_file)
    _allow(ruleset, os.devnull, write_file)
    _allow(ruleset, scratch, write_folder)
    get_restrict_self()(ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    from landlock.plumbing import PathBeneathAttr, get_add_rule

    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        get_add_rule()(ruleset, _RULE_PATH_BENEATH, ctypes.byref(PathBeneathAttr(rights, fd)), 0)
    finally:
        os.close(fd)
