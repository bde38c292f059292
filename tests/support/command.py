"""Runs the real command line many times without paying for `import torch` each time.

A server process imports torch once, single-threaded, and forks for each command: the child is what `python grade.py`
is from the moment torch has loaded. Where forking a process that holds torch is not safe (Windows, macOS), each run is
a plain `python grade.py`. `Command.run` gives the exit status and what was printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    status: int
    stdout: str
    stderr: str


class Command:
    """The server, started at the first use.

    Args:
        root: the checkout whose command is run.
        forks: use the server; otherwise start Python anew for each run.
    """

    def __init__(self, root: Path = ROOT, forks: bool = sys.platform == "linux") -> None:
        self.root, self.forks = root, forks
        self.server: subprocess.Popen[str] | None = None

    def run(self, *arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> Finished:
        """Run `python grade.py ARGUMENTS`.

        Args:
            arguments: of the command.
            cwd: its current folder; a fresh one by default, so that no report is left in the repository.
            env: variables to set in addition. Output is English unless they say otherwise.
        """
        env = {"LC_ALL": "C.UTF-8"} | (env or {})
        if not self.forks:
            return self._run_alone(arguments, cwd, env)
        if self.server is None:
            self.server = subprocess.Popen(
                [sys.executable, "-m", "tests.support.command"],
                cwd=self.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
            )  # fmt: skip
        assert self.server.stdin is not None and self.server.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "stdout"), Path(folder, "stderr")
            request = {"arguments": [str(word) for word in arguments], "cwd": str(cwd or folder), "env": env,
                       "out": str(out), "err": str(err)}  # fmt: skip
            self.server.stdin.write(json.dumps(request) + "\n")
            self.server.stdin.flush()
            status = int(self.server.stdout.readline())
            return Finished(status, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))

    @staticmethod
    def _run_alone(arguments: tuple[str | Path, ...], cwd: Path | None, env: dict[str, str]) -> Finished:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, str(ROOT / "grade.py"), *map(str, arguments)],
                cwd=cwd or folder,
                env=os.environ | {"PYTHONUTF8": "1"} | env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=False,
            )
        return Finished(done.returncode, done.stdout, done.stderr)

    def close(self) -> None:
        if self.server is not None:
            self.server.communicate()


def _serve() -> None:
    from harness.worker.torch_import import import_torch

    import_torch()
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become_command(request)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become_command(request: dict[str, object]) -> None:
    os.chdir(str(request["cwd"]))
    os.environ.update(request["env"])  # type: ignore[arg-type]
    for file, flags, target in (
        (os.devnull, os.O_RDONLY, 0),
        (request["out"], os.O_WRONLY | os.O_CREAT, 1),
        (request["err"], os.O_WRONLY | os.O_CREAT, 2),
    ):
        descriptor = os.open(str(file), flags, 0o644)
        os.dup2(descriptor, target)
        os.close(descriptor)  # else every worker would inherit it
    from harness.cli import run

    status = 70  # what an exception that escapes looks like from outside
    try:
        status = run(list(request["arguments"]))  # type: ignore[call-overload]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if status == 70:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()
