"""Right answers in other forms: each must get all points."""

import torch
import torch.nn.functional as F


class WalkThroughTheBlocks:
    """The blocks one after another, with the layers' own methods; no hook."""

    id = "maps.walk-through-the-blocks"
    of = "attention_maps"
    source = "own: the other way that the instruction names"

    def attention_maps(model, idx):
        attentions = [block.attn for block in model.blocks]
        if hasattr(attentions[0], "rotary_dim"):  # turns queries and keys on the way: let a hook see it
            return hooked(model, idx)
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
                x = block(x)
        model.train(mode)
        return torch.stack(maps)

    def hooked(model, idx):
        kept = []
        hooks = [
            block.attn.weights_dropout.register_forward_pre_hook(lambda part, args: kept.append(args[0][0]))
            for block in model.blocks
        ]
        mode = model.training
        model.eval()
        with torch.no_grad():
            model(idx)
        for hook in hooks:
            hook.remove()
        model.train(mode)
        return torch.stack(kept)


class MethodReplacedForAWhile:
    """attention_weights is wrapped on each layer, and unwrapped afterwards."""

    id = "maps.method-replaced-for-a-while"
    of = "attention_maps"
    source = "own: monkeypatching, as people do who do not know hooks"

    def attention_maps(model, idx):
        kept = []

        def wrapped(original):
            def attention_weights(q, k):
                kept.append(original(q, k).detach())
                return kept[-1]

            return attention_weights

        for block in model.blocks:
            block.attn.attention_weights = wrapped(block.attn.attention_weights)
        mode = model.training
        model.eval()
        model(idx)
        model.train(mode)
        for block in model.blocks:
            del block.attn.attention_weights
        return torch.cat(kept)


class OnACopy:
    """A deep copy gets the hooks and is thrown away."""

    id = "maps.on-a-copy"
    of = "attention_maps"
    source = "own: deepcopy instead of cleaning up"
    imports = "import copy"

    def attention_maps(model, idx):
        twin, kept = copy.deepcopy(model).eval(), []
        for block in twin.blocks:
            block.attn.weights_dropout.register_forward_hook(lambda part, args, out: kept.append(out.detach().clone()))
        twin(idx)
        return torch.cat(kept, dim=0)


class FormulaWrittenOut:
    """Scores, mask and softmax from what enters qkv, kept by a hook; RoPE by the layer's own method."""

    id = "maps.softmax-caught"
    of = "attention_maps"
    source = "own: the softmax is caught in the act"
    imports = "from unittest import mock\nimport torch.nn.functional as F"

    def attention_maps(model, idx):
        kept = []
        softmax = F.softmax

        def keep(*args, **kwargs):
            kept.append(softmax(*args, **kwargs))
            return kept[-1]

        mode = model.training
        with torch.inference_mode(), mock.patch.object(F, "softmax", keep):
            model.eval()(idx)
        model.train(mode)
        return torch.cat(kept).clone()
