import atexit
import time


def run():
    atexit.register(time.sleep, 3600)
