class Odd(Exception):
    def __str__(self):
        return "x" * 100_000_000


def run():
    raise Odd
