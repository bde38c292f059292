"""Training and comparing: corpus.py, train.py, compare.py.

The student's functions run at a small size, a second of computing in all. What is expected of one step comes from the
gradients of the student's own model and the formula of AdamW, so that a slip in attention, which `heads` has judged,
costs nothing twice. `evaluate` is judged on the pieces that the student's own `cut_windows` gives.

Tolerances. Parameters after up to three steps: 1e-16 measured between right forms in float64, where gradients that
should be 0 are 1e-18 and so below AdamW's epsilon of 1e-8; old gradients kept, or none, are off by 1e-3. The mean loss:
1e-15 measured; the mean of means is off by 1e-3.
"""

import contextlib
import csv
import io
import math

import torch
import torch.nn.functional as F

from harness.grading import check, expect

EXACT = 0.0  # characters are counted and copied, not computed with
F64 = 1e-9
RUNS = 1e-6  # two runs with the same settings give the same bits; a setting that differs shows from 1e-4 on
CHANGES = 1e-5
RATE = 1e-2
FALLS = 0.38  # of the loss at the start; see test_learns
SIZES = {"vocab_size": 11, "block_size": 4, "n_layer": 2, "n_head": 2, "n_embd": 8}
SMALL = {"n_layer": 1, "n_embd": 8, "block_size": 8, "batch_size": 4, "dropout": 0.0, "learning_rate": RATE}
MEASURED = ("training_loss", "validation_loss", "best_validation_loss")


def build(student, dropout=0.0):
    """A model of the student's in float64."""
    config = student.gpt.GPTConfig(**SIZES, dropout=dropout)
    model = expect.handle(expect.handle(student.gpt.GPT, what="GPT")(config), what="GPT(config)")
    model.to(torch.float64)
    return model


def loud(model, draw):
    """The model with weights so large that its losses differ from place to place."""
    wanted = draw.normal(SIZES["vocab_size"], SIZES["n_embd"], dtype=torch.float64)
    expect.handle(model.head, what="model.head").load_state_dict({"weight": wanted})
    return model


def function(module, name):
    """A function of the submission."""
    return expect.handle(getattr(module, name), what=name)


def batch(draw, B=3, T=4):
    """x and y, (B, T) each."""
    return draw.integers(0, 11, B, T), draw.integers(0, 11, B, T)


def table(answer, what):
    """`answer`, if it is a dict."""
    expect.true(
        isinstance(answer, dict),
        "training.dict",
        "{what} should be a dict; it is {actual}.",
        what=what,
        expected="dict",
        actual=expect.describe(answer),
    )
    return answer


def state(model):
    """The parameters and buffers of a model by name."""
    return table(model.state_dict(), "model.state_dict()")


# split_poems


def made(student, poems):
    """The poems as objects of the submission."""
    return [student.corpus.Poem(title, "anon", text) for title, text in poems.items()]


def split(student, handles, poems, *args):
    """The titles of both lists of split_poems, after making sure that the poems in them are whole.

    `poems` holds the texts, by title; those that it lacks are not looked at.
    """
    both = expect.items(function(student.corpus, "split_poems")(handles, *args), 2, what="split_poems(poems)")
    titles = []
    for part, what in zip(both, ("split_poems(poems)[0]", "split_poems(poems)[1]"), strict=True):
        expect.true(
            isinstance(part, tuple | list),
            "training.list",
            "{what} should be a list; it is {actual}.",
            what=what,
            expected="list",
            actual=expect.describe(part),
        )
        kept = [expect.handle(poem, what=f"{what}[0]") for poem in part]
        titles.append([str(poem.title) for poem in kept])
        for poem, title in zip(kept, titles[-1], strict=True):
            if title in poems:
                expect.equal(poem.text, poems[title], what=f"{what}[0].text")
    return titles


def anthology(count):
    """Made-up poems: title -> text."""
    return {f"poem {i}": f"line {i} a,line {i} b." for i in range(count)}


