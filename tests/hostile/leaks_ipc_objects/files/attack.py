import multiprocessing.shared_memory
import targets


def run():
    KEY, CREATE = 0x68656164, 0o1666
    targets.attempt("memory", lambda: targets.call("shmget", KEY, 4096, CREATE))
    targets.attempt("semaphores", lambda: targets.call("semget", KEY, 1, CREATE))
    targets.attempt("queue", lambda: targets.call("msgget", KEY, CREATE))
    targets.attempt(
        "named memory", lambda: multiprocessing.shared_memory.SharedMemory("headcheck-planted", create=True, size=4096)
    )
    targets.attempt("file", lambda: open("/dev/shm/headcheck-planted", "w", encoding="utf-8"))
