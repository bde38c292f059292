"""Right answers in other forms: each must get all points."""

import copy

import torch


class ValuesCleared:
    """The rows of qkv that make the head's values are cleared, weight and bias: it mixes nothing."""

    id = "pruning.values-cleared"
    of = "pruning"
    source = "own: the head gives zeros instead of not being heard"
    imports = "import copy"

    def silence_head(model, layer, head):
        twin = copy.deepcopy(model)
        C, D = model.config.n_embd, model.config.n_embd // model.config.n_head
        qkv, first = twin.blocks[layer].attn.qkv, 2 * C + head * D
        qkv.weight.data[first : first + D] = 0
        qkv.bias.data[first : first + D] = 0
        return twin


class MaskedBeforeProj:
    """A pre-hook on proj clears the channels of the head."""

    id = "pruning.masked-before-proj"
    of = "pruning"
    source = "huggingface/transformers: head_mask in BERT"
    imports = "import copy"

    def silence_head(model, layer, head):
        twin = copy.deepcopy(model)
        D = model.config.n_embd // model.config.n_head
        keep = torch.ones(model.config.n_embd)
        keep[head * D : (head + 1) * D] = 0
        twin.blocks[layer].attn.proj.register_forward_pre_hook(lambda part, args: (args[0] * keep.to(args[0].dtype),))
        return twin


class RebuiltFromState:
    """A new model from the state with the columns multiplied by 0."""

    id = "pruning.rebuilt-from-state"
    of = "pruning"
    source = "own: a copy without the copy module"

    def silence_head(model, layer, head):
        state = {name: value.clone() for name, value in model.state_dict().items()}
        D = model.config.n_embd // model.config.n_head
        state[f"blocks.{layer}.attn.proj.weight"][:, head * D :][:, :D] *= 0
        twin = type(model)(model.config).to(model.tok_emb.weight.dtype)
        twin.load_state_dict(state)
        return twin.train(model.training)


class ImportanceInALoop:
    """A table filled in a double loop, in the dtype of the model."""

    id = "pruning.importance-in-a-loop"
    of = "pruning"
    source = "own: the plain loop"

    def head_importance(model, batch):
        table = torch.zeros(model.config.n_layer, model.config.n_head, dtype=torch.float64)
        for layer in range(model.config.n_layer):
            for head in range(model.config.n_head):
                table[layer, head] = loss_of(silence_head(model, layer, head), batch)
        return table - loss_of(model, batch)


class OwnLoss:
    """The loss from the logits, without loss_of; the silence undone in place."""

    id = "pruning.own-loss"
    of = "pruning"
    source = "own: columns put back instead of copied"
    imports = "import torch.nn.functional as F"

    def head_importance(model, batch):
        x, y = batch
        mode, D = model.training, model.config.n_embd // model.config.n_head
        model.eval()
        with torch.no_grad():

            def loss():
                return F.cross_entropy(model(x)[0].flatten(0, 1), y.flatten())

            whole, table = loss(), []
            for block in model.blocks:
                weight = block.attn.proj.weight
                for head in range(model.config.n_head):
                    columns = slice(head * D, (head + 1) * D)
                    kept = weight[:, columns].clone()
                    weight[:, columns] = 0
                    table.append(loss() - whole)
                    weight[:, columns] = kept
        model.train(mode)
        return torch.stack(table).view(model.config.n_layer, -1)


class StableArgsort:
    """argsort over the flattened table, stable; numbers of torch as they come."""

    id = "pruning.stable-argsort"
    of = "pruning"
    source = "own: torch instead of sorted"

    def rank_heads(importance):
        order = importance.flatten().argsort(descending=True, stable=True)
        return [(int(i) // importance.size(1), int(i) % importance.size(1)) for i in order]


class SortedInReverse:
    """sorted with reverse=True keeps the order of what is equal; lists instead of tuples."""

    id = "pruning.sorted-in-reverse"
    of = "pruning"
    source = "own: reverse=True is stable"

    def rank_heads(importance):
        heads = [[i, j] for i, row in enumerate(importance.tolist()) for j in range(len(row))]
        return sorted(heads, key=lambda head: importance[head[0], head[1]], reverse=True)
