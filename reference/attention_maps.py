"""Where each head looks: the attention weights for a sentence, as numbers and as a picture.

    python attention_maps.py --out maps.png

Letters in the shape comments: T time (positions), H heads.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from checkpoint import load_model
from corpus import DATA_FOLDER
from gpt import GPT
from plots import NoPlots, find_font, pyplot
from torch import Tensor

SENTENCE = "白日依山尽，黄河入海流。"
SMALL_MODEL = DATA_FOLDER / "small.safetensors"


def attention_maps(model: GPT, idx: Tensor) -> Tensor:
    """The attention weights of every head for one sentence: (n_layer, H, T, T).

    idx: (1, T). In the map of a head, row i says how much position i takes from each position: it sums to 1, and
    what comes after i is 0. As in eval mode, without dropout and without gradients; afterwards the model is as it
    was, in the mode in which it came and with no hook left. Works for any position encoding of the course.
    """
    # --- answer: maps: run the sentence through the model and keep the weights of each layer
    # --- more: The weights exist only within forward: a hook on a part that they pass through can read them.
    # --- more: Or compute them from what enters each attention layer, with its own methods.
    maps: list[Tensor] = []

    def keep(layer: object, inputs: tuple[Tensor], output: Tensor) -> None:
        """Called by torch after each layer's weights are made."""
        maps.append(inputs[0][0])  # (H, T, T): before dropout, of the only sentence

    hooks = [block.attn.weights_dropout.register_forward_hook(keep) for block in model.blocks]
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            model(idx)
    finally:
        model.train(was_training)
        for hook in hooks:
            hook.remove()
    return torch.stack(maps)  # (n_layer, H, T, T)
    # --- end


def draw(maps: Tensor, sentence: str, path: Path) -> None:
    """Writes a picture: a row of panels a layer, a panel a head, the characters on both axes.

    maps: (n_layer, H, T, T). Raises NoPlots when matplotlib or a font that has the characters is missing, OSError.
    """
    plt = pyplot()
    from matplotlib.font_manager import FontProperties

    font = FontProperties(family=find_font(sentence), size=9)
    n_layer, n_head, T, _ = maps.shape
    side = 0.9 + 0.17 * T
    size = (side * n_head + 0.8, side * n_layer + 0.3)
    figure, panels = plt.subplots(n_layer, n_head, squeeze=False, figsize=size, layout="constrained")
    for layer in range(n_layer):
        for head in range(n_head):
            panel = panels[layer, head]
            image = panel.imshow(maps[layer, head].numpy(), vmin=0, vmax=1, cmap="Blues")
            panel.set_title(f"layer {layer}, head {head}", fontsize=9)
            panel.set_xticks(range(T), list(sentence), fontproperties=font)
            panel.set_yticks(range(T), list(sentence), fontproperties=font)
            panel.tick_params(length=0)
    figure.colorbar(image, ax=panels, shrink=0.6, label="weight")
    figure.supylabel("position that looks", fontsize=9)
    figure.supxlabel("position that is looked at", fontsize=9)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def describe(maps: Tensor, sentence: str) -> None:
    """Prints for each head which position the last one takes most from. maps: (n_layer, H, T, T)."""
    for layer, heads in enumerate(maps):
        for head, weights in enumerate(heads):
            place = int(weights[-1].argmax())
            print(
                f"layer {layer}, head {head}: {sentence[-1]} takes most from position {place}, "
                f"{sentence[place]}: {weights[-1, place]:.2f}"
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal without these characters must not stop the program
    parser = argparse.ArgumentParser(description="Show where each head of a trained model looks.")
    parser.add_argument("sentence", nargs="?", default=SENTENCE, help=f"default: {SENTENCE}")
    parser.add_argument("--model", type=Path, default=SMALL_MODEL, help="a model.safetensors (default: the small one)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the picture here (.png, .svg, .pdf)")
    options = parser.parse_args(arguments)
    try:
        model, tokenizer = load_model(options.model)
        maps = attention_maps(model, torch.tensor([tokenizer.encode(options.sentence)]))
        describe(maps, options.sentence)
        if options.out is not None:
            draw(maps, options.sentence, options.out)
    except NotImplementedError as stub:
        sys.exit(f"Not written yet: {stub}")
    except (NoPlots, ValueError, OSError) as error:
        sys.exit(f"attention_maps.py: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
