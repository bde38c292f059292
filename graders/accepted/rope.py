"""Correct forms of RoPE, in every convention. Each must get full marks."""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from gpt import CausalSelfAttention
from rope import apply_rope, rope_frequencies


class HalfSplit:
    """Channel i paired with channel i + D/2, by rotate_half."""

    id = "rope.half-split"
    of = "rope"
    source = "seen in public code: half-split pairs (GPT-NeoX, Hugging Face's Llama)"

    def rotate_half(x):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        angles = torch.cat((angles, angles), dim=-1)
        y = x.to(dtype)
        return (y * angles.cos() + rotate_half(y) * angles.sin()).to(x.dtype)


class HalfSplitReversed:
    """Halves paired, and turned the other way on queries and keys alike."""

    id = "rope.half-split-reversed"
    of = "rope"
    source = "seen in public code: the sign reversed on BOTH q and k"

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        a, b = x.to(dtype).chunk(2, dim=-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat((a * cos + b * sin, b * cos - a * sin), dim=-1).to(x.dtype)


class ComplexNumbers:
    """Neighbours as complex numbers, multiplied by polar."""

    id = "rope.complex-numbers"
    of = "rope"
    source = "seen in public code: the original Llama with complex numbers"

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.shape[-1], base).to(dtype))
        pairs = torch.view_as_complex(x.to(dtype).reshape(*x.shape[:-1], -1, 2).contiguous())
        turned = pairs * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)


class RepeatedAngles:
    """Neighbours by slices with step 2, the angles repeated for both of a pair."""

    id = "rope.repeated-angles"
    of = "rope"
    source = "seen in public code: interleaved pairs (GPT-J: rotate_every_two)"

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        angles = angles.repeat_interleave(2, dim=-1)
        y = x.to(dtype)
        swapped = torch.stack((-y[..., 1::2], y[..., ::2]), dim=-1).flatten(-2)
        return (y * angles.cos() + swapped * angles.sin()).to(x.dtype)


class SignReversed:
    """Neighbours turned the other way, on queries and keys alike."""

    id = "rope.sign-reversed"
    of = "rope"
    source = "seen in public code: the sign reversed on BOTH q and k"

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = -torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        a, b = x.to(dtype)[..., ::2], x.to(dtype)[..., 1::2]
        out = torch.empty_like(x, dtype=dtype)
        out[..., ::2] = a * angles.cos() - b * angles.sin()
        out[..., 1::2] = a * angles.sin() + b * angles.cos()
        return out.to(x.dtype)


class ChannelsRegrouped:
    """Neighbours turned and given back as halves: the same order of channels for queries and keys."""

    id = "rope.channels-regrouped"
    of = "rope"
    source = "seen in public code: an output whose channels are permuted the same way for q and k"

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        a, b = x.to(dtype)[..., ::2], x.to(dtype)[..., 1::2]
        cos, sin = angles.cos(), angles.sin()
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


class SineAndCosineSwapped:
    """sin where cos should be and the other way round, on queries and keys alike."""

    id = "rope.sine-and-cosine-swapped"
    of = "rope"
    source = "seen in public code: sin and cos swapped on both (a quarter turn more, the other way)"

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        a, b = x.to(dtype)[..., ::2], x.to(dtype)[..., 1::2]
        cos, sin = angles.sin(), angles.cos()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


class FirstPositionIsOne:
    """Positions that start at 1, on queries and keys alike."""

    id = "rope.first-position-is-one"
    of = "rope"
    source = "seen in public code: positions that start at 1"

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype) + 1, rope_frequencies(x.size(-1), base).to(dtype))
        a, b = x.to(dtype).unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


class RotationMatrices:
    """One rotation matrix a position, block-diagonal, as the paper writes it."""

    id = "rope.rotation-matrices"
    of = "rope"
    source = "own: equation 15 of RoFormer taken literally"

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        T, D = x.shape[-2:]
        matrices = torch.zeros(T, D, D, dtype=dtype, device=x.device)
        for i, frequency in enumerate(rope_frequencies(D, base).tolist()):
            cos, sin = torch.cos(positions.to(dtype) * frequency), torch.sin(positions.to(dtype) * frequency)
            matrices[:, 2 * i, 2 * i] = matrices[:, 2 * i + 1, 2 * i + 1] = cos
            matrices[:, 2 * i, 2 * i + 1], matrices[:, 2 * i + 1, 2 * i] = -sin, sin
        return torch.einsum("tij,...tj->...ti", matrices, x.to(dtype)).to(x.dtype)


class AlwaysDouble:
    """Everything in float64, whatever the model's dtype."""

    id = "rope.always-double"
    of = "rope"
    source = "own: more precision than asked for"

    def apply_rope(x, positions, base=10000.0):
        angles = positions.double()[:, None] * rope_frequencies(x.size(-1), base).double()[None, :]
        a, b = x.double()[..., ::2], x.double()[..., 1::2]
        cos, sin = angles.cos(), angles.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


class PairByPair:
    """A loop over the pairs of channels."""

    id = "rope.pair-by-pair"
    of = "rope"
    source = "own: the definition as a loop"

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        out = x.to(dtype).clone()
        for i, frequency in enumerate(rope_frequencies(x.size(-1), base)):
            angle = positions.to(dtype) * frequency.to(dtype)
            a, b = x[..., 2 * i].to(dtype), x[..., 2 * i + 1].to(dtype)
            out[..., 2 * i] = a * angle.cos() - b * angle.sin()
            out[..., 2 * i + 1] = a * angle.sin() + b * angle.cos()
        return out.to(x.dtype)


