import os
import targets


def run():
    targets.send_raw((100).to_bytes(4) + bytes(10))
    os._exit(0)
