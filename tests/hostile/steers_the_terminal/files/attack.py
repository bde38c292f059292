def run():
    print("\x1b[2J\x1b]0;title\x07")
    raise type("\x1b[31mRed", (Exception,), {})("\x1b[2J \u202e \r\x08")
