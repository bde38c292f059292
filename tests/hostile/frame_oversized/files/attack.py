import time
import targets


def run():
    targets.send_raw((2**32 - 1).to_bytes(4) + bytes(10))
    time.sleep(3600)