@check(
    "training.split",
    title="split_poems: each poem in exactly one of the two lists, and the right number put aside",
    points=2,
    hint="What is put aside for validation must not be trained on: no poem in both lists, none lost, none cut in two. "
    "The number put aside is fraction * len(poems), rounded, and at least 1.",
    reproduce="""
from corpus import *
poems = [Poem(str(i), "anon", f"text {i}") for i in range(23)]; training, validation = split_poems(poems, 0.25)
print(len(training), len(validation))  # 17 6
print({poem.title for poem in training} & {poem.title for poem in validation} or "none")  # none
""",
)
def test_split(student):
    for count, fraction, aside in ((11, 0.25, 3), (7, 0.3, 2), (3, 0.1, 1)):  # rounded up, rounded down, at least 1
        poems = anthology(count)
        training, validation = split(student, made(student, poems), poems, fraction)
        what = f"split_poems(poems, {fraction}), len(poems) = {count}"
        expect.equal(len(validation), aside, what=f"len({what}[1])")
        expect.equal(len(set(training) & set(validation)), 0, what=f"len(set({what}[0]) & set({what}[1]))")
        expect.equal(sorted(training + validation), sorted(poems), what=f"sorted(sum({what}, []))")


@check(
    "training.split-seed",
    title="split_poems: by chance, and the same seed gives the same split",
    points=1,
    hint="The first or the last poems of a file are often of one author: shuffle a copy. Chance must come from the "
    "seed alone, so that everybody who uses it validates on the same poems.",
    reproduce="""
from corpus import *
poems = [Poem(str(i), "anon", f"text {i}") for i in range(23)]
for seed in (0, 0, 1): print(*sorted(int(poem.title) for poem in split_poems(poems, 0.25, seed)[1]))
# the first two lines are the same, the third is not
""",
)
def test_split_seed(student):
    poems = anthology(23)
    names, handles = list(poems), made(student, poems)
    asides = [sorted(split(student, handles, {}, 0.25, seed)[1]) for seed in (0, 1, 2, 0)]
    expect.equal(asides[3], asides[0], what="split_poems(poems, 0.25, 0)[1]")
    expect.equal(len(asides[0]), 6, what="len(split_poems(poems, 0.25, 0)[1])")
    different = len({tuple(aside) for aside in asides})
    expect.true(
        different == 3 and sorted(names[:6]) not in asides and sorted(names[-6:]) not in asides,
        "training.split-seed.same",
        "{what} puts the same poems aside whatever the seed, or those at one end of the file.",
        what="split_poems(poems, 0.25, seed)[1]",
        expected="3",
        actual=str(different),
    )


# cut_windows


@check(
    "training.windows",
    title="cut_windows: pieces of the text, and to each position the character that follows it",
    points=1,
    hint="Row b of x is data[start : start + block_size] for the start of row b; y is the same piece one character "
    "further on. The last answer of a row is not in x at all.",
    reproduce="""
import torch; from train import cut_windows
x, y = cut_windows(torch.arange(100), torch.tensor([3, 50]), 4)
print(x.tolist(), y.tolist())  # [[3, 4, 5, 6], [50, 51, 52, 53]] [[4, 5, 6, 7], [51, 52, 53, 54]]
""",
)
def test_windows(student, reference, draw):
    cut_windows = function(student.train, "cut_windows")
    for N, B, T in ((23, 3, 5), (9, 2, 1), (7, 1, 6)):
        data, starts = draw.integers(0, 1000, N), draw.integers(0, N - T, B)
        starts = torch.cat((starts, torch.tensor([N - T - 1])))  # the last piece that there is
        expected = reference.train.cut_windows(data, starts, T)
        what = f"cut_windows(data, starts, {T})"
        got = expect.items(cut_windows(data, starts, T), 2, what=what)
        for part, wanted, i in zip(got, expected, (0, 1), strict=True):
            expect.close(part, wanted, atol=EXACT, what=f"{what}[{i}]")


# training_step


