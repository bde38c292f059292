"""Correct forms of the order experiment. Each must get full marks."""

import copy

import torch
from torch import nn


class LessonStyle:
    """Two calls under no_grad, unsqueeze for the batch, abs and max as functions."""

    id = "order.lesson-style"
    of = "heads_positions"
    source = "own: the lesson's two calls"

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a = model(torch.tensor(tokenizer.encode(first)).unsqueeze(0))[0][0, -1]
            b = model(torch.tensor(tokenizer.encode(second)).unsqueeze(0))[0][0, -1]
        return float(torch.max(torch.abs(a - b)))


class InferenceMode:
    """inference_mode as a decorator, and the last position of a (1, V) slice."""

    id = "order.inference-mode"
    of = "heads_positions"
    source = "own: the newer of PyTorch's two ways to record nothing"

    @torch.inference_mode()
    def order_difference(model, tokenizer, first, second):
        last = []
        for text in (first, second):
            logits, _ = model(torch.tensor([tokenizer.encode(text)]))
            last.append(logits[:, -1, :])
        return (last[0] - last[1]).abs().max().item()


class DetachedAfterwards:
    """detach in place of no_grad."""

    id = "order.detached-afterwards"
    of = "heads_positions"
    source = "own: a common habit; nothing of the graph outlives the call"

    def order_difference(model, tokenizer, first, second):
        a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, -1].detach() for t in (first, second))
        return (a - b).abs().amax().item()


class InfinityNorm:
    """The infinity norm of the difference."""

    id = "order.infinity-norm"
    of = "heads_positions"
    source = "own: the largest absolute difference by its mathematical name"

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, -1] for t in (first, second))
            return torch.linalg.vector_norm(a - b, ord=float("inf")).item()


class PlainLists:
    """The logits taken out as lists, and Python's own max."""

    id = "order.plain-lists"
    of = "heads_positions"
    source = "own: for those who trust lists more than tensors"

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a = model(torch.tensor([tokenizer.encode(first)]))[0][0, -1].tolist()
            b = model(torch.tensor([tokenizer.encode(second)]))[0][0, -1].tolist()
        return max(abs(x - y) for x, y in zip(a, b, strict=True))


class EvalAndBack:
    """eval for the measurement, and the mode put back afterwards."""

    id = "order.eval-and-back"
    of = "heads_positions"
    source = "own: the careful form where dropout might be on"

    def order_difference(model, tokenizer, first, second):
        training = model.training
        model.eval()
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, -1] for t in (first, second))
        model.train(training)
        return (a - b).abs().max().item()


class ZeroedData:
    """The copy's data zeroed, without no_grad."""

    id = "order.zeroed-data"
    of = "heads_positions"
    source = "own: .data, the older habit"

    def without_positions(model):
        blind = copy.deepcopy(model)
        blind.pos_emb.weight.data.zero_()
        return blind


class ZerosFromInit:
    """nn.init.zeros_ on the copy's table."""

    id = "order.zeros-from-init"
    of = "heads_positions"
    source = "own: the initialiser as a tool"
    imports = "from torch import nn"

    def without_positions(model):
        blind = copy.deepcopy(model)
        nn.init.zeros_(blind.pos_emb.weight)
        return blind


class NewParameter:
    """A new table of zeros put into the copy."""

    id = "order.new-parameter"
    of = "heads_positions"
    source = "own: replaced instead of overwritten"
    imports = "from torch import nn"

    def without_positions(model):
        blind = copy.deepcopy(model)
        blind.pos_emb.weight = nn.Parameter(torch.zeros_like(model.pos_emb.weight))
        return blind


class FilledTable:
    """The copy's table multiplied by 0 under no_grad."""

    id = "order.filled-table"
    of = "heads_positions"
    source = "own: mul_(0) and fill_(0) are common"

    def without_positions(model):
        twin = copy.deepcopy(model)
        with torch.no_grad():
            twin.pos_emb.weight.mul_(0.0)
        return twin


class RebuiltFromState:
    """A new model of the same class and config that loads the state with a table of zeros."""

    id = "order.rebuilt-from-state"
    of = "heads_positions"
    source = "own: a copy through state_dict, without the copy module"

    def without_positions(model):
        state = {name: value.clone() for name, value in model.state_dict().items()}
        state["pos_emb.weight"] = torch.zeros_like(state["pos_emb.weight"])
        blind = type(model)(model.config).to(model.pos_emb.weight.dtype)
        blind.load_state_dict(state)
        return blind.train(model.training)


class TableByLoop:
    """The rows appended in a loop."""

    id = "order.table-by-loop"
    of = "heads_positions"
    source = "own: the loop that the lesson's script has"

    def order_table(seed=0):
        rows = []
        for n_layer in range(1, 4):
            rows.append(order_row(n_layer, seed=seed))
        return rows


class TableWrittenOut:
    """The three rows written out."""

    id = "order.table-written-out"
    of = "heads_positions"
    source = "own: one more line below the lesson's two"

    def order_table(seed=0):
        return [order_row(1, seed), order_row(2, seed), order_row(3, seed)]


class TensorOfOneElement:
    """The figure as a tensor of one element, not detached: it prints and compares like a number."""

    id = "order.tensor-of-one-element"
    of = "heads_positions"
    source = "own: item() left out"

    def order_difference(model, tokenizer, first, second):
        a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, -1] for t in (first, second))
        return (a - b).abs().max()
