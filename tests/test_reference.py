"""The course's own answers: shapes, errors, and the figures that the lesson states."""

import ast
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

REFERENCE = Path(__file__).resolve().parent.parent / "reference"
MODULES = ("gpt", "rope", "heads_positions")


@pytest.fixture(scope="module")
def course() -> Iterator[SimpleNamespace]:
    """The reference's modules, which other tests may want to load from elsewhere under the same names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REFERENCE))
        for name in MODULES:
            patch.delitem(sys.modules, name, raising=False)
        yield SimpleNamespace(**{name: __import__(name) for name in MODULES})
        for name in MODULES:
            del sys.modules[name]


def attention(course: SimpleNamespace, n_embd: int = 24, n_head: int = 3, rotary: bool = False, **more: object):
    torch.manual_seed(1)
    config = course.gpt.GPTConfig(vocab_size=5, n_embd=n_embd, n_head=n_head, **more)
    made = course.rope.RotaryCausalSelfAttention if rotary else course.gpt.CausalSelfAttention
    return made(config).double().eval()


def draw(*shape: int, seed: int = 2) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# gpt.py


def test_the_tokenizer_goes_there_and_back_and_names_what_it_does_not_know(course) -> None:
    tokenizer = course.gpt.CharTokenizer("白日依山尽白日")
    assert tokenizer.vocab_size == 5
    assert tokenizer.decode(tokenizer.encode("山依日白尽")) == "山依日白尽"
    assert sorted(tokenizer.encode("白日依山尽")) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"'河' at place 1 of '山河'"):
        tokenizer.encode("山河")
    with pytest.raises(ValueError, match=r"number 5 is outside the vocabulary \(0 to 4\)"):
        tokenizer.decode([0, 5])
    with pytest.raises(ValueError, match="at least one character"):
        course.gpt.CharTokenizer("")


@pytest.mark.parametrize("n_head", [1, 2, 4, 8])
def test_the_number_of_heads_does_not_change_the_number_of_parameters(course, n_head: int) -> None:
    layer = attention(course, 32, n_head)
    assert sum(p.numel() for p in layer.qkv.parameters()) == 3168
    assert sum(p.numel() for p in layer.proj.parameters()) == 1056
    assert sum(p.numel() for p in layer.parameters()) == 3168 + 1056


def test_heads_are_neighbouring_channels_and_merging_is_the_inverse(course) -> None:
    layer = attention(course, 24, 3)
    x = draw(2, 5, 24)
    heads = layer.split_heads(x)
    assert heads.shape == (2, 3, 5, 8)
    for h in range(3):
        assert torch.equal(heads[:, h], x[:, :, h * 8 : (h + 1) * 8])
    assert torch.equal(layer.merge_heads(heads), x)


@pytest.mark.parametrize("T", [1, 2, 7])
def test_weights_sum_to_one_and_are_zero_in_the_future(course, T: int) -> None:
    weights = attention(course).attention_weights(draw(2, 3, T, 8), draw(2, 3, T, 8, seed=3))
    assert weights.shape == (2, 3, T, T)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3, T, dtype=torch.float64), atol=1e-14)
    assert torch.all(weights.triu(1) == 0)
    assert torch.all(weights.tril().sum(-2) > 0)


def test_attention_equals_pytorchs_own(course) -> None:
    layer = attention(course)
    x = draw(2, 6, 24)
    q, k, v = (t.unflatten(-1, (3, 8)).transpose(1, 2) for t in layer.qkv(x).split(24, dim=-1))
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 6, 24)
    assert torch.allclose(layer(x), layer.proj(expected), rtol=0, atol=1e-14)


@pytest.mark.parametrize("rotary", [False, True])
def test_the_future_never_matters(course, rotary: bool) -> None:
    layer = attention(course, rotary=rotary)
    x = draw(2, 6, 24)
    changed = x.clone()
    changed[:, 4:] += 1.0
    assert torch.equal(layer(x)[:, :4], layer(changed)[:, :4])
    assert not torch.allclose(layer(x)[:, 4:], layer(changed)[:, 4:])
    assert torch.allclose(layer(x)[:, :4], layer(x[:, :4]), rtol=0, atol=1e-14)


def test_dropout_works_in_training_only(course) -> None:
    layer = attention(course, dropout=0.5)
    x = draw(1, 6, 24)
    assert torch.equal(layer(x), layer(x))
    layer.train()
    assert not torch.equal(layer(x), layer(x))


def test_initialised_like_gpt2(course) -> None:
    torch.manual_seed(0)
    model = course.gpt.GPT(course.gpt.GPTConfig(vocab_size=60, n_layer=2, n_embd=64))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert torch.all(parameter == 0), name
        elif "ln_" in name:
            assert torch.all(parameter == 1), name
        else:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.1), name


def test_the_model_gives_logits_and_the_cross_entropy_in_nats(course) -> None:
    torch.manual_seed(0)
    model = course.gpt.GPT(course.gpt.GPTConfig(vocab_size=7, block_size=6, n_layer=2, n_embd=16))
    idx = torch.tensor([[0, 1, 2, 3], [6, 5, 4, 3]])
    logits, loss = model(idx)
    assert logits.shape == (2, 4, 7)
    assert loss is None
    same, loss = model(idx, idx)
    assert torch.equal(logits, same)
    expected = -logits.log_softmax(-1).gather(-1, idx[..., None]).mean()
    assert loss.item() == pytest.approx(expected.item())
    assert loss.item() == pytest.approx(math.log(7), abs=0.1)
    assert not torch.allclose(model(idx, start=2)[0], logits)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position": "alibi"}, "'alibi'.*learned"),
        ({"n_layer": 0}, "n_layer must be at least 1, not 0"),
        ({"dropout": 1.0}, "dropout .*1.0"),
        ({"n_embd": 30, "n_head": 4}, "30.*4"),
        ({"position": "rope"}, "rope.RotaryGPT"),
    ],
)
def test_a_model_that_cannot_be_built_says_why(course, change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        course.gpt.GPT(course.gpt.GPTConfig(**{"vocab_size": 5, "n_embd": 16, **change}))


def test_inputs_that_do_not_fit_are_named_with_their_numbers(course) -> None:
    model = course.gpt.GPT(course.gpt.GPTConfig(vocab_size=5, block_size=8, n_layer=1, n_embd=16))
    model(torch.zeros(1, 8, dtype=torch.long))
    with pytest.raises(ValueError, match=r"start 0 \+ 9 characters = 9 positions.*block_size = 8"):
        model(torch.zeros(1, 9, dtype=torch.long))
    with pytest.raises(ValueError, match=r"start 6 \+ 3 .*block_size = 8"):
        model(torch.zeros(1, 3, dtype=torch.long), start=6)
    with pytest.raises(ValueError, match="not -1"):
        model(torch.zeros(1, 3, dtype=torch.long), start=-1)
    with pytest.raises(ValueError, match=r"index 5 is outside the vocabulary \(0 to 4\)"):
        model(torch.tensor([[0, 5]]))
    with pytest.raises(ValueError, match="index -1 "):
        model(torch.tensor([[0, -1]]))
    with pytest.raises(ValueError, match=r"\(4,\)"):
        model(torch.zeros(4, dtype=torch.long))


def test_without_a_table_any_length_will_do(course) -> None:
    for made, position in ((course.gpt.GPT, "none"), (course.rope.RotaryGPT, "rope")):
        config = course.gpt.GPTConfig(vocab_size=5, block_size=8, n_layer=1, n_embd=16, position=position)
        model = made(config)
        idx = torch.tensor([[0, 1, 2, 3, 4] * 3])
        assert torch.equal(model(idx)[0], model(idx, start=5)[0])


# rope.py

HALF = [(8, 10000.0), (6, 100.0), (2, 10000.0)]


@pytest.mark.parametrize(("D", "base"), HALF)
def test_frequencies_by_the_formula(course, D: int, base: float) -> None:
    frequencies = course.rope.rope_frequencies(D, base)
    assert frequencies.dtype == torch.float64
    assert frequencies.tolist() == pytest.approx([base ** (-2 * i / D) for i in range(D // 2)], rel=1e-15)


@pytest.mark.parametrize("D", [5, 0, -2])
def test_channels_without_pairs_are_refused(course, D: int) -> None:
    with pytest.raises(ValueError, match=f"head_dim = {D} "):
        course.rope.rope_frequencies(D)


def test_a_turn_is_multiplication_by_a_complex_number(course) -> None:
    x, positions = draw(2, 3, 5, 8), torch.tensor([0.0, 1.0, -3.5, 700.0, 4095.0], dtype=torch.float64)
    angles = torch.outer(positions, course.rope.rope_frequencies(8))
    expected = torch.view_as_complex(x.unflatten(-1, (4, 2))) * torch.polar(torch.ones_like(angles), angles)
    turned = course.rope.apply_rope(x, positions)
    assert torch.allclose(turned, torch.view_as_real(expected).flatten(-2), rtol=0, atol=1e-12)


def test_turning_keeps_lengths_and_scores_know_only_the_distance(course) -> None:
    q, k = draw(6), draw(6, seed=3)

    def score(m: float, n: float) -> float:
        both = torch.tensor([m, n], dtype=torch.float64)
        turned = course.rope.apply_rope(torch.stack((q, k)), both)
        return float(turned[0] @ turned[1])

    assert score(5, 5) == pytest.approx(float(q @ k), abs=1e-12)
    assert score(9, 4) == pytest.approx(score(5, 0), abs=1e-12) == pytest.approx(score(1000, 995), abs=1e-10)
    assert abs(score(5, 0) - score(4, 0)) > 1e-2
    x, positions = draw(4, 7, 6), torch.arange(7)
    assert torch.allclose(course.rope.apply_rope(x, positions).norm(dim=-1), x.norm(dim=-1), rtol=1e-14)
    once = course.rope.apply_rope(course.rope.apply_rope(x, positions), 2 * positions)
    assert torch.allclose(once, course.rope.apply_rope(x, 3 * positions), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-3), (torch.float16, 2e-2), (torch.bfloat16, 0.1)])
def test_the_dtype_is_kept_and_angles_do_not_drift_in_half_precision(course, dtype: torch.dtype, error: float) -> None:
    x, positions = draw(3, 64, 8).clamp(-3, 3), torch.arange(4032, 4096)
    turned = course.rope.apply_rope(x.to(dtype), positions)
    assert turned.dtype == dtype
    assert (turned.double() - course.rope.apply_rope(x, positions)).abs().max() < error


def test_values_are_not_turned_and_a_part_can_be(course) -> None:
    constant = draw(1, 1, 24).expand(1, 6, 24)
    layer = attention(course, rotary=True)
    v = layer.qkv(constant).chunk(3, dim=-1)[2]
    assert torch.allclose(layer(constant), layer.proj(v), rtol=0, atol=1e-14)
    x = draw(1, 6, 24)
    assert not torch.allclose(layer(x), attention(course)(x))
    assert not torch.allclose(layer(x), attention(course, rotary=True, rotary_dim=4)(x))
    assert torch.equal(layer(x), attention(course, rotary=True, rotary_dim=8)(x))


@pytest.mark.parametrize("rotary_dim", [0, 3, 10])
def test_a_part_that_cannot_turn_is_refused(course, rotary_dim: int) -> None:
    with pytest.raises(ValueError, match=f"rotary_dim = {rotary_dim} .*between 2 and 8"):
        attention(course, rotary=True, rotary_dim=rotary_dim)


def test_a_rotary_model_has_no_table_and_tells_the_order_in_one_layer(course) -> None:
    lesson = course.heads_positions
    tokenizer = course.gpt.CharTokenizer(lesson.POEM)
    config = course.gpt.GPTConfig(tokenizer.vocab_size, n_layer=1, n_embd=32, position="rope")
    torch.manual_seed(0)
    model = course.rope.RotaryGPT(config).double()
    assert model.pos_emb is None
    difference = lesson.order_difference(model, tokenizer, lesson.FIRST, lesson.SECOND)
    largest = model(torch.tensor([tokenizer.encode(lesson.FIRST)]))[0].abs().max().item()
    assert difference / largest > 1e-9  # rounding is below 1e-12
    with pytest.raises(ValueError, match="RotaryGPT is for position 'rope'"):
        course.rope.RotaryGPT(course.gpt.GPTConfig(5))


# heads_positions.py


@pytest.mark.parametrize("seed", range(5))
def test_the_figures_of_the_experiment_lie_in_their_ranges(course, seed: int) -> None:
    rows = course.heads_positions.order_table(seed)
    assert [n_layer for n_layer, *_ in rows] == [1, 2, 3]
    for n_layer, *figures in rows:
        for figure, (low, high) in zip(figures, course.heads_positions.EXPECTED[n_layer], strict=True):
            assert low <= figure <= high
    assert rows == course.heads_positions.order_table(seed)


def test_one_layer_without_positions_is_blind_to_every_order(course) -> None:
    lesson = course.heads_positions
    tokenizer = course.gpt.CharTokenizer(lesson.FIRST)
    for position, n_layer, blind in (("none", 1, True), ("learned", 1, False), ("none", 2, False)):
        torch.manual_seed(0)
        config = course.gpt.GPTConfig(5, n_layer=n_layer, n_embd=32, position=position)
        model = course.gpt.GPT(config).double().eval()
        for order in list(permutations(lesson.FIRST[:4]))[1:]:
            text = "".join(order) + lesson.FIRST[4]
            difference = lesson.order_difference(model, tokenizer, lesson.FIRST, text)
            assert difference <= 1e-14 if blind else difference > 1e-4


def test_the_model_with_its_table_cleared_is_a_copy(course) -> None:
    torch.manual_seed(0)
    model = course.gpt.GPT(course.gpt.GPTConfig(5, n_layer=1, n_embd=16))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    blind = course.heads_positions.without_positions(model)
    assert torch.all(blind.pos_emb.weight == 0)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
        assert name == "pos_emb.weight" or torch.equal(blind.state_dict()[name], value)


def test_the_difference_leaves_no_trace_on_the_model(course) -> None:
    lesson = course.heads_positions
    tokenizer = course.gpt.CharTokenizer(lesson.FIRST)
    model = course.gpt.GPT(course.gpt.GPTConfig(5, n_layer=1, n_embd=16)).train()
    assert isinstance(lesson.order_difference(model, tokenizer, lesson.FIRST, "尽山"), float)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert lesson.order_difference(model, tokenizer, lesson.FIRST, lesson.FIRST) == 0.0


def test_the_script_prints_both_experiments() -> None:
    run = subprocess.run(
        [sys.executable, "-X", "utf8", str(REFERENCE / "heads_positions.py")],
        capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    for shape in ("(1, 5, 32)", "(1, 4, 5, 8)", "(1, 4, 5, 5)"):
        assert shape in run.stdout
    assert run.stdout.count("qkv 3168, proj 1056") == 4
    assert "白日依山尽 against 山依日白尽" in run.stdout
    figures = re.findall(r"(\S+) +expected (\S+) to (\S+)", run.stdout)
    assert len(figures) == 6
    for value, low, high in figures:
        assert float(low) <= float(value) <= float(high)


@pytest.mark.parametrize("path", sorted(REFERENCE.glob("*.py")), ids=lambda path: path.stem)
def test_every_public_function_says_what_it_does(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{path.name}: {node.name}"
