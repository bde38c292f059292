import os
import pathlib
import time


def run():
    os.umask(0o477)
    os.mkdir("closed")
    for number in range(40):
        pathlib.Path(f"closed/{number}").write_bytes(b"x" * 2**20)
    time.sleep(3600)
