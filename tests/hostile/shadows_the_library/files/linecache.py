print("REACHED", __name__)
