import torch


def run():
    torch.zeros(50 * 2**30, dtype=torch.uint8)
