"""The lesson's comparisons: 1, 4 and 8 heads (exercise 2), and RoPE against the position table (exercise 3).

    python compare.py --steps 1000 --seeds 3

One difference between two runs may be luck: look at several seeds before you believe in it.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from corpus import POEMS, Data, prepare
from plots import NoPlots, pyplot
from train import Settings, add_settings, summary, train, with_progress

Row = dict[str, Any]  # a run: its settings and what it measured, by name
MEASURED = ("parameters", "steps_done", "training_loss", "validation_loss", "best_validation_loss", "best_step")
COMPARISONS = {"heads": ("n_head", (1, 4, 8)), "positions": ("position", ("learned", "rope"))}


def run_once(settings: Settings, data: Data) -> Row:
    """Trains one model and returns its row: every setting, then the names in MEASURED."""
    return as_row(summary(settings, data, *train(settings, data)))


def as_row(result: Row) -> Row:
    """The result of a run with its settings unfolded."""
    return result["settings"] | {name: result[name] for name in MEASURED}


def compare(
    data: Data,
    settings: Settings,
    name: str,
    values: Sequence[object],
    seeds: Sequence[int] = (0,),
    run: Callable[[Settings, Data], Row] = run_once,
) -> list[Row]:
    """One run for each seed and each value of the setting `name`, as `run` returns them.

    Within a seed the runs differ in that one setting and in nothing else: not in size, steps, poems or order.
    First all values with the first seed, then all with the next. `settings` has what they share. Raises
    ValueError, before anything is trained, for a `name` that is no setting or is "seed".
    """
    if name not in Settings.__dataclass_fields__ or name == "seed":
        raise ValueError(f"{name!r} cannot be compared: choose a setting other than the seed")
    # --- answer: training: for each seed and value, make the settings, run them, collect the rows
    # --- more: Settings cannot be changed, only copied with another value: dataclasses has a function for it.
    return [run(replace(settings, **{name: value, "seed": seed}), data) for seed in seeds for value in values]
    # --- end


def summarise(rows: Sequence[Row], name: str) -> list[Row]:
    """One row a value of the setting `name`, in order of appearance: mean, lowest and highest loss over seeds.

    The lowest validation loss of each run counts ("best"), and beside it the one at the end ("last").
    """
    table = []
    for value in dict.fromkeys(row[name] for row in rows):
        group = [row for row in rows if row[name] == value]
        best = [row["best_validation_loss"] for row in group]
        last = [row["validation_loss"] for row in group]
        table.append(
            {
                name: value,
                "runs": len(group),
                "parameters": group[0]["parameters"],
                "best": mean(best),
                "lowest": min(best),
                "highest": max(best),
                "best_step": mean(row["best_step"] for row in group),
                "last": mean(last),
            }
        )
    return table


def print_table(table: Sequence[Row], name: str) -> None:
    """Prints what `summarise` returned."""
    print(f"{name:<12}{'runs':>5}{'parameters':>12}{'best':>8}{'lowest':>8}{'highest':>8}{'at step':>9}{'at end':>8}")
    for row in table:
        losses = "".join(f"{row[key]:>8.3f}" for key in ("best", "lowest", "highest"))
        print(
            f"{row[name]!s:<12}{row['runs']:>5}{row['parameters']:>12}{losses}{row['best_step']:>9.0f}{row['last']:>8.3f}"
        )


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Writes the rows as CSV. Raises OSError."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def plot(path: Path, rows: Sequence[Row], name: str) -> None:
    """One dot a run, one bar a mean. Raises NoPlots without matplotlib, OSError."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    table = summarise(rows, name)
    for place, row in enumerate(table):
        losses = [run["best_validation_loss"] for run in rows if run[name] == row[name]]
        axes.plot([place] * len(losses), losses, "o", color="tab:blue", alpha=0.7)
        axes.plot([place - 0.2, place + 0.2], [row["best"]] * 2, color="tab:red")
    axes.set_xticks(range(len(table)), [str(row[name]) for row in table])
    axes.set(xlabel=name, ylabel="lowest validation loss (nats a character)")
    axes.set_xlim(-0.5, len(table) - 0.5)
    axes.grid(alpha=0.3, axis="y")
    figure.savefig(path, dpi=120)
    plt.close(figure)


class Recorder:
    """Runs with a progress bar, keeps every finished row on disk at once, and repeats no run."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "runs.csv"
        self.rows: dict[Settings, Row] = {}

    def __call__(self, settings: Settings, data: Data) -> Row:
        """As `run_once`; Ctrl-C leaves the unfinished run out and goes on as KeyboardInterrupt."""
        if settings not in self.rows:
            label = f"{settings.n_head} heads, {settings.position}, seed {settings.seed}"
            model, history = with_progress(settings, data, label)
            if history.interrupted:
                raise KeyboardInterrupt
            self.rows[settings] = as_row(summary(settings, data, model, history))
            write_rows(self.path, list(self.rows.values()))
        return self.rows[settings]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit status: 130 after Ctrl-C, as usual."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # a terminal without these characters must not stop the program
    parser = argparse.ArgumentParser(description="Compare numbers of heads, and RoPE with the position table.")
    shared = [name for name in Settings.__dataclass_fields__ if name not in ("n_head", "position", "seed")]
    add_settings(parser, shared)
    parser.add_argument("--only", choices=list(COMPARISONS), help="default: both comparisons")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs a value (default: 1)")
    parser.add_argument("--threads", type=int, default=1, help="default: 1; a model this small gains nothing from more")
    parser.add_argument("--corpus", type=Path, default=POEMS, metavar="FILE", help="poems, UTF-8 (default: ours)")
    parser.add_argument("--out", type=Path, default=Path("runs/compare"), metavar="DIR", help="default: runs/compare")
    options = parser.parse_args(arguments)
    try:
        torch.set_num_threads(options.threads)
        settings = Settings(**{name: getattr(options, name) for name in shared})
        data, recorder = prepare(options.corpus), Recorder(options.out)
        for label in [options.only] if options.only else COMPARISONS:
            name, values = COMPARISONS[label]
            rows = compare(data, settings, name, values, range(options.seeds), recorder)
            print(f"{label}: lowest validation loss in nats a character")
            print_table(summarise(rows, name), name)
            try:
                plot(options.out / f"{label}.png", rows, name)
            except NoPlots as problem:
                print(problem, file=sys.stderr)
    except KeyboardInterrupt:
        print(f"stopped; the finished runs are in {options.out / 'runs.csv'}", file=sys.stderr)
        return 130
    except NotImplementedError as stub:
        sys.exit(f"Not written yet: {stub}")
    except (RuntimeError, ValueError, OSError) as error:
        sys.exit(f"compare.py: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
