import random
import warnings

import torch

warnings.simplefilter("error")
torch.set_num_threads(4)
torch.set_flush_denormal(True)
torch.manual_seed(0)
random.seed(0)
torch.set_printoptions(precision=1)


def run():
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.set_default_device("meta")
    torch.autograd.set_detect_anomaly(True)
