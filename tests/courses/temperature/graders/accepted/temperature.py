"""Right answers in other forms. Each must get full marks."""

import torch
import torch.nn.functional as F


class LibrarySoftmax:
    """softmax from the library."""

    id = "temperature.library-softmax"
    of = "sampling"
    source = "own: the shortest form"

    def temperature_softmax(logits, temperature):
        if temperature <= 0:
            raise ValueError(f"temperature={temperature}")
        return torch.softmax(logits / temperature, dim=-1)


class LogSoftmax:
    """exp of log_softmax, with the logits scaled by 1 / temperature."""

    id = "temperature.log-softmax"
    of = "sampling"
    source = "own: where log-probabilities are wanted too"
    imports = "import torch.nn.functional as F"

    def temperature_softmax(logits, temperature):
        if not temperature > 0:
            raise ValueError(f"a temperature of {temperature} makes no sense")
        return F.log_softmax(logits * (1.0 / temperature), dim=1).exp()


class RowByRow:
    """A loop over the sentences."""

    id = "temperature.row-by-row"
    of = "sampling"
    source = "own: how a beginner writes it"

    def temperature_softmax(logits, temperature):
        if temperature <= 0:
            raise ValueError(f"temperature must be positive: {temperature}")
        rows = []
        for row in logits:
            powers = torch.exp((row - row.max()) / temperature)
            rows.append(powers / powers.sum())
        return torch.stack(rows)
