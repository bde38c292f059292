import time
import targets


def run():
    targets.send(targets.value(targets.request(), b"\xdd\xff\xff\xff\xff"))
    time.sleep(3600)
