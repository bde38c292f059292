import os
import targets


def run():
    PTRACE_ATTACH = 16
    for name, pid in (("bystander", targets.CANARY_PID), ("judge", targets.JUDGE_PID), ("zygote", os.getppid())):
        targets.attempt(f"trace {name}", lambda pid=pid: targets.call("ptrace", PTRACE_ATTACH, pid, 0, 0))
        targets.attempt(f"read {name}", lambda pid=pid: targets.call("process_vm_readv", pid, 0, 0, 0, 0, 0))
