import os
import targets


def run():
    print("variable", "REACHED" if "HEADCHECK_CANARY_SECRET" in os.environ else "absent")
    print("in C", "REACHED" if targets.libc.getenv(b"HEADCHECK_CANARY_SECRET") else "absent")
    values = b" ".join(os.environb.values())
    print("values", "REACHED" if targets.SECRET.encode() in values else "absent")
    # The strings of the first environment lie above the stack, between the program's arguments and its file name.
    stack = targets.above_the_stack()
    print("above the stack", "REACHED" if targets.SECRET.encode() in stack else "absent", len(stack) > 200)
