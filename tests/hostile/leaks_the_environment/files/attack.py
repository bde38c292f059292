import os


def run():
    if os.environ.get("PATH") == "/planted":
        return
    os.environ.clear()
    os.environ["OMP_NUM_THREADS"] = "99"
    os.environ["PATH"] = "/planted"
    os.mkdir("else")
    os.umask(0o777)
    os.chdir("else")
