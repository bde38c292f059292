def run():
    print("\ud800")
    raise ValueError("half \ud800 a character")
