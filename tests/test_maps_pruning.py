"""The maps of attention and the pruning of heads, on fresh toy models and on the small trained one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.support.reference import REFERENCE, loaded

SMALL_MODEL = REFERENCE / "data" / "small.safetensors"


@pytest.fixture(scope="module")
def course() -> Iterator[SimpleNamespace]:
    with loaded("gpt", "rope", "corpus", "checkpoint", "plots", "attention_maps", "pruning") as modules:
        yield modules


def fresh(course, position: str = "learned", dropout: float = 0.0, n_layer: int = 2):
    """A model whose heads make a difference: torch's usual weights, not the small ones of GPT-2."""
    torch.manual_seed(4)
    config = course.gpt.GPTConfig(11, 8, n_layer, 3, 12, dropout, position)
    model = (course.rope.RotaryGPT if position == "rope" else course.gpt.GPT)(config)
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.reset_parameters()
    return model.eval()


@pytest.fixture(scope="module")
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return tuple(torch.randint(11, (4, 8), generator=generator) for _ in range(2))


# Maps


@pytest.mark.parametrize("position", ["learned", "rope", "none"])
def test_each_map_has_rows_that_sum_to_one_and_sees_no_future(course, batch, position: str) -> None:
    idx = batch[0][:1, :6]
    maps = course.attention_maps.attention_maps(fresh(course, position), idx)
    assert maps.shape == (2, 3, 6, 6)
    torch.testing.assert_close(maps.sum(-1), torch.ones(2, 3, 6))
    assert maps.triu(1).abs().max() == 0
    assert not maps.requires_grad


