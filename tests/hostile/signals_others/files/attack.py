import os
import signal
import targets


def run():
    for name, pid in (("bystander", targets.CANARY_PID), ("judge", targets.JUDGE_PID), ("zygote", os.getppid())):
        targets.attempt(name, lambda pid=pid: os.kill(pid, signal.SIGTERM))
        targets.attempt(f"thread of {name}", lambda pid=pid: targets.call("tgkill", pid, pid, signal.SIGTERM))
    targets.attempt("everybody", lambda: os.kill(-1, signal.SIGTERM))
    targets.attempt("group", lambda: os.killpg(os.getppid(), signal.SIGTERM))
    targets.attempt("handle", lambda: os.pidfd_open(targets.CANARY_PID))
