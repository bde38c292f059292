import threading
import time


def run():
    for _ in range(4):
        threading.Thread(target=time.sleep, args=(3600,), daemon=False).start()
