import pathlib


def run():
    print("REACHED" if pathlib.Path("secret.txt").exists() else "nothing there")
