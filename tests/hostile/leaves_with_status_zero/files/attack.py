import os


def run():
    os._exit(0)
