import time
import targets


def run():
    targets.send(targets.value(targets.request(), targets.tensor("float32", [2**30, 2**30], bytes(4))))
    time.sleep(3600)
