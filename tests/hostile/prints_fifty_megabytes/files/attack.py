def run():
    print("x" * 50_000_000)
