"""Correct forms of attention in several heads. Each must get full marks."""

import torch
import torch.nn.functional as F
from torch import nn


class SplitCall:
    """q, k and v by split along dimension 2, every step written out in forward."""

    id = "heads.split-call"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: split(C, dim=2) with view and transpose; minGPT, nanoGPT"

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / (k.size(-1) ** 0.5))
        scores = scores.masked_fill(torch.tril(torch.ones(T, T, device=x.device)) == 0, float("-inf"))
        y = self.weights_dropout(F.softmax(scores, dim=-1)) @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.output_dropout(self.proj(y))


class SlicedThirds:
    """q, k and v cut out with slices."""

    id = "heads.sliced-thirds"
    of = "gpt.CausalSelfAttention"
    source = "own: the plainest reading of 'thirds'"

    def forward(self, x):
        C = x.shape[-1]
        z = self.qkv(x)
        q = self.split_heads(z[..., :C])
        k = self.split_heads(z[..., C : 2 * C])
        v = self.split_heads(z[..., 2 * C :])
        return self.output_dropout(self.proj(self.merge_heads(self.attention_weights(q, k) @ v)))


class FiveAxes:
    """view(B, T, 3, H, D) and permute: the same layout as thirds."""

    id = "heads.five-axes"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: view(B, T, 3, H, D).permute(2, 0, 3, 1, 4), as in timm"

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, C // self.n_head).permute(2, 0, 3, 1, 4)
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class WeightSlices:
    """The fused layer's weight cut into thirds before it is used."""

    id = "heads.weight-slices"
    of = "gpt.CausalSelfAttention"
    source = "own: F.multi_head_attention_forward does this with its in_proj_weight"

    def forward(self, x):
        thirds = zip(self.qkv.weight.chunk(3), self.qkv.bias.chunk(3), strict=True)
        q, k, v = (self.split_heads(F.linear(x, w, b)) for w, b in thirds)
        return self.proj(self.merge_heads(self.weights_dropout(self.attention_weights(q, k)) @ v))


class ReshapePermute:
    """Heads by reshape and permute."""

    id = "heads.reshape-permute"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: reshape + permute"

    def split_heads(self, x):
        B, T, C = x.shape
        return x.reshape(B, T, self.n_head, C // self.n_head).permute(0, 2, 1, 3)


class Unflatten:
    """Heads by unflatten and movedim."""

    id = "heads.unflatten"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: unflatten(-1, ...)"

    def split_heads(self, x):
        return x.unflatten(-1, (self.n_head, -1)).movedim(-2, -3)


class Swapaxes:
    """Heads by reshape and swapaxes."""

    id = "heads.swapaxes"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: swapaxes"

    def split_heads(self, x):
        return x.reshape(*x.shape[:2], self.n_head, -1).swapaxes(1, 2)


class ChunkAndStack:
    """Heads by cutting the channels into chunks and stacking these."""

    id = "heads.chunk-and-stack"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: a Python loop over heads"

    def split_heads(self, x):
        return torch.stack(x.chunk(self.n_head, dim=-1), dim=1)


class MergeFlatten:
    """Merging by transpose and flatten."""

    id = "heads.merge-flatten"
    of = "gpt.CausalSelfAttention"
    source = "own: the counterpart of unflatten"

    def merge_heads(self, x):
        return x.transpose(1, 2).flatten(-2)


class MergePermuteReshape:
    """Merging by permute and reshape."""

    id = "heads.merge-permute-reshape"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: reshape + permute"

    def merge_heads(self, x):
        B, H, T, D = x.shape
        return x.permute(0, 2, 1, 3).reshape(B, T, H * D)


class MergeCat:
    """Merging by concatenating the heads."""

    id = "heads.merge-cat"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: a Python loop over heads and cat"

    def merge_heads(self, x):
        return torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1)


class EinsumScores:
    """Scores by einsum."""

    id = "heads.einsum-scores"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: einsum"

    def attention_weights(self, q, k):
        T = q.shape[2]
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
        keep = torch.ones(T, T, device=q.device).tril().bool()
        return scores.masked_fill(~keep, float("-inf")).softmax(dim=-1)


class EinsumThroughout:
    """The whole of attention by einsum, without any transpose."""

    id = "heads.einsum-throughout"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: einsum"

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_head, -1).unbind(2)
        scores = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
        i = torch.arange(T, device=x.device)
        scores = torch.where(i[:, None] >= i, scores, -torch.inf)
        out = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v)
        return self.proj(out.reshape(B, T, C))


