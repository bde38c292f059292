import pathlib


def run():
    print("REACHED" if pathlib.Path("poem.txt").exists() else "nothing there")
