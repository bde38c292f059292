"""Mistakes in rotary position embedding, as people really make them: each must be caught and named."""

import torch
from rope import apply_rope, rope_frequencies

# The frequencies


class ExponentDoubled:
    """2i with an i that steps by 2 already."""

    id = "rope.exponent-doubled"
    of = "rope"
    source = "SamLynnEvans/Transformer#25, the same slip in a sinusoidal encoding"
    hint = (
        "Your frequencies fall twice as fast as they should. If your counter already goes 0, 2, 4, ..., it "
        "is the 2i of the formula."
    )

    def rope_frequencies(head_dim, base=10000.0):
        if head_dim < 2 or head_dim % 2 != 0:
            raise ValueError(f"head_dim = {head_dim} must be even and at least 2")
        i = torch.arange(0, head_dim, 2, dtype=torch.float64)
        return base ** (-2 * i / head_dim)


class ExponentHalved:
    """The factor 2 is missing in the exponent."""

    id = "rope.exponent-halved"
    of = "rope"
    source = "own: the counterpart of the doubled exponent"
    hint = (
        "Your frequencies fall only half as fast as they should: compare your exponent with that of the "
        "docstring for the last pair."
    )

    def rope_frequencies(head_dim, base=10000.0):
        if head_dim < 2 or head_dim % 2 != 0:
            raise ValueError(f"head_dim = {head_dim} must be even and at least 2")
        i = torch.arange(head_dim // 2, dtype=torch.float64)
        return base ** (-i / head_dim)


class ExponentPositive:
    """The minus sign is missing: the pairs turn ever faster."""

    id = "rope.exponent-positive"
    of = "rope"
    source = "own: multiplied by base^(2i/D) instead of divided"
    hint = (
        "Your last pair turns thousands of times faster than the first. The sign of the exponent decides "
        "which way it goes."
    )

    def rope_frequencies(head_dim, base=10000.0):
        if head_dim < 2 or head_dim % 2 != 0:
            raise ValueError(f"head_dim = {head_dim} must be even and at least 2")
        i = torch.arange(0, head_dim, 2, dtype=torch.float64)
        return base ** (i / head_dim)


class SpacedToTheEnd:
    """The exponents are spread evenly from 0 to 1, with 1 itself."""

    id = "rope.spaced-to-the-end"
    of = "rope"
    source = "own: linspace(0, 1), as tensor2tensor's timescales are spaced"
    hint = (
        "Your slowest pair turns by exactly 1 / base, so your exponents reach the end of the interval. In "
        "the formula they stop one step before it."
    )

    def rope_frequencies(head_dim, base=10000.0):
        if head_dim < 2 or head_dim % 2 != 0:
            raise ValueError(f"head_dim = {head_dim} must be even and at least 2")
        return base ** -torch.linspace(0, 1, head_dim // 2, dtype=torch.float64)


class OtherBase:
    """The base is ten times too small: a zero lost."""

    id = "rope.other-base"
    of = "rope"
    source = "karpathy/llama2.c#356, ggml-org/llama.cpp#3090"
    hint = (
        "Your frequencies belong to another base. Count the zeros, and look at what your code does with the argument."
    )

    def rope_frequencies(head_dim, base=10000.0):
        if head_dim < 2 or head_dim % 2 != 0:
            raise ValueError(f"head_dim = {head_dim} must be even and at least 2")
        return (base / 10) ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)


class BaseIgnored:
    """10000 is written into the formula; the argument is never used."""

    id = "rope.base-ignored"
    of = "rope"
    source = "ggml-org/llama.cpp#3090: models with another base came out wrong"
    hint = "Your frequencies are the same for every base. The usual value is only the default of the argument."

    def rope_frequencies(head_dim, base=10000.0):
        if head_dim < 2 or head_dim % 2 != 0:
            raise ValueError(f"head_dim = {head_dim} must be even and at least 2")
        return 10000.0 ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)


