def run():
    files = [open("many", "w", encoding="utf-8") for _ in range(10_000)]
