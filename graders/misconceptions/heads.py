"""Mistakes in attention with several heads, as people really make them: each must be caught and named."""

import torch
import torch.nn.functional as F
from torch import nn

# Cutting and merging


class ViewWithoutTranspose:
    """The heads are cut with view or reshape alone; time and heads are mixed."""

    id = "heads.view-without-transpose"
    of = "gpt.CausalSelfAttention"
    source = "reczoo/FuxiCTR#30, hyunwoongko/transformer#15"
    hint = (
        "Your output is exactly what comes out when the heads are cut in a single view. The shape is right, "
        "but each head now holds a mix of positions: check where the numbers of one position end up."
    )

    def split_heads(self, x):
        B, T, C = x.shape
        return x.reshape(B, self.n_head, T, C // self.n_head)


class ViewBothWays:
    """Cut and merged with view alone: split and merge are inverses, yet no head sees whole positions."""

    id = "heads.view-both-ways"
    of = "gpt.CausalSelfAttention"
    source = "hyunwoongko/transformer#15, and reshape back in the same manner"
    hint = (
        "Cutting and merging undo each other in your code, but both only reinterpret the memory. Follow the "
        "channels of one position: they should all land at that same position, one part in each head."
    )

    def split_heads(self, x):
        B, T, C = x.shape
        return x.reshape(B, self.n_head, T, C // self.n_head)

    def merge_heads(self, x):
        B, H, T, D = x.shape
        return x.reshape(B, T, H * D)


class MergeWithoutTranspose:
    """The heads are merged without bringing time back before the heads."""

    id = "heads.merge-without-transpose"
    of = "gpt.CausalSelfAttention"
    source = "jsbaan/transformer-from-scratch#6"
    hint = (
        "Your output is exactly what comes out when the heads are merged while their axis still stands "
        "before time. Which axis must be next to the channels of a head before the two can become one?"
    )

    def merge_heads(self, x):
        B, H, T, D = x.shape
        return x.reshape(B, T, H * D)


class MergeViewAfterTranspose:
    """view directly after transpose: the memory is not in that order."""

    id = "heads.merge-view-after-transpose"
    of = "gpt.CausalSelfAttention"
    source = "own: the most common RuntimeError about strides in this exercise"
    hint = (
        "After transpose a tensor is no longer laid out in memory in the order of its axes, and view "
        "refuses. Make it contiguous first, or use the function that copies when it has to."
    )

    def merge_heads(self, x):
        B, H, T, D = x.shape
        return x.transpose(1, 2).view(B, T, H * D)


class MergeInterleaved:
    """The merged channels run through the heads first: channel 0 of every head, then channel 1."""

    id = "heads.merge-interleaved"
    of = "gpt.CausalSelfAttention"
    source = "own: permute(0, 2, 3, 1), the axes in the wrong order of two that fit"
    hint = (
        "Your merged channels alternate between the heads. The heads should stand side by side, each in one "
        "piece: check the order of the last two axes just before you flatten them."
    )

    def merge_heads(self, x):
        B, H, T, D = x.shape
        return x.permute(0, 2, 3, 1).reshape(B, T, H * D)


class StridedHeads:
    """Each head takes every n_head-th channel instead of neighbouring ones."""

    id = "heads.strided-heads"
    of = "gpt.CausalSelfAttention"
    source = "own: rearrange '(d h)' for '(h d)', a known slip with einops"
    hint = (
        "Your heads take every H-th channel, while here a head is made of neighbouring channels. It is a "
        "layout that differs, not a wrong idea, but trained weights only fit one of the two."
    )

    def split_heads(self, x):
        B, T, C = x.shape
        return x.view(B, T, C // self.n_head, self.n_head).permute(0, 3, 1, 2)


class HeadsAndChannelsSwapped:
    """n_head and head_dim change places in the view."""

    id = "heads.heads-and-channels-swapped"
    of = "gpt.CausalSelfAttention"
    source = "own: view(B, T, D, H) and the usual transpose"
    hint = (
        "You get as many heads as a head should have channels. Look at the order of the two numbers into "
        "which you cut C."
    )

    def split_heads(self, x):
        B, T, C = x.shape
        return x.reshape(B, T, C // self.n_head, self.n_head).transpose(1, 2)


class HeadsStayBehindTime:
    """The heads are cut and left behind time: (B, T, H, D)."""

    id = "heads.heads-stay-behind-time"
    of = "gpt.CausalSelfAttention"
    source = "own: the transpose forgotten where view is right"
    hint = (
        "Your heads are cut rightly but still stand behind time. Attention multiplies the last two axes, and "
        "these must be time and the channels of one head."
    )

    def split_heads(self, x):
        B, T, C = x.shape
        return x.view(B, T, self.n_head, C // self.n_head)


# From the fused layer to q, k and v


class ThirdsPerHead:
    """The output of qkv is read head by head, (H, 3, D), instead of as three thirds."""

    id = "heads.thirds-per-head"
    of = "gpt.CausalSelfAttention"
    source = "lablup/mlxcel#928, Lightning-AI/litgpt#1013"
    hint = (
        "Your output is exactly what comes out when the fused layer is read head by head, q, k and v of one "
        "head together. Here all of q comes first, then all of k, then all of v."
    )

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, self.n_head, 3, C // self.n_head).permute(3, 0, 2, 1, 4)
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class EveryThirdChannel:
    """q, k and v alternate from channel to channel, (H, D, 3) or (C, 3), instead of three thirds."""

    id = "heads.every-third-channel"
    of = "gpt.CausalSelfAttention"
    source = "own: view(B, T, C, 3).unbind(-1), the two sizes in the other order"
    hint = (
        "You take q, k and v from every third channel. They are three neighbouring parts of C channels: look "
        "at the order of the sizes in your view."
    )

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (self.split_heads(t) for t in self.qkv(x).view(B, T, C, 3).unbind(-1))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class KeyFirst:
    """Keys and queries change places: k, q, v."""

    id = "heads.key-first"
    of = "gpt.CausalSelfAttention"
    source = "vllm-project/vllm#42803; Karpathy's lectures make the key first"
    hint = (
        "Your output is exactly what comes out when queries and keys change places. Trained from scratch it "
        "would be as good, but this course fixes the order of the three parts: q, k, v."
    )

    def forward(self, x):
        k, q, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class ValueFirst:
    """The three parts are taken as v, k, q."""

    id = "heads.value-first"
    of = "gpt.CausalSelfAttention"
    source = "vllm-project/vllm#42803: the order of a fused layer differs between models"
    hint = (
        "You take the first part as values and the last as queries. The docstring of __init__ says in which "
        "order the three parts come."
    )

    def forward(self, x):
        v, k, q = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class WeightsTimesKey:
    """The weights meet the keys instead of the values."""

    id = "heads.weights-times-key"
    of = "gpt.CausalSelfAttention"
    source = "fchollet/deep-learning-with-python-notebooks#261"
    hint = (
        "The weights say how much to take from each position. You take it from the keys: which of the three "
        "carries what a position has to say?"
    )

    def forward(self, x):
        q, k, _ = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ k)))


class WeightsTimesInput:
    """The weights meet the input itself; the values are never used."""

    id = "heads.weights-times-input"
    of = "gpt.CausalSelfAttention"
    source = "own: left over from the lesson with one head, where values come last"
    hint = (
        "Your weights average the input of the layer, and a third of what qkv computes is never used. What "
        "is averaged should have gone through qkv as well."
    )

    def forward(self, x):
        q, k, _ = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ self.split_heads(x))))


