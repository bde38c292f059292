import time
import targets


def run():
    targets.send_raw((0).to_bytes(4))
    time.sleep(3600)
