import threading
import time


def run():
    for _ in range(100_000):
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
