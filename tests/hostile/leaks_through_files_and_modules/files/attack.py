import builtins
import pathlib
import sys

print("REACHED" if hasattr(builtins, "planted") or pathlib.Path("planted").exists() else "nothing was left")


def run():
    builtins.planted = True
    sys.modules["planted"] = builtins
    pathlib.Path("planted").touch()
