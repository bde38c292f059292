"""Answers without content, which must earn nothing."""

import copy

import torch


class Untouched:
    """The model as it is, zeros, an empty list."""

    id = "pruning.untouched"
    of = "pruning"
    source = "own: nothing done"

    def silence_head(model, layer, head):
        return model

    def head_importance(model, batch):
        return torch.zeros(model.config.n_layer, model.config.n_head)

    def rank_heads(importance):
        return []


class InOrder:
    """A plain copy, the numbers of the heads, the heads in their order."""

    id = "pruning.in-order"
    of = "pruning"
    source = "own: right types, no content"
    imports = "import copy"

    def silence_head(model, layer, head):
        return copy.deepcopy(model)

    def head_importance(model, batch):
        config = model.config
        return torch.arange(float(config.n_layer * config.n_head)).view(config.n_layer, config.n_head)

    def rank_heads(importance):
        return [(i, j) for i in range(importance.size(0)) for j in range(importance.size(1))]


class Nothing:
    """None everywhere."""

    id = "pruning.nothing"
    of = "pruning"
    source = "own: the returns forgotten"

    def silence_head(model, layer, head):
        pass

    def head_importance(model, batch):
        pass

    def rank_heads(importance):
        pass


class AllNan:
    """NaN for every head, another model."""

    id = "pruning.all-nan"
    of = "pruning"
    source = "own: comparisons with NaN are never true"

    def silence_head(model, layer, head):
        return type(model)(model.config).to(model.tok_emb.weight.dtype)

    def head_importance(model, batch):
        return torch.full((model.config.n_layer, model.config.n_head), float("nan"))

    def rank_heads(importance):
        return [(0, 0)] * importance.numel()
