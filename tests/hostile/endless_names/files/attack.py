def run():
    raise type("E" * 1_000_000, (Exception,), {})("x")
