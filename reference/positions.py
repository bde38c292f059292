"""Position encodings that are computed instead of learned.

Letters in the shape comments: T time (positions), C channels.
"""

import torch
from torch import Tensor


def sinusoidal_encoding(length: int, dim: int) -> Tensor:
    """One row a position, of sines and cosines that turn ever slower: (T, C), float32.

    T is `length`, C is `dim`, odd or even. PE(pos, 2i) = sin(pos / 10000^(2i / C)) and PE(pos, 2i + 1) =
    cos(pos / 10000^(2i / C)): Vaswani et al. 2017 (arXiv 1706.03762), section 3.5. Raises ValueError for a
    size below 1.
    """
    # --- answer: positions: fill the even channels with sines and the odd ones with cosines
    # --- more: The formula is in the docstring. An odd C has one sine more than it has cosines.
    if length < 1 or dim < 1:
        raise ValueError(f"length and dim must be at least 1, not {length} and {dim}")
    even = torch.arange(0, dim, 2, dtype=torch.float64)  # (ceil(C/2),): 2i
    angles = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (even / dim)  # (T, ceil(C/2))
    encoding = torch.zeros(length, dim, dtype=torch.float64)  # (T, C)
    encoding[:, 0::2] = angles.sin()
    encoding[:, 1::2] = angles[:, : dim // 2].cos()
    return encoding.float()  # (T, C)
    # --- end