class CachedTables:
    """cos and sin kept from call to call, in float64, and cast to the dtype that is needed."""

    id = "rope.cached-tables"
    of = "rope"
    source = "seen in public code: cached cos/sin"
    imports = "from functools import lru_cache"

    @lru_cache(maxsize=8)
    def tables(places, head_dim, base):
        angles = torch.outer(torch.tensor(places, dtype=torch.float64), rope_frequencies(head_dim, base))
        return angles.cos(), angles.sin()

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        cos, sin = (t.to(dtype) for t in tables(tuple(positions.tolist()), x.size(-1), base))
        a, b = x.to(dtype)[..., ::2], x.to(dtype)[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2).to(x.dtype)


class LlamaFrequencies:
    """1 / base ** (arange / D) in float32."""

    id = "rope.llama-frequencies"
    of = "rope"
    source = "own: the line in Llama's code; float32 frequencies are declared good enough"

    def rope_frequencies(head_dim, base=10000.0):
        if head_dim % 2 or head_dim <= 0:
            raise ValueError(f"RoPE needs an even head_dim, got {head_dim}")
        return 1.0 / (base ** (torch.arange(0, head_dim, 2).float() / head_dim))


class FrequenciesByExp:
    """exp of a multiple of log(base)."""

    id = "rope.frequencies-by-exp"
    of = "rope"
    source = "own: the usual form of sinusoidal encodings"
    imports = "import math"

    def rope_frequencies(head_dim, base=10000.0):
        if head_dim < 2 or head_dim % 2 == 1:
            raise ValueError(f"no pairs in {head_dim} channels")
        i = torch.arange(head_dim // 2, dtype=torch.double)
        return torch.exp(-math.log(base) * 2 * i / head_dim)


class FrequenciesByList:
    """A list comprehension over the pairs."""

    id = "rope.frequencies-by-list"
    of = "rope"
    source = "own: Python floats are float64 already"

    def rope_frequencies(head_dim, base=10000.0):
        if head_dim < 2 or head_dim & 1:
            raise ValueError(f"head_dim must be even and positive, but it is {head_dim}")
        return torch.tensor([base ** (-2 * i / head_dim) for i in range(head_dim // 2)], dtype=torch.float64)


class TurnedBeforeTheTranspose:
    """Queries and keys turned as (B, T, H, D), before the heads move in front of time."""

    id = "rope.turned-before-the-transpose"
    of = "rope.RotaryCausalSelfAttention"
    source = "seen in public code: layout (B, T, H, D) rotated before the transpose"

    def turn(self, x):
        R = self.rotary_dim
        angles = torch.outer(torch.arange(x.size(1), device=x.device).double(), rope_frequencies(R))
        cos, sin = angles.cos()[:, None, :].to(x), angles.sin()[:, None, :].to(x)
        a, b = x[..., 0:R:2], x[..., 1:R:2]
        turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
        return torch.cat((turned, x[..., R:]), dim=-1)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, C // self.n_head).unbind(2)
        q, k, v = (t.transpose(1, 2) for t in (self.turn(q), self.turn(k), v))
        return self.proj(self.merge_heads(self.weights_dropout(self.attention_weights(q, k)) @ v))


class QueriesAndKeysTogether:
    """Queries and keys stacked and turned in one call."""

    id = "rope.queries-and-keys-together"
    of = "rope.RotaryCausalSelfAttention"
    source = "own: apply_rope takes any leading shape"

    def forward(self, x):
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        both = torch.stack((q, k))
        turned = apply_rope(both[..., : self.rotary_dim], torch.arange(x.shape[1], device=x.device))
        q, k = torch.cat((turned, both[..., self.rotary_dim :]), dim=-1)
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class WithSdpa:
    """Turned queries and keys into F.scaled_dot_product_attention."""

    id = "rope.with-sdpa"
    of = "rope.RotaryCausalSelfAttention"
    source = "own: as most models with RoPE do"
    imports = "import torch.nn.functional as F"

    def forward(self, x):
        R, p = self.rotary_dim, torch.arange(x.shape[1], device=x.device)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        if R == q.size(-1):
            q, k = apply_rope(q, p), apply_rope(k, p)
        else:
            q = torch.cat((apply_rope(q[..., :R], p), q[..., R:]), dim=-1)
            k = torch.cat((apply_rope(k[..., :R], p), k[..., R:]), dim=-1)
        return self.proj(self.merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True)))


class CountedFromTheEnd:
    """Positions counted from the last character: distances are the same with the other sign."""

    id = "rope.counted-from-the-end"
    of = "rope.RotaryCausalSelfAttention"
    source = "own: only distances count, in either direction"

    def forward(self, x):
        R, p = self.rotary_dim, torch.arange(x.shape[1] - 1, -1, -1, device=x.device)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        q = torch.cat((apply_rope(q[..., :R], p), q[..., R:]), dim=-1)
        k = torch.cat((apply_rope(k[..., :R], p), k[..., R:]), dim=-1)
        return self.proj(self.merge_heads(self.attention_weights(q, k) @ v))


class WeightsOverridden:
    """attention_weights of the rotary class turns, and forward is the parent's."""

    id = "rope.weights-overridden"
    of = "rope.RotaryCausalSelfAttention"
    source = "own: the turn where scores are made; forward stays as short as can be"

    def attention_weights(self, q, k):
        R, p = self.rotary_dim, torch.arange(q.shape[-2], device=q.device)
        q = torch.cat((apply_rope(q[..., :R], p), q[..., R:]), dim=-1)
        k = torch.cat((apply_rope(k[..., :R], p), k[..., R:]), dim=-1)
        return super().attention_weights(q, k)

    def forward(self, x):
        return CausalSelfAttention.forward(self, x)