class BaseNotPassedOn:
    """apply_rope does not hand its base on to the frequencies."""

    id = "rope.base-not-passed-on"
    of = "rope"
    source = "own: a default argument that hides a missing one"
    hint = (
        "apply_rope turns the same for every base, although your frequencies know better. Follow the "
        "argument from one function to the other."
    )

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1)).to(dtype))
        a, b = x.to(dtype).unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


class HalfPrecision:
    """The frequencies are kept in half precision."""

    id = "rope.half-precision"
    of = "rope"
    source = "EleutherAI/gpt-neox#1003, huggingface/transformers#25681"
    hint = (
        "Your frequencies are right to three digits only, and at position 1000 that error has grown a "
        "thousandfold. Keep them in a precise dtype."
    )

    def rope_frequencies(head_dim, base=10000.0):
        if head_dim < 2 or head_dim % 2 != 0:
            raise ValueError(f"head_dim = {head_dim} must be even and at least 2")
        return (base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)).half()


class OneFrequencyAChannel:
    """D frequencies instead of D/2: one a channel."""

    id = "rope.one-frequency-a-channel"
    of = "rope"
    source = "own: arange(D), each channel with an angle of its own"
    hint = "You return one frequency for every channel. Channels turn in pairs, so there are half as many."

    def rope_frequencies(head_dim, base=10000.0):
        if head_dim < 2 or head_dim % 2 != 0:
            raise ValueError(f"head_dim = {head_dim} must be even and at least 2")
        return base ** (-torch.arange(head_dim, dtype=torch.float64) / head_dim)


class OddAccepted:
    """An odd head_dim is accepted in silence."""

    id = "rope.odd-accepted"
    of = "rope"
    source = "codertimo/BERT-pytorch#78: an odd dimension crashes later, without a word on why"
    hint = (
        "With 5 channels one is left without a partner, and your function does not say so. The docstring "
        "names the error that it should raise."
    )

    def rope_frequencies(head_dim, base=10000.0):
        return base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)


# The rotation


class NeighbourAnglesOnHalves:
    """repeat_interleave for the angles, rotate_half for the channels: two conventions in one."""

    id = "rope.neighbour-angles-on-halves"
    of = "rope"
    source = "raiyanyahya/how-to-train-your-gpt#6"
    hint = (
        "Your angles are laid out for neighbouring channels and your turn for halves. Either convention is "
        "fine; the two halves of your code must use the same."
    )

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        angles = angles.repeat_interleave(2, dim=-1)
        a, b = x.to(dtype).chunk(2, dim=-1)
        return (x.to(dtype) * angles.cos() + torch.cat((-b, a), dim=-1) * angles.sin()).to(x.dtype)


class HalfAnglesOnNeighbours:
    """cat for the angles, neighbours for the channels: the other mixture."""

    id = "rope.half-angles-on-neighbours"
    of = "rope"
    source = "raiyanyahya/how-to-train-your-gpt#6, the other way round"
    hint = (
        "Your angles are laid out for halves and your turn for neighbouring channels. Either convention is "
        "fine; the two halves of your code must use the same."
    )

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        angles = torch.cat((angles, angles), dim=-1)
        a, b = x.to(dtype).unflatten(-1, (-1, 2)).unbind(-1)
        swapped = torch.stack((-b, a), dim=-1).flatten(-2)
        return (x.to(dtype) * angles.cos() + swapped * angles.sin()).to(x.dtype)


