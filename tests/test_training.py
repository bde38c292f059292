"""Training: batches, the step, the evaluation, runs and their files, comparisons. Everything at toy size."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from tests.support.reference import REFERENCE, loaded

SMALL = ["--n-layer", "1", "--n-embd", "8", "--block-size", "8", "--batch-size", "2", "--n-head", "2"]


@pytest.fixture(scope="module")
def course() -> Iterator[SimpleNamespace]:
    with loaded("gpt", "rope", "corpus", "checkpoint", "positions", "plots", "train", "compare") as modules:
        yield modules


@pytest.fixture(scope="module")
def data(course: SimpleNamespace):
    """Four short poems, three to learn from."""
    poems = course.corpus.read_poems()[:4]
    tokenizer = course.gpt.CharTokenizer("\n" + "".join(poem.text for poem in poems))
    parts = (course.corpus.encode_poems(part, tokenizer) for part in (poems[:3], poems[3:]))
    return course.corpus.Data(tokenizer, *parts)


@pytest.fixture
def settings(course: SimpleNamespace):
    sizes = {"n_layer": 1, "n_embd": 16, "n_head": 2, "block_size": 8, "batch_size": 4}
    return course.train.Settings(steps=5, evaluate_every=2, **sizes)


def make(course, settings, data, seed: int = 0):
    torch.manual_seed(seed)
    return course.train.make_model(settings, data.tokenizer.vocab_size)


# Batches


def test_each_answer_is_the_character_that_comes_next(course) -> None:
    numbers = torch.tensor([5, 3, 8, 1, 9, 2, 7])
    x, y = course.train.cut_windows(numbers, torch.tensor([0, 3, 1]), 3)
    assert x.tolist() == [[5, 3, 8], [1, 9, 2], [3, 8, 1]]
    assert y.tolist() == [[3, 8, 1], [9, 2, 7], [8, 1, 9]]


def test_batches_reach_every_place_of_the_text_and_follow_their_generator(course) -> None:
    numbers = torch.arange(10)
    draws = [course.train.get_batch(numbers, 4, 8, torch.Generator().manual_seed(3))[0] for _ in range(2)]
    assert torch.equal(*draws)
    generator = torch.Generator().manual_seed(0)
    x, y = course.train.get_batch(numbers, 4, 400, generator)
    assert set(x[:, 0].tolist()) == {0, 1, 2, 3, 4, 5}
    assert torch.equal(y, x + 1)
    assert not torch.equal(x, course.train.get_batch(numbers, 4, 400, generator)[0])
    with pytest.raises(ValueError, match=r"a text of 4 characters has no piece of block_size \+ 1 = 5"):
        course.train.get_batch(numbers[:4], 4, 1, generator)


@pytest.mark.parametrize("length", [2, 4, 5, 6, 9, 150])
def test_the_whole_text_asks_for_each_character_once(course, length: int) -> None:
    pieces = list(course.train.whole_text(torch.arange(length), 4, batch_size=3))
    assert torch.cat([y.flatten() for _, y in pieces]).tolist() == list(range(1, length))
    assert torch.cat([x.flatten() for x, _ in pieces]).tolist() == list(range(length - 1))
    with pytest.raises(ValueError, match="nothing to ask for"):
        list(course.train.whole_text(torch.arange(1), 4))


# The step and the evaluation


def test_a_step_moves_every_parameter_by_the_gradient_of_this_batch_alone(course, settings, data) -> None:
    model = make(course, replace(settings, dropout=0.0), data)
    x, y = course.train.get_batch(data.training, 8, 4, torch.Generator().manual_seed(0))
    model(x, y)[1].backward()
    wanted = {name: (p - 0.5 * p.grad).detach() for name, p in model.named_parameters()}
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    loss = model(x, y)[1].item()
    for p in model.parameters():
        p.grad = torch.full_like(p, 100.0)  # left over from earlier
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    assert course.train.training_step(model, optimizer, (x, y)) == pytest.approx(loss, abs=1e-6)
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.detach(), wanted[name], atol=1e-6, rtol=1e-5)
        assert not torch.equal(p.detach(), before[name]), name


@pytest.mark.parametrize("training", [True, False])
def test_evaluation_is_the_mean_over_all_characters_and_leaves_no_trace(course, settings, data, training) -> None:
    model = make(course, replace(settings, dropout=0.5), data).eval()
    text = data.validation
    total = 0.0
    for start in range(0, len(text) - 1, 8):
        x, y = text[start : start + 8], text[start + 1 : start + 9]
        logits, _ = model(x[None, : len(y)])
        total += F.cross_entropy(logits[0], y, reduction="sum").item()
    assert (len(text) - 1) % 8, "the last piece must be shorter for this test"
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.train(training)
    assert course.train.evaluate(model, text) == pytest.approx(total / (len(text) - 1), abs=1e-5)
    assert all(module.training is training for module in model.modules())
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


# Runs


@pytest.mark.parametrize("position", ["learned", "rope", "sinusoidal", "none"])
def test_the_loss_falls_with_every_position_encoding(course, settings, data, position: str) -> None:
    run = replace(settings, steps=60, position=position, learning_rate=0.01, dropout=0.0, evaluate_every=1000)
    model, history = course.train.train(run, data)
    assert len(history.training) == 60
    assert list(history.validation) == [60]
    assert history.training[0] == pytest.approx(math.log(data.tokenizer.vocab_size), abs=0.1)
    assert sum(history.training[-10:]) / 10 < history.training[0] - 0.5
    assert isinstance(model, course.rope.RotaryGPT) is (position == "rope")


def test_the_sinusoidal_table_stays_as_computed_and_has_the_scale_of_the_others(course, settings, data) -> None:
    model, _ = course.train.train(replace(settings, position="sinusoidal"), data)
    table = course.positions.sinusoidal_encoding(8, 16) * 0.02 * 2**0.5
    torch.testing.assert_close(model.pos_emb.weight.detach(), table)
    assert table.square().mean().sqrt().item() == pytest.approx(0.02, rel=1e-3)


def test_a_seed_decides_the_run_and_validation_poems_never_teach(course, settings, data) -> None:
    first, history = course.train.train(settings, data)
    again, same = course.train.train(settings, data)
    assert history == same
    assert list(history.validation) == [2, 4, 5]
    assert history.training != course.train.train(replace(settings, seed=1), data)[1].training
    other = replace(data, validation=data.training)
    third, unlike = course.train.train(settings, other)
    assert unlike.training == history.training
    assert unlike.validation != history.validation
    for a, b, c in zip(first.parameters(), again.parameters(), third.parameters(), strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c)


def test_ctrl_c_keeps_what_was_learned_and_measured(course, settings, data) -> None:
    def stop(history) -> None:
        if len(history.training) == 3:
            raise KeyboardInterrupt

    model, history = course.train.train(settings, data, stop)
    full_model, full = course.train.train(replace(settings, steps=3), data)
    assert history.interrupted
    assert history.training == full.training
    assert history.validation == full.validation
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), full_model.parameters(), strict=True))


def test_history_knows_its_last_and_its_best(course) -> None:
    history = course.train.History([3.0] * 30, {10: 2.5, 20: 2.25, 30: 2.75})
    assert (history.last, history.best, history.best_step) == (2.75, 2.25, 20)
    empty = course.train.History()
    assert math.isnan(empty.last)
    assert math.isnan(empty.best)
    assert empty.best_step == 0


def test_settings_refuse_what_they_do_not_know(course) -> None:
    with pytest.raises(ValueError, match="unknown position 'alibi': choose one of learned, rope, sinusoidal, none"):
        course.train.Settings(position="alibi")
    with pytest.raises(ValueError, match="steps must be at least 1, not 0"):
        course.train.Settings(steps=0)


# Files


@pytest.fixture(scope="module")
def run_folder(course, data, tmp_path_factory) -> Path:
    """What the command writes for a run of three steps."""
    folder = tmp_path_factory.mktemp("run")
    status = course.train.main(["--steps", "3", "--evaluate-every", "2", *SMALL, "--out", str(folder)])
    assert status == 0
    return folder


def test_a_run_leaves_its_losses_as_json_csv_and_picture(course, run_folder: Path) -> None:
    assert sorted(path.name for path in run_folder.iterdir()) == [
        "loss.csv",
        "loss.png",
        "model.safetensors",
        "result.json",
    ]
    result = json.loads((run_folder / "result.json").read_text(encoding="utf-8"))
    with (run_folder / "loss.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["1", "2", "3"]
    assert [bool(row["validation_loss"]) for row in rows] == [False, True, True]
    assert float(rows[-1]["validation_loss"]) == pytest.approx(result["validation_loss"], abs=1e-6)
    assert result["settings"]["n_head"] == 2
    assert result["steps_done"] == 3
    assert not result["interrupted"]
    assert result["characters"]["vocabulary"] > 1500
    assert (run_folder / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_the_model_comes_back_from_its_file(course, run_folder: Path) -> None:
    model, tokenizer = course.checkpoint.load_model(run_folder / "model.safetensors")
    result = json.loads((run_folder / "result.json").read_text(encoding="utf-8"))
    data = course.corpus.prepare()
    assert tokenizer.characters == data.tokenizer.characters
    assert course.train.evaluate(model, data.validation) == pytest.approx(result["validation_loss"], abs=1e-5)


@pytest.mark.parametrize("position", ["learned", "rope"])
def test_half_precision_halves_the_file_and_changes_little(course, settings, data, position, tmp_path) -> None:
    model = make(course, replace(settings, position=position), data).eval()
    sizes = {}
    for dtype in (torch.float32, torch.float16):
        path = tmp_path / f"{dtype}.safetensors"
        course.checkpoint.save_model(path, model, data.tokenizer, dtype)
        back, _ = course.checkpoint.load_model(path)
        sizes[dtype] = path.stat().st_size
        assert type(back) is type(model)
        assert back.head.weight.dtype == torch.float32
        atol = 0.0 if dtype == torch.float32 else 1e-3
        torch.testing.assert_close(
            back(data.validation[None, :8])[0], model(data.validation[None, :8])[0], atol=atol, rtol=0
        )
    assert sizes[torch.float16] < 0.7 * sizes[torch.float32]


def test_what_is_no_model_is_refused_with_its_name(course, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    with pytest.raises(FileNotFoundError, match="there is no file"):
        course.checkpoint.load_model(tmp_path / "none.safetensors")
    (tmp_path / "junk.safetensors").write_bytes(b"junk" * 10)
    save_file({"x": torch.zeros(2)}, tmp_path / "other.safetensors")
    wrong = {"config": json.dumps({"vocab_size": 2}), "characters": "ab"}
    save_file({"x": torch.zeros(2)}, tmp_path / "wrong.safetensors", metadata=wrong)
    for name in ("junk", "other", "wrong"):
        with pytest.raises(ValueError, match=rf"{name}\.safetensors is not a model that train\.py wrote"):
            course.checkpoint.load_model(tmp_path / f"{name}.safetensors")


def test_without_matplotlib_the_numbers_are_kept_and_one_line_says_so(course, monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert course.train.main(["--steps", "1", *SMALL, "--out", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loss.csv", "model.safetensors", "result.json"]
    assert "no picture: matplotlib is not installed (pip install matplotlib)\n" in capsys.readouterr().err


def test_a_corpus_of_ones_own_and_one_that_is_not_there(course, tmp_path: Path) -> None:
    corpus = tmp_path / "mine.txt"
    corpus.write_text("甲\n乙\n一二三四五六七八九十\n\n丙\n丁\n十九八七六五四三二一\n", encoding="utf-8")
    course.train.main(["--steps", "1", *SMALL, "--corpus", str(corpus), "--out", str(tmp_path / "out")])
    result = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    assert result["characters"] == {"vocabulary": 11, "training": 12, "validation": 12}
    with pytest.raises(SystemExit, match=r"train\.py: .*missing\.txt"):
        course.train.main(["--steps", "1", "--corpus", str(tmp_path / "missing.txt")])


@pytest.mark.slow
def test_ctrl_c_at_the_command_line_writes_the_files(tmp_path: Path) -> None:
    code = """
