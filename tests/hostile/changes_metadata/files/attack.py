import os
import targets


def run():
    path = targets.CANARY
    targets.attempt("mode", lambda: os.chmod(path, 0))
    targets.attempt("owner", lambda: os.chown(path, 1, 1))
    targets.attempt("times", lambda: os.utime(path, (0, 0)))
    targets.attempt("attribute", lambda: os.setxattr(path, "user.planted", b"x"))