class FoldedIntoTheBatch:
    """Heads folded into the batch, (B * H, T, D), and bmm."""

    id = "heads.folded-into-the-batch"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: heads folded into the batch"

    def forward(self, x):
        B, T, C = x.shape
        H, D = self.n_head, C // self.n_head
        q, k, v = (t.reshape(B, T, H, D).transpose(1, 2).reshape(B * H, T, D) for t in self.qkv(x).chunk(3, dim=2))
        scores = torch.bmm(q, k.mT) / D**0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))
        out = torch.bmm(self.weights_dropout(scores.softmax(2)), v)
        return self.output_dropout(self.proj(out.reshape(B, H, T, D).transpose(1, 2).reshape(B, T, C)))


class LoopOverHeads:
    """One head after the other, then cat."""

    id = "heads.loop-over-heads"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: a Python loop over heads and cat"

    def forward(self, x):
        T, C = x.shape[1:]
        D = C // self.n_head
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        heads = []
        for h in range(self.n_head):
            part = slice(h * D, (h + 1) * D)
            scores = q[..., part] @ k[..., part].transpose(1, 2) / D**0.5
            scores = scores + torch.full((T, T), float("-inf"), device=x.device).triu(1)
            heads.append(self.weights_dropout(scores.softmax(-1)) @ v[..., part])
        return self.output_dropout(self.proj(torch.cat(heads, dim=-1)))


class KeyTransposedFirst:
    """The keys brought to (B, H, D, T) when they are cut."""

    id = "heads.key-transposed-first"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: K transposed beforehand; GPT-2's split_heads(x, k=True)"

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=-1)
        q, v = self.split_heads(q), self.split_heads(v)
        k = k.view(B, T, self.n_head, -1).permute(0, 2, 3, 1)
        scores = torch.matmul(q, k) / k.size(-2) ** 0.5
        scores = scores.masked_fill(torch.ones(T, T).to(x.device).tril() == 0, -torch.inf)
        return self.proj(self.merge_heads(self.weights_dropout(scores.softmax(-1)) @ v))


class ScaledBefore:
    """The scale on the queries, before the product."""

    id = "heads.scaled-before"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: scale inside or before the product"

    def attention_weights(self, q, k):
        T = q.size(-2)
        q = q * q.size(-1) ** -0.5
        future = torch.triu(torch.ones(T, T, device=q.device, dtype=torch.bool), diagonal=1)
        return torch.softmax((q @ k.transpose(2, 3)).masked_fill(future, -torch.inf), dim=3)


class ScaleShared:
    """The fourth root of the scale on the queries and on the keys."""

    id = "heads.scale-shared"
    of = "gpt.CausalSelfAttention"
    source = "own: openai/whisper and openai/guided-diffusion scale so"

    def attention_weights(self, q, k):
        D = q.size(-1)
        scores = (q * D**-0.25) @ (k * D**-0.25).transpose(-1, -2)
        return scores.masked_fill(torch.ones_like(scores[0, 0]).tril().eq(0), -torch.inf).softmax(-1)


