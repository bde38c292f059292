"""A trained model as a file: weights, sizes and characters together, in the safetensors format.

The format holds numbers and text, never code: a file from elsewhere can be loaded without running anything.
"""

import json
from dataclasses import asdict
from pathlib import Path

import torch
from gpt import GPT, CharTokenizer, GPTConfig
from rope import RotaryGPT


def save_model(path: Path, model: GPT, tokenizer: CharTokenizer, dtype: torch.dtype = torch.float32) -> None:
    """Writes the model and the characters of its tokenizer. A narrower dtype makes a smaller file."""
    from safetensors.torch import save_file

    weights = {name: value.detach().to(dtype).contiguous() for name, value in model.state_dict().items()}
    metadata = {"config": json.dumps(asdict(model.config)), "characters": "".join(tokenizer.characters)}
    save_file(weights, path, metadata=metadata)


def load_model(path: Path) -> tuple[GPT, CharTokenizer]:
    """The model, in float32 and in eval mode, and its tokenizer.

    Raises OSError when the file cannot be read, ValueError when it is not one that `save_model` wrote.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}: train.py writes one into its --out folder")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        config = GPTConfig(**json.loads(metadata["config"]))
        tokenizer = CharTokenizer(metadata["characters"])
        model = (RotaryGPT if config.position == "rope" else GPT)(config)
        model.load_state_dict(weights)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, NotImplementedError):  # an exercise that is not done yet, not a broken file
            raise
        raise ValueError(f"{path} is not a model that train.py wrote: {error}") from error
    model.train(False)
    return model, tokenizer
