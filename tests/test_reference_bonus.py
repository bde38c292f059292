"""The course's answers to the bonus exercises: positions.py, sharing.py, cache.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from harness.bench import reference_modules

F64 = torch.float64


@pytest.fixture(scope="module")
def course() -> Iterator[SimpleNamespace]:
    """The reference's modules, apart from any of the same names."""
    modules = reference_modules()
    yield SimpleNamespace(**{name: modules.load(name) for name in ("gpt", "rope", "positions", "sharing", "cache")})


def draw(*shape: int, seed: int = 2) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


# positions.py


def test_a_row_of_the_table_is_added_at_its_position(course: SimpleNamespace) -> None:
    layer = course.positions.LearnedPositions(20, 6).double()
    x = draw(3, 4, 6)
    for start in (0, 7, 16):
        assert torch.equal(layer(x, start=start), x + layer.table.weight[start : start + 4])


@pytest.mark.parametrize(("T", "start"), [(129, 0), (9, 120), (1, 128), (2, -1)])
def test_what_has_no_row_is_refused_by_name(course: SimpleNamespace, T: int, start: int) -> None:
    layer = course.positions.LearnedPositions(128, 2)
    assert layer(torch.zeros(1, 128, 2)).shape == (1, 128, 2)
    with pytest.raises(ValueError, match=f"positions {start} to {start + T} .* 128 rows"):
        layer(torch.zeros(1, T, 2), start=start)


