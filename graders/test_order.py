"""Does attention see the order of the characters? `order_difference`, `without_positions`, `order_table`.

Two kinds of checks. What a function does is compared with the student's own model, so that a slip in attention, which
`heads` has judged, costs nothing twice; since without one that model gives what the reference gives, it is asked only
where the answer is not the reference's. What the experiment shows is judged with the reference's weights in the
student's model. No check asks which of two figures is larger where chance decides. The two texts whose difference is
measured are chosen by the reference's logits, so that wrong formulas are not right by chance (`telling`).

Models are what costs here: one serves as many comparisons as it can.

Tolerances. Differences are judged relative to the largest logit. Over 4 initialisations, 5 vocabularies, tied and
untied, one layer without positions gives at most 1e-6 in float32 and 1.5e-15 in float64 for every order of the
characters; with positions at least 1.0e-3; two or three layers without positions at least 2.2e-3. With the weights
drawn here, over 60 seeds and all 24 orders: 4e-7, 1e-15, 1.1e-3 and 6.5e-3 (tests/test_tolerances.py measures some);
between any two of the orders, 9e-4 with positions and 5e-3 with two layers without; `telling` found two each time.
"""

import itertools

import torch

from harness.grading import check, expect

FIRST, SECOND = "白日依山尽", "山依日白尽"
POEM = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"
CHARACTERS = sorted(set(POEM))  # as CharTokenizer numbers them
ORDERS = ["".join(four) + FIRST[4] for four in itertools.permutations(FIRST[:4])]
SOME = (SECOND, ORDERS[1])  # the last swaps two neighbours only
SHORT = ["".join(four) for four in itertools.permutations(FIRST[1:])]  # of another length, with different ends
BLOCK_SIZE, CHANNELS = 16, 32

F64 = 1e-10  # the same formula on logits below 1: 2e-15 measured; the mean for the maximum is wrong by 1e-3
BLIND = {torch.float32: 1e-5, torch.float64: 1e-12}  # of the largest logit; see above
SIGHTED = 1e-4
ROWS = 1e-6  # of the same row twice, in float32
CHANGES = 1e-6  # what must change does so by 1e-3 and more in a correct model


def encode(*texts):
    """(B, T), as the tokenizer of the poem numbers the characters."""
    return torch.tensor([[CHARACTERS.index(character) for character in text] for text in texts])


def build(gpt, n_layer, position="learned"):
    config = gpt.GPTConfig(
        vocab_size=len(CHARACTERS), block_size=BLOCK_SIZE, n_layer=n_layer, n_head=4, n_embd=CHANNELS, position=position
    )
    return expect.handle(expect.handle(gpt.GPT, what="GPT")(config), what="GPT(config)")


def ready(model, dtype):
    """The model in this dtype and in eval mode."""
    if dtype != torch.float32:  # as it was built
        model.to(dtype)
    model.eval()
    return model


def pair(student, reference, n_layer, position="learned", dtype=torch.float64):
    """The student's model and the reference's with the same weights, in eval mode."""
    theirs, ours = build(student.gpt, n_layer, position), build(reference.gpt, n_layer, position)
    theirs.load_state_dict(ours.state_dict())
    return ready(theirs, dtype), ready(ours, dtype)


def empty_table(model):
    """Puts zeros into the position table: no positions are left."""
    expect.handle(model.pos_emb, what="model.pos_emb").load_state_dict({"weight": torch.zeros(BLOCK_SIZE, CHANNELS)})


def logits(model, *texts, what="model(idx)[0]"):
    """(B, T, V), the first item of what the model returns for texts of one length."""
    answer = expect.items(model(encode(*texts)), 2, what="model(idx)")
    return expect.tensor(answer[0], (len(texts), len(texts[0]), len(CHARACTERS)), what=what)


def differences(model, texts, what):
    """[B], how far the logits at the last position are from those of FIRST, for each text."""
    last = logits(model, FIRST, *texts, what=f"{what}(idx)[0]")[:, -1]
    return (last[1:] - last[0]).abs().amax(-1).tolist()


def own_difference(model, first, second):
    """What order_difference should give for this model, whatever its attention does."""
    a, b = logits(model, first, second)[:, -1]
    expect.varies(a, b, by=CHANGES, what=f"model(idx)[0][0, -1], {first!r}, {second!r}")
    return float((a - b).abs().max())


