import os
import pathlib
import time


def run():
    for _ in range(30):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    for number in range(40):
        pathlib.Path(str(number)).write_bytes(b"x" * 2**20)
    time.sleep(3600)
