"""Which heads does a trained model need? Silence them one by one and see what it costs.

    python pruning.py

The question is that of Michel et al. 2019, "Are Sixteen Heads Really Better than One?" (arXiv 1905.10650).
Letters in the shape comments: B batch, T time, C channels, H heads, D channels of one head.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from attention_maps import SMALL_MODEL
from checkpoint import load_model
from corpus import POEMS, encode_poems, read_poems, split_poems
from gpt import GPT
from torch import Tensor
from train import Batch, cut_windows


@torch.no_grad()
def loss_of(model: GPT, batch: Batch) -> float:
    """The mean loss of a batch in nats, in eval mode; afterwards the model is in the mode in which it came."""
    mode = model.training
    model.train(False)
    loss = model(*batch)[1].item()
    model.train(mode)
    return loss


def silence_head(model: GPT, layer: int, head: int) -> GPT:
    """A copy of the model in which one head says nothing; `model` itself stays as it is.

    The D channels of the head count as 0 where the heads are mixed. What remains when all heads of a layer are
    silent is the bias of `proj`, the same for every text and position: attention is gone. Raises ValueError that
    names the number when the model has no such layer or head.
    """
    for name, number, count in (("layer", layer, model.config.n_layer), ("head", head, model.config.n_head)):
        if not 0 <= number < count:
            raise ValueError(f"there is no {name} {number}: the model has {count}, counted from 0")
    # --- answer: pruning: copy the model, then cut the head off where the heads are mixed
    # --- more: Which weights of proj does the output of this head meet, and no other head's?
    from copy import deepcopy

    silenced = deepcopy(model)
    proj = silenced.blocks[layer].attn.proj
    D = model.config.n_embd // model.config.n_head
    with torch.no_grad():
        proj.weight[:, head * D : (head + 1) * D] = 0.0  # (C, D) of (C, C): row out, column in
    return silenced
    # --- end


def head_importance(model: GPT, batch: Batch) -> Tensor:
    """How much the loss rises when each head alone is silent: (n_layer, H), in nats.

    batch: x (B, T) and y (B, T). A head that helps has a number above 0; below 0, the model did better without it.
    """
    # --- answer: pruning: compare the loss without each head to the loss with all of them
    # --- more: loss_of measures; silence_head gives the model to measure.
    whole = loss_of(model, batch)
    rise = [
        [loss_of(silence_head(model, layer, head), batch) - whole for head in range(model.config.n_head)]
        for layer in range(model.config.n_layer)
    ]
    return torch.tensor(rise)  # (n_layer, H)
    # --- end


def rank_heads(importance: Tensor) -> list[tuple[int, int]]:
    """The heads as (layer, head), the most important one first. importance: (n_layer, H).

    Of two that are equally important the one of the lower layer comes first, then the one with the lower number.
    """
    # --- answer: pruning: list all pairs of layer and head, sorted by falling importance
    n_layer, n_head = importance.shape
    heads = [(layer, head) for layer in range(n_layer) for head in range(n_head)]
    return sorted(heads, key=lambda place: -importance[place].item())
    # --- end


def losses_while_pruning(model: GPT, batch: Batch, order: Sequence[tuple[int, int]]) -> list[float]:
    """The loss with every head, then with the first of `order` silent, with the first two, ... with all of them."""
    losses = [loss_of(model, batch)]
    for layer, head in order:
        model = silence_head(model, layer, head)
        losses.append(loss_of(model, batch))
    return losses


def poem_batch(model: GPT, data: Tensor) -> Batch:
    """The text cut into pieces, as many as there are whole ones: x and y, (B, T) each. data: (N,)."""
    T = model.config.block_size
    return cut_windows(data, torch.arange(0, len(data) - T, T), T)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Silence the heads of a trained model and rank them.")
    parser.add_argument("--model", type=Path, default=SMALL_MODEL, help="a model.safetensors (default: the small one)")
    parser.add_argument("--corpus", type=Path, default=POEMS, metavar="FILE", help="poems, UTF-8 (default: ours)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # a model this small only waits for more
    try:
        model, tokenizer = load_model(options.model)
        parts = split_poems(read_poems(options.corpus))
        for label, poems in zip(("poems it was trained on", "poems it never saw"), parts, strict=True):
            batch = poem_batch(model, encode_poems(poems, tokenizer))
            importance = head_importance(model, batch)
            print(f"{label}: loss {loss_of(model, batch):.3f} with every head; what each head is worth (nats):")
            for layer, row in enumerate(importance):
                print(f"   layer {layer}   " + "  ".join(f"head {head} {value:+.3f}" for head, value in enumerate(row)))
            order = rank_heads(importance)[::-1]
            print("   silenced one after another, the least important first:")
            for silent, loss in enumerate(losses_while_pruning(model, batch, order)):
                last = f"   (then layer {order[silent - 1][0]}, head {order[silent - 1][1]})" if silent else ""
                print(f"   {silent} of {len(order)} silent: loss {loss:.3f}{last}")
    except NotImplementedError as stub:
        sys.exit(f"Not written yet: {stub}")
    except (ValueError, OSError) as error:
        sys.exit(f"pruning.py: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