def adamw(values, gradients, memory, step):
    """The parameters after one step. Loshchilov and Hutter 2019 (1711.05101), algorithm 2, with torch's defaults."""
    after = {}
    for name, g in gradients.items():
        first, second = memory.get(name, (0.0, 0.0))
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        memory[name] = first, second
        move = first / (1 - 0.9**step) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
        after[name] = values[name] * (1 - RATE * 0.01) - RATE * move
    return after


def optimizer(student, model):
    """The optimizer of train.py for this model."""
    settings = student.train.Settings(**SMALL)
    return expect.handle(function(student.train, "make_optimizer")(model, settings), what="make_optimizer(model)")


def steps(student, draw, count):
    """So many steps on batches of their own; the parameters after each must be what AdamW says of its batch."""
    model = build(student)
    batches = [batch(draw) for _ in range(count)]
    adam, training_step = optimizer(student, model), function(student.train, "training_step")
    memory, before = {}, state(model)
    for step, (x, y) in enumerate(batches, start=1):
        gradients = table(model.gradients(x, y), "model(x, y)[1].backward()")
        for name, gradient in gradients.items():
            expect.tensor(before.get(name), what=f'model.state_dict()["{name}"]')
            expect.tensor(gradient, what=f'dict(model.named_parameters())["{name}"].grad')
        expected = adamw(before, gradients, memory, step)
        training_step(model, adam, (x, y))
        after = state(model)
        # The head first: it moves even where little else does, so that mistakes are told apart by it.
        for name, value in reversed(expected.items()):
            what = f'model.state_dict()["{name}"], {step} * training_step(model, optimizer, batch)'
            expect.close(after.get(name), value, atol=F64, what=what)
        before = after


@check(
    "training.step",
    title="training_step: every parameter moves as the gradient of the batch says",
    points=2,
    hint="Four things: clear the old gradients, compute the loss with model(x, y), loss.backward(), optimizer.step(). "
    "If nothing moves, one of the last two is missing or the gradients are cleared in between.",
    reproduce="""
import torch; from gpt import *; from train import *
model = GPT(GPTConfig(vocab_size=11, block_size=4, n_layer=2, n_head=2, n_embd=8)); batch = torch.randint(11, (2, 3, 4))
before = [p.detach().clone() for p in model.parameters()]
training_step(model, make_optimizer(model, Settings()), (batch[0], batch[1]))
print(min((p - old).abs().max().item() for p, old in zip(model.parameters(), before)) > 0)  # True
""",
)
def test_step(student, draw):
    steps(student, draw, 1)


@check(
    "training.step-fresh",
    title="training_step: the gradients of earlier batches are gone",
    points=1,
    hint="backward() adds to the gradients that are there. Clear them in every step, before backward(): else each step "
    "follows the sum of all batches so far.",
    reproduce="""
import torch; from gpt import *; from train import *
model = GPT(GPTConfig(vocab_size=11, block_size=4, n_layer=2, n_head=2, n_embd=8))
optimizer = make_optimizer(model, Settings(learning_rate=0.0)); batch = tuple(torch.randint(11, (2, 3, 4)))
for _ in range(3): training_step(model, optimizer, batch); print(round(model.head.weight.grad.norm().item(), 4))
# the same number each time
""",
)
def test_step_fresh(student, draw):
    steps(student, draw, 3)  # so that clearing at every other step shows


