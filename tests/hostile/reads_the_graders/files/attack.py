import pathlib
import targets


def run():
    for name in ("graders/test_heads.py", "graders/course.toml"):
        targets.attempt(name, (pathlib.Path(targets.ROOT) / name).read_bytes)
