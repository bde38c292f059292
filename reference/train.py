"""Trains the course's GPT, character by character, on an anthology of classical Chinese poems.

    python train.py --steps 1000 --n-head 4 --position learned

Letters in the shape comments: B batch, T time, N characters of a text; V is the vocabulary.
"""

import argparse
import csv
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from checkpoint import save_model
from corpus import POEMS, Data, prepare
from gpt import GPT, GPTConfig
from plots import NoPlots, save_curves
from positions import sinusoidal_encoding
from rope import RotaryGPT
from torch import Tensor, nn

if TYPE_CHECKING:  # for the names only: importing it takes as long as all of torch
    from torch.optim import Optimizer

POSITIONS = ("learned", "rope", "sinusoidal", "none")
Batch = tuple[Tensor, Tensor]  # x (B, T) and y (B, T): y holds what follows each character of x


@dataclass(frozen=True)
class Settings:
    """All that a run depends on, apart from its poems. Raises ValueError for an unknown `position`."""

    steps: int = 1000
    n_head: int = 4
    position: str = "learned"
    seed: int = 0
    n_layer: int = 4
    n_embd: int = 128
    block_size: int = 128
    batch_size: int = 8
    dropout: float = 0.2
    learning_rate: float = 1e-3
    evaluate_every: int = 50

    def __post_init__(self) -> None:
        if self.position not in POSITIONS:
            raise ValueError(f"unknown position {self.position!r}: choose one of {', '.join(POSITIONS)}")
        for name in ("steps", "batch_size", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")


@dataclass
class History:
    """What a run measured: the training loss of each step, the validation loss after some of them."""

    training: list[float] = field(default_factory=list)
    validation: dict[int, float] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def last(self) -> float:
        """The validation loss at the end, in nats a character; nan before the first."""
        return self.validation[max(self.validation)] if self.validation else math.nan

    @property
    def best_step(self) -> int:
        """The step after which the validation loss was lowest; 0 before the first."""
        return min(self.validation, key=self.validation.__getitem__, default=0)

    @property
    def best(self) -> float:
        """The lowest validation loss; nan before the first."""
        return self.validation.get(self.best_step, math.nan)


def make_model(settings: Settings, vocab_size: int) -> GPT:
    """A fresh model; torch's seed decides its weights. Raises ValueError for sizes that do not fit."""
    computed = settings.position == "sinusoidal"
    config = GPTConfig(
        vocab_size=vocab_size,
        block_size=settings.block_size,
        n_layer=settings.n_layer,
        n_head=settings.n_head,
        n_embd=settings.n_embd,
        dropout=settings.dropout,
        position="learned" if computed else settings.position,
    )
    model = (RotaryGPT if config.position == "rope" else GPT)(config)
    if computed:
        # As large as the other embeddings at the start (0.02), or it would drown the characters.
        table = 0.02 * 2**0.5 * sinusoidal_encoding(config.block_size, config.n_embd)  # (T, C)
        model.pos_emb = nn.Embedding.from_pretrained(table)  # not trained
    return model


def make_optimizer(model: GPT, settings: Settings) -> "Optimizer":
    """AdamW over all parameters of the model."""
    from torch.optim import AdamW

    return AdamW(model.parameters(), lr=settings.learning_rate, fused=True)  # one pass over all of them


def cut_windows(data: Tensor, starts: Tensor, block_size: int) -> Batch:
    """Pieces of a text with what the model must say to them: x (B, T) and y (B, T), T = block_size.

    data: (N,). starts: (B,), where each piece begins. Row b of x is data from starts[b] on. y holds the answer
    to each position of x: the character that comes next in the text.
    """
    # --- answer: training: take block_size characters from each start, and the same shifted by one
    # --- more: The last answer of a row lies one character beyond the row.
    places = starts[:, None] + torch.arange(block_size)  # (B, T)
    return data[places], data[places + 1]  # (B, T) each
    # --- end


def get_batch(data: Tensor, block_size: int, batch_size: int, generator: torch.Generator) -> Batch:
    """Pieces from anywhere in the text: x (B, T) and y (B, T). Raises ValueError for a text that is too short."""
    if len(data) <= block_size:
        raise ValueError(f"a text of {len(data)} characters has no piece of block_size + 1 = {block_size + 1}")
    starts = torch.randint(len(data) - block_size, (batch_size,), generator=generator)  # (B,)
    return cut_windows(data, starts, block_size)


def whole_text(data: Tensor, block_size: int, batch_size: int = 32) -> Iterator[Batch]:
    """The text from its beginning to its end, each character asked for once: batches of x and y.

    Pieces of block_size characters, the last one shorter. Raises ValueError for fewer than two characters.
    """
    if len(data) < 2:
        raise ValueError(f"a text of {len(data)} characters has nothing to ask for")
    full = (len(data) - 1) // block_size
    for starts in torch.arange(0, full * block_size, block_size).split(batch_size):  # (B,) each
        if len(starts):
            yield cut_windows(data, starts, block_size)
    rest = (len(data) - 1) % block_size
    if rest:
        yield cut_windows(data, torch.tensor([full * block_size]), rest)


def training_step(model: GPT, optimizer: "Optimizer", batch: Batch) -> float:
    """One step of learning; returns the loss of the batch before the step.

    The gradients that move the weights are those of this batch alone. The mode of the model stays as it is.
    """
    # --- answer: training: clear old gradients, compute the loss, find its gradients, move the weights
    # --- more: Four things in an order that matters. model(x, y) returns the loss beside the logits.
    x, y = batch  # (B, T) each
    optimizer.zero_grad()
    _, loss = model(x, y)  # a single number
    loss.backward()
    optimizer.step()
    return loss.item()
    # --- end


def evaluate(model: GPT, data: Tensor) -> float:
    """The mean loss over every character of a text, in nats. data: (N,), from poems that nothing is learned from.

    Measured in eval mode, without gradients; nothing of the model changes, and afterwards it is in the mode in
    which it came. The pieces of `whole_text` have different sizes: each character counts the same.
    """
    # --- answer: training: measure the loss on the whole text, without dropout and without gradients
    # --- more: whole_text(data, model.config.block_size) gives the pieces. Leave no trace on the model.
    was_training = model.training
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in whole_text(data, model.config.block_size):  # (B, T) each
            total += model(x, y)[1].item() * y.numel()
    model.train(was_training)
    return total / (len(data) - 1)
    # --- end


def train(settings: Settings, data: Data, on_step: Callable[[History], None] | None = None) -> tuple[GPT, History]:
    """Trains a fresh model. `on_step` is called after each step.

    The seed decides the weights at the start and which pieces come in which order. Ctrl-C ends the run early,
    and what it has learned and measured so far is returned.
    """
    torch.manual_seed(settings.seed)
    model = make_model(settings, data.tokenizer.vocab_size)
    optimizer = make_optimizer(model, settings)
    order = torch.Generator().manual_seed(settings.seed)  # its own: the same pieces whatever the model is like
    history = History()
    try:
        for step in range(1, settings.steps + 1):
            batch = get_batch(data.training, settings.block_size, settings.batch_size, order)
            history.training.append(training_step(model, optimizer, batch))
            if step % settings.evaluate_every == 0 or step == settings.steps:
                history.validation[step] = evaluate(model, data.validation)
            if on_step is not None:
                on_step(history)
    except KeyboardInterrupt:
        history.interrupted = True
        history.validation[len(history.training)] = evaluate(model, data.validation)
    return model, history


def summary(settings: Settings, data: Data, model: GPT, history: History) -> dict[str, Any]:
    """What `result.json` holds."""
    recent = history.training[-50:]
    return {
        "settings": asdict(settings),
        "parameters": sum(p.numel() for p in model.parameters()),
        "characters": {
            "vocabulary": data.tokenizer.vocab_size,
            "training": len(data.training),
            "validation": len(data.validation),
        },
        "steps_done": len(history.training),
        "interrupted": history.interrupted,
        "training_loss": sum(recent) / len(recent) if recent else None,
        "validation_loss": None if math.isnan(history.last) else history.last,
        "best_validation_loss": None if math.isnan(history.best) else history.best,
        "best_step": history.best_step,
        "torch": torch.__version__,
    }


def write_run(folder: Path, settings: Settings, data: Data, model: GPT, history: History, half: bool = False) -> None:
    """Writes result.json, loss.csv, model.safetensors and, with matplotlib, loss.png. Raises OSError, NoPlots.

    half: keep the weights in half precision, in a file half as large.
    """
    folder.mkdir(parents=True, exist_ok=True)
    result = json.dumps(summary(settings, data, model, history), indent=2)
    (folder / "result.json").write_text(result + "\n", encoding="utf-8")
    with (folder / "loss.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["step", "training_loss", "validation_loss"])
        for step, loss in enumerate(history.training, start=1):
            measured = history.validation.get(step)
            rows.writerow([step, f"{loss:.6f}", "" if measured is None else f"{measured:.6f}"])
    save_model(folder / "model.safetensors", model, data.tokenizer, torch.float16 if half else torch.float32)
    curves = [
        ("training", list(range(1, len(history.training) + 1)), history.training),
        ("validation", list(history.validation), list(history.validation.values())),
    ]
    title = f"{settings.n_head} heads, position {settings.position}, seed {settings.seed}"
    save_curves(folder / "loss.png", title, curves)


def with_progress(settings: Settings, data: Data, label: str = "training") -> tuple[GPT, History]:
    """`train` with a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[losses]}"), console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=settings.steps, losses="")

        def on_step(history: History) -> None:
            """Move the progress bar."""
            losses = f"loss {history.training[-1]:.3f}, validation {history.last:.3f}"
            progress.update(task, completed=len(history.training), losses=losses)

        return train(settings, data, on_step)


def add_settings(parser: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Gives the parser an option for each of these fields of `Settings`, with its default."""
    defaults = Settings()
    for name in names:
        default = getattr(defaults, name)
        choices = POSITIONS if name == "position" else None
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=type(default), default=default, choices=choices, help=f"default: {default}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit status: 130 after Ctrl-C, as usual."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal without these characters must not stop the program
    parser = argparse.ArgumentParser(description="Train the course's GPT on classical Chinese poems.")
    names = list(Settings.__dataclass_fields__)
    add_settings(parser, names)
    parser.add_argument("--threads", type=int, default=1, help="default: 1; a model this small gains nothing from more")
    parser.add_argument("--corpus", type=Path, default=POEMS, metavar="FILE", help="poems, UTF-8 (default: ours)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where results go (default: runs/<settings>)")
    parser.add_argument("--half", action="store_true", help="keep the model in half precision: a smaller file")
    options = parser.parse_args(arguments)
    try:
        torch.set_num_threads(options.threads)
        settings = Settings(**{name: getattr(options, name) for name in names})
        data = prepare(options.corpus)
        model, history = with_progress(settings, data)
        folder = options.out or Path("runs") / f"heads{settings.n_head}-{settings.position}-seed{settings.seed}"
        try:
            write_run(folder, settings, data, model, history, options.half)
        except NoPlots as problem:
            print(problem, file=sys.stderr)
    except NotImplementedError as stub:
        sys.exit(f"Not written yet: {stub}")
    except (RuntimeError, ValueError, OSError) as error:
        sys.exit(f"train.py: {error}")
    done = f"{'stopped after' if history.interrupted else 'trained for'} {len(history.training)} steps"
    print(f"{done}: validation loss {history.last:.3f}, lowest {history.best:.3f} after step {history.best_step}")
    print(f"a model that guesses evenly has {math.log(data.tokenizer.vocab_size):.3f}; results are in {folder}")
    return 130 if history.interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
