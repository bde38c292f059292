import os
import pathlib
import targets


def run():
    for name in ("self/environ", "self/mem", "self/maps", f"{targets.JUDGE_PID}/cmdline", f"{os.getppid()}/environ"):
        targets.attempt(
            name.replace(str(os.getppid()), "zygote").replace(str(targets.JUDGE_PID), "judge"),
            lambda name=name: pathlib.Path("/proc", name).open("rb").read(1),
        )
    targets.attempt("list", lambda: list(pathlib.Path("/proc").iterdir()))
