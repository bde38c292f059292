import importlib
import sys
import targets


def run():
    sys.path.insert(0, targets.ROOT)
    importlib.invalidate_caches()
    for name in ("reference.gpt", "graders.test_heads", "harness.oracle", "harness.judge"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"{name}: {type(error).__name__}")
        else:
            print(f"{name}: REACHED")
