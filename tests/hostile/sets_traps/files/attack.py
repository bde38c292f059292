import os
import targets


def run():
    targets.attempt("link", lambda: os.symlink(targets.CANARY, "link"))
    targets.attempt("hard link", lambda: os.link(targets.CANARY, "hard"))
    targets.attempt("hard link within", lambda: (open("own", "w", encoding="utf-8").close(), os.link("own", "own2")))
    targets.attempt("pipe", lambda: os.mkfifo("pipe"))
    targets.attempt("device", lambda: os.mknod("device", 0o020666, os.makedev(1, 3)))
    targets.attempt("set-user-id", lambda: os.open("program", os.O_CREAT | os.O_WRONLY, 0o4755))
