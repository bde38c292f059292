import os
import targets


def run():
    path = targets.CANARY
    targets.attempt("write", lambda: open(path, "a", encoding="utf-8"))
    targets.attempt("empty", lambda: os.truncate(path, 0))
    targets.attempt("empty on opening", lambda: os.open(path, os.O_RDONLY | os.O_TRUNC))
    targets.attempt("move", lambda: os.rename(path, path + ".moved"))
    targets.attempt("take", lambda: os.rename(path, "taken"))
    targets.attempt("delete", lambda: os.unlink(path))
    targets.attempt("make", lambda: open(path + ".made", "w", encoding="utf-8"))
    targets.attempt("folder", lambda: os.mkdir(path + ".folder"))