def is_difference(got, theirs, ours, first, second, *, what):
    """`got` is the difference of the two texts for the student's model, in float64."""
    expected = own_difference(ours, first, second)
    if not (isinstance(got, float) and abs(got - expected) <= F64):
        expected = own_difference(theirs, first, second)
    expect.number(got, expected, atol=F64, what=what)


def measure(student):
    """order_difference of the submission with a tokenizer of its own, as `difference(model, first, second)`."""
    function = expect.handle(student.heads_positions.order_difference, what="order_difference")
    tokenizer = student.gpt.CharTokenizer(POEM)
    return lambda model, first, second: function(model, tokenizer, first, second)


def blinded(student, model):
    """without_positions(model)."""
    function = expect.handle(student.heads_positions.without_positions, what="without_positions")
    return expect.handle(function(model), what="without_positions(model)")


def telling(ours, texts=ORDERS):
    """Two of `texts` that tell wrong formulas, if there are two; the lesson's before others.

    By the reference's logits, the largest difference is below zero and at another character than the best guess: no
    maximum taken too early is right by chance and, asked both ways round, no sign. If all texts end alike, the best
    guess is the same, and to compare best guesses gives 0; if not, logits are far enough apart to change their sign,
    and a difference of absolute values is wrong.
    """
    rows = dict(zip(texts, logits(ours, *texts)[:, -1], strict=True))
    lesson = (FIRST, SECOND) if SECOND in rows else texts[:2]
    alike = len({text[-1] for text in texts}) == 1
    for first, second in (lesson, lesson[::-1], *itertools.permutations(texts, 2)):
        a, b = rows[first], rows[second]
        most = 0.95 * float((a - b).abs().max())
        wrong = max((a - b).max(), abs(a.max() - b.max()))
        if (a.argmax() == b.argmax() if alike else (a.abs() - b.abs()).abs().max() < most) and wrong < most:
            return first, second
    return lesson


def at_least(actual, least, *, what):
    """`actual` is a number of at least `least`."""
    value = expect.real(actual, what=what)
    expect.true(
        value >= least,
        "order.at-least",
        "{what} is {actual}; it should be {expected}.",
        what=what,
        expected=f">= {least:.1e}",
        actual=f"{value:.1e}",
    )


# order_difference


@check(
    "order.difference",
    title="order_difference: the largest difference of the logits at the last position",
    points=3,
    hint="Look at the last position only, take the absolute difference of the two rows of logits (not of "
    "probabilities), and of that the maximum (not the mean, the sum or a norm), as a Python number.",
    reproduce="""
import torch; from gpt import *; from heads_positions import *
tokenizer = CharTokenizer(POEM); model = GPT(GPTConfig(vocab_size=tokenizer.vocab_size, n_layer=1, n_embd=32)).eval()
a, b = (model(torch.tensor([tokenizer.encode(text)]))[0][0, -1] for text in (FIRST, SECOND))
print(order_difference(model, tokenizer, FIRST, SECOND), (a - b).abs().max().item())  # the same number twice
""",
)
def test_difference(student, reference):
    difference = measure(student)
    theirs, ours = pair(student, reference, 1)
    # Of the lesson's length and of another, with the same end and not; with the larger logits first, and second.
    for first, second in (telling(ours), telling(ours, SHORT)[::-1]):
        what = f"order_difference(model, tokenizer, {first!r}, {second!r})"
        is_difference(difference(theirs, first, second), theirs, ours, first, second, what=what)


@check(
    "order.figures",
    title="order_difference: the reference's figures for 1 and 2 layers, with and without positions",
    points=2,
    hint="With the same weights the same figures must come out. If order.difference passes and this does not, the "
    "model itself differs from the lesson's: look at what the checks of `heads` say of attention.",
    reproduce="""
from gpt import *; from heads_positions import *
tokenizer = CharTokenizer(POEM); sizes = dict(vocab_size=tokenizer.vocab_size, n_embd=32)
for n_layer in (1, 2):
    model = GPT(GPTConfig(n_layer=n_layer, **sizes)).eval(); print(order_difference(model, tokenizer, FIRST, SECOND))
# each between 7e-4 and 9e-2
""",
)
def test_figures(student, reference):
    difference = measure(student)
    tokenizer = reference.gpt.CharTokenizer(POEM)
    for n_layer, position in ((1, "learned"), (2, "none")):
        theirs, ours = pair(student, reference, n_layer, position)
        first, second = telling(ours)[:: 3 - 2 * n_layer]  # the other way round for two layers
        expected = reference.heads_positions.order_difference(ours, tokenizer, first, second)
        what = f"order_difference(model, tokenizer, {first!r}, {second!r}), n_layer={n_layer}, position={position!r}"
        expect.number(difference(theirs, first, second), expected, atol=F64, what=what)


