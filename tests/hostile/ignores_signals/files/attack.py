import contextlib
import signal


def run():
    for number in set(signal.Signals):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    while True:
        pass