class OneBigHead:
    """The heads are never cut: one attention over all channels."""

    id = "heads.one-big-head"
    of = "gpt.CausalSelfAttention"
    source = "own: the lesson before, with one head, left as it was"
    hint = (
        "Your output is exactly that of a single head over all channels. Where does forward cut q, k and v into heads?"
    )

    def forward(self, x):
        q, k, v = self.qkv(x).unsqueeze(1).chunk(3, dim=-1)
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj((weights @ v).squeeze(1)))


class BatchTakenForTime:
    """The axes are taken as (T, B, C): sentences attend to each other."""

    id = "heads.batch-taken-for-time"
    of = "gpt.CausalSelfAttention"
    source = "own: nn.MultiheadAttention's default is batch_first=False"
    hint = (
        "Sentences of one batch influence each other in your code, while positions do not. The input is (B, "
        "T, C): which of your axes do you take for time?"
    )

    def forward(self, x):
        q, k, v = (self.split_heads(t) for t in self.qkv(x.transpose(0, 1)).chunk(3, dim=-1))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v).transpose(0, 1)))


# The layers


class NoProjection:
    """The merged heads are returned without proj."""

    id = "heads.no-projection"
    of = "gpt.CausalSelfAttention"
    source = "Kyubyong/transformer#117"
    hint = (
        "Your heads are merged but never mixed: one of the two layers of this class takes no part in "
        "forward. Without it the heads cannot work together."
    )

    def forward(self, x):
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.merge_heads(weights @ v))


