def run():
    raise ValueError("{text} {0.__class__} {what!r:>1000000000}")
