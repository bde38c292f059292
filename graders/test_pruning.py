"""Which heads does a model need? `silence_head`, `head_importance`, `rank_heads` in pruning.py.

What is expected comes from the student's own model with the columns of `proj` cleared, so that a slip in attention,
which `heads` has judged, costs nothing twice. How a head is silenced is free: only what the model says is compared.

Tolerances. Cleared columns of `proj`, cleared rows for the values, a mask on what enters `proj`: the logits differ by
at most 4e-15 in float64. A wrong slice is off by 0.1 and more. `head_importance` may answer in float32 (rounding 1e-8
of losses below 10, which are differences of float64 before that); mistakes are off by 1e-2.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from harness.grading import check, expect

F64 = 1e-10
NATS = 1e-6
CHANGES = 1e-4  # what a silent head changes does so by 1e-2 and more
TRAINED = (
    Path(__file__).parents[1] / "student_template" / "data" / "small.safetensors"
)  # the weights of the small model, in half precision; a student's bundle has no reference
# Of that model, with the first 50 of its 1749 characters, and its four heads a layer joined to two: what is expected
# comes from the same weights cut in the same way, and the others add nothing but time.
SMALL = {"vocab_size": 50, "block_size": 64, "n_layer": 2, "n_head": 2, "n_embd": 32}
SIZES = {"vocab_size": 11, "block_size": 8, "n_layer": 2, "n_head": 3, "n_embd": 12}
TINY = {"vocab_size": 11, "block_size": 8, "n_layer": 1, "n_head": 2, "n_embd": 4}


def build(student, sizes, state=None, dropout=0.0):
    """A model of the student's, in float64 and eval mode."""
    config = student.gpt.GPTConfig(**sizes, dropout=dropout)
    model = expect.handle(expect.handle(student.gpt.GPT, what="GPT")(config), what="GPT(config)")
    if state is not None:
        model.load_state_dict(state)
    model.to(torch.float64)
    model.eval()
    return model


def weights(reference, draw, sizes=SIZES):
    """Weights large enough that every head matters."""
    state = reference.gpt.GPT(reference.gpt.GPTConfig(**sizes)).state_dict()
    changes = draw.normal(sum(value.numel() for value in state.values()), scale=0.3)
    parts = changes.split([value.numel() for value in state.values()])
    return {name: value + part.view_as(value) for (name, value), part in zip(state.items(), parts, strict=True)}


def without(state, sizes, *heads):
    """The weights with these heads, (layer, head) each, cut off where the heads are mixed."""
    state, D = dict(state), sizes["n_embd"] // sizes["n_head"]
    for layer, head in heads:
        name = f"blocks.{layer}.attn.proj.weight"
        state[name] = state[name].clone()
        state[name][:, head * D : (head + 1) * D] = 0.0
    return state


def places(sizes):
    """Every (layer, head)."""
    return [(layer, head) for layer in range(sizes["n_layer"]) for head in range(sizes["n_head"])]


def logits(model, idx, what="model(idx)[0]"):
    """(B, T, V), the first item of what the model returns."""
    return expect.tensor(expect.items(model(idx), 2, what="model(idx)")[0], what=what)


def silenced(student, model, layer, head):
    """silence_head(model, layer, head)."""
    function = expect.handle(student.pruning.silence_head, what="silence_head")
    return expect.handle(function(model, layer, head), what=f"silence_head(model, {layer}, {head})")


def importance(student, model, x, y, sizes):
    """head_importance(model, (x, y)) in float64: (n_layer, H)."""
    function = expect.handle(student.pruning.head_importance, what="head_importance")
    shape = (sizes["n_layer"], sizes["n_head"])
    return expect.tensor(function(model, (x, y)), shape, what="head_importance(model, batch)").double()


def rises(student, state, x, y, sizes, heads):
    """What head_importance should say of these (layer, head): [len(heads)]."""
    model = build(student, sizes)

    def loss(*silent):
        model.load_state_dict(without(state, sizes, *silent))
        return float(F.cross_entropy(logits(model, x).flatten(0, 1), y.flatten()))

    whole = loss()
    return torch.tensor([loss(place) - whole for place in heads], dtype=torch.float64)


# silence_head