class SharedWeights:
    """The channels are cut before qkv, so that all heads share one small layer."""

    id = "heads.shared-weights"
    of = "gpt.CausalSelfAttention"
    source = "MarcoMeter/episodic-transformer-memory-ppo#22"
    hint = (
        "Your qkv is too small: it sees the channels of one head only, so all heads share the same weights. "
        "Every head should make its q, k and v from all C channels."
    )

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        if config.n_embd % config.n_head != 0:
            raise ValueError(f"n_embd {config.n_embd} is not a multiple of n_head {config.n_head}")
        D = config.n_embd // config.n_head
        self.qkv = nn.Linear(D, 3 * D)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        q, k, v = self.qkv(self.split_heads(x)).chunk(3, dim=-1)
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class FullWidthHeads:
    """Every head gets C channels of its own: more heads, more parameters."""

    id = "heads.full-width-heads"
    of = "gpt.CausalSelfAttention"
    source = "pytorch/pytorch#60853"
    hint = (
        "Your number of parameters grows with the number of heads. Heads share the C channels among them: "
        "the cut changes, the layers do not."
    )

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        if config.n_embd % config.n_head != 0:
            raise ValueError(f"n_embd {config.n_embd} is not a multiple of n_head {config.n_head}")
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd * config.n_head)
        self.proj = nn.Linear(config.n_embd * config.n_head, config.n_embd)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)


class NoBias:
    """Both layers are made without bias."""

    id = "heads.no-bias"
    of = "gpt.CausalSelfAttention"
    source = "own: Llama's layers have none, and nanoGPT's option is often copied as False"
    hint = "Your layers lack their biases: compare the number of parameters with the one you expect for C channels."

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        if config.n_embd % config.n_head != 0:
            raise ValueError(f"n_embd {config.n_embd} is not a multiple of n_head {config.n_head}")
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd, bias=False)
        self.proj = nn.Linear(config.n_embd, config.n_embd, bias=False)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)


class ThreeLayers:
    """Three layers query, key and value in place of the fused qkv."""

    id = "heads.three-layers"
    of = "gpt.CausalSelfAttention"
    source = "own: the lesson before made q, k and v with one layer each"
    hint = (
        "You make q, k and v with three layers. The idea is the same, but this class keeps them in one layer "
        "called qkv, as the docstring says."
    )

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        if config.n_embd % config.n_head != 0:
            raise ValueError(f"n_embd {config.n_embd} is not a multiple of n_head {config.n_head}")
        self.query = nn.Linear(config.n_embd, config.n_embd)
        self.key = nn.Linear(config.n_embd, config.n_embd)
        self.value = nn.Linear(config.n_embd, config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        q, k, v = (self.split_heads(layer(x)) for layer in (self.query, self.key, self.value))
        weights = self.weights_dropout(self.attention_weights(q, k))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


class NoSizeCheck:
    """Sizes that do not divide are accepted in silence."""

    id = "heads.no-size-check"
    of = "gpt.CausalSelfAttention"
    source = "own: the layers are made and the rest is forgotten"
    hint = (
        "A layer of 30 channels and 4 heads can be built with your code, and fails only later, in a place "
        "that does not explain why. The docstring of __init__ asks for an error at once."
    )

    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)


class BareAssertion:
    """Sizes that do not divide end in a bare assertion."""

    id = "heads.bare-assertion"
    of = "gpt.CausalSelfAttention"
    source = "own: minGPT and nanoGPT use assert here"
    hint = (
        "Your assertion stops the wrong sizes but says nothing, and disappears under python -O. Raise the "
        "error that the docstring names, with both numbers in its message."
    )

    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.n_head = config.n_head
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)