@pytest.mark.parametrize("position", ["learned", "rope"])
def test_the_maps_are_the_weights_that_the_layers_use(course, batch, position: str) -> None:
    model, idx = fresh(course, position), batch[0][:1]
    maps = course.attention_maps.attention_maps(model, idx)
    seen = {}
    for number, block in enumerate(model.blocks):
        block.attn.register_forward_hook(lambda layer, inputs, out, n=number: seen.__setitem__(n, (inputs[0], out)))
    model(idx)
    for number, block in enumerate(model.blocks):
        x, out = seen[number]
        v = block.attn.split_heads(block.attn.qkv(x).chunk(3, dim=-1)[2])
        mixed = block.attn.proj(block.attn.merge_heads(maps[number][None] @ v))
        torch.testing.assert_close(mixed, out, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_maps_leave_the_model_as_it_was(course, batch, training: bool) -> None:
    model, idx = fresh(course, dropout=0.5), batch[0][:1]
    expected = course.attention_maps.attention_maps(model, idx)
    model.train(training)
    assert torch.equal(course.attention_maps.attention_maps(model, idx), expected)
    with pytest.raises(ValueError, match="outside the vocabulary"):
        course.attention_maps.attention_maps(model, torch.tensor([[99]]))
    for module in model.modules():
        assert module.training is training
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    assert all(p.grad is None for p in model.parameters())


def test_the_picture_is_drawn_with_a_font_that_has_the_characters(course, tmp_path: Path) -> None:
    path = tmp_path / "maps.png"
    course.attention_maps.draw(torch.rand(2, 3, 4, 4).tril(), "abcd", path)
    assert path.read_bytes().startswith(b"\x89PNG")
    from matplotlib.font_manager import fontManager
    from matplotlib.ft2font import FT2Font

    file = fontManager.findfont(course.plots.find_font("abcd"), fallback_to_default=False)
    assert {ord(letter) for letter in "abcd"} <= FT2Font(file).get_charmap().keys()


def test_without_a_chinese_font_the_message_names_what_to_install(course, monkeypatch, tmp_path: Path) -> None:
    import matplotlib
    from matplotlib.font_manager import fontManager

    own = [font for font in fontManager.ttflist if Path(matplotlib.get_data_path()) in Path(font.fname).parents]
    assert own, "matplotlib brings fonts of its own, none of them Chinese"
    monkeypatch.setattr(fontManager, "ttflist", own)
    with pytest.raises(course.plots.NoPlots, match=r"no installed font has all of '白日'.* fonts-noto-cjk"):
        course.attention_maps.draw(torch.ones(1, 1, 2, 2), "白日", tmp_path / "maps.png")
    assert not (tmp_path / "maps.png").exists()


def test_the_command_describes_every_head_and_explains_what_it_cannot_read(course, capsys, tmp_path: Path) -> None:
    assert course.attention_maps.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert lines[0].startswith("layer 0, head 0: 。 takes most from position ")
    with pytest.raises(SystemExit, match=r"attention_maps\.py: unknown character 'x' at place 0"):
        course.attention_maps.main(["xyz"])
    with pytest.raises(SystemExit, match=r"attention_maps\.py: there is no file .*none"):
        course.attention_maps.main(["--model", str(tmp_path / "none")])


# Pruning


def without(course, model, heads: set[tuple[int, int]], batch) -> float:
    """The loss with these heads' outputs set to 0 on their way to `proj`."""
    D = model.config.n_embd // model.config.n_head
    hooks = []
    for number, block in enumerate(model.blocks):

        def clear(layer, inputs, number=number):
            x = inputs[0].clone()
            for layer_number, head in heads:
                if layer_number == number:
                    x[..., head * D : (head + 1) * D] = 0
            return (x,)

        hooks.append(block.attn.proj.register_forward_pre_hook(clear))
    loss = course.pruning.loss_of(model, batch)
    for hook in hooks:
        hook.remove()
    return loss


@pytest.mark.parametrize("position", ["learned", "rope"])
def test_a_silent_head_is_one_whose_channels_are_zero(course, batch, position: str) -> None:
    model = fresh(course, position)
    whole = course.pruning.loss_of(model, batch)
    losses = set()
    for layer in range(2):
        for head in range(3):
            silenced = course.pruning.silence_head(model, layer, head)
            loss = course.pruning.loss_of(silenced, batch)
            assert loss == pytest.approx(without(course, model, {(layer, head)}, batch), abs=1e-6)
            assert abs(loss - whole) > 1e-5
            losses.add(loss)
    assert len(losses) == 6
    assert course.pruning.loss_of(model, batch) == whole, "the model that was handed in must stay as it is"


def test_all_heads_of_a_layer_silent_is_attention_removed(course, batch) -> None:
    model = fresh(course)
    silenced = model
    for head in range(3):
        silenced = course.pruning.silence_head(silenced, 1, head)
    attention = model.blocks[1].attn
    attention.register_forward_hook(lambda layer, inputs, output: layer.proj.bias.expand_as(output))
    torch.testing.assert_close(silenced(batch[0])[0], model(batch[0])[0])


def test_heads_that_are_not_there_are_named(course) -> None:
    model = fresh(course)
    for layer, head, problem in ((2, 0, "no layer 2: the model has 2"), (-1, 0, "no layer -1"), (0, 3, "no head 3")):
        with pytest.raises(ValueError, match=problem):
            course.pruning.silence_head(model, layer, head)


@pytest.mark.parametrize("training", [True, False])
def test_importance_is_what_the_loss_rises(course, batch, training: bool) -> None:
    model = fresh(course, dropout=0.5)
    whole = course.pruning.loss_of(model, batch)
    expected = [[without(course, model, {(n, h)}, batch) - whole for h in range(3)] for n in range(2)]
    model.train(training)
    importance = course.pruning.head_importance(model, batch)
    torch.testing.assert_close(importance, torch.tensor(expected), atol=1e-6, rtol=0)
    assert importance.min() < 0 < importance.max(), "a random model has heads of both kinds"
    assert model.training is training


def test_heads_are_ranked_from_the_most_important_on_and_ties_by_place(course) -> None:
    importance = torch.tensor([[0.1, -0.2, 0.1], [0.3, 0.1, -0.5]])
    assert course.pruning.rank_heads(importance) == [(1, 0), (0, 0), (0, 2), (1, 1), (0, 1), (1, 2)]


def test_pruning_goes_on_from_what_is_already_silent(course, batch) -> None:
    model, order = fresh(course), [(1, 2), (0, 0), (0, 1)]
    losses = course.pruning.losses_while_pruning(model, batch, order)
    expected = [without(course, model, set(order[:count]), batch) for count in range(4)]
    assert losses == pytest.approx(expected, abs=1e-6)


def test_the_small_model_is_small_and_its_heads_do_something(course) -> None:
    assert SMALL_MODEL.stat().st_size < 500_000
    model, tokenizer = course.checkpoint.load_model(SMALL_MODEL)
    assert (model.config.n_layer, model.config.n_head) == (2, 4)
    poems = course.corpus.read_poems()
    assert set("".join(poem.text for poem in poems)) < set(tokenizer.characters)
    training, _ = course.corpus.split_poems(poems)
    batch = course.pruning.poem_batch(model, course.corpus.encode_poems(training[:40], tokenizer))
    whole = course.pruning.loss_of(model, batch)
    assert whole < 0.75 * math.log(tokenizer.vocab_size), "it has learned these poems"
    importance = course.pruning.head_importance(model, batch)
    assert importance.max() > 0.02
    order = course.pruning.rank_heads(importance)[::-1]
    assert course.pruning.losses_while_pruning(model, batch, order)[-1] > whole + 0.1


def test_the_command_prints_every_head_and_the_way_down(course, capsys, tmp_path: Path) -> None:
    few = tmp_path / "few.txt"
    text = (REFERENCE / "data" / "poems.txt").read_text(encoding="utf-8")
    few.write_text("\n\n".join(text.split("\n\n")[:31]), encoding="utf-8")
    assert course.pruning.main(["--corpus", str(few)]) == 0
    out = capsys.readouterr().out
    assert out.count("layer 0   head 0") == out.count("layer 1   head 0") == 2
    assert out.count("8 of 8 silent: loss ") == 2