@check(
    "pruning.silence",
    title="silence_head: one head says nothing, all others go on",
    points=3,
    hint="The output of head h meets the columns h * D to (h + 1) * D - 1 of proj.weight, and no other head's does "
    "(nn.Linear computes x @ weight.T). Clear those in the layer that is asked for, and leave the bias.",
    reproduce="""
from gpt import *; from pruning import *
model = GPT(GPTConfig(vocab_size=11, block_size=8, n_layer=2, n_head=3, n_embd=12)).eval()
torch.nn.init.normal_(model.blocks[1].attn.proj.weight); quiet = silence_head(model, 1, 2)
x = torch.randn(1, 8, 12); a, b = model.blocks[1].attn, quiet.blocks[1].attn
heads = torch.eye(12); print((b.proj(heads) - b.proj.bias).norm(dim=1))  # 0 for the last 4 channels only
""",
)
def test_silence(student, reference, draw):
    state, idx = weights(reference, draw), draw.integers(0, 11, 2, 5)
    model = build(student, SIZES, state)
    whole = logits(model, idx)
    # The answers first: what tells mistakes apart should come early.
    answers = {}
    for layer, head in ((0, 2), (1, 0), (1, 1)):  # each layer; the first, a middle and the last head
        what = f"silence_head(model, {layer}, {head})(idx)[0]"
        answers[layer, head] = logits(silenced(student, model, layer, head), idx, what), what
    other = build(student, SIZES)
    for place, (answer, what) in answers.items():
        other.load_state_dict(without(state, SIZES, place))
        expected = logits(other, idx)
        expect.varies(whole, expected, by=CHANGES, what="model(idx)[0]")
        expect.close(answer, expected, atol=F64, what=what)


@check(
    "pruning.copy",
    title="silence_head leaves the model that it was given alone",
    points=1,
    hint="Work on a deep copy (copy.deepcopy). A shallow copy shares its weights with the original, so that silencing "
    "a head in one silences it in both.",
    reproduce="""
from gpt import *; from pruning import *
model = GPT(GPTConfig(vocab_size=11, block_size=8, n_layer=2, n_head=3, n_embd=12)).eval()
before = model.blocks[1].attn.proj.weight.abs().sum().item(); quiet = silence_head(model, 1, 2)
print(before, model.blocks[1].attn.proj.weight.abs().sum().item())  # the same number twice
""",
)
def test_copy(student, reference, draw):
    state, idx = weights(reference, draw), draw.integers(0, 11, 2, 5)
    model = build(student, SIZES, state)
    before = logits(model, idx)
    quiet = silenced(student, model, 0, 1)
    what = "silence_head(model, 0, 1)(idx)[0]"
    with expect.on_the_way("pruning.silence"):
        answer = logits(quiet, idx, what)
        after = logits(model, idx)
        other = build(student, SIZES, without(state, SIZES, (0, 1)))
        expect.close(answer, logits(other, idx), atol=F64, what=what)
    expect.varies(before, answer, by=CHANGES, what=what)
    expect.close(after, before, atol=0.0, what="model(idx)[0]")


@check(
    "pruning.all-silent",
    title="With all heads of a layer silent its attention is gone",
    points=1,
    hint="Silence one head after another, each time in the result of the last call. In the end only the bias of proj "
    "is left, which says nothing about the text.",
    reproduce="""
from gpt import *; from pruning import *
model = GPT(GPTConfig(vocab_size=11, block_size=8, n_layer=2, n_head=3, n_embd=12)).eval()
for head in range(3): model = silence_head(model, 0, head)
attention = model.blocks[0].attn; print((attention(torch.randn(1, 5, 12)) - attention.proj.bias).abs().max())  # 0
""",
)
def test_all_silent(student, reference, draw):
    state, idx = weights(reference, draw), draw.integers(0, 11, 2, 5)
    heads = [(1, head) for head in range(SIZES["n_head"])]
    model = build(student, SIZES, state)
    for layer, head in heads:
        model = silenced(student, model, layer, head)
    what = "silence_head(silence_head(silence_head(model, 1, 0), 1, 1), 1, 2)(idx)[0]"
    answer = logits(model, idx, what)
    other = build(student, SIZES, without(state, SIZES, *heads))
    expect.close(answer, logits(other, idx), atol=F64, what=what)


# head_importance


