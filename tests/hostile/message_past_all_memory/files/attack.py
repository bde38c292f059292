class Odd(Exception):
    def __str__(self):
        return "x" * 2**36


def run():
    raise Odd