@check(
    "order.mode",
    title="order_difference leaves the model in the mode it found",
    points=1,
    hint="Do not call model.eval() or model.train() inside: whoever hands the model in has chosen the mode, and would "
    "be surprised to find dropout switched off in the middle of training.",
    reproduce="""
from gpt import *; from heads_positions import *
tokenizer = CharTokenizer(POEM); model = GPT(GPTConfig(vocab_size=tokenizer.vocab_size, n_layer=1, n_embd=32)).train()
print(order_difference(model, tokenizer, FIRST, SECOND), model.training)  # a number, then True
""",
)
def test_mode(student, reference):
    difference = measure(student)
    theirs, ours = pair(student, reference, 1)
    first, second = telling(ours)
    for mode in (True, False):
        theirs.train(mode)  # without dropout both modes give the same numbers
        first, second = second, first
        what = f"order_difference(model, tokenizer, {first!r}, {second!r}), training={mode}"
        got = difference(theirs, first, second)
        after = theirs.training
        with expect.on_the_way("order.difference"):
            is_difference(got, theirs, ours, first, second, what=what)
        expect.equal(after, mode, what=f"order_difference(model, tokenizer, {first!r}, {second!r}); model.training")


# without_positions


def is_emptied(blind, theirs, ours):
    """`blind` gives the logits for FIRST, in float64, that the student's model gives once its table is empty.

    Empties it, if need be, and the reference's in any case.
    """
    empty_table(ours)
    expected = logits(ours, FIRST)
    if not torch.allclose(blind.double(), expected, rtol=0.0, atol=F64):
        with_positions = logits(theirs, FIRST)
        empty_table(theirs)
        expected = logits(theirs, FIRST)
        expect.varies(with_positions, expected, by=CHANGES, what="model(idx)[0], pos_emb.weight = 0")
    expect.close(blind, expected, atol=F64, what="without_positions(model)(idx)[0]")


@check(
    "order.without-positions",
    title="without_positions: the same model, but with an empty position table",
    points=2,
    hint="Only the rows of pos_emb become 0; every other weight stays what it was. A newly built model has other "
    "weights, and the table of characters (tok_emb) is not the table of positions.",
    reproduce="""
from gpt import *; from heads_positions import *
model = GPT(GPTConfig(vocab_size=22, n_layer=1, n_embd=32)); blind = without_positions(model)
print(blind.pos_emb.weight.abs().max())  # 0
print((blind.tok_emb.weight - model.tok_emb.weight).abs().max())  # 0
""",
)
def test_without_positions(student, reference):
    theirs, ours = pair(student, reference, 1)
    blind = logits(blinded(student, theirs), FIRST, what="without_positions(model)(idx)[0]")
    is_emptied(blind, theirs, ours)


@check(
    "order.untouched",
    title="without_positions leaves the model that it was given alone",
    points=1,
    hint="Work on a copy, and on a deep one (copy.deepcopy): an assignment is no copy at all, and a shallow copy "
    "shares the table with the original, so that clearing one clears both.",
    reproduce="""
from gpt import *; from heads_positions import *
model = GPT(GPTConfig(vocab_size=22, n_layer=1, n_embd=32)); before = model.pos_emb.weight.abs().sum().item()
blind = without_positions(model)
print(before, model.pos_emb.weight.abs().sum().item())  # the same number twice, not 0
""",
)
def test_untouched(student, reference):
    theirs, ours = pair(student, reference, 1)
    before = logits(theirs, FIRST)
    blind = logits(blinded(student, theirs), FIRST, what="without_positions(model)(idx)[0]")
    after = logits(theirs, FIRST)
    with expect.on_the_way("order.without-positions"):
        is_emptied(blind, theirs, ours)
    expect.same(before, after, atol=0.0, what="without_positions(model); model(idx)[0]")


