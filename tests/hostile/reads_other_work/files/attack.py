import pathlib
import targets


def run():
    other = pathlib.Path(targets.OTHER)
    targets.attempt("file", (other / "submission" / "gpt.py").read_bytes)
    targets.attempt("folder", lambda: list(other.parent.iterdir()))
    targets.attempt("scratch", (other / "scratch" / "planted").touch)
