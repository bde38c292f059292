"""Rotary position embedding (RoPE): the position turns queries and keys instead of being added to the input.

Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding" (arXiv 2104.09864), section 3.
Letters in the shape comments: B batch, T time, C channels, H heads, D channels of one head.
"""

import torch
from gpt import GPT, CausalSelfAttention, GPTConfig
from torch import Tensor


def rope_frequencies(head_dim: int, base: float = 10000.0) -> Tensor:
    """The angle by which each pair of channels turns from one position to the next, in radians: (D / 2,).

    D is head_dim. Pair i turns by base^(-2i / D), i = 0, 1, ... (RoFormer, section 3.2.2): the first pair by
    one radian, the others ever slower. Returns float64 (float32 will do), so that nothing but the dtype of
    the model limits the precision. Raises ValueError that names head_dim when it is odd or below 2.
    """
    # --- answer: rope: refuse a head_dim that has no pairs, then return one frequency a pair
    # --- more: The formula is in the docstring. Check yours by hand for head_dim = 4, base = 100.
    if head_dim < 2 or head_dim % 2 != 0:
        raise ValueError(f"head_dim = {head_dim} cannot be cut into pairs: it must be even and at least 2")
    pair = torch.arange(0, head_dim, 2, dtype=torch.float64)  # (D/2,): 0, 2, 4, ... is 2i already
    return base ** (-pair / head_dim)  # (D/2,)
    # --- end


def apply_rope(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Turns each pair of channels of x by its frequency times the position.

    x: (..., T, D) with D even. positions: (T,), whole numbers or not, of any size and sign. Returns a tensor
    of the same shape and dtype as x. The angles are computed in at least float32, in float64 if x is float64.
    The course pairs neighbours, channels 2i and 2i + 1, as RoFormer does. To pair channel i with i + D/2, as
    GPT-NeoX and Hugging Face's Llama do, is exactly as good, as long as queries and keys do the same.
    """
    # --- answer: rope: turn every pair of channels by its angle at every position
    # --- more: A turn in the plane keeps the length of the pair, and two turns in a row add up.
    dtype = torch.promote_types(x.dtype, torch.float32)
    frequencies = rope_frequencies(x.size(-1), base).to(dtype).to(x.device)  # (D/2,)
    angles = positions.to(x.device, dtype)[:, None] * frequencies  # (T, D/2)
    cos, sin = angles.cos(), angles.sin()  # (T, D/2) each
    first, second = x.to(dtype).unflatten(-1, (-1, 2)).unbind(-1)  # (..., T, D/2) each
    turned = torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1)  # (..., T, D/2, 2)
    return turned.flatten(-2).to(x.dtype)  # (..., T, D)
    # --- end


class RotaryCausalSelfAttention(CausalSelfAttention):
    """Attention of several heads that knows how far apart two positions are, by RoPE."""

    def __init__(self, config: GPTConfig) -> None:
        """Raises ValueError when rotary_dim is odd, below 2 or more than the channels of a head."""
        super().__init__(config)
        head_dim = config.n_embd // config.n_head
        self.rotary_dim = head_dim if config.rotary_dim is None else config.rotary_dim
        if not 2 <= self.rotary_dim <= head_dim or self.rotary_dim % 2 != 0:
            raise ValueError(f"rotary_dim = {self.rotary_dim} must be even and between 2 and {head_dim}")

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C): as in `CausalSelfAttention`, with RoPE for the positions 0, 1, ... T - 1.

        In every head the first `rotary_dim` channels turn: all of them, unless the config says otherwise.
        """
        # --- answer: rope: attention as before, with apply_rope where positions must count
        # --- more: Which of q, k and v must know where they are, for the scores to depend on the distance?
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))  # (B, H, T, D) each
        positions, R = torch.arange(x.size(1), device=x.device), self.rotary_dim  # (T,)
        q = torch.cat((apply_rope(q[..., :R], positions), q[..., R:]), dim=-1)  # (B, H, T, D)
        k = torch.cat((apply_rope(k[..., :R], positions), k[..., R:]), dim=-1)  # (B, H, T, D)
        weights = self.weights_dropout(self.attention_weights(q, k))  # (B, H, T, T)
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))  # (B, T, C)
        # --- end


class RotaryGPT(GPT):
    """The GPT of the course with RoPE in every layer in place of the position table."""

    attention_class = RotaryCausalSelfAttention
    positions = ("rope",)
