"""Softmax with a temperature: `temperature_softmax` in sampling.py. Letters: B sentences, V tokens.

Tolerance. softmax, log_softmax and exp by hand, dividing before or after the maximum is taken off, differ by at most
2e-16 in float64 on these inputs; the smallest mistake that values show differs by 1e-2.
"""

from harness.grading import check, expect

F64 = 1e-12
CHANGES = 1e-3  # what must change does so by 1e-2 and more in a right answer
B, V = 3, 7  # different, so that a swapped axis shows


def ask(student, logits, temperature, what):
    """The student's probabilities, after making sure that they are a tensor of the right shape."""
    function = expect.handle(student.sampling.temperature_softmax, what="temperature_softmax")
    return expect.tensor(function(logits, temperature), logits.shape, what=what)


@check(
    "temperature.values",
    title="temperature_softmax: the right probabilities at 0.5, 1 and 2",
    points=4,
    hint="Dividing by a small temperature makes large logits larger still: at 0.5 the favourite should gain, at 2 it "
    "should lose.",
    reproduce="""
import torch; from sampling import temperature_softmax
logits = torch.tensor([[1.0, 2.0, 3.0]])
for t in (0.5, 1.0, 2.0):
    print(t, temperature_softmax(logits, t))  # the last: 0.8668, 0.6652, 0.5065
""",
)
def test_values(student, reference, draw):
    logits = draw.normal(B, V).double()
    for temperature in (0.5, 1.0, 2.0):
        what = f"temperature_softmax(logits, {temperature})"
        expected = reference.sampling.temperature_softmax(logits, temperature)
        expect.close(ask(student, logits, temperature, what), expected, atol=F64, what=what)


@check(
    "temperature.rows",
    title="temperature_softmax: sentences of a batch do not see each other",
    points=2,
    hint="The probabilities of one sentence change when another sentence changes. Along which axis should they sum "
    "to 1?",
)
def test_rows(student, draw):
    logits = draw.normal(B, V).double()
    other = logits.clone()
    other[1:, 0] += 2.0
    before = ask(student, logits, 1.0, "temperature_softmax(logits, 1.0)")
    after = ask(student, other, 1.0, "temperature_softmax(logits, 1.0)")
    # The tokens whose own logit stayed the same: they compete with the one that grew, unless nothing is a probability.
    expect.varies(before[1:, 1:], after[1:, 1:], by=CHANGES, what="the probability of tokens beside one that grew")
    expect.same(before[0], after[0], atol=F64, what="the probabilities of the sentence that did not change")


@check(
    "temperature.large",
    title="temperature_softmax: logits of 1000 do not overflow",
    points=2,
    hint="exp(1000) is infinite. Adding the same number to all logits of a row changes no probability: which number "
    "makes the largest power a 1?",
)
def test_large(student, reference, draw):
    logits = 1000.0 + draw.normal(B, V).double()
    expected = reference.sampling.temperature_softmax(logits, 1.0)
    what = "temperature_softmax(1000 + logits, 1.0)"
    expect.close(ask(student, logits, 1.0, what), expected, atol=1e-10, what=what)  # 1000 costs three digits


@check(
    "temperature.refuses",
    title="temperature_softmax: a clear error for a temperature of 0 or less",
    points=2,
    hint="Look at what the docstring says under Raises: which exception, when, and what its message must name.",
)
def test_refuses(student, draw):
    logits = draw.normal(B, V).double()
    cold, warm = (ask(student, logits, t, f"temperature_softmax(logits, {t})") for t in (0.5, 1.0))
    expect.varies(cold, warm, by=CHANGES, what="the answer at 0.5 instead of 1.0")  # else whoever always raises passes
    for temperature in (0.0, -1.5):
        what = f"temperature_softmax(logits, {temperature})"
        expect.raises(
            lambda t=temperature: student.sampling.temperature_softmax(logits, t),
            "ValueError",
            mentions=[temperature],
            what=what,
        )
