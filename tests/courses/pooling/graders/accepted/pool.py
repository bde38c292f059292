"""Right answers in other forms. Each must get full marks."""

import torch


class RowByRow:
    """A loop over the sentences."""

    id = "pool.row-by-row"
    of = "pooling"
    source = "own: how a beginner writes it"
    imports = "import torch"

    def mean_pool(x, lengths):
        return torch.stack([row[: int(length)].mean(0) for row, length in zip(x, lengths, strict=True)])
