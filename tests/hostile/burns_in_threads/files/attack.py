import threading
import time


def run():
    def burn():
        while True:
            pass

    for _ in range(4):
        threading.Thread(target=burn).start()
    time.sleep(3600)
