"""Softmax with a temperature: how bold a language model is when it picks the next token."""

# --- omit
import torch

# --- end
from torch import Tensor


def temperature_softmax(logits: Tensor, temperature: float) -> Tensor:
    """The probabilities of the next token: softmax(logits / temperature) along V.

    A temperature below 1 sharpens the choice, one above 1 evens it out.

    Args:
        logits: (B, V), a row a sentence. They may be so large that exp(logits) overflows.
        temperature: above 0.

    Returns:
        (B, V), of the dtype of `logits`; each row sums to 1.

    Raises:
        ValueError: the temperature is not above 0. The message names it.
    """
    # --- answer: temperature: divide by the temperature and make each row sum to 1
    # --- more: Refuse a temperature that is not above 0.
    if temperature <= 0:
        raise ValueError(f"the temperature must be above 0, not {temperature}")
    scaled = logits / temperature  # (B, V)
    powers = torch.exp(scaled - scaled.amax(dim=-1, keepdim=True))  # (B, V), the largest of each row is 1
    return powers / powers.sum(dim=-1, keepdim=True)  # (B, V)
    # --- end