class FillInPlace:
    """-1e9 filled in place where tril is 0."""

    id = "heads.fill-in-place"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: fill with -1e9, in place; The Annotated Transformer"

    def attention_weights(self, q, k):
        T = q.size(2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / q.size(-1) ** 0.5
        scores.masked_fill_(torch.tril(torch.ones(T, T, device=q.device)) == 0, -1e9)
        return F.softmax(scores, dim=-1)


class FillFinite:
    """-1e5 where the future is."""

    id = "heads.fill-finite"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: fill with -1e5"

    def attention_weights(self, q, k):
        T = q.size(2)
        scores = q @ k.mT / q.size(-1) ** 0.5
        return scores.masked_fill(torch.ones(T, T, device=q.device).triu(1).bool(), -1e5).softmax(-1)


class FillLowest:
    """The lowest number of the dtype where the future is."""

    id = "heads.fill-lowest"
    of = "gpt.CausalSelfAttention"
    source = "own: torch.finfo(dtype).min, as Hugging Face's models do"

    def attention_weights(self, q, k):
        T = q.size(2)
        scores = q @ k.mT / q.size(-1) ** 0.5
        future = torch.ones(T, T, device=q.device).triu(1).bool()
        return scores.masked_fill(future, torch.finfo(scores.dtype).min).softmax(-1)


class AdditiveMask:
    """A mask of 0 and -inf added to the scores."""

    id = "heads.additive-mask"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: additive; nn.Transformer.generate_square_subsequent_mask"

    def attention_weights(self, q, k):
        T = q.size(2)
        mask = nn.Transformer.generate_square_subsequent_mask(T, device=q.device, dtype=q.dtype)
        return F.softmax(q @ k.transpose(-2, -1) / q.size(-1) ** 0.5 + mask, dim=-1)


class MaskByWhere:
    """Positions compared, and torch.where."""

    id = "heads.mask-by-where"
    of = "gpt.CausalSelfAttention"
    source = "own: j <= i written as it is said"

    def attention_weights(self, q, k):
        i = torch.arange(q.size(-2), device=q.device)
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        minus_infinity = torch.tensor(float("-inf"), dtype=scores.dtype, device=scores.device)
        return torch.where(i[None, :] <= i[:, None], scores, minus_infinity).softmax(dim=-1)


class OwnSoftmax:
    """The softmax written out, with the mask as a factor between exp and sum."""

    id = "heads.own-softmax"
    of = "gpt.CausalSelfAttention"
    source = "own: softmax from its definition"

    def attention_weights(self, q, k):
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        e = torch.exp(scores - scores.amax(dim=-1, keepdim=True)).tril()
        return e / e.sum(dim=-1, keepdim=True)


class LogSoftmax:
    """log_softmax, then exp."""

    id = "heads.log-softmax"
    of = "gpt.CausalSelfAttention"
    source = "own: a habit from losses"

    def attention_weights(self, q, k):
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        hidden = torch.ones(q.size(-2), q.size(-2), device=q.device).tril().logical_not()
        return F.log_softmax(scores.masked_fill(hidden, -torch.inf), dim=-1).exp()


class RowByRow:
    """One row of weights after the other, each over the keys that it may see."""

    id = "heads.row-by-row"
    of = "gpt.CausalSelfAttention"
    source = "own: the mask avoided altogether"

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        weights = torch.zeros(*q.shape[:-1], T, dtype=q.dtype, device=q.device)
        for t in range(T):
            scores = (q[..., t : t + 1, :] * k[..., : t + 1, :]).sum(-1) / D**0.5
            weights[..., t, : t + 1] = scores.softmax(-1)
        return weights


class WeightsFromSdpa:
    """PyTorch's attention with the identity as values."""

    id = "heads.weights-from-sdpa"
    of = "gpt.CausalSelfAttention"
    source = "own: a known trick to read the weights"

    def attention_weights(self, q, k):
        T = q.size(-2)
        identity = torch.eye(T, dtype=q.dtype, device=q.device).expand(*q.shape[:2], T, T)
        return F.scaled_dot_product_attention(q, k, identity, is_causal=True)


class SdpaIsCausal:
    """F.scaled_dot_product_attention(is_causal=True)."""

    id = "heads.sdpa-is-causal"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: SDPA with is_causal; nanoGPT"

    def forward(self, x):
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        p = self.weights_dropout.p if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.output_dropout(self.proj(self.merge_heads(out)))


class SdpaBoolMask:
    """F.scaled_dot_product_attention with a mask in which True means attend."""

    id = "heads.sdpa-bool-mask"
    of = "gpt.CausalSelfAttention"
    source = "seen in public code: SDPA with a bool mask (True = attend)"

    def forward(self, x):
        T = x.size(1)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        mask = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        return self.proj(self.merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))


class MaskBuffer:
    """A mask of block_size x block_size kept as a buffer and cut to T."""

    id = "heads.mask-buffer"
    of = "gpt.CausalSelfAttention"
    source = "own: nanoGPT and minGPT keep their mask so (their buffer is also saved)"

    def __init__(self, config):
        super().__init__()
        if config.n_embd % config.n_head:
            raise ValueError(f"n_embd={config.n_embd} is not divisible by n_head={config.n_head}")
        self.n_head = config.n_head
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)
        size = config.block_size
        self.register_buffer("mask", torch.tril(torch.ones(size, size)).view(1, 1, size, size))

    def attention_weights(self, q, k):
        T = q.size(2)
        scores = q @ k.transpose(-2, -1) / k.size(-1) ** 0.5
        return F.softmax(scores.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf")), dim=-1)


class DivmodCheck:
    """The sizes checked by divmod, head_dim kept, the layers made in the other order."""

    id = "heads.divmod-check"
    of = "gpt.CausalSelfAttention"
    source = "own: another wording of the error, other names, proj before qkv"

    def __init__(self, config):
        super().__init__()
        C, H = config.n_embd, config.n_head
        self.head_dim, rest = divmod(C, H)
        if rest != 0:
            raise ValueError(f"cannot share {C} channels among {H} heads: {rest} would be left over")
        self.n_head = H
        self.proj = nn.Linear(C, C, bias=True)
        self.qkv = nn.Linear(C, C * 3, bias=True)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)
