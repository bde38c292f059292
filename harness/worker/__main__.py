"""Entry of a spawned worker: `python -m harness.worker HOME LIMITS ISOLATION [DESCRIPTOR DESCRIPTOR]`."""

from harness.worker.torch_import import import_torch

if __name__ == "__main__":
    import_torch()
    from harness.worker import serve

    serve.main()
