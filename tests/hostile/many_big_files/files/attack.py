import pathlib
import time


def run():
    for number in range(40):
        pathlib.Path(f"file{number}").write_bytes(b"x" * 2**20)
    time.sleep(3600)
