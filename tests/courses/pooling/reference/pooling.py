"""One vector for a sentence: the mean over its tokens. Letters: B sentences, T tokens, C channels."""

from torch import Tensor


def mean_pool(x: Tensor, lengths: Tensor) -> Tensor:
    """The mean over the tokens of each sentence, without what pads it: (B, T, C) and (B,) -> (B, C).

    `lengths` says how many tokens of each sentence are its own, 1 or more; they come first.
    """
    # --- answer: pool: sum over the sentence's own tokens, and divide by how many they are
    own = (lengths[:, None] > x.new_ones(x.shape[:2]).cumsum(1) - 1).to(x.dtype)  # (B, T): 1 for a token, 0 for padding
    return (x * own[:, :, None]).sum(1) / lengths[:, None].to(x.dtype)  # (B, C)
    # --- end
