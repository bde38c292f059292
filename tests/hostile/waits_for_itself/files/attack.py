import threading


def run():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