# What the experiment shows


@check(
    "order.blind",
    title="One layer without positions cannot tell any of the 24 orders apart",
    points=2,
    hint="The last character attends to the same set of characters in any order, and a sum has no order. If orders "
    "differ here, positions come in from somewhere: a table that is not all zeros, or heads that mix positions.",
    reproduce="""
from gpt import *; from heads_positions import *
tokenizer = CharTokenizer(POEM); model = GPT(GPTConfig(vocab_size=tokenizer.vocab_size, n_layer=1, n_embd=32)).eval()
for text in (SECOND, "日白依山尽", "依山白日尽"):
    print(order_difference(without_positions(model), tokenizer, FIRST, text))  # around 1e-7 or 0
""",
)
def test_blind(student, reference):
    difference = measure(student)
    theirs, ours = pair(student, reference, 1, dtype=torch.float32)
    scale = float(logits(ours, FIRST).abs().max())
    first, second = telling(ours)
    seen = difference(theirs, first, second)
    at_least(seen, SIGHTED * scale, what=f"order_difference(model, tokenizer, {first!r}, {second!r}), n_layer=1")
    blind = blinded(student, theirs)
    what = f"order_difference(without_positions(model), tokenizer, {FIRST!r}, {SECOND!r}), float32"
    expect.number(difference(blind, FIRST, SECOND), 0.0, atol=BLIND[torch.float32] * scale, what=what)
    # All orders at once, through the model alone: it is the model that must not see them. In float64, where rounding
    # hides less.
    blind.to(torch.float64)
    for text, value in zip(ORDERS, differences(blind, ORDERS, "without_positions(model)"), strict=True):
        what = f"without_positions(model)(idx)[0][:, -1], {FIRST!r} - {text!r}, float64"
        expect.number(value, 0.0, atol=BLIND[torch.float64] * scale, what=what)


@check(
    "order.sighted",
    title="One layer with positions tells all of the 24 orders apart",
    points=1,
    hint="With a position table the same character has another input at another place, so every order gives other "
    "logits; the same text twice gives exactly the same ones. Is the model in eval mode, and are both texts used?",
    reproduce="""
from gpt import *; from heads_positions import *
tokenizer = CharTokenizer(POEM); model = GPT(GPTConfig(vocab_size=tokenizer.vocab_size, n_layer=1, n_embd=32)).eval()
for text in (SECOND, "日白依山尽", "依山白日尽"): print(order_difference(model, tokenizer, FIRST, text))
print(order_difference(model, tokenizer, FIRST, FIRST))  # 0; those above: 1e-4 and more
""",
)
def test_sighted(student, reference):
    difference = measure(student)
    # float32 alone: what a float64 run would add, the check without positions has.
    theirs, ours = pair(student, reference, 1, dtype=torch.float32)
    scale = float(logits(ours, FIRST).abs().max())
    same = BLIND[torch.float32] * scale
    last = dict(zip(ORDERS, logits(theirs, *ORDERS)[:, -1], strict=True))
    first, second = telling(ours)  # a figure that comes from the texts alone proves nothing
    for a, b in ((first, second), (second, first), (FIRST, FIRST)):
        expected = float((last[a] - last[b]).abs().max())
        what = f"order_difference(model, tokenizer, {a!r}, {b!r})"
        expect.number(difference(theirs, a, b), expected, atol=same, what=what)
    for text in ORDERS[1:]:
        value = float((last[text] - last[FIRST]).abs().max())
        at_least(value, SIGHTED * scale, what=f"model(idx)[0][:, -1], {FIRST!r} - {text!r}")


