"""The poems: read, split into training and validation, turned into numbers.

Letters in the shape comments: N how many characters a text has.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from gpt import CharTokenizer
from torch import Tensor

FOLDER = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()  # a notebook has no __file__
DATA_FOLDER = FOLDER / "data"
POEMS = DATA_FOLDER / "poems.txt"


@dataclass(frozen=True)
class Poem:
    """One poem; `text` has its lines one after another, with their punctuation."""

    title: str
    author: str
    text: str


@dataclass(frozen=True)
class Data:
    """What a run needs: one tokenizer for all poems, and two texts as numbers, (N,) each."""

    tokenizer: CharTokenizer
    training: Tensor
    validation: Tensor


def read_poems(path: Path = POEMS) -> list[Poem]:
    """The poems of a UTF-8 file, in their order.

    The file holds blocks with an empty line between them: a line with the title, one with the author, then
    the poem. Lines that begin with # are left out. Raises OSError when the file cannot be read, ValueError
    when it is not UTF-8, holds no poem, or has a block of fewer than three lines.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    kept = [line.strip() for line in lines if not line.startswith("#")]
    poems = []
    for block in "\n".join(kept).strip("\n").split("\n\n"):
        parts = block.strip("\n").split("\n")
        if parts == [""]:  # more than one empty line between two blocks
            continue
        if len(parts) < 3:
            raise ValueError(f"{path}: the block {block.strip()!r} needs a title line, an author line and a poem")
        poems.append(Poem(parts[0], parts[1], "".join(parts[2:])))
    if not poems:
        raise ValueError(f"{path} holds no poem: write a title line, an author line, then the poem")
    return poems


def split_poems(poems: Sequence[Poem], fraction: float = 0.1, seed: int = 0) -> tuple[list[Poem], list[Poem]]:
    """Puts some poems aside, by chance: (for training, for validation).

    Each poem is in exactly one of the two lists, whole: the validation loss is to tell how well the model does
    on poems that it never saw. `validation` gets the share `fraction`, rounded, and at least one poem. The same
    seed gives the same split, and `poems` stays as it is. Raises ValueError for fewer than two poems.
    """
    if len(poems) < 2:
        raise ValueError(f"{len(poems)} poem cannot be split: two are the least")
    # --- answer: training: shuffle a copy of the poems with the seed, then cut it in two
    # --- more: Only whole poems move; random.Random(seed) gives the same chance to everybody.
    shuffled = list(poems)
    random.Random(seed).shuffle(shuffled)
    held_out = max(1, round(fraction * len(shuffled)))
    return shuffled[held_out:], shuffled[:held_out]
    # --- end


def encode_poems(poems: Sequence[Poem], tokenizer: CharTokenizer) -> Tensor:
    """The poems as one text of numbers, (N,), with a line break before the first and after each poem."""
    text = "\n" + "".join(f"{poem.text}\n" for poem in poems)
    return torch.tensor(tokenizer.encode(text))  # (N,)


def prepare(path: Path = POEMS, fraction: float = 0.1, seed: int = 0) -> Data:
    """Reads and splits the poems of a file. Raises what `read_poems` and `split_poems` raise.

    The tokenizer knows the characters of all poems, else those that only occur in validation could not even be
    asked for. The split has a seed of its own, so that runs with different seeds are measured on the same poems.
    """
    poems = read_poems(path)
    tokenizer = CharTokenizer("\n" + "".join(poem.text for poem in poems))
    training, validation = split_poems(poems, fraction, seed)
    return Data(tokenizer, encode_poems(training, tokenizer), encode_poems(validation, tokenizer))
