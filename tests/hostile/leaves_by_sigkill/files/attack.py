import signal


def run():
    signal.raise_signal(signal.SIGKILL)
