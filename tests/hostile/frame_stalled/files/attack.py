import time
import targets


def run():
    targets.send_raw((100).to_bytes(4) + bytes(10))
    time.sleep(3600)
