import pathlib


def run():
    print("REACHED" if pathlib.Path("data").exists() else "nothing there")
