import targets


def run():
    CLONE_NEWUSER = 0x10000000
    targets.attempt("namespace", lambda: targets.call("unshare", CLONE_NEWUSER))
    targets.attempt("mount", lambda: targets.call("mount", b"none", b"/tmp", b"tmpfs", 0, 0))
    targets.attempt("root", lambda: targets.call("chroot", b"/"))
    targets.attempt("keys", lambda: targets.call("keyctl", 0, -3, 0))
    targets.attempt("events", lambda: targets.call("perf_event_open", 0, 0, -1, -1, 0))
    targets.attempt("user", lambda: targets.call("setuid", 0))
    targets.attempt("death signal", lambda: targets.call("prctl", 1, 0, 0, 0, 0))
    targets.attempt("tracer", lambda: targets.call("prctl", 0x59616D61, -1, 0, 0, 0))