class ErrorWithoutNumbers:
    """The error does not say which sizes do not fit."""

    id = "heads.error-without-numbers"
    of = "gpt.CausalSelfAttention"
    source = "own: an error that sends the reader searching"
    hint = "Your error comes at the right moment, but a reader also needs the two numbers that do not fit."

    def __init__(self, config):
        super().__init__()
        if config.n_embd % config.n_head != 0:
            raise ValueError("n_embd must be divisible by n_head")
        self.n_head = config.n_head
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)


# The scale


class ScaleByAllChannels:
    """The scores are divided by sqrt(C), not by sqrt(D)."""

    id = "heads.scale-by-all-channels"
    of = "gpt.CausalSelfAttention"
    source = "karpathy/ng-video-lecture#6"
    hint = (
        "Your scores are scaled for a vector of all C channels. How long are the vectors whose products make "
        "the scores of one head?"
    )

    def attention_weights(self, q, k):
        T, C = q.size(-2), q.size(-1) * q.size(1)
        future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
        return F.softmax((q @ k.transpose(-2, -1) / C**0.5).masked_fill(future, float("-inf")), dim=-1)


class NoScale:
    """The scores are not scaled at all."""

    id = "heads.no-scale"
    of = "gpt.CausalSelfAttention"
    source = "esceptico/perceiver-io#9"
    hint = (
        "Your scores go into the softmax at full size. The equation that the docstring names has one more "
        "factor, which keeps long vectors from making the softmax too sharp."
    )

    def attention_weights(self, q, k):
        T = q.size(-2)
        future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
        return F.softmax((q @ k.transpose(-2, -1)).masked_fill(future, float("-inf")), dim=-1)


class ScaleMultiplied:
    """The scores are multiplied by sqrt(D) instead of divided."""

    id = "heads.scale-multiplied"
    of = "gpt.CausalSelfAttention"
    source = "esceptico/perceiver-io#9"
    hint = "Your scale works in the wrong direction: longer vectors make your scores larger, not tamer."

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
        return F.softmax((q @ k.transpose(-2, -1) * D**0.5).masked_fill(future, float("-inf")), dim=-1)


class ScaleWithoutRoot:
    """The scores are divided by D, not by its root."""

    id = "heads.scale-without-root"
    of = "gpt.CausalSelfAttention"
    source = "own: the root forgotten, or the scale applied twice"
    hint = (
        "Your scores are smaller than they should be by just the factor that comes from a forgotten root, or "
        "from scaling twice."
    )

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
        return F.softmax((q @ k.transpose(-2, -1) / D).masked_fill(future, float("-inf")), dim=-1)


# The softmax


class SoftmaxOverQueries:
    """The softmax runs over the queries (dim -2): columns sum to 1."""

    id = "heads.softmax-over-queries"
    of = "gpt.CausalSelfAttention"
    source = "labmlai/annotated_deep_learning_paper_implementations#146"
    hint = (
        "In your weights the columns sum to 1. Each query shares out its attention among the keys: along "
        "which axis must the sum be 1?"
    )

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
        return F.softmax((q @ k.transpose(-2, -1) / D**0.5).masked_fill(future, float("-inf")), dim=-2)


class SoftmaxOverHeads:
    """The softmax runs over the heads (dim 1)."""

    id = "heads.softmax-over-heads"
    of = "gpt.CausalSelfAttention"
    source = "own: dim=1, right for logits of shape (N, classes), kept for four axes"
    hint = (
        "Your softmax lets the heads compete for each pair of positions. Inside one head, what should "
        "compete for the attention of a query?"
    )

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
        return F.softmax((q @ k.transpose(-2, -1) / D**0.5).masked_fill(future, -1e9), dim=1).tril()


class NoSoftmax:
    """The masked scores are used as weights."""

    id = "heads.no-softmax"
    of = "gpt.CausalSelfAttention"
    source = "own: a step of the equation left out"
    hint = "Your weights are negative in places and do not sum to 1: the step that turns scores into shares is missing."

    def attention_weights(self, q, k):
        return (q @ k.transpose(-2, -1) / q.size(-1) ** 0.5).tril()


class SoftmaxTwice:
    """forward puts the weights through a second softmax."""

    id = "heads.softmax-twice"
    of = "gpt.CausalSelfAttention"
    source = "own: attention_weights already ends in a softmax"
    hint = (
        "Your weights have gone through the softmax twice, which flattens them and wakes the masked "
        "positions up again. Look at what attention_weights returns already."
    )

    def forward(self, x):
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        weights = self.weights_dropout(F.softmax(self.attention_weights(q, k), dim=-1))
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))


