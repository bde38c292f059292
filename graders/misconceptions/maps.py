"""Mistakes in attention maps: each must be caught and named."""

import torch


class ScoresNotWeights:
    """The scores before mask and softmax."""

    id = "maps.scores-not-weights"
    of = "attention_maps"
    source = "own: q @ k taken for the weights"
    hint = (
        "Your numbers are the scores before the softmax: rows do not sum to 1, and the future is there. "
        "Go one step further."
    )

    def attention_maps(model, idx):
        mode = model.training
        model.eval()
        maps = []
        with torch.no_grad():
            x = model.tok_emb(idx)
            if model.pos_emb is not None:
                x = x + model.pos_emb(torch.arange(idx.size(1)))
            for block in model.blocks:
                q, k, _ = map(block.attn.split_heads, block.attn.qkv(block.ln_1(x)).chunk(3, dim=-1))
                maps.append((q @ k.transpose(-2, -1) / q.size(-1) ** 0.5)[0])
                x = block(x)
        model.train(mode)
        return torch.stack(maps)


class NoMask:
    """Softmax without the causal mask."""

    id = "maps.no-mask"
    of = "attention_maps"
    source = "own: attention written out from the textbook"
    hint = (
        "Your rows sum to 1, but positions look into the future. The model cannot do that, so its map must not show it."
    )

    def attention_maps(model, idx):
        mode = model.training
        model.eval()
        maps = []
        with torch.no_grad():
            x = model.tok_emb(idx)
            if model.pos_emb is not None:
                x = x + model.pos_emb(torch.arange(idx.size(1)))
            for block in model.blocks:
                q, k, _ = map(block.attn.split_heads, block.attn.qkv(block.ln_1(x)).chunk(3, dim=-1))
                maps.append((q @ k.transpose(-2, -1) / q.size(-1) ** 0.5).softmax(-1)[0])
                x = block(x)
        model.train(mode)
        return torch.stack(maps)


class LastLayerOnly:
    """The maps of the last layer alone."""

    id = "maps.last-layer-only"
    of = "attention_maps"
    source = "own: a hook on blocks[-1] only"
    hint = "You return the maps of one layer. Every layer has heads, and they look at different things."

    def attention_maps(model, idx):
        kept = []
        hooks = [
            block.attn.weights_dropout.register_forward_hook(lambda layer, args, out: kept.append(args[0][0]))
            for block in model.blocks[-1:]
        ]
        mode = model.training
        model.eval()
        with torch.no_grad():
            model(idx)
        for hook in hooks:
            hook.remove()
        model.train(mode)
        return kept[0]


class HeadsAveraged:
    """The mean over heads, as nn.MultiheadAttention gives by default."""

    id = "maps.heads-averaged"
    of = "attention_maps"
    source = "pytorch: MultiheadAttention(average_attn_weights=True)"
    hint = "You average over the heads. What one head looks at is lost in the mean; keep an axis for them."

    def attention_maps(model, idx):
        kept = []
        hooks = [
            block.attn.weights_dropout.register_forward_hook(lambda layer, args, out: kept.append(args[0][0]))
            for block in model.blocks
        ]
        mode = model.training
        model.eval()
        with torch.no_grad():
            model(idx)
        for hook in hooks:
            hook.remove()
        model.train(mode)
        return torch.stack(kept).mean(1)


class LayersReversed:
    """The last layer comes first."""

    id = "maps.layers-reversed"
    of = "attention_maps"
    source = "own: hooks collected from the end"
    hint = "Your maps have the layers in the reverse order: index 0 should be the layer that reads the characters."

    def attention_maps(model, idx):
        kept = []
        hooks = [
            block.attn.weights_dropout.register_forward_hook(lambda layer, args, out: kept.append(args[0][0]))
            for block in model.blocks
        ]
        mode = model.training
        model.eval()
        with torch.no_grad():
            model(idx)
        for hook in hooks:
            hook.remove()
        model.train(mode)
        return torch.stack(kept[::-1])


class Transposed:
    """Rows and columns are exchanged."""

    id = "maps.transposed"
    of = "attention_maps"
    source = "own: imshow with the axes exchanged"
    hint = "Your columns sum to 1 instead of your rows: row i should say where position i looks."

    def attention_maps(model, idx):
        kept = []
        hooks = [
            block.attn.weights_dropout.register_forward_hook(lambda layer, args, out: kept.append(args[0][0]))
            for block in model.blocks
        ]
        mode = model.training
        model.eval()
        with torch.no_grad():
            model(idx)
        for hook in hooks:
            hook.remove()
        model.train(mode)
        return torch.stack(kept).transpose(-2, -1)


class HeadsBeforeLayers:
    """(H, n_layer, T, T): the axes of heads and layers are exchanged."""

    id = "maps.heads-before-layers"
    of = "attention_maps"
    source = "own: stack along the wrong axis"
    hint = "The first two axes of your result are exchanged: layers come first, then heads."

    def attention_maps(model, idx):
        kept = []
        hooks = [
            block.attn.weights_dropout.register_forward_hook(lambda layer, args, out: kept.append(args[0][0]))
            for block in model.blocks
        ]
        mode = model.training
        model.eval()
        with torch.no_grad():
            model(idx)
        for hook in hooks:
            hook.remove()
        model.train(mode)
        return torch.stack(kept, dim=1)


