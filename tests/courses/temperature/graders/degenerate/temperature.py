"""Answers without content, which must earn nothing."""

import torch


class Uniform:
    """Every token is as likely."""

    id = "temperature.uniform"
    of = "sampling"
    source = "own: right shape, rows sum to 1"

    def temperature_softmax(logits, temperature):
        return torch.full_like(logits, 1.0 / logits.size(-1))


class Identity:
    """What comes in goes out."""

    id = "temperature.identity"
    of = "sampling"
    source = "own: return logits"

    def temperature_softmax(logits, temperature):
        return logits


class AlwaysRefuses:
    """Every temperature is refused."""

    id = "temperature.always-refuses"
    of = "sampling"
    source = "own: earns the error's points, if the check looks at nothing else"

    def temperature_softmax(logits, temperature):
        raise ValueError(f"the temperature must be above 0, not {temperature}")