@check(
    "pruning.importance",
    title="head_importance: how much the loss rises without each head",
    points=2,
    hint="For each head the loss without it alone, minus the loss with all heads: both in eval mode, both on the same "
    "batch, and each time from the whole model. Above 0 means that the head helps.",
    reproduce="""
from gpt import *; from pruning import *
model = GPT(GPTConfig(vocab_size=11, block_size=8, n_layer=2, n_head=3, n_embd=12, dropout=0.5)).train()
batch = torch.randint(11, (2, 5)), torch.randint(11, (2, 5)); rise = head_importance(model, batch)
print(tuple(rise.shape), model.training)  # (2, 3) True
print(rise[1, 2].item() - (loss_of(silence_head(model, 1, 2), batch) - loss_of(model, batch)))  # 0 or around 1e-8
""",
)
def test_importance(student, reference, draw):
    x, y = draw.integers(0, 11, 2, 5), draw.integers(0, 11, 2, 5)
    # Most mistakes show in the small model, at a third of the cost.
    for sizes, training in ((TINY, True), (TINY, False), (SIZES, True)):
        state = {name: value.double() for name, value in weights(reference, draw, sizes).items()}
        model = build(student, sizes, state, dropout=0.5)
        model.train(training)
        what = f"head_importance(model, batch), n_layer = {sizes['n_layer']}, model.training = {training}"
        rise = importance(student, model, x, y, sizes)  # the answer first: what tells mistakes apart should come early
        expected = rises(student, state, x, y, sizes, places(sizes)).view(sizes["n_layer"], sizes["n_head"])
        expect.close(rise, expected, atol=NATS, what=what)
        expect.equal(model.training, training, what="model.training")


@check(
    "pruning.trained",
    title="head_importance: the heads of the small trained model",
    points=1,
    hint="With the weights of data/small.safetensors the rise of the loss must come out for each head. If "
    "pruning.importance passes and this does not, look for sizes written into your code.",
    reproduce="""
from corpus import *; from pruning import *
model, tokenizer = load_model(SMALL_MODEL); poems, _ = split_poems(read_poems())
batch = poem_batch(model, encode_poems(poems[:20], tokenizer)); rise = head_importance(model, batch)
print((rise > 0.02).all())  # True: on poems that it knows, every head helps
""",
)
def test_trained(student, draw):
    V = SMALL["vocab_size"]
    trained = load_file(TRAINED)
    for name in ("tok_emb.weight", "head.weight"):
        trained[name] = trained[name][:V]
    state = {name: value.double() for name, value in trained.items()}
    text = draw.integers(0, V, 2, 13)
    x, y = text[:, :-1], text[:, 1:]
    heads = [(1, 1)]  # the last: enough to see a size that does not fit
    rise = importance(student, build(student, SMALL, state), x, y, SMALL)
    expected = rises(student, state, x, y, SMALL, heads)
    got = torch.stack([rise[place] for place in heads])
    expect.close(got, expected, atol=NATS, what=f"head_importance(model, batch)[{heads}]")


# rank_heads


def ranked(student, values):
    """rank_heads(importance) as a list of pairs of int."""
    function = expect.handle(student.pruning.rank_heads, what="rank_heads")
    pairs = expect.items(function(values), values.numel(), what="rank_heads(importance)")
    pairs = [expect.items(pair, 2, what="rank_heads(importance)[0]") for pair in pairs]
    return [tuple(int(expect.real(number, what="rank_heads(importance)[0]")) for number in pair) for pair in pairs]


@check(
    "pruning.rank",
    title="rank_heads: as (layer, head), the most important first",
    points=1,
    hint="Row and column of the table are layer and head. The largest value comes first; a value below 0 is a head "
    "without which the model does better, and comes last.",
    reproduce="""
import torch; from pruning import rank_heads
print(rank_heads(torch.tensor([[0.3, -0.5, 0.1], [0.2, 0.4, 0.0]])))  # [(1, 1), (0, 0), (1, 0), (0, 2), (1, 2), (0, 1)]
""",
)
def test_rank(student, draw):
    for n_layer, H in ((2, 3), (3, 4)):
        order = draw.permutation(n_layer * H)
        values = (0.7 - 0.2 * order.double()).view(n_layer, H)  # some below 0
        expected = [divmod(int(place), H) for place in order.argsort()]
        expect.equal(ranked(student, values), expected, what=f"rank_heads(importance), shape ({n_layer}, {H})")


@check(
    "pruning.ties",
    title="rank_heads: of two equal heads the lower layer, then the lower number comes first",
    points=1,
    hint="sorted keeps the order of what is equal, also with reverse=True; argsort does so only with stable=True, and "
    "turning a sorted list round turns equal ones round as well.",
    reproduce="""
import torch; from pruning import rank_heads
print(rank_heads(torch.tensor([[0.1, 0.2], [0.2, 0.1]])))  # [(0, 1), (1, 0), (0, 0), (1, 1)]
""",
)
def test_ties(student, draw):
    values = draw.integers(0, 3, 6, 5).double()
    places = [(layer, head) for layer in range(6) for head in range(5)]
    expected = sorted(places, key=lambda place: -float(values[place]))
    expect.equal(ranked(student, values), expected, what="rank_heads(importance)")
