"""An interpreter that an ordinary user can run, for tests that root starts.

The sandbox must hold for root and for everybody else, but root's interpreter often lies under /root, where
nobody else may look. `prepare` puts what cannot be reached (Python itself, its library, the installed
packages) into a folder that can, as hard links where the file system allows: a second or two, and no space.
`python tests/ordinary_user.py` shows it.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NOBODY = 65534
_UNNEEDED = shutil.ignore_patterns("site-packages", "test", "idlelib", "ensurepip", "config-*")


@dataclass(frozen=True)
class OrdinaryUser:
    """How to start Python as `uid`: pass `popen` to subprocess.Popen and merge `environment` into env."""

    python: str
    environment: Mapping[str, str]
    popen: Mapping[str, Any] = field(default_factory=lambda: {"user": NOBODY, "group": NOBODY, "extra_groups": []})


def available() -> bool:
    """Whether this process may start processes of another user."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    done = subprocess.run(["/bin/true"], user=NOBODY, group=NOBODY, extra_groups=[], check=False)
    return done.returncode == 0


def reachable(path: Path) -> bool:
    """Whether everybody may read `path`: every folder on the way to the real file lets others pass."""
    real = path.resolve()
    passable = all(folder.stat().st_mode & stat.S_IXOTH for folder in real.parents)
    return passable and bool(real.stat().st_mode & stat.S_IROTH)


def prepare(folder: Path) -> OrdinaryUser:
    """Make Python and the installed packages reachable for everybody, in `folder` where they are not already.

    `folder` must itself be reachable: make it with tempfile.mkdtemp and mode 0755.
    """
    packages = Path(sysconfig.get_path("purelib"))
    if not reachable(packages):
        packages = _link_tree(packages, folder / "site-packages")
    executable = Path(sys.executable).resolve()
    stdlib = Path(sysconfig.get_path("stdlib"))
    environment = {"PYTHONPATH": str(packages)}
    if not (reachable(executable) and reachable(stdlib)):
        python = folder / "bin" / executable.name
        python.parent.mkdir()
        _link(str(executable), str(python))
        # Python finds its library beside itself: bin/../lib/pythonX.Y.
        _link_tree(stdlib, folder / "lib" / stdlib.name)
        for library in Path(sysconfig.get_config_var("LIBDIR")).glob("libpython*.so*"):
            _link(str(library), str(folder / "lib" / library.name))
        environment["LD_LIBRARY_PATH"] = str(folder / "lib")
        executable = python
    return OrdinaryUser(str(executable), environment)


def _link_tree(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, copy_function=_link, ignore=_UNNEEDED)
    return target


def _link(source: str, target: str) -> str:
    try:
        os.link(Path(source).resolve(), target)
    except OSError:  # another file system
        shutil.copy2(source, target)
    return target


if __name__ == "__main__":
    place = Path(tempfile.mkdtemp(prefix="headcheck-ordinary-user-"))
    place.chmod(0o755)
    try:
        user = prepare(place)
        print(f"{user.python} with {dict(user.environment)}")
        code = "import os, sys, torch; print('uid', os.getuid(), 'torch', torch.__version__, 'from', sys.prefix)"
        subprocess.run([user.python, "-c", code], env=dict(user.environment), check=True, **user.popen)
    finally:
        shutil.rmtree(place)
