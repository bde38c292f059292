import time
import targets


def run():
    targets.send(bytes(range(256)))
    time.sleep(3600)