# The mask


class NoMask:
    """Every position sees the future."""

    id = "heads.no-mask"
    of = "gpt.CausalSelfAttention"
    source = "keras-team/keras#23038"
    hint = (
        "Your positions see what comes after them: the model could copy the next character instead of "
        "predicting it. Nothing hides the future yet."
    )

    def attention_weights(self, q, k):
        return F.softmax(q @ k.transpose(-2, -1) / q.size(-1) ** 0.5, dim=-1)


class MaskAfterSoftmax:
    """The future is set to 0 after the softmax: rows no longer sum to 1."""

    id = "heads.mask-after-softmax"
    of = "gpt.CausalSelfAttention"
    source = "huggingface/pytorch-image-models#2236"
    hint = (
        "Your rows lose what the mask takes away: they no longer sum to 1, and the future has still had its "
        "say in the softmax. Think about which of the two steps must come first."
    )

    def attention_weights(self, q, k):
        return F.softmax(q @ k.transpose(-2, -1) / q.size(-1) ** 0.5, dim=-1).tril()


class MaskWithZero:
    """The scores of the future are set to 0 before the softmax, which is no low score at all."""

    id = "heads.mask-with-zero"
    of = "gpt.CausalSelfAttention"
    source = "own: tril() on the scores, or masked_fill(..., 0)"
    hint = (
        "You set the scores of the future to 0, but the softmax turns a score of 0 into a healthy weight. "
        "Which score becomes a weight of exactly 0?"
    )

    def attention_weights(self, q, k):
        return F.softmax((q @ k.transpose(-2, -1) / q.size(-1) ** 0.5).tril(), dim=-1)


class MaskHidesSelf:
    """The diagonal is hidden too: the first position has nothing left and becomes NaN."""

    id = "heads.mask-hides-self"
    of = "gpt.CausalSelfAttention"
    source = "pbloem/former#10"
    hint = (
        "Your first row is NaN, because nothing is left that it may see. A position sees itself: look at the "
        "diagonal of your mask."
    )

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        hidden = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(0)
        return F.softmax((q @ k.transpose(-2, -1) / D**0.5).masked_fill(hidden, float("-inf")), dim=-1)


class MaskOneTooFar:
    """The mask begins one step too late: each position sees the next one."""

    id = "heads.mask-one-too-far"
    of = "gpt.CausalSelfAttention"
    source = "own: triu(2), an off-by-one that a look at the shape does not show"
    hint = (
        "Each of your positions sees one character too many, the very one that it should predict. Print your "
        "mask for T = 3 and look at its diagonals."
    )

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(2)
        return F.softmax((q @ k.transpose(-2, -1) / D**0.5).masked_fill(future, float("-inf")), dim=-1)


class MaskHidesPast:
    """The mask is upside down: each position sees itself and the future."""

    id = "heads.mask-hides-past"
    of = "gpt.CausalSelfAttention"
    source = "own: tril and triu confused"
    hint = (
        "Your last row sees only itself and your first row sees everything. It should be the other way "
        "round: which triangle of the table is the future?"
    )

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        past = torch.ones(T, T, dtype=torch.bool, device=q.device).tril(-1)
        return F.softmax((q @ k.transpose(-2, -1) / D**0.5).masked_fill(past, float("-inf")), dim=-1)


class MaskInverted:
    """masked_fill gets the mask of what may be seen: the last row has nothing left and becomes NaN."""

    id = "heads.mask-inverted"
    of = "gpt.CausalSelfAttention"
    source = "own: masked_fill(tril, ...) without the negation"
    hint = (
        "Your mask hides what should be seen and shows the rest; the last row is left with nothing and "
        "becomes NaN. In masked_fill, True means: overwrite this."
    )

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        seen = torch.ones(T, T, dtype=torch.bool, device=q.device).tril()
        return F.softmax((q @ k.transpose(-2, -1) / D**0.5).masked_fill(seen, float("-inf")), dim=-1)


