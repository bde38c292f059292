import time


def run():
    time.sleep(3600)
