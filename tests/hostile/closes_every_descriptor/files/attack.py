import os


def run():
    os.closerange(0, 1000)
