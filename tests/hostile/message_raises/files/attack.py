class Odd(Exception):
    def __str__(self):
        raise ValueError


def run():
    raise Odd
