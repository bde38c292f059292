"""Where each head looks: `attention_maps` in attention_maps.py.

The values are compared with the reference's on the same weights, one check uses the weights of the small trained model.
How the weights are got hold of is free: a hook, the layers' own methods, or a forward written out once more.

Tolerances. A hook, a walk through the blocks and the formula written out give maps that differ by at most 1e-15 in
float64; of the known mistakes, the smallest difference is 1e-3 (the mask left out makes 0 positive).
"""

from pathlib import Path

import torch
from safetensors.torch import load_file

from harness.grading import check, expect
from harness.outcome import Status, Stop

F64 = 1e-10
CHANGES = 1e-6
TRAINED = (
    Path(__file__).parents[1] / "student_template" / "data" / "small.safetensors"
)  # the weights of the small model, in half precision; a student's bundle has no reference
SIZES = {"vocab_size": 1749, "block_size": 64, "n_layer": 2, "n_head": 4, "n_embd": 32}  # of that model


def build(gpt, position="learned", **sizes):
    """A model in float64 and eval mode."""
    config = gpt.GPTConfig(position=position, **sizes)
    model = expect.handle(expect.handle(gpt.GPT, what="GPT")(config), what="GPT(config)")
    model.to(torch.float64)
    model.eval()
    return model


def pair(student, reference, draw, **sizes):
    """The student's model and the reference's with the same weights, large enough to make heads that differ."""
    sizes = {"vocab_size": 11, "block_size": 8, "n_layer": 3, "n_head": 2, "n_embd": 12, **sizes}
    theirs, ours = build(student.gpt, **sizes), build(reference.gpt, **sizes)
    state = {
        name: value + draw.normal(*value.shape, dtype=torch.float64, scale=0.3)
        for name, value in ours.state_dict().items()
    }
    for model in (theirs, ours):
        model.load_state_dict(state)
    return theirs, ours


def maps_of(student):
    """attention_maps of the submission."""
    return expect.handle(student.attention_maps.attention_maps, what="attention_maps")


def logits(model, idx):
    """(1, T, V), the first item of what the model returns."""
    return expect.tensor(expect.items(model(idx), 2, what="model(idx)")[0], what="model(idx)[0]")


@check(
    "maps.values",
    title="attention_maps: the weights of every head in every layer, (n_layer, H, T, T)",
    points=4,
    hint="Keep what comes out of the softmax, before dropout and before the values come in: one map for each layer and "
    "each head, rows the positions that look. Every row sums to 1, and the future is 0.",
    reproduce="""
import torch; from gpt import *; from attention_maps import *
model = GPT(GPTConfig(vocab_size=11, block_size=8, n_layer=3, n_head=2, n_embd=12)).eval()
maps = attention_maps(model, torch.tensor([[3, 1, 4, 1, 5]]))
print(tuple(maps.shape))  # (3, 2, 5, 5)
print(maps[0, 0].tolist())  # rows sum to 1, nothing right of the diagonal
""",
)
def test_values(student, reference, draw):
    theirs, ours = pair(student, reference, draw)
    attention_maps = maps_of(student)
    for T in (5, 1, 8):
        idx = draw.integers(0, 11, 1, T)
        expected = reference.attention_maps.attention_maps(ours, idx)
        expect.close(attention_maps(theirs, idx), expected, atol=F64, what=f"attention_maps(model, idx), T = {T}")


@check(
    "maps.trained",
    title="attention_maps: the small model and a couplet that it knows",
    points=1,
    hint="With known weights the reference's maps must come out. If maps.values passes and this does not, look for "
    "sizes written into your code: this model has 2 layers, 4 heads and a position table of 64 rows.",
    reproduce="""
import torch; from attention_maps import *
model, tokenizer = load_model(SMALL_MODEL)
maps = attention_maps(model, torch.tensor([tokenizer.encode(SENTENCE)]))
print(tuple(maps.shape))  # (2, 4, 12, 12)
""",
)
def test_trained(student, reference, draw):
    weights = {name: value.double() for name, value in load_file(TRAINED).items()}
    theirs, ours = build(student.gpt, **SIZES), build(reference.gpt, **SIZES)
    for model in (theirs, ours):
        model.load_state_dict(weights)
    idx = draw.integers(0, 1749, 1, 12)
    expected = reference.attention_maps.attention_maps(ours, idx)
    expect.close(maps_of(student)(theirs, idx), expected, atol=F64, what="attention_maps(model, idx)")


@check(
    "maps.dropout",
    title="attention_maps: no dropout, and the model is left in the mode it came in",
    points=1,
    hint="Whoever trains may want to look at a map in between: switch to eval mode for the map, and afterwards back to "
    "the mode that was there before, which may have been either.",
    reproduce="""
import torch; from gpt import *; from attention_maps import *
model = GPT(GPTConfig(vocab_size=11, block_size=8, n_layer=3, n_head=2, n_embd=12, dropout=0.5)).train()
idx = torch.tensor([[3, 1, 4, 1, 5]])
print((attention_maps(model, idx) - attention_maps(model, idx)).abs().max())  # 0
print(model.training)  # True
""",
)
def test_dropout(student, reference, draw):
    theirs, ours = pair(student, reference, draw, n_layer=1, dropout=0.5)
    attention_maps = maps_of(student)
    idx = draw.integers(0, 11, 1, 5)
    expected = reference.attention_maps.attention_maps(ours, idx)
    for mode in (True, False):
        theirs.train(mode)
        what = f"attention_maps(model, idx), model.training = {mode}"
        expect.close(attention_maps(theirs, idx), expected, atol=F64, what=what)
        expect.equal(theirs.training, mode, what="model.training")