class MinusLost:
    """Both sines have the same sign: the pairs are stretched, not turned."""

    id = "rope.minus-lost"
    of = "rope"
    source = "own: the one minus of the rotation matrix forgotten"
    hint = "Your pairs change their length, so they are not turned. A rotation matrix has a minus in one place."

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        a, b = x.to(dtype).unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack((a * cos + b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


class FirstOverwritten:
    """The second channel of a pair is computed from the new value of the first."""

    id = "rope.first-overwritten"
    of = "rope"
    source = "own: an in-place loop that forgets to keep the old value"
    hint = (
        "The second channel of each pair is computed from the first one after that was changed. Keep both "
        "old values until both new ones are there."
    )

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        cos, sin = angles.cos(), angles.sin()
        out = x.to(dtype).clone()
        out[..., ::2] = out[..., ::2] * cos - out[..., 1::2] * sin
        out[..., 1::2] = out[..., ::2] * sin + out[..., 1::2] * cos
        return out.to(x.dtype)


class AddedNotTurned:
    """Sines and cosines are added to the channels, as in the sinusoidal encoding."""

    id = "rope.added-not-turned"
    of = "rope"
    source = "own: the encoding of the first Transformer taken for RoPE"
    hint = (
        "You add sines and cosines to the channels. That is the older, sinusoidal encoding: here nothing is "
        "added, pairs of channels are turned."
    )

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        waves = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)
        return (x.to(dtype) + waves).to(x.dtype)


class OnlyCosine:
    """Each channel is multiplied by its cosine; the partner takes no part."""

    id = "rope.only-cosine"
    of = "rope"
    source = "own: half of the rotation"
    hint = "Each of your channels is only made smaller. In a turn, both channels of a pair go into both results."

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        return (x.to(dtype) * angles.cos().repeat_interleave(2, dim=-1)).to(x.dtype)


class Degrees:
    """The angles are taken for degrees."""

    id = "rope.degrees"
    of = "rope"
    source = "own: deg2rad added to be careful"
    hint = "Your turns are 57 times too small, which is what comes out when radians are treated as degrees."

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.to(dtype), rope_frequencies(x.size(-1), base).to(dtype)).deg2rad()
        a, b = x.to(dtype).unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


class SameAngleForAllPairs:
    """All pairs turn with the first frequency."""

    id = "rope.same-angle-for-all-pairs"
    of = "rope"
    source = "own: the frequencies reduced to one number"
    hint = "All your pairs turn together. Each has a frequency of its own, so that near and far can both be told."

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = positions.to(dtype)[:, None] * rope_frequencies(x.size(-1), base).to(dtype)[0]
        a, b = x.to(dtype).unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


class PositionsIgnored:
    """The positions are always 0, 1, 2, ...: a step with a cache starts again at 0."""

    id = "rope.positions-ignored"
    of = "rope"
    source = "ml-explore/mlx-lm#93, pytorch/executorch#2010"
    hint = (
        "Your turns do not depend on the positions that are handed in: they always count from 0. Text that "
        "begins at position 40 must be turned for 40."
    )

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        places = torch.arange(x.size(-2), device=x.device, dtype=dtype)
        angles = torch.outer(places, rope_frequencies(x.size(-1), base).to(dtype))
        a, b = x.to(dtype).unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


class WholePositionsOnly:
    """The positions are cut to whole numbers."""

    id = "rope.whole-positions-only"
    of = "rope"
    source = "own: positions.long() for an index into a table of angles"
    hint = (
        "Positions 2.5 and 2 come out the same: somewhere your positions become whole numbers. Nothing in "
        "the formula needs that."
    )

    def apply_rope(x, positions, base=10000.0):
        dtype = torch.promote_types(x.dtype, torch.float32)
        angles = torch.outer(positions.long().to(dtype), rope_frequencies(x.size(-1), base).to(dtype))
        a, b = x.to(dtype).unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


class AnglesInTheDtypeOfX:
    """The angles are computed in the dtype of x, half precision too."""

    id = "rope.angles-in-the-dtype-of-x"
    of = "rope"
    source = "huggingface/transformers#25681: angles drift in bfloat16"
    hint = (
        "With half-precision input your far positions are off: there, even the position itself is rounded. "
        "Compute the angles in at least float32 and convert at the end."
    )

    def apply_rope(x, positions, base=10000.0):
        angles = torch.outer(positions.to(x.dtype), rope_frequencies(x.size(-1), base).to(x.dtype))
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


