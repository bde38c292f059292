import time
import targets


def run():
    targets.send_raw((3).to_bytes(4) + targets.value(targets.request()))
    time.sleep(3600)