@check(
    "maps.untouched",
    title="attention_maps leaves no trace: no hook, no changed weight",
    points=1,
    hint="A hook stays until its handle's remove() is called, and goes on collecting at every later call of the model. "
    "Whatever you attach or replace for the map must be taken away again.",
    reproduce="""
import torch; from gpt import *; from attention_maps import *
model = GPT(GPTConfig(vocab_size=11, block_size=8, n_layer=3, n_head=2, n_embd=12)).eval()
maps = attention_maps(model, torch.tensor([[3, 1, 4, 1, 5]]))
print(sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules()))  # 0
""",
)
def test_untouched(student, reference, draw):
    theirs, ours = pair(student, reference, draw, n_layer=2)  # two, for whoever removes the last hook alone
    idx = draw.integers(0, 11, 1, 5)
    expected = reference.attention_maps.attention_maps(ours, idx)
    before = logits(theirs, idx)
    with expect.on_the_way("maps.values"):
        expect.close(maps_of(student)(theirs, idx), expected, atol=F64, what="attention_maps(model, idx)")
    expect.close(maps_of(student)(theirs, idx), expected, atol=F64, what="attention_maps(model, idx)")
    expect.same(before, logits(theirs, idx), atol=0.0, what="model(idx)")
    blocks = expect.handle(theirs.blocks, what="model.blocks")
    for layer in range(2):
        block = expect.handle(getattr(blocks, str(layer)), what="model.blocks[0]")
        attn = expect.handle(block.attn, what="block.attn")
        parts = [getattr(attn, name) for name in ("qkv", "proj", "weights_dropout", "output_dropout")]
        for part in (block, attn, *(expect.handle(part, what="block.attn.qkv") for part in parts)):
            expect.true(
                not has_hooks(part),
                "maps.untouched.hook",
                "A hook is still there after attention_maps: {actual}.",
                what="part._forward_hooks",
                expected="{}",
                actual=f"blocks[{layer}]",
            )


def has_hooks(part):
    """Whether a hook is attached to a module. Hooks have numbers for names, and so cannot be sent as data."""
    try:
        return bool(part._forward_hooks) or bool(part._forward_pre_hooks)
    except Stop as stop:
        if stop.status is not Status.FAILED:
            raise
        return True


@check(
    "maps.rope",
    title="attention_maps: a model with RoPE works as well",
    points=1,
    hint="In a RotaryGPT queries and keys are turned before they meet, and there is no position table (no pos_emb). "
    "Read the weights where every kind of attention has them instead of computing them in one way only.",
    reproduce="""
import torch; from gpt import *; from rope import *; from attention_maps import *
model = RotaryGPT(GPTConfig(vocab_size=11, block_size=8, n_layer=1, n_head=2, n_embd=12, position="rope")).eval()
maps = attention_maps(model, torch.tensor([[3, 3, 3, 3, 3]]))
print((maps.sum(-1) - 1).abs().max())  # around 1e-7 or 0
""",
)
def test_rope(student, draw):
    config = student.gpt.GPTConfig(vocab_size=11, block_size=8, n_layer=1, n_head=2, n_embd=12, position="rope")
    model = expect.handle(expect.handle(student.rope.RotaryGPT, what="RotaryGPT")(config), what="RotaryGPT(config)")
    model.to(torch.float64)
    model.eval()
    weight = draw.normal(36, 12, dtype=torch.float64)
    bias = draw.normal(36, dtype=torch.float64, scale=0.3)
    idx = draw.integers(0, 11, 1, 5)
    block = expect.handle(getattr(expect.handle(model.blocks, what="model.blocks"), "0"), what="model.blocks[0]")
    expect.handle(expect.handle(block.attn, what="block.attn").qkv, what="block.attn.qkv").load_state_dict(
        {"weight": weight, "bias": bias}
    )
    # Turned by the student's own apply_rope: which channels make a pair is a convention.
    x = expect.tensor(block.ln_1(model.tok_emb(idx)), (1, 5, 12), what="block.ln_1(x)")
    q, k, _ = (x @ weight.T + bias).unflatten(-1, (3, 2, 6)).permute(2, 0, 3, 1, 4)  # (1, H, T, D) each
    turn = expect.handle(student.rope.apply_rope, what="apply_rope")
    positions = torch.arange(5)
    q, k = (expect.tensor(turn(z, positions), (1, 2, 5, 6), what="apply_rope(x, positions)") for z in (q, k))
    scores = (q @ k.transpose(-2, -1) / 6**0.5).masked_fill(torch.ones(5, 5).triu(1) > 0, float("-inf"))
    expected = scores.softmax(-1)  # (1, H, T, T): one layer, one sentence
    expect.varies(expected[0, 0], expected[0, 1], by=CHANGES, what="apply_rope(x, positions)")
    expect.close(maps_of(student)(model, idx), expected, atol=F64, what="attention_maps(model, idx)")