@check(
    "training.step-loss",
    title="training_step returns the loss before the step as a float, and leaves the mode alone",
    points=1,
    hint="loss.item() is a plain number. The tensor itself would keep everything in memory that backward needed. The "
    "loss of the batch is computed once, before the weights move.",
    reproduce="""
import torch; from gpt import *; from train import *
model = GPT(GPTConfig(vocab_size=11, block_size=4, n_layer=2, n_head=2, n_embd=8)).eval()
x, y = torch.randint(11, (2, 3, 4)); before = model(x, y)[1].item()
print(training_step(model, make_optimizer(model, Settings()), (x, y)) - before, model.training)  # 0.0 False
""",
)
def test_step_loss(student, draw):
    x, y = batch(draw)
    for mode in (True, False):
        model = loud(build(student), draw)
        model.train(mode)
        before = expect.real(expect.items(model(x, y), 2, what="model(x, y)")[1], what="model(x, y)[1]")
        adam = optimizer(student, model)
        loss = function(student.train, "training_step")(model, adam, (x, y))
        expect.number(loss, before, atol=F64, what="training_step(model, optimizer, batch)")
        expect.equal(type(loss).__name__, "float", what="type(training_step(model, optimizer, batch)).__name__")
        expect.equal(model.training, mode, what="model.training")


# evaluate


def mean_loss(student, model, data):
    """What evaluate should say: the pieces are the student's own, the mean over all characters is ours."""
    T = SIZES["block_size"]
    cut_windows = function(student.train, "cut_windows")
    full, rest = divmod(len(data) - 1, T)
    total = 0.0
    for starts, length in ((torch.arange(0, full * T, T), T), (torch.tensor([full * T]), rest)):
        what = f"cut_windows(data, starts, {length})"
        x, y = expect.items(cut_windows(data, starts, length), 2, what=what)
        shape = (len(starts), length)
        x, y = expect.tensor(x, shape, what=f"{what}[0]"), expect.tensor(y, shape, what=f"{what}[1]")
        scores = expect.items(model(x), 2, what="model(x)")[0]
        scores = expect.tensor(scores, (*shape, SIZES["vocab_size"]), what="model(x)[0]")
        total += float(F.cross_entropy(scores.flatten(0, 1), y.flatten().long().clamp(0, 10), reduction="sum"))
    return total / (len(data) - 1)


def prepared(student, draw, dropout=0.0):
    """A model in eval mode, a text of 33 pieces and 3 characters more, and its mean loss."""
    model = loud(build(student, dropout), draw)
    model.eval()
    data = draw.integers(0, 11, 33 * 4 + 3 + 1)
    return model, data, mean_loss(student, model, data)


@check(
    "training.evaluate",
    title="evaluate: the mean loss over every character of the text",
    points=1,
    hint="whole_text gives batches of different sizes, the last one much smaller. Weigh the loss of each by its "
    "number of characters, y.numel(), and divide by their sum, which is len(data) - 1.",
    reproduce="""
import torch; from gpt import *; from train import *
model = GPT(GPTConfig(vocab_size=11, block_size=4, n_layer=1, n_head=2, n_embd=8)).eval()
data = torch.randint(11, (136,))
losses = [(model(x, y)[1].item(), y.numel()) for x, y in whole_text(data, 4)]
print(evaluate(model, data) - sum(loss * count for loss, count in losses) / 135)  # 0 or around 1e-7
""",
)
def test_evaluate(student, draw):
    model, data, expected = prepared(student, draw)
    expect.number(function(student.train, "evaluate")(model, data), expected, atol=F64, what="evaluate(model, data)")


@check(
    "training.evaluate-mode",
    title="evaluate: without dropout, and the model is left in the mode it came in",
    points=1,
    hint="Dropout makes training harder on purpose; a loss that is measured with it is not the loss of the model. "
    "Switch to eval mode, and afterwards back to what was there before.",
    reproduce="""
import torch; from gpt import *; from train import *
config = GPTConfig(vocab_size=11, block_size=4, n_layer=1, n_head=2, n_embd=8, dropout=0.5)
model = GPT(config).train(); data = torch.randint(11, (136,))
print(evaluate(model, data) - evaluate(model, data), model.training)  # 0.0 True
""",
)
def test_evaluate_mode(student, draw):
    model, data, expected = prepared(student, draw, dropout=0.5)
    for mode in (True, False):
        model.train(mode)
        what = f"evaluate(model, data), model.training = {mode}"
        loss = function(student.train, "evaluate")(model, data)
        # With dropout, in train mode, the number is this check's own matter.
        with contextlib.nullcontext() if mode else expect.on_the_way("training.evaluate"):
            expect.number(loss, expected, atol=F64, what=what)
        expect.equal(model.training, mode, what="model.training")


