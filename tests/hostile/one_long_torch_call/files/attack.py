import torch


def run():
    torch.linalg.svd(torch.randn(6000, 6000, dtype=torch.float64))
