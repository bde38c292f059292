import time
import targets


def run():
    targets.send(targets.value(targets.request() + 1000))
    time.sleep(3600)
