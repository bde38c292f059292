"""The course's small GPT: a character tokenizer, causal self-attention with several heads, blocks, the model.

Letters in the shape comments: B batch (sentences), T time (positions), C channels (n_embd), H heads (n_head),
D = C / H channels of one head, V vocabulary size.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CharTokenizer:
    """Turns each distinct character of a text into a number, in the order of the code points."""

    def __init__(self, text: str) -> None:
        """text: every character that `encode` must know. Raises ValueError for an empty text."""
        if not text:
            raise ValueError("a tokenizer needs a text with at least one character")
        self.characters = sorted(set(text))
        self.index = {character: i for i, character in enumerate(self.characters)}

    @property
    def vocab_size(self) -> int:
        """How many different characters there are: V."""
        return len(self.characters)

    def encode(self, text: str) -> list[int]:
        """The numbers of the characters of `text`. Raises ValueError that names an unknown character."""
        for place, character in enumerate(text):
            if character not in self.index:
                raise ValueError(
                    f"unknown character {character!r} at place {place} of {text!r}: "
                    "it does not occur in the text that the tokenizer was made from"
                )
        return [self.index[character] for character in text]

    def decode(self, numbers: Iterable[int]) -> str:
        """The text that these numbers stand for. Raises ValueError for a number outside the vocabulary."""
        numbers = [int(number) for number in numbers]
        for number in numbers:
            if not 0 <= number < self.vocab_size:
                raise ValueError(f"number {number} is outside the vocabulary (0 to {self.vocab_size - 1})")
        return "".join(self.characters[number] for number in numbers)


@dataclass(frozen=True)
class GPTConfig:
    """The sizes of a model. Raises ValueError for a size below 1 or a dropout outside [0, 1).

    position: how the model knows the order of the characters. "learned" adds a table with one row a position,
    "rope" rotates queries and keys (`rope.RotaryGPT`), "none" leaves only the causal mask.
    rotary_dim: with "rope", how many channels of each head are rotated, from the first on; None means all.
    """

    vocab_size: int
    block_size: int = 128
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    dropout: float = 0.0
    position: str = "learned"
    rotary_dim: int | None = None

    def __post_init__(self) -> None:
        for name in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"dropout must be at least 0 and below 1, not {self.dropout}")
        if self.position not in ("learned", "rope", "none"):
            raise ValueError(f'unknown position {self.position!r}: choose "learned", "rope" or "none"')


class CausalSelfAttention(nn.Module):
    """Attention in several heads at once, where a position sees itself and what comes before it.

    Scaled dot-product attention in heads: Vaswani et al. 2017, "Attention Is All You Need" (1706.03762),
    sections 3.2.1 and 3.2.2. One linear layer makes queries, keys and values together.
    """

    def __init__(self, config: GPTConfig) -> None:
        """Makes `qkv`, a linear layer C -> 3C, and `proj`, a linear layer C -> C, both with bias.

        The outputs of `qkv` are three parts of C channels: first q, then k, then v.
        Raises ValueError that names both numbers when n_head does not divide n_embd.
        """
        super().__init__()
        self.n_head = config.n_head
        # --- answer: heads: refuse sizes that do not divide, then make self.qkv and self.proj
        # --- more: The docstring above says which error to raise and which layers are needed.
        if config.n_embd % config.n_head != 0:
            raise ValueError(f"n_embd {config.n_embd} is not a multiple of n_head {config.n_head}")
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        # --- end
        self.weights_dropout = nn.Dropout(config.dropout)
        self.output_dropout = nn.Dropout(config.dropout)

    def split_heads(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, H, T, D). Head h gets the D neighbouring channels that begin at channel h * D."""
        # --- answer: heads: cut the channels into n_head heads, and give the heads an axis before time
        # --- more: Print a small tensor whose numbers you know before and after: does each head keep its own?
        B, T, C = x.shape
        return x.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)  # (B, H, T, D)
        # --- end

    def attention_weights(self, q: Tensor, k: Tensor) -> Tensor:
        """How much each position (row) attends to each position (column), head by head.

        q, k: (B, H, T, D), T up to block_size. Returns (B, H, T, T): every row sums to 1, and the future of a
        row is exactly 0. Equation 1 of Vaswani et al. 2017, before the values come in. No dropout here.
        """
        # --- answer: heads: score every query against every key, hide the future, make each row sum to 1
        # --- more: The scores are scaled, as in the equation that the docstring names.
        T, D = q.shape[-2:]
        scores = q @ k.transpose(-2, -1) / D**0.5  # (B, H, T, T)
        future = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)  # (T, T)
        return F.softmax(scores.masked_fill(future, float("-inf")), dim=-1)  # (B, H, T, T)
        # --- end

    def merge_heads(self, x: Tensor) -> Tensor:
        """(B, H, T, D) -> (B, T, C): puts the heads side by side again; the inverse of `split_heads`."""
        # --- answer: heads: undo split_heads, so that merge_heads(split_heads(x)) is x again
        B, H, T, D = x.shape
        return x.transpose(1, 2).contiguous().view(B, T, H * D)  # (B, T, C)
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C): the whole of attention, from `qkv` to `proj`.

        The weights go through `weights_dropout` before they meet the values, and the result goes through
        `output_dropout`; both do nothing in eval mode.
        """
        # --- answer: heads: q, k, v from one layer, attention in every head, the heads merged and mixed
        # --- more: You may use the methods above or not: they and this one are graded each on its own.
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))  # (B, H, T, D) each
        weights = self.weights_dropout(self.attention_weights(q, k))  # (B, H, T, T)
        return self.output_dropout(self.proj(self.merge_heads(weights @ v)))  # (B, T, C)
        # --- end


class Block(nn.Module):
    """Attention and a small network (MLP), each on normalised input and added to what came in (pre-LN)."""

    def __init__(self, config: GPTConfig, attention_class: type[CausalSelfAttention]) -> None:
        super().__init__()
        C = config.n_embd
        self.ln_1 = nn.LayerNorm(C)
        self.attn = attention_class(config)
        self.ln_2 = nn.LayerNorm(C)
        widen, narrow = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)
        self.mlp = nn.Sequential(widen, nn.GELU(), narrow, nn.Dropout(config.dropout))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        x = x + self.attn(self.ln_1(x))  # (B, T, C)
        return x + self.mlp(self.ln_2(x))  # (B, T, C)


class GPT(nn.Module):
    """Characters in, a score for every possible next character out.

    Initialised as GPT-2 (Radford et al. 2019; openai/gpt-2): weights of standard deviation 0.02, biases 0.
    """

    attention_class: type[CausalSelfAttention] = CausalSelfAttention
    positions: tuple[str, ...] = ("learned", "none")  # which GPTConfig.position this class can build

    def __init__(self, config: GPTConfig) -> None:
        """Raises ValueError when `config.position` needs another class, or n_head does not divide n_embd."""
        super().__init__()
        if config.position not in self.positions:
            known = " or ".join(map(repr, self.positions))
            raise ValueError(
                f"{type(self).__name__} is for position {known}, not {config.position!r}: "
                'use rope.RotaryGPT for "rope" and gpt.GPT for the others'
            )
        self.config = config
        self.tok_emb = nn.Embedding(config.vocab_size, config.n_embd)
        self.pos_emb: nn.Embedding | None = None
        if config.position == "learned":
            self.pos_emb = nn.Embedding(config.block_size, config.n_embd)
        self.drop = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, self.attention_class) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.apply(self._initialise)

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def embed(self, idx: Tensor, start: int = 0) -> Tensor:
        """The vectors of the characters, with what the table says of their positions: (B, T) -> (B, T, C).

        start: the position of the first column. Raises ValueError as `forward` does.
        """
        if idx.dim() != 2 or idx.numel() == 0:
            raise ValueError(f"idx must be (B, T) with at least one character, not {tuple(idx.shape)}")
        low, high, V = int(idx.min()), int(idx.max()), self.config.vocab_size
        if low < 0 or high >= V:
            raise ValueError(f"index {low if low < 0 else high} is outside the vocabulary (0 to {V - 1})")
        if start < 0:
            raise ValueError(f"start must be 0 or more, not {start}")
        length = idx.size(1)
        x = self.tok_emb(idx)  # (B, T, C)
        if self.pos_emb is not None:
            if start + length > self.config.block_size:
                raise ValueError(
                    f"start {start} + {length} characters = {start + length} positions, "
                    f"but the position table has block_size = {self.config.block_size} rows"
                )
            x = x + self.pos_emb(torch.arange(start, start + length, device=idx.device))  # (B, T, C)
        return x

    def forward(self, idx: Tensor, targets: Tensor | None = None, start: int = 0) -> tuple[Tensor, Tensor | None]:
        """Scores for the next character at every position.

        idx: (B, T) numbers of characters. targets: (B, T), the character that really follows each, or None.
        start: the position of the first column. Returns the logits (B, T, V) and the mean cross-entropy in
        nats, or None without targets. Raises ValueError when idx has another shape or a number outside the
        vocabulary, when start is negative, and when start + T goes beyond the block_size rows of the learned
        table. "rope" and "none" have no table that could end: they take any length, and `start` changes
        nothing there, since only distances count.
        """
        x = self.drop(self.embed(idx, start))  # (B, T, C)
        for block in self.blocks:
            x = block(x)  # (B, T, C)
        logits = self.head(self.ln_f(x))  # (B, T, V)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())