class AlwaysFloat32:
    """The result is float32, whatever x was."""

    id = "rope.always-float32"
    of = "rope"
    source = "huggingface/transformers#22234: rotary tables do not follow the model's dtype"
    hint = (
        "Your result is float32 whatever dtype comes in, so a model in another dtype breaks when queries "
        "meet values. Give back the dtype of x."
    )

    def apply_rope(x, positions, base=10000.0):
        angles = torch.outer(positions.float(), rope_frequencies(x.size(-1), base).float())
        a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


# Where attention turns


class OnlyQueries:
    """Only the queries are turned."""

    id = "rope.only-queries"
    of = "rope.RotaryCausalSelfAttention"
    source = "vllm-project/vllm-omni#3828"
    hint = (
        "Only your queries are turned, so a score depends on where the query stands and not on the distance. "
        "What does the query meet?"
    )

    def forward(self, x):
        R, p = self.rotary_dim, torch.arange(x.size(1), device=x.device)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        q = torch.cat((apply_rope(q[..., :R], p), q[..., R:]), dim=-1)
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class OnlyKeys:
    """Only the keys are turned."""

    id = "rope.only-keys"
    of = "rope.RotaryCausalSelfAttention"
    source = "vllm-project/vllm-omni#3828, the other one of the two"
    hint = (
        "Only your keys are turned, so a score depends on where the key stands and not on the distance. What "
        "does the key meet?"
    )

    def forward(self, x):
        R, p = self.rotary_dim, torch.arange(x.size(1), device=x.device)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        k = torch.cat((apply_rope(k[..., :R], p), k[..., R:]), dim=-1)
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class ValuesTurned:
    """The values are turned as well."""

    id = "rope.values-turned"
    of = "rope.RotaryCausalSelfAttention"
    source = "lucidrains/x-transformers#182"
    hint = (
        "Your values are turned too. The turn is there to make scores depend on the distance; what a "
        "position has to say should not change with it."
    )

    def forward(self, x):
        R, p = self.rotary_dim, torch.arange(x.size(1), device=x.device)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        q, k, v = (torch.cat((apply_rope(t[..., :R], p), t[..., R:]), dim=-1) for t in (q, k, v))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class InputTurned:
    """The input of the layer is turned, before qkv."""

    id = "rope.input-turned"
    of = "rope.RotaryCausalSelfAttention"
    source = "own: RoPE put where the position table was"
    hint = (
        "You turn the input of the layer, so the values get it too, and qkv mixes the pairs afterwards. The "
        "turn belongs right before the scores."
    )

    def forward(self, x):
        x = apply_rope(x, torch.arange(x.size(1), device=x.device))
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class TurnedBeforeTheSplit:
    """Queries and keys are turned over all C channels, before the heads are cut."""

    id = "rope.turned-before-the-split"
    of = "rope.RotaryCausalSelfAttention"
    source = "Lightricks/LTX-Video#224"
    hint = (
        "You turn queries and keys before they are cut into heads, so the frequencies are spread over all C "
        "channels. Every head should have the whole range."
    )

    def forward(self, x):
        p = torch.arange(x.size(1), device=x.device)
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (self.split_heads(t) for t in (apply_rope(q, p), apply_rope(k, p), v))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class TurnedOverHeads:
    """The turn runs over the axis of the heads, where it cancels as if it were missing altogether."""

    id = "rope.turned-over-heads"
    of = "rope.RotaryCausalSelfAttention"
    source = "facebookresearch/xformers#841, mlfoundations/open_lm#4"
    hint = (
        "Positions take no part in your scores: the turn is missing, or it runs over the heads. apply_rope "
        "takes time as the axis before the channels; is it there when you call it?"
    )

    def forward(self, x):
        R, p = self.rotary_dim, torch.arange(self.n_head, device=x.device)
        q, k, v = (t.unflatten(-1, (self.n_head, -1)) for t in self.qkv(x).chunk(3, dim=-1))
        q, k = (torch.cat((apply_rope(t[..., :R], p), t[..., R:]), dim=-1) for t in (q, k))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class KeysShifted:
    """The keys' positions are one ahead of those of the queries."""

    id = "rope.keys-shifted"
    of = "rope.RotaryCausalSelfAttention"
    source = "own: an off-by-one that no test of norms or distances alone can see"
    hint = "A position does not meet itself at distance 0 in your code: queries and keys count from different numbers."

    def forward(self, x):
        R, p = self.rotary_dim, torch.arange(x.size(1), device=x.device)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        q = torch.cat((apply_rope(q[..., :R], p), q[..., R:]), dim=-1)
        k = torch.cat((apply_rope(k[..., :R], p + 1), k[..., R:]), dim=-1)
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class TurnedAgainstEachOther:
    """Queries turn one way, keys the other: scores depend on the sum of the positions."""

    id = "rope.turned-against-each-other"
    of = "rope.RotaryCausalSelfAttention"
    source = "own: the minus of m - n put into the positions of the keys"
    hint = (
        "Your queries and keys turn in opposite directions, so the scores depend on the sum of the two "
        "positions. The product itself already takes the difference."
    )

    def forward(self, x):
        R, p = self.rotary_dim, torch.arange(x.size(1), device=x.device)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        q = torch.cat((apply_rope(q[..., :R], p), q[..., R:]), dim=-1)
        k = torch.cat((apply_rope(k[..., :R], -p), k[..., R:]), dim=-1)
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class TurnedTwice:
    """Queries and keys are turned twice."""

    id = "rope.turned-twice"
    of = "rope.RotaryCausalSelfAttention"
    source = "own: once in a helper and once more in forward"
    hint = "Your scores are those of a text with twice the distances: queries and keys have been turned twice."

    def forward(self, x):
        R, p = self.rotary_dim, torch.arange(x.size(1), device=x.device)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        q = torch.cat((apply_rope(apply_rope(q[..., :R], p), p), q[..., R:]), dim=-1)
        k = torch.cat((apply_rope(apply_rope(k[..., :R], p), p), k[..., R:]), dim=-1)
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class RotaryDimIgnored:
    """All channels are turned, whatever rotary_dim says."""

    id = "rope.rotary-dim-ignored"
    of = "rope.RotaryCausalSelfAttention"
    source = "own: the default, where it makes no difference, is all that was tried"
    hint = (
        "All channels of your heads turn even when only some of them should. Compare with what the docstring "
        "says about rotary_dim."
    )

    def forward(self, x):
        p = torch.arange(x.size(1), device=x.device)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        weights = self.weights_dropout(self.attention_weights(apply_rope(q, p), apply_rope(k, p)))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class RestDropped:
    """The channels that are not turned are left out of the scores."""

    id = "rope.rest-dropped"
    of = "rope.RotaryCausalSelfAttention"
    source = "own: the turned slice used in place of the whole"
    hint = (
        "When only a part of the channels turns, your scores are made from that part alone. The others still "
        "count, just without a turn."
    )

    def forward(self, x):
        R, p = self.rotary_dim, torch.arange(x.size(1), device=x.device)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        weights = self.attention_weights(apply_rope(q[..., :R], p), apply_rope(k[..., :R], p))
        return self.output_dropout(self.proj(self.merge_heads(self.weights_dropout(weights) @ v)))


class LastChannelsTurned:
    """The last rotary_dim channels turn instead of the first."""

    id = "rope.last-channels-turned"
    of = "rope.RotaryCausalSelfAttention"
    source = "own: the two slices of a partial rotation swapped"
    hint = (
        "You turn the last channels of each head and leave the first ones alone. The docstring says which of them turn."
    )

    def forward(self, x):
        R, p = x.size(-1) // self.n_head - self.rotary_dim, torch.arange(x.size(1), device=x.device)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        q = torch.cat((q[..., :R], apply_rope(q[..., R:], p)), dim=-1)
        k = torch.cat((k[..., :R], apply_rope(k[..., R:], p)), dim=-1)
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))