class SdpaMaskInverted:
    """scaled_dot_product_attention gets a mask in which True means hidden."""

    id = "heads.sdpa-mask-inverted"
    of = "gpt.CausalSelfAttention"
    source = "rasbt/LLMs-from-scratch#1061"
    hint = (
        "Your output is exactly what comes out when PyTorch's attention gets a mask of the wrong polarity. "
        "There True means: take part; in nn.MultiheadAttention it means the opposite."
    )

    def forward(self, x):
        T = x.size(1)
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        mask = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.output_dropout(self.proj(self.merge_heads(out)))


class ZeroTimesInfinity:
    """The additive mask is made as (1 - tril) * -inf, and 0 * -inf is NaN."""

    id = "heads.zero-times-infinity"
    of = "gpt.CausalSelfAttention"
    source = "cerebroai/reformers#3"
    hint = (
        "Your mask is NaN wherever it should be 0, because 0 times infinity is no number. Put the infinity "
        "in without a multiplication."
    )

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        mask = (1 - torch.ones(T, T, dtype=q.dtype, device=q.device).tril()) * float("-inf")
        return F.softmax(q @ k.transpose(-2, -1) / D**0.5 + mask, dim=-1)


class PlusInfinity:
    """The sign of the infinity is lost: the future gets the highest score of all."""

    id = "heads.plus-infinity"
    of = "gpt.CausalSelfAttention"
    source = "cerebroai/reformers#3: -(-inf)"
    hint = (
        "All rows but the last are NaN: the hidden scores are plus infinity. Follow the sign through your "
        "mask; twice minus is plus."
    )

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        mask = torch.full((T, T), float("-inf"), dtype=q.dtype, device=q.device).triu(1)
        return F.softmax(q @ k.transpose(-2, -1) / D**0.5 - mask, dim=-1)


class MaskNotCut:
    """The mask of block_size x block_size is used whole, whatever T is."""

    id = "heads.mask-not-cut"
    of = "gpt.CausalSelfAttention"
    source = "facebookresearch/xformers#66, huggingface/transformers#28215"
    hint = (
        "Your mask has the size of the longest input. It fits only that one: for a shorter input it must be "
        "made or cut for T positions."
    )

    def __init__(self, config):
        super().__init__()
        if config.n_embd % config.n_head != 0:
            raise ValueError(f"n_embd {config.n_embd} is not a multiple of n_head {config.n_head}")
        self.n_head = config.n_head
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)
        future = torch.ones(config.block_size, config.block_size, dtype=torch.bool).triu(1)
        self.register_buffer("future", future, persistent=False)

    def attention_weights(self, q, k):
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        return F.softmax(scores.masked_fill(self.future, float("-inf")), dim=-1)


# The product and the dropout


class KeyNotTransposed:
    """q @ k without a transpose: the shapes do not fit."""

    id = "heads.key-not-transposed"
    of = "gpt.CausalSelfAttention"
    source = "own: the most common shape error of the product"
    hint = (
        "q and k have the same shape, so they cannot be multiplied as they are. Every query must meet every "
        "key: which two axes of k have to change places?"
    )

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
        return F.softmax((q @ k / D**0.5).masked_fill(future, float("-inf")), dim=-1)


class WrongAxesTransposed:
    """k.transpose(1, 2): heads and time change places instead of time and channels."""

    id = "heads.wrong-axes-transposed"
    of = "gpt.CausalSelfAttention"
    source = "own: right for three axes, wrong for four"
    hint = (
        "transpose(1, 2) was right while there was no axis for the heads. With four axes, count again, or "
        "count from the end."
    )

    def attention_weights(self, q, k):
        T, D = q.shape[-2:]
        future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
        scores = q @ k.transpose(1, 2) / D**0.5
        return F.softmax(scores.masked_fill(future, float("-inf")), dim=-1)


class DropoutInEval:
    """Functional dropout that is never told about eval mode."""

    id = "heads.dropout-in-eval"
    of = "gpt.CausalSelfAttention"
    source = "pytorch/pytorch#124464"
    hint = (
        "Two runs on the same input differ in eval mode. F.dropout, and the dropout of PyTorch's attention "
        "function, do not know about eval unless you tell them."
    )

    def forward(self, x):
        q, k, v = (self.split_heads(t) for t in self.qkv(x).chunk(3, dim=-1))
        weights = F.dropout(self.attention_weights(q, k), self.weights_dropout.p)
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))