@check(
    "order.deeper",
    title="Two and three layers tell orders apart even without positions",
    points=1,
    hint="The causal mask alone gives the order away from the second layer on: after the first, each position has seen "
    "a different part of the text. If nothing differs here, the mask is missing.",
    reproduce="""
from gpt import *; from heads_positions import *
tokenizer = CharTokenizer(POEM)
for n_layer in (1, 2, 3):
    model = without_positions(GPT(GPTConfig(vocab_size=22, n_layer=n_layer, n_embd=32)).eval())
    print(n_layer, order_difference(model, tokenizer, FIRST, SECOND))  # about 1e-7, then 5e-3 and more
""",
)
def test_deeper(student, reference):
    difference = measure(student)
    # Three layers, through a model that never had positions: a copy without them costs twice as much.
    theirs, ours = pair(student, reference, 3, "none", torch.float32)
    scale = float(logits(ours, FIRST).abs().max())
    for text, value in zip(SOME, differences(theirs, SOME, "model"), strict=True):
        what = f"model(idx)[0][:, -1], {FIRST!r} - {text!r}, n_layer=3, position='none'"
        at_least(value, SIGHTED * scale, what=what)
    for n_layer in (2, 1):
        theirs, ours = pair(student, reference, n_layer, dtype=torch.float32)
        blind = blinded(student, theirs)
        scale = float(logits(ours, FIRST).abs().max())
        empty_table(ours)
        # The lesson's pair begins with different characters: who looks at another position sees them differ.
        first, second = telling(ours) if n_layer == 2 else (FIRST, SECOND)
        seen = difference(blind, first, second)
        what = f"order_difference(without_positions(model), tokenizer, {first!r}, {second!r}), n_layer={n_layer}"
        if n_layer == 2:
            at_least(seen, SIGHTED * scale, what=what)
        else:  # only so that a figure of its own making does not pass; order.blind judges the model
            expect.number(seen, 0.0, atol=BLIND[torch.float32] * scale, what=what)


@check(
    "order.table",
    title="order_table: the rows for one, two and three layers",
    points=2,
    hint="Three rows, the lesson's two and the one for three layers, each from order_row with the seed that was handed "
    "in: (layers, difference without positions, difference with positions).",
    reproduce="""
from heads_positions import *
for row in order_table(seed=7): print(row)  # three rows, for 1, 2 and 3 layers
print(order_row(3, seed=7))  # the same as the last of them
""",
)
def test_table(student, reference):
    table = expect.handle(student.heads_positions.order_table, what="order_table")
    # Another seed than in the lines that show the check.
    row_of = expect.handle(student.heads_positions.order_row, what="order_row")
    rows = [
        expect.items(row, 3, what=f"order_table(seed=5)[{i}]")
        for i, row in enumerate(expect.items(table(5), 3, what="order_table(seed=5)"))
    ]
    # Smallest and largest of 200 seeds, for this initialisation, 32 channels and 5 or 60 characters: without positions
    # 9e-8 at most in one layer, then 5e-3 at least; with positions 7e-4 and 2e-3 at least.
    for n_layer, row in zip((1, 2, 3), rows, strict=True):
        what = f"order_table(seed=5)[{n_layer - 1}]"
        expect.equal(row[0], n_layer, what=f"{what}[0]")
        if n_layer == 1:
            expect.number(row[1], 0.0, atol=1e-6, what=f"{what}[1]")
        else:
            at_least(row[1], 5e-4, what=f"{what}[1]")
        at_least(row[2], 1e-4, what=f"{what}[2]")
    # The same seed gives the same numbers; two threads may sum in another order: float32 rounding, 1e-7.
    known = reference.heads_positions.order_table(5)
    values, ours = itertools.chain(*rows), itertools.chain(*known)
    if all(abs(float(a) - b) <= ROWS for a, b in zip(values, ours, strict=True)):
        return  # they are the reference's, as weights that are drawn in its order give them
    for n_layer in (1, 2, 3):
        own = expect.items(row_of(n_layer, 5), 3, what=f"order_row({n_layer}, seed=5)")
        for column in (1, 2):
            expected = expect.real(own[column], what=f"order_row({n_layer}, seed=5)[{column}]")
            what = f"order_table(seed=5)[{n_layer - 1}][{column}]"
            expect.number(rows[n_layer - 1][column], expected, atol=ROWS, what=what)
    other = expect.items(row_of(1, 8), 3, what="order_row(1, seed=8)")
    changed = expect.real(other[2], what="order_row(1, seed=8)[2]")
    before = expect.real(rows[0][2], what="order_table(seed=5)[0][2]")
    expect.true(
        abs(changed - before) > CHANGES,
        "order.table.seed",
        "{what} should depend on the seed, but it stays the same.",
        what="order_row(1, seed)",
        expected=f"order_row(1, seed=8)[2] != {before:.6g}",
        actual=f"{changed:.6g}",
    )
