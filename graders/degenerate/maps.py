"""Answers without content, which must earn nothing."""

import torch


class Zeros:
    """Zeros of the right shape."""

    id = "maps.zeros"
    of = "attention_maps"
    source = "own: right shape, no content"

    def attention_maps(model, idx):
        T, config = idx.size(1), model.config
        return torch.zeros(config.n_layer, config.n_head, T, T, dtype=model.tok_emb.weight.dtype)


class Even:
    """Every position takes evenly from what it may see: rows sum to 1, and nothing was computed."""

    id = "maps.even"
    of = "attention_maps"
    source = "own: passes every property of a map"

    def attention_maps(model, idx):
        T, config = idx.size(1), model.config
        even = torch.ones(T, T, dtype=model.tok_emb.weight.dtype).tril()
        even = even / even.sum(-1, keepdim=True)
        return even.expand(config.n_layer, config.n_head, T, T)


class Nothing:
    """None."""

    id = "maps.nothing"
    of = "attention_maps"
    source = "own: the return forgotten"

    def attention_maps(model, idx):
        model(idx)


class Logits:
    """The logits of the model."""

    id = "maps.logits"
    of = "attention_maps"
    source = "own: something that the model gives"

    def attention_maps(model, idx):
        return model(idx)[0]
