import pathlib
import targets


def run():
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/"):
        targets.attempt(folder, (pathlib.Path(folder) / "headcheck-planted").touch)