class NotNormalised:
    """The layer norm before attention is left out when the weights are computed by hand."""

    id = "maps.not-normalised"
    of = "attention_maps"
    source = "own: block input fed to qkv"
    hint = "You feed the input of the block to qkv. In a pre-LN block something happens to it before."

    def attention_maps(model, idx):
        mode = model.training
        model.eval()
        maps = []
        with torch.no_grad():
            x = model.tok_emb(idx)
            if model.pos_emb is not None:
                x = x + model.pos_emb(torch.arange(idx.size(1)))
            for block in model.blocks:
                q, k, _ = map(block.attn.split_heads, block.attn.qkv(x).chunk(3, dim=-1))
                maps.append(block.attn.attention_weights(q, k)[0])
                x = block(x)
        model.train(mode)
        return torch.stack(maps)


class SameInputEverywhere:
    """Every layer is given the input of the first."""

    id = "maps.same-input-everywhere"
    of = "attention_maps"
    source = "own: x never advanced"
    hint = "You compute every layer's map from the embeddings. A layer sees what the layer before made of them."

    def attention_maps(model, idx):
        mode = model.training
        model.eval()
        maps = []
        with torch.no_grad():
            x = model.tok_emb(idx)
            if model.pos_emb is not None:
                x = x + model.pos_emb(torch.arange(idx.size(1)))
            for block in model.blocks:
                q, k, _ = map(block.attn.split_heads, block.attn.qkv(block.ln_1(x)).chunk(3, dim=-1))
                maps.append(block.attn.attention_weights(q, k)[0])
        model.train(mode)
        return torch.stack(maps)


class PositionsForgotten:
    """The position table is not added."""

    id = "maps.positions-forgotten"
    of = "attention_maps"
    source = "own: tok_emb alone"
    hint = "Your maps do not know the positions: the model adds something to the characters before the first layer."

    def attention_maps(model, idx):
        mode = model.training
        model.eval()
        maps = []
        with torch.no_grad():
            x = model.tok_emb(idx)
            for block in model.blocks:
                q, k, _ = map(block.attn.split_heads, block.attn.qkv(block.ln_1(x)).chunk(3, dim=-1))
                maps.append(block.attn.attention_weights(q, k)[0])
                x = block(x)
        model.train(mode)
        return torch.stack(maps)


class ValuesIncluded:
    """The values are already mixed in: what each head gives instead of where it looks."""

    id = "maps.values-included"
    of = "attention_maps"
    source = "own: the output of attention taken for its weights"
    hint = (
        "What you return are the outputs of the heads, (T, D) each. A map says how much is taken, before anything is."
    )

    def attention_maps(model, idx):
        mode = model.training
        model.eval()
        maps = []
        with torch.no_grad():
            x = model.tok_emb(idx)
            if model.pos_emb is not None:
                x = x + model.pos_emb(torch.arange(idx.size(1)))
            for block in model.blocks:
                q, k, v = map(block.attn.split_heads, block.attn.qkv(block.ln_1(x)).chunk(3, dim=-1))
                maps.append((block.attn.attention_weights(q, k) @ v)[0])
                x = block(x)
        model.train(mode)
        return torch.stack(maps)


class DropoutLive:
    """The model is not put in eval mode."""

    id = "maps.dropout-live"
    of = "attention_maps"
    source = "pytorch#124464"
    hint = (
        "In training mode some weights are dropped by chance, and two calls differ. A map should show the "
        "model as it is used."
    )

    def attention_maps(model, idx):
        kept = []
        hooks = [
            block.attn.weights_dropout.register_forward_hook(lambda layer, args, out: kept.append(out[0]))
            for block in model.blocks
        ]
        with torch.no_grad():
            model(idx)
        for hook in hooks:
            hook.remove()
        return torch.stack(kept)


class LeftInEval:
    """The model stays in eval mode."""

    id = "maps.left-in-eval"
    of = "attention_maps"
    source = "own: eval() without a way back"
    hint = (
        "After your function the model is in eval mode, whatever it was in before. Training would go on "
        "without dropout."
    )

    def attention_maps(model, idx):
        kept = []
        hooks = [
            block.attn.weights_dropout.register_forward_hook(lambda layer, args, out: kept.append(args[0][0]))
            for block in model.blocks
        ]
        model.eval()
        with torch.no_grad():
            model(idx)
        for hook in hooks:
            hook.remove()
        return torch.stack(kept)


class AlwaysToTrain:
    """The model is in training mode afterwards, whatever it was in before."""

    id = "maps.always-to-train"
    of = "attention_maps"
    source = "own: train() at the end"
    hint = "After your function the model is in training mode, even if it came in eval mode. Remember what it was."

    def attention_maps(model, idx):
        kept = []
        hooks = [
            block.attn.weights_dropout.register_forward_hook(lambda layer, args, out: kept.append(args[0][0]))
            for block in model.blocks
        ]
        model.eval()
        with torch.no_grad():
            model(idx)
        for hook in hooks:
            hook.remove()
        model.train()
        return torch.stack(kept)


class HooksLeft:
    """The hooks are never removed."""

    id = "maps.hooks-left"
    of = "attention_maps"
    source = "own: the handles of the hooks thrown away"
    hint = (
        "Your maps are right, but the hooks stay: from now on every call of the model keeps tensors that nobody wants."
    )

    def attention_maps(model, idx):
        kept = []
        for block in model.blocks:
            block.attn.weights_dropout.register_forward_hook(lambda layer, args, out: kept.append(args[0][0]))
        mode = model.training
        model.eval()
        with torch.no_grad():
            model(idx)
        model.train(mode)
        return torch.stack(kept)