@pytest.mark.parametrize("C", [1, 2, 5, 8, 33])
def test_the_sinusoidal_encoding_by_the_formula(course: SimpleNamespace, C: int) -> None:
    encoding = course.positions.sinusoidal_encoding(300, C)
    assert (encoding.shape, encoding.dtype) == ((300, C), torch.float32)
    for p in (0, 1, 17, 299):
        for channel in range(C):
            angle = p / 10000 ** (2 * (channel // 2) / C)
            expected = math.cos(angle) if channel % 2 else math.sin(angle)
            assert encoding[p, channel].item() == pytest.approx(expected, abs=1e-6)


def test_rows_are_unique_and_their_products_know_only_the_distance(course: SimpleNamespace) -> None:
    long, short = course.positions.sinusoidal_encoding(5000, 16), course.positions.sinusoidal_encoding(64, 16)
    assert torch.equal(long[:64], short)
    rows = long[::7].double()
    assert float((torch.cdist(rows, rows) + torch.eye(len(rows)) * 9).min()) > 0.1
    products = long[:400].double() @ long[:400].double().T
    assert torch.allclose(products[:-30, :-30], products[30:, 30:], atol=1e-5)
    assert float((products[0, 0] - products[0, 1:]).min()) > 0.1


@pytest.mark.parametrize("sizes", [(0, 4), (4, 0)])
def test_sizes_below_one_are_refused(course: SimpleNamespace, sizes: tuple[int, int]) -> None:
    for function, arguments in (
        (course.positions.sinusoidal_encoding, sizes),
        (course.positions.interpolate_positions, (torch.arange(3), *sizes)),
    ):
        with pytest.raises(ValueError, match=r"at least 1, not (4 and 0|0 and 4)"):
            function(*arguments)


def test_interpolated_positions_turn_as_positions_of_a_shorter_text(course: SimpleNamespace) -> None:
    L, longer, x = 16, 64, draw(64, 8)
    squeezed = course.positions.interpolate_positions(torch.arange(longer), L, longer)
    assert float(squeezed.max()) < L and squeezed.dtype == torch.float32
    assert torch.equal(squeezed[::4], torch.arange(16.0))
    turned = course.rope.apply_rope(x, squeezed)
    assert torch.allclose(turned[::4], course.rope.apply_rope(x[::4], torch.arange(L)), atol=1e-12)
    kept = course.positions.interpolate_positions(torch.arange(8, dtype=F64), L, 8)
    assert torch.equal(kept, torch.arange(8, dtype=F64))


# sharing.py


def grouped(course: SimpleNamespace, H: int, G: int, D: int) -> torch.nn.Module:
    torch.manual_seed(3)
    return course.sharing.GroupedQueryAttention(H * D, H, G).double()


def test_neighbours_share_and_the_count_is_that_of_the_tensors(course: SimpleNamespace) -> None:
    x = draw(2, 3, 5, 4)
    assert torch.equal(course.sharing.share_heads(x, 6), x[:, [0, 0, 1, 1, 2, 2]])
    assert torch.equal(course.sharing.share_heads(x, 3), x)
    for G in (1, 2, 4):
        k, v = grouped(course, 4, G, 3).keys_and_values(draw(1, 7, 12))
        assert k.shape == v.shape == (1, G, 7, 3)
        assert course.sharing.cache_numbers(1, G, 3, 7) == k.numel() + v.numel()


@pytest.mark.parametrize("G", [1, 2, 3, 6])
def test_grouped_attention_is_ordinary_attention_with_repeated_weights(course: SimpleNamespace, G: int) -> None:
    H, D = 6, 2
    layer, x = grouped(course, H, G, D), draw(3, 5, 12)
    ordinary = course.gpt.CausalSelfAttention(course.gpt.GPTConfig(vocab_size=5, n_embd=12, n_head=H)).double()
    state = layer.state_dict()
    for part in ("weight", "bias"):
        wide = [
            state[f"{name}.{part}"].unflatten(0, (G, D)).repeat_interleave(H // G, 0).flatten(0, 1) for name in "kv"
        ]
        ordinary.qkv.get_parameter(part).data = torch.cat([state[f"q.{part}"], *wide])
        ordinary.proj.get_parameter(part).data = state[f"proj.{part}"]
    assert torch.allclose(layer(x), ordinary(x), rtol=0, atol=1e-14)
    assert sum(p.numel() for p in layer.parameters()) == 2 * 13 * 12 + 2 * 13 * G * D


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((32, 4, 3), "n_head = 4 .* n_kv_head = 3"),
        ((32, 4, 8), "n_head = 4 .* n_kv_head = 8"),
        ((32, 4, 0), "n_head = 4 .* n_kv_head = 0"),
        ((30, 4, 2), "n_embd = 30 .* n_head = 4"),
        ((30, 0, 1), "n_embd = 30 .* n_head = 0"),
    ],
)
def test_heads_that_cannot_be_shared_out_are_refused(
    course: SimpleNamespace, numbers: tuple[int, int, int], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        course.sharing.GroupedQueryAttention(*numbers)


# cache.py


def test_new_queries_see_what_is_old(course: SimpleNamespace) -> None:
    assert course.cache.visible(2, 5).tolist() == [[True] * 4 + [False], [True] * 5]
    assert torch.equal(course.cache.visible(4, 4), torch.ones(4, 4).tril().bool())
    with pytest.raises(ValueError, match=r"3 queries .* 2 positions"):
        course.cache.visible(3, 2)


def models(course: SimpleNamespace, position: str) -> tuple[torch.nn.Module, torch.nn.Module]:
    """A model with caches and the course's own, with the same weights."""
    made, plain = {
        "learned": (course.cache.CachedGPT, course.gpt.GPT),
        "rope": (course.cache.CachedRotaryGPT, course.rope.RotaryGPT),
    }[position]
    config = course.gpt.GPTConfig(vocab_size=7, block_size=16, n_layer=3, n_head=2, n_embd=8, position=position)
    torch.manual_seed(0)
    model, one_pass = made(config).double().eval(), plain(config).double().eval()
    for parameter in model.parameters():
        parameter.data *= 10 if parameter.dim() > 1 else 1
    one_pass.load_state_dict(model.state_dict())
    return model, one_pass


@pytest.mark.parametrize("lengths", [(1,) * 9, (9,), (4, 5), (1, 3, 2, 3)], ids=str)
@pytest.mark.parametrize("start", [0, 7])
@pytest.mark.parametrize("position", ["learned", "rope"])
@torch.no_grad()
def test_in_pieces_as_in_one_pass(course: SimpleNamespace, position: str, start: int, lengths: tuple[int, ...]) -> None:
    model, one_pass = models(course, position)
    idx = torch.randint(0, 7, (3, 9), generator=torch.Generator().manual_seed(1))
    caches = model.new_caches(start)
    pieces = torch.cat([model.read(piece, caches) for piece in idx.split(lengths, dim=1)], dim=1)
    assert torch.allclose(pieces, one_pass(idx, start=start)[0], rtol=0, atol=1e-12)
    whole, read = model(idx, start=start)[0], model.read(idx, model.new_caches(start))
    assert torch.allclose(whole, read, rtol=0, atol=1e-12)  # turned by other angles, rounded otherwise
    assert [cache.seen for cache in caches] == [start + 9] * 3
    assert all(cache.keys.shape == (3, 2, 9, 4) for cache in caches)


def test_the_table_ends_for_a_cache_too(course: SimpleNamespace) -> None:
    model, _ = models(course, "learned")
    caches = model.new_caches()
    model.read(torch.zeros(1, 16, dtype=torch.long), caches)
    with pytest.raises(ValueError, match=r"start 16 \+ 1 .*block_size = 16"):
        model.read(torch.zeros(1, 1, dtype=torch.long), caches)


@torch.no_grad()
def test_what_is_forgotten_is_as_if_it_had_never_been(course: SimpleNamespace) -> None:
    config = course.gpt.GPTConfig(vocab_size=7, n_head=2, n_embd=8, position="rope")
    torch.manual_seed(0)
    layer, x = course.cache.CachedRotaryAttention(config).double(), draw(2, 9, 8)
    cache = course.cache.KeyValueCache()
    layer(x[:, :6], cache)
    cache.forget(4)
    assert (cache.keys.size(2), cache.values.size(2), cache.seen) == (2, 2, 6)
    assert torch.allclose(layer(x[:, 6:], cache), layer(x[:, 4:])[:, 2:], rtol=0, atol=1e-13)
    empty = course.cache.KeyValueCache()
    empty.forget(3)
    assert (empty.keys, empty.seen) == (None, 0)
