import re


def run():
    re.match(r"(a+)+$", "a" * 64 + "b")
