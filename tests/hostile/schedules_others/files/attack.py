import os
import resource
import targets


def run():
    pid = targets.CANARY_PID
    targets.attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
    targets.attempt("processors", lambda: os.sched_setaffinity(pid, {0}))
    targets.attempt("policy", lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)))
    targets.attempt("limits", lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (16, 16)))
