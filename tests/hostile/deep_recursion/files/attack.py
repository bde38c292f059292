def run():
    def again():
        again()

    again()
