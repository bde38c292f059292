"""Mistakes as people make them: each must lose points, and be named as itself."""

import torch


class Multiplied:
    """The logits are multiplied by the temperature."""

    id = "temperature.multiplied"
    of = "sampling"
    source = "own: temperature and its inverse, beta, are easily confused"
    hint = (
        "Your probabilities are those of a temperature of one over the one that was asked for: a small temperature "
        "evens them out and a large one sharpens them. Which way round should it be?"
    )

    def temperature_softmax(logits, temperature):
        if temperature <= 0:
            raise ValueError(f"the temperature must be above 0, not {temperature}")
        return torch.softmax(logits * temperature, dim=-1)


class AfterSoftmax:
    """The probabilities are divided by the temperature, not the logits."""

    id = "temperature.after-softmax"
    of = "sampling"
    source = "own: the right steps in the wrong order"
    hint = (
        "Your rows sum to 1 only at a temperature of 1: they are what comes out when the temperature meets the "
        "probabilities instead of the logits."
    )

    def temperature_softmax(logits, temperature):
        if temperature <= 0:
            raise ValueError(f"the temperature must be above 0, not {temperature}")
        return torch.softmax(logits, dim=-1) / temperature


class WrongAxis:
    """The probabilities sum to 1 along the batch."""

    id = "temperature.wrong-axis"
    of = "sampling"
    source = "own: dim=0 instead of dim=-1"
    hint = "Your columns sum to 1, not your rows: the tokens compete across sentences instead of within one."

    def temperature_softmax(logits, temperature):
        if temperature <= 0:
            raise ValueError(f"the temperature must be above 0, not {temperature}")
        return torch.softmax(logits / temperature, dim=0)


class Overflow:
    """exp of the logits as they are."""

    id = "temperature.overflow"
    of = "sampling"
    source = "own: the formula, word for word"
    hint = (
        "Your formula is right on paper, and gives NaN once exp(logit) is larger than a float can be. A constant "
        "taken off a whole row changes no probability."
    )

    def temperature_softmax(logits, temperature):
        if temperature <= 0:
            raise ValueError(f"the temperature must be above 0, not {temperature}")
        powers = torch.exp(logits / temperature)
        return powers / powers.sum(dim=-1, keepdim=True)


class AnyTemperature:
    """A temperature of 0 or less is taken."""

    id = "temperature.any-temperature"
    of = "sampling"
    source = "own: the docstring not read to its end"
    hint = "Your function takes a temperature of 0 and divides by it. What does the docstring say it should do?"

    def temperature_softmax(logits, temperature):
        return torch.softmax(logits / temperature, dim=-1)
