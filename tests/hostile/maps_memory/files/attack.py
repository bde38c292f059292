import mmap


def run():
    mmap.mmap(-1, 2**36, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
