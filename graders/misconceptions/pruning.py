"""Mistakes in pruning: each must be caught and named."""

import copy

import torch


def each_silent(model):
    for block in model.blocks:
        for head in block.attn.proj.weight.data.split(model.config.n_embd // model.config.n_head, dim=1):
            kept = head.clone()
            yield head.zero_()
            head.copy_(kept)


# silence_head


class RowsOfProj:
    """The rows of proj.weight are cleared instead of the columns."""

    id = "pruning.rows-of-proj"
    of = "pruning"
    source = "own: nn.Linear stores (out, in)"
    imports = "import copy"
    hint = (
        "You clear rows of proj.weight. A row makes one output channel from all heads; what comes from one head "
        "enters along the other axis."
    )

    def silence_head(model, layer, head):
        twin = copy.deepcopy(model)
        D = model.config.n_embd // model.config.n_head
        twin.blocks[layer].attn.proj.weight.data[head * D : (head + 1) * D] = 0
        return twin


class StridedColumns:
    """Every H-th column is cleared, as if the channels of the heads alternated."""

    id = "pruning.strided-columns"
    of = "pruning"
    source = "own: head::H for head * D"
    imports = "import copy"
    hint = "You clear every H-th column. The channels of a head are neighbours: D of them, from head * D on."

    def silence_head(model, layer, head):
        twin = copy.deepcopy(model)
        twin.blocks[layer].attn.proj.weight.data[:, head :: model.config.n_head] = 0
        return twin


class OneColumn:
    """A single column, that of the head's number."""

    id = "pruning.one-column"
    of = "pruning"
    source = "own: the head's number taken for a channel"
    imports = "import copy"
    hint = "You clear one channel. A head has D = n_embd / n_head of them."

    def silence_head(model, layer, head):
        twin = copy.deepcopy(model)
        twin.blocks[layer].attn.proj.weight.data[:, head] = 0
        return twin


class CountedFromOne:
    """The head before is silenced: heads counted from 1."""

    id = "pruning.counted-from-one"
    of = "pruning"
    source = "own: off by one"
    imports = "import copy"
    hint = "You silence the neighbour of the head that was asked for. Heads are counted from 0, as in split_heads."

    def silence_head(model, layer, head):
        twin = copy.deepcopy(model)
        D, H = model.config.n_embd // model.config.n_head, model.config.n_head
        first = (head - 1) % H * D
        twin.blocks[layer].attn.proj.weight.data[:, first : first + D] = 0
        return twin


class EveryLayer:
    """The head is silenced in every layer."""

    id = "pruning.every-layer"
    of = "pruning"
    source = "own: a loop over the blocks"
    imports = "import copy"
    hint = "You silence the head of this number in all layers. Heads of different layers have nothing in common."

    def silence_head(model, layer, head):
        twin = copy.deepcopy(model)
        D = model.config.n_embd // model.config.n_head
        for block in twin.blocks:
            block.attn.proj.weight.data[:, head * D : (head + 1) * D] = 0
        return twin


class WholeLayer:
    """All heads of the layer are silenced."""

    id = "pruning.whole-layer"
    of = "pruning"
    source = "own: proj.weight zeroed as a whole"
    imports = "import copy"
    hint = "You silence the whole layer. Only the columns that this one head speaks through should be cleared."

    def silence_head(model, layer, head):
        twin = copy.deepcopy(model)
        twin.blocks[layer].attn.proj.weight.data.zero_()
        return twin


class QueriesCleared:
    """The queries of the head are cleared: it attends evenly, but still speaks."""

    id = "pruning.queries-cleared"
    of = "pruning"
    source = "own: the first third of qkv taken for the head's output"
    imports = "import copy"
    hint = (
        "You clear the queries of the head. Its scores become 0, which makes it look everywhere evenly; it goes on "
        "mixing values. Silence is when nothing of it arrives."
    )

    def silence_head(model, layer, head):
        twin = copy.deepcopy(model)
        D, qkv = model.config.n_embd // model.config.n_head, twin.blocks[layer].attn.qkv
        qkv.weight.data[head * D : (head + 1) * D] = 0
        qkv.bias.data[head * D : (head + 1) * D] = 0
        return twin


class BiasCleared:
    """The bias of proj is cleared as well."""

    id = "pruning.bias-cleared"
    of = "pruning"
    source = "own: everything of proj zeroed"
    imports = "import copy"
    hint = "You clear the bias of proj too. It belongs to no head: it is added whatever the heads say."

    def silence_head(model, layer, head):
        twin = copy.deepcopy(model)
        D, proj = model.config.n_embd // model.config.n_head, twin.blocks[layer].attn.proj
        proj.weight.data[:, head * D : (head + 1) * D] = 0
        proj.bias.data.zero_()
        return twin


class ValueBiasKept:
    """Only the weights of the values are cleared; their bias goes on speaking."""

    id = "pruning.value-bias-kept"
    of = "pruning"
    source = "own: the bias of qkv forgotten"
    imports = "import copy"
    hint = "You clear the weights that make the head's values, but qkv has a bias, which still gets through."

    def silence_head(model, layer, head):
        twin = copy.deepcopy(model)
        C, D = model.config.n_embd, model.config.n_embd // model.config.n_head
        twin.blocks[layer].attn.qkv.weight.data[2 * C + head * D : 2 * C + (head + 1) * D] = 0
        return twin


class OriginalChanged:
    """No copy: the model that was given is changed and returned."""

    id = "pruning.original-changed"
    of = "pruning"
    source = "own: assignment taken for a copy"
    hint = (
        "The model that you were given has lost the head too: it was changed itself, or a shallow copy of it that "
        "shares its layers. Each later call takes away another head. How deep must a copy go?"
    )

    def silence_head(model, layer, head):
        D = model.config.n_embd // model.config.n_head
        model.blocks[layer].attn.proj.weight.data[:, head * D : (head + 1) * D] = 0
        return model


# head_importance


class SignReversed:
    """The loss of the whole model minus that without the head."""

    id = "pruning.sign-reversed"
    of = "pruning"
    source = "own: the difference the other way round"
    hint = (
        "Your numbers have the wrong sign: a head that helps should get a number above 0, as the loss rises without it."
    )

    def head_importance(model, batch):
        whole = loss_of(model, batch)
        return torch.tensor([whole - loss_of(model, batch) for _ in each_silent(model)]).view(model.config.n_layer, -1)


class LossItself:
    """The loss without each head; the loss of the whole model is not taken off."""

    id = "pruning.loss-itself"
    of = "pruning"
    source = "own: the comparison forgotten"
    hint = "You return the losses themselves. What a head is worth is by how much the loss rises without it."

    def head_importance(model, batch):
        return torch.tensor([loss_of(model, batch) for _ in each_silent(model)]).view(model.config.n_layer, -1)


class OneAfterAnother:
    """Heads stay silent: each is measured in a model that has already lost the ones before."""

    id = "pruning.one-after-another"
    of = "pruning"
    source = "own: model = silence_head(model, ...) in the loop"
    hint = (
        "The heads that were silenced before stay silent in your loop. Each head should be missing alone, from the "
        "whole model."
    )

    def head_importance(model, batch):
        whole, rise, kept = loss_of(model, batch), [], [block.attn.proj.weight.clone() for block in model.blocks]
        for block in model.blocks:
            for head in block.attn.proj.weight.data.split(model.config.n_embd // model.config.n_head, dim=1):
                head.zero_()
                rise.append(loss_of(model, batch) - whole)
        for block, weight in zip(model.blocks, kept, strict=True):
            block.attn.proj.weight.data.copy_(weight)
        return torch.tensor(rise).view(model.config.n_layer, -1)


class OnlyThisHead:
    """The other heads are silenced, and the head that is asked for stays."""

    id = "pruning.only-this-head"
    of = "pruning"
    source = "own: importance read as what a head can do alone"
    hint = "You measure what the model loses when only this head of its layer is left. Asked for is the other thing."

    def head_importance(model, batch):
        whole, rise, D = loss_of(model, batch), [], model.config.n_embd // model.config.n_head
        for block in model.blocks:
            weight = block.attn.proj.weight.data
            kept = weight.clone()
            for columns in torch.arange(model.config.n_embd).split(D):
                weight.zero_()[:, columns] = kept[:, columns]
                rise.append(loss_of(model, batch) - whole)
            weight.copy_(kept)
        return torch.tensor(rise).view(model.config.n_layer, -1)


class InTheModeOfTheModel:
    """The loss in whatever mode the model is in: with dropout if it comes from training."""

    id = "pruning.in-the-mode-of-the-model"
    of = "pruning"
    source = "pytorch#124464"
    hint = (
        "For a model that comes in training mode your losses are measured with dropout: chance is larger than what a "
        "head is worth. loss_of takes care of the mode."
    )

    def head_importance(model, batch):
        with torch.no_grad():
            whole = model(*batch)[1].item()
            rise = [model(*batch)[1].item() - whole for _ in each_silent(model)]
        return torch.tensor(rise).view(model.config.n_layer, -1)


class LeftInEval:
    """Measured in eval mode, and the model stays there."""

    id = "pruning.left-in-eval"
    of = "pruning"
    source = "own: eval() without a way back"
    hint = "After your function the model is in eval mode even if it came in training mode. Put it back as it was."

    def head_importance(model, batch):
        whole = loss_of(model.eval(), batch)
        return torch.tensor([loss_of(model, batch) - whole for _ in each_silent(model)]).view(model.config.n_layer, -1)


class RelativeRise:
    """The rise as a share of the loss."""

    id = "pruning.relative-rise"
    of = "pruning"
    source = "own: divided by the loss"
    hint = "You divide the rise by the loss. Asked for are nats: the difference of two losses, and nothing more."

    def head_importance(model, batch):
        whole = loss_of(model, batch)
        rise = [loss_of(model, batch) / whole - 1 for _ in each_silent(model)]
        return torch.tensor(rise).view(model.config.n_layer, -1)


# rank_heads


class LeastFirst:
    """The least important head comes first."""

    id = "pruning.least-first"
    of = "pruning"
    source = "own: sorted without reverse"
    hint = "Your list begins with the least important head: sorting goes upwards unless it is told otherwise."

    def rank_heads(importance):
        heads = [(i, j) for i in range(importance.size(0)) for j in range(importance.size(1))]
        return sorted(heads, key=lambda place: importance[place].item())


class HeadBeforeLayer:
    """(head, layer) instead of (layer, head)."""

    id = "pruning.head-before-layer"
    of = "pruning"
    source = "own: the pair the other way round"
    hint = "Your pairs have the head first. Rows of the table are layers, and a pair is (layer, head)."

    def rank_heads(importance):
        heads = [(i, j) for i in range(importance.size(0)) for j in range(importance.size(1))]
        return [(j, i) for i, j in sorted(heads, key=lambda place: -importance[place].item())]


class BySize:
    """Ranked by the absolute value: a head that does harm counts as important."""

    id = "pruning.by-size"
    of = "pruning"
    source = "own: abs, as for gradients"
    hint = "You rank by the size without the sign. Below 0 the model did better without the head: it comes last."

    def rank_heads(importance):
        heads = [(i, j) for i in range(importance.size(0)) for j in range(importance.size(1))]
        return sorted(heads, key=lambda place: -importance[place].abs().item())


class TurnedRound:
    """Sorted upwards and turned round, which turns equal ones round as well."""

    id = "pruning.turned-round"
    of = "pruning"
    source = "own: [::-1] for reverse=True"
    hint = "Of two equal heads your list has the later one first: turning a sorted list round turns ties round too."

    def rank_heads(importance):
        heads = [(i, j) for i in range(importance.size(0)) for j in range(importance.size(1))]
        return sorted(heads, key=lambda place: importance[place].item())[::-1]
