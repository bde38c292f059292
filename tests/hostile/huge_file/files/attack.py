def run():
    with open("huge", "wb") as file:
        for _ in range(1000):
            file.write(bytes(2**20))
