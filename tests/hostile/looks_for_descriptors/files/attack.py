import os


def run():
    found = []
    for number in range(3, 1000):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    print("open beside the three:", len(found))
