import os


def run():
    os.environ.clear()
    os.environ["OMP_NUM_THREADS"] = "99"
    os.environ["PATH"] = "/planted"
    os.umask(0o777)
    os.mkdir("elsewhere")
    os.umask(0)
    os.mkdir("else")
    os.chdir("else")