@check(
    "training.evaluate-quiet",
    title="evaluate: nothing is learned, and no gradients are kept",
    points=1,
    hint="Measure within torch.no_grad(), and call neither backward() nor a step of an optimizer: what the model is "
    "measured on must leave no trace in it.",
    reproduce="""
import torch; from gpt import *; from train import *
model = GPT(GPTConfig(vocab_size=11, block_size=4, n_layer=1, n_head=2, n_embd=8)); kept = []
model.ln_f.register_forward_hook(lambda layer, inputs, output: kept.append(output.requires_grad))
evaluate(model, torch.randint(11, (136,)))
print(any(kept), model.head.weight.grad)  # False None
""",
)
def test_evaluate_quiet(student, draw):
    model, data, expected = prepared(student, draw)
    before, seen = state(model), expect.handle(model.ln_f, what="model.ln_f").watch()
    adam = optimizer(student, model)
    with expect.on_the_way("training.evaluate"):
        seen_loss = function(student.train, "evaluate")(model, data)
        expect.number(seen_loss, expected, atol=F64, what="evaluate(model, data)")
    calls = seen.calls if isinstance(seen.calls, list) else []
    expect.true(
        bool(calls),
        "training.evaluate-quiet.never",
        "{what} never ran the model.",
        what="evaluate(model, data)",
        expected="1",
        actual=str(len(calls)),
    )
    unchanged(model, before)
    adam.step()  # moves what has a gradient, and nothing else
    unchanged(model, before, ", optimizer.step()")
    tracked = any(call not in ((False, False), (True, False)) for call in calls)
    expect.equal(tracked, False, what="model.ln_f(x).requires_grad")


def unchanged(model, before, then=""):
    """The parameters of the model are still those of `before`."""
    after = state(model)
    for name, value in before.items():
        what = f'model.state_dict()["{name}"]{then}'
        expect.close(after.get(name), expect.tensor(value, what=what), atol=EXACT, what=what)


# train


