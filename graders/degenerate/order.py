"""Answers without content, which must earn nothing: every body that the student writes is replaced."""

import copy

import torch


class Zero:
    """No difference, ever; the model itself."""

    id = "order.zero"
    of = "heads_positions"
    source = "own: return 0.0"

    def order_difference(model, tokenizer, first, second):
        return 0.0

    def without_positions(model):
        return model

    def order_table(seed=0):
        return [(n, 0.0, 0.0) for n in (1, 2, 3)]


class One:
    """One number for everything; a plain copy."""

    id = "order.one"
    of = "heads_positions"
    source = "own: a constant that passes every 'differs'"

    def order_difference(model, tokenizer, first, second):
        return 1.0

    def without_positions(model):
        return copy.deepcopy(model)

    def order_table(seed=0):
        return [(n, 1.0, 1.0) for n in (1, 2, 3)]


class LessonFigures:
    """The figures printed in the lesson, for any model."""

    id = "order.lesson-figures"
    of = "heads_positions"
    source = "own: copied from the page"

    def order_difference(model, tokenizer, first, second):
        return 2.8e-03

    def without_positions(model):
        return model

    def order_table(seed=0):
        return [(1, 3.7e-08, 2.8e-03), (2, 1.9e-02, 1.5e-02), (3, 2.1e-02, 1.9e-02)]


class Noise:
    """A random number."""

    id = "order.noise"
    of = "heads_positions"
    source = "own: right type, no content"

    def order_difference(model, tokenizer, first, second):
        return torch.rand(()).item()

    def without_positions(model):
        return type(model)(model.config)

    def order_table(seed=0):
        return [(n, *torch.rand(2).tolist()) for n in (1, 2, 3)]


class NotANumber:
    """NaN, and an empty table."""

    id = "order.not-a-number"
    of = "heads_positions"
    source = "own: comparisons with NaN are never true"

    def order_difference(model, tokenizer, first, second):
        return float("nan")

    def without_positions(model):
        return None

    def order_table(seed=0):
        return []


class TextsOnly:
    """Whether the texts differ; the model is never run."""

    id = "order.texts-only"
    of = "heads_positions"
    source = "own: the inputs compared in place of the outputs"

    def order_difference(model, tokenizer, first, second):
        return float(first != second)

    def without_positions(model):
        return model

    def order_table(seed=0):
        return [(1, 0.0, 1.0), (2, 1.0, 1.0), (3, 1.0, 1.0)]
