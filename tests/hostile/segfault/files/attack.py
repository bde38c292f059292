import ctypes


def run():
    ctypes.string_at(0)
