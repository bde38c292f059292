import itertools
import pathlib


def run():
    for number in itertools.count():
        pathlib.Path(str(number)).touch()
