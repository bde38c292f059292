def run():
    while True:
        print("x" * 10_000)
