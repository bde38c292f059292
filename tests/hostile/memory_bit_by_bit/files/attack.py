def run():
    pieces = []
    while True:
        pieces.append(bytearray(2**22))