def poems(student, draw, length=200):
    """Data whose two texts go round in a circle of 8 characters."""
    circle = draw.permutation(8)
    text = circle.repeat(length // 8)
    tokenizer = student.gpt.CharTokenizer("abcdefgh")
    return expect.handle(student.corpus.Data(tokenizer, text, text[:41]), what="Data(tokenizer, training, validation)")


@check(
    "training.learns",
    title="A short training run: the loss falls, in training and in validation",
    points=1,
    hint="Twenty-five steps are enough for a text of 8 characters in a circle. If the loss stays, look at what the "
    "model is asked for (cut_windows) and at what the step does.",
    reproduce="""
import torch; from corpus import Data; from gpt import CharTokenizer; from train import *
text = torch.arange(8).repeat(25); data = Data(CharTokenizer("abcdefgh"), text, text[:41])
sizes = dict(n_layer=1, n_head=2, n_embd=8, block_size=8, batch_size=4, dropout=0.0, learning_rate=5e-2)
model, history = train(Settings(steps=25, evaluate_every=25, **sizes), data)
print(history.last < 0.38 * history.training[0])  # True
""",
)
def test_learns(student, draw):
    data = poems(student, draw)
    run_once, Settings = function(student.compare, "run_once"), student.train.Settings
    what = "run_once(settings, data)"
    # Over 40 texts: after 25 steps a training loss of at most 0.63 and a validation loss of 0.01; where old gradients
    # stay at least 0.95 in training. The first step is so small that a loss measured after it,
    # which training.step-loss judges, is the same but for 0.01.
    small, sizes = SMALL | {"learning_rate": 1e-3}, SMALL | {"learning_rate": 5e-2}
    start = math.log(8)  # what guessing evenly costs, and what an untrained model says
    first = measured(run_once(Settings(steps=1, n_head=2, evaluate_every=1, **small), data), what)
    expect.number(first["training_loss"], start, atol=0.1, what=f'{what}["training_loss"], steps = 1')
    last = measured(run_once(Settings(steps=25, n_head=2, evaluate_every=25, **sizes), data), what)
    for name in ("training_loss", "validation_loss"):
        value = expect.real(last[name], what=f'{what}["{name}"], steps = 25')
        expect.true(
            0.0 <= value < FALLS * start,
            "training.learns.falls",
            "{what} is {actual}; it should be {expected}.",
            what=f'{what}["{name}"], steps = 25',
            expected=f"< {FALLS * start:.2f}",
            actual=f"{value:.2f}",
        )


def measured(row, what):
    """`row`, if it holds what a run measures."""
    expect.true(
        isinstance(row, dict) and set(MEASURED) <= set(row),
        "training.row",
        "{what} should hold {expected}.",
        what=what,
        expected=", ".join(MEASURED),
        actual=expect.describe(row),
    )
    return row


# compare


@check(
    "training.compare",
    title="compare: the runs of a seed differ in one setting, and in nothing else",
    points=1,
    hint="Copy the settings with dataclasses.replace, changing the one setting that is compared and the seed. First "
    "all values with the first seed, then all with the next; `run` is called once for each, and its answers come back.",
    reproduce="""
from dataclasses import asdict; from compare import *
settings = Settings(steps=7, n_embd=24, seed=9)
rows = compare(None, settings, "n_head", (1, 4, 8), (3, 5), run=lambda settings, data: asdict(settings))
for row in rows: print(row["seed"], row["n_head"], row["n_embd"], row["steps"])  # 3 1 24 7, 3 4 24 7, ... 5 8 24 7
""",
)
def test_compare(student):
    compare = function(student.compare, "compare")
    shared = {"steps": 7, "n_head": 2, "position": "none", "seed": 9, "evaluate_every": 3, **SMALL}
    settings = student.train.Settings(**shared)
    data = student.corpus.Data(student.gpt.CharTokenizer("ab"), torch.arange(2), torch.arange(2))
    seeds = (3, 5)
    for name, values in (("n_head", (1, 4, 8)), ("position", ("learned", "rope")), ("n_layer", (2,))):
        # A History keeps its first two arguments as `training` and `validation`: here, what each run was given.
        answer = compare(data, settings, name, values, seeds, student.train.History)
        what = f'compare(data, settings, "{name}", {values}, {seeds})'
        runs = [expect.handle(run, what=f"{what}[0]") for run in expect.items(answer, 2 * len(values), what=what)]
        wanted = [{**shared, "seed": seed, name: value} for seed in seeds for value in values]
        for i, (run, expected) in enumerate(zip(runs, wanted, strict=True)):
            given = expect.handle(run.training, what="settings")
            for key, value in expected.items():
                expect.equal(getattr(given, key), value, what=f"{what}[{i}].{key}")
            expect.close(expect.handle(run.validation, what="data").training, torch.arange(2), atol=EXACT, what="data")
        for key, value in shared.items():
            expect.equal(getattr(settings, key), value, what=f"settings.{key}")


@check(
    "training.compare-rows",
    title="compare: each row is what a run of its settings gives",
    points=1,
    hint="A row must hold what its own run measured, with the same poems in the same order as any run of that seed. If "
    "rows differ from run_once(settings, data), something is shared between runs, or changed on the way.",
    reproduce="""
import torch; from compare import *; from gpt import CharTokenizer
text = torch.arange(8).repeat(25); data = Data(CharTokenizer("abcdefgh"), text, text[:41])
settings = Settings(steps=1, n_layer=1, n_embd=8, block_size=8, batch_size=4)
rows = compare(data, settings, "n_head", (1, 2, 4))
for row in rows: print(row == run_once(replace(settings, n_head=row["n_head"]), data))  # True
""",
)
def test_compare_rows(student, draw):
    data = poems(student, draw)
    shared = {"steps": 1, **SMALL}
    run_once = function(student.compare, "run_once")
    settings = student.train.Settings(**shared)
    answer = function(student.compare, "compare")(data, settings, "n_head", (1, 4), (3, 5))
    rows = expect.items(answer, 4, what="compare(data, settings, name, values, seeds)")
    expected = [{"n_head": n_head, "seed": seed} for seed in (3, 5) for n_head in (1, 4)]
    for i, (row, setting) in enumerate(zip(rows, expected, strict=True)):
        what = f"compare(data, settings, name, values, seeds)[{i}]"
        wanted = run_once(student.train.Settings(**shared, **setting), data)
        row, wanted = measured(row, what), measured(wanted, what)
        for name in ("n_head", "seed", "n_embd", "parameters"):
            expect.equal(row.get(name), wanted.get(name), what=f'{what}["{name}"]')
        for name in MEASURED:
            value = expect.real(wanted[name], what=f'run_once(settings, data)["{name}"]')
            expect.number(row[name], value, atol=RUNS, what=f'{what}["{name}"]')


# A table that was handed in


MOST_BYTES, MOST_ROWS = 1_000_000, 1000
# Sizes that are run again: at most about as large as the lesson's, whose one step takes 0.1 s.
MOST_AGAIN, MOST_PARAMETERS, MOST_LAYERS, MOST_WEIGHTS = 6, 3_000_000, 12, 2_000_000
MOST = 10**9  # of any count
MOST_CHARACTERS = 20_000
POSITIONS = ("learned", "rope", "sinusoidal", "none")
UNSEEN = 4.0  # nats; the best of twelve runs on these poems has 5.7, and counting characters gives 6.2
COUNTS = ("steps", "n_head", "n_layer", "n_embd", "block_size", "parameters", "steps_done", "best_step")


@check(
    "training.results",
    title="A table of results that is handed in (runs.csv) is one that such runs could give",
    points=0,
    hint="No points depend on this table: your functions are run again instead. But a person who reads it should be "
    "able to believe it. Hand in the runs.csv that compare.py writes, or none.",
    reproduce="""
import csv, pathlib
for path in pathlib.Path().rglob("runs.csv"):
    for row in csv.DictReader(path.open(encoding="utf-8")): print(row["n_head"], row["seed"], row["validation_loss"])
""",
)
def test_results(student, handed_in):
    again = Again(student)
    for name, content in handed_in.items():
        if name.rpartition("/")[2] == "runs.csv":
            text = content[:MOST_BYTES].decode("utf-8-sig", "replace")
            try:
                rows = [row for row, _ in zip(csv.DictReader(io.StringIO(text)), range(MOST_ROWS), strict=False)]
            except csv.Error:
                rows = [{}]
            for line, row in enumerate(rows, start=2):
                expect.true(
                    not (lost := diverged(row)),
                    "training.results.diverged",
                    "{what} has no {actual}: the run diverged. Run it again with a smaller learning rate, or leave "
                    "the row out.",
                    what=f"{name}, line {line},",
                    expected="",
                    actual=lost,
                )
                problem = implausible(row) or again.contradicts(row)
                expect.true(
                    not problem,
                    "training.results.row",
                    "{what}: {actual}. Such a row does not come from a run.",
                    what=f"{name}, line {line}",
                    expected="",
                    actual=problem,
                )


class Again:
    """Short runs of the student's own code in the sizes of the table: one step each, on text that means nothing."""

    def __init__(self, student):
        self.student, self.known = student, {}

    def contradicts(self, row):
        """What a row of plausible numbers says otherwise than such a run, or ""."""
        counts, position = {name: int(row[name]) for name in COUNTS}, row["position"]
        sizes = {name: counts[name] for name in ("n_layer", "n_head", "n_embd", "block_size")}
        V, count = vocabulary(counts, position), counts["parameters"]
        key = (*sizes.values(), position, V)
        if key not in self.known:
            weights = sizes["n_layer"] * sizes["n_head"] * sizes["block_size"] ** 2
            large = count > MOST_PARAMETERS or sizes["n_layer"] > MOST_LAYERS or weights > MOST_WEIGHTS
            if large or len(self.known) == MOST_AGAIN:
                return ""  # too much to compute
            self.known[key] = self.run(V, position=position, **sizes)
        short = self.known[key]
        what = "run_once(settings, data)"
        if (parameters := short["parameters"]) != count:
            return f"parameters = {count}; {what}: {expect.describe(parameters)}"
        untrained = expect.real(short["training_loss"], what=f'{what}["training_loss"], steps = 1')
        if float(row["best_validation_loss"]) > untrained + 1.0:  # even a run that went wrong began here
            return f"best_validation_loss = {float(row['best_validation_loss']):g}; {what}, steps = 1: {untrained:g}"
        return ""

    def run(self, V, **sizes):
        """One step of the student's run_once in these sizes."""
        characters = "".join(chr(0x4E00 + i) for i in range(V))
        text = torch.arange(2 * sizes["block_size"] + 2) % V
        data = self.student.corpus.Data(self.student.gpt.CharTokenizer(characters), text, text)
        settings = self.student.train.Settings(steps=1, batch_size=1, evaluate_every=1, dropout=0.0, **sizes)
        return measured(function(self.student.compare, "run_once")(settings, data), "run_once(settings, data)")


def vocabulary(counts, position):
    """V, from the count of parameters: tok_emb and head are what the blocks and the position table leave. 0 if they
    leave what cannot be."""
    C, L = counts["n_embd"], counts["n_layer"]
    table = C * counts["block_size"] if position in ("learned", "sinusoidal") else 0
    V, rest = divmod(counts["parameters"] - L * (12 * C * C + 13 * C) - 2 * C - table, 2 * C)
    return 0 if rest else V


def diverged(row):
    """The losses that a row of runs.csv lacks or that are no numbers, as such a run leaves them, or ""."""
    try:
        if int(row["steps_done"]) < 1:
            return ""  # it was stopped before it had any
        return ", ".join(name for name in MEASURED if not math.isfinite(float(row[name].strip() or "nan")))
    except (KeyError, TypeError, ValueError, AttributeError):  # it is no row of such a table at all
        return ""


def implausible(row):
    """What is wrong with a row of runs.csv, as an expression, or ""."""
    try:
        counts = {name: int(row[name]) for name in COUNTS}
        losses = {name: float(row[name]) for name in MEASURED}
        position = row["position"]
    except (KeyError, TypeError, ValueError):
        names = (*COUNTS, *MEASURED, "position")
        return ", ".join(name for name in names if not row.get(name)) or "int(...), float(...)"
    for name, count in counts.items():
        if not (name in ("n_head", "n_embd", "block_size")) <= count <= MOST:
            return f"{name} = {str(count)[:20]}"
    if counts["n_embd"] % counts["n_head"]:
        return f"n_embd = {counts['n_embd']}, n_head = {counts['n_head']}"
    if position not in POSITIONS:
        return f"position = {str(position)[:20]!r}"
    V = vocabulary(counts, position)
    if not 2 <= V <= MOST_CHARACTERS:
        return f"parameters = {counts['parameters']}"
    if not counts["best_step"] <= counts["steps_done"] <= counts["steps"]:
        return f"best_step = {counts['best_step']}, steps_done = {counts['steps_done']}, steps = {counts['steps']}"
    for name, loss in losses.items():
        if not 0.0 < loss < 3 * math.log(V):
            return f"{name} = {loss:g}"
    if losses["best_validation_loss"] > losses["validation_loss"] + 1e-9:
        return "best_validation_loss > validation_loss"
    if V > 1000 and losses["best_validation_loss"] < UNSEEN:
        return f"best_validation_loss = {losses['best_validation_loss']:g} < {UNSEEN:g}"
    return ""
