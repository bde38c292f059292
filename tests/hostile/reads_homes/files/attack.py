import os
import pathlib
import targets


def run():
    for name in ("/etc/passwd", "/etc/hostname", "/root", "/home", targets.HOME):
        path = pathlib.Path(name)
        if os.path.lexists(path):
            targets.attempt(name, path.read_bytes if path.is_file() else lambda path=path: list(path.iterdir()))
