class Odd(Exception):
    def __str__(self):
        while True:
            pass


def run():
    raise Odd