import signal, sys
import train

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit "ignore"
step, calls = train.training_step, []

def interrupted_step(*arguments):
    calls.append(1)
    if len(calls) == 6:
        signal.raise_signal(signal.SIGINT)
    return step(*arguments)

train.training_step = interrupted_step
sys.exit(train.main(sys.argv[1:]))
"""
    command = [sys.executable, "-c", code, "--steps", "500", *SMALL, "--out", str(tmp_path)]
    run = subprocess.run(command, cwd=REFERENCE, capture_output=True, text=True, encoding="utf-8", check=False)
    assert run.returncode == 130, run.stderr
    assert "stopped after 5 steps" in run.stdout
    assert json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["interrupted"] is True


# Comparisons


def test_within_a_seed_only_the_compared_setting_differs(course, settings, data) -> None:
    seen = []

    def run(given, its_data):
        assert its_data is data
        seen.append(given)
        return {"n": len(seen)}

    rows = course.compare.compare(data, settings, "n_head", (1, 4, 8), (5, 6), run)
    assert rows == [{"n": n} for n in range(1, 7)]
    assert seen == [replace(settings, n_head=h, seed=s) for s in (5, 6) for h in (1, 4, 8)]
    for name in ("seed", "heads"):
        with pytest.raises(ValueError, match=f"'{name}' cannot be compared"):
            course.compare.compare(data, settings, name, (1, 2))


def test_heads_do_not_change_the_number_of_parameters(course, settings, data) -> None:
    rows = course.compare.compare(data, replace(settings, steps=2), "n_head", (1, 4))
    assert [row["n_head"] for row in rows] == [1, 4]
    assert len({row["parameters"] for row in rows}) == 1
    assert rows[0]["validation_loss"] != rows[1]["validation_loss"]
    assert rows[1] == course.compare.run_once(replace(settings, steps=2, n_head=4), data)


def test_the_summary_is_over_the_seeds(course) -> None:
    rows = [
        {
            "position": p,
            "seed": s,
            "parameters": 7,
            "best_validation_loss": b,
            "validation_loss": b + 1,
            "best_step": 10 * s,
        }
        for p, s, b in (("rope", 1, 2.0), ("learned", 1, 5.0), ("rope", 3, 4.0))
    ]
    rope, learned = course.compare.summarise(rows, "position")
    assert rope == {
        "position": "rope",
        "runs": 2,
        "parameters": 7,
        "best": 3.0,
        "lowest": 2.0,
        "highest": 4.0,
        "best_step": 20,
        "last": 4.0,
    }
    assert learned["runs"] == 1


def test_the_command_writes_tables_rows_and_pictures(course, capsys, tmp_path: Path) -> None:
    sizes = ["--n-layer", "1", "--n-embd", "16", "--block-size", "8", "--batch-size", "2"]
    assert course.compare.main(["--steps", "1", *sizes, "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()] == [
        "heads:",
        "n_head",
        "1",
        "4",
        "8",
        "positions:",
        "position",
        "learned",
        "rope",
    ]
    with (tmp_path / "runs.csv").open(encoding="utf-8", newline="") as file:
        runs = [(row["n_head"], row["position"]) for row in csv.DictReader(file)]
    assert runs == [("1", "learned"), ("4", "learned"), ("8", "learned"), ("4", "rope")]  # the shared run once
    for name in ("heads.png", "positions.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_in_a_comparison_keeps_the_finished_runs(course, monkeypatch, capsys, tmp_path: Path) -> None:
    real, calls = course.compare.with_progress, []

    def second_is_stopped(settings, data, label):
        calls.append(label)
        model, history = real(replace(settings, steps=1), data, label)
        history.interrupted = len(calls) == 2
        return model, history

    monkeypatch.setattr(course.compare, "with_progress", second_is_stopped)
    sizes = ["--n-layer", "1", "--n-embd", "16", "--block-size", "8", "--batch-size", "2"]
    assert course.compare.main(["--steps", "9", *sizes, "--out", str(tmp_path)]) == 130
    assert "stopped; the finished runs are in" in capsys.readouterr().err
    assert len((tmp_path / "runs.csv").read_text(encoding="utf-8").splitlines()) == 2
