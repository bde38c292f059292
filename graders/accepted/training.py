"""Right answers in other forms: each must get all points."""


class SampleOfIndices:
    """Indices are drawn, the order of the file stays."""

    id = "training.sample-of-indices"
    of = "corpus"
    source = "own: sample instead of shuffle"

    def split_poems(poems, fraction=0.1, seed=0):
        held_out = max(1, round(fraction * len(poems)))
        aside = set(random.Random(seed).sample(range(len(poems)), held_out))
        return [p for i, p in enumerate(poems) if i not in aside], [p for i, p in enumerate(poems) if i in aside]


class TorchPermutation:
    """torch.randperm with a generator; tuples."""

    id = "training.torch-permutation"
    of = "corpus"
    source = "own: torch for chance"

    def split_poems(poems, fraction=0.1, seed=0):
        held_out = max(1, round(fraction * len(poems)))
        order = torch.randperm(len(poems), generator=torch.Generator().manual_seed(seed)).tolist()
        return [poems[i] for i in order[:-held_out]], [poems[i] for i in order[-held_out:]]


class StackedSlices:
    """Slices stacked in a list comprehension."""

    id = "training.stacked-slices"
    of = "train"
    source = "karpathy/nanoGPT: get_batch"

    def cut_windows(data, starts, block_size):
        x = torch.stack([data[i : i + block_size] for i in starts])
        y = torch.stack([data[i + 1 : i + 1 + block_size] for i in starts])
        return x, y


class IndexTable:
    """One table of indices."""

    id = "training.index-table"
    of = "train"
    source = "own: fancy indexing"

    def cut_windows(data, starts, block_size):
        rows = starts[:, None] + torch.arange(block_size)
        return data[rows], data[rows + 1]


class UnfoldedText:
    """unfold, then both from pieces of block_size + 1; views as answers."""

    id = "training.unfolded-text"
    of = "train"
    source = "own: unfold"

    def cut_windows(data, starts, block_size):
        pieces = data.unfold(0, block_size + 1, 1)[starts]
        return [pieces[:, :-1], pieces[:, 1:]]


class ClearedAfterwards:
    """The gradients are cleared after the step, for the next one."""

    id = "training.cleared-afterwards"
    of = "train"
    source = "fastai: zero_grad at the end"

    def training_step(model, optimizer, batch):
        loss = model(*batch)[1]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.tolist()


class ClearedByTheModel:
    """model.zero_grad, and zeros instead of None."""

    id = "training.cleared-by-the-model"
    of = "train"
    source = "own: set_to_none=False"

    def training_step(model, optimizer, batch):
        x, y = batch
        model.zero_grad(set_to_none=False)
        _, loss = model(x, targets=y)
        loss.backward()
        optimizer.step()
        return loss.detach().item()


class OwnCrossEntropy:
    """The loss from the logits."""

    id = "training.own-cross-entropy"
    of = "train"
    source = "own: cross_entropy written out"

    def training_step(model, optimizer, batch):
        x, y = batch
        optimizer.zero_grad(set_to_none=True)
        logits = model(x)[0]
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), y)
        loss.backward()
        optimizer.step()
        return loss.item()


class GradientsByHand:
    """torch.autograd.grad, put in place."""

    id = "training.gradients-by-hand"
    of = "train"
    source = "own: without backward()"

    def training_step(model, optimizer, batch):
        loss = model(*batch)[1]
        parameters = list(model.parameters())
        for p, g in zip(parameters, torch.autograd.grad(loss, parameters)):
            p.grad = g
        optimizer.step()
        return loss.item()


class ClosureForTheOptimizer:
    """A closure handed to the optimizer."""

    id = "training.closure-for-the-optimizer"
    of = "train"
    source = "pytorch docs: optimizer.step(closure)"

    def training_step(model, optimizer, batch):
        def closure():
            optimizer.zero_grad()
            loss = model(*batch)[1]
            loss.backward()
            return loss

        return optimizer.step(closure).item()


class Decorated:
    """The decorator no_grad, try and finally."""

    id = "training.decorated"
    of = "train"
    source = "own: no_grad as a decorator"

    @torch.no_grad()
    def evaluate(model, data):
        mode, losses, counts = model.training, [], []
        model.train(False)
        try:
            for x, y in whole_text(data, model.config.block_size):
                losses.append(model(x, y)[1] * y.numel())
                counts.append(y.numel())
        finally:
            model.train(mode)
        return (torch.stack(losses).sum() / sum(counts)).item()


class InferenceMode:
    """inference_mode, and pieces cut by hand one by one."""

    id = "training.inference-mode"
    of = "train"
    source = "own: no whole_text"

    def evaluate(model, data):
        T, total, mode = model.config.block_size, 0.0, model.training
        with torch.inference_mode():
            model.eval()
            for start in range(0, len(data) - 1, T):
                length = min(T, len(data) - 1 - start)
                x, y = cut_windows(data, torch.tensor([start]), length)
                total += nn.functional.cross_entropy(model(x)[0][0], y[0], reduction="sum").item()
        model.train(mode)
        return total / (len(data) - 1)


class NestedLoops:
    """Two loops and append."""

    id = "training.nested-loops"
    of = "compare"
    source = "own: the plain loops"

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        rows = []
        for seed in seeds:
            seeded = replace(settings, seed=seed)
            for value in values:
                rows.append(run(replace(seeded, **{name: value}), data))
        return rows


class SettingsFromDict:
    """asdict, changed, and built again; a product instead of loops."""

    id = "training.settings-from-dict"
    of = "compare"
    source = "own: without replace"
    imports = "import itertools\nfrom dataclasses import asdict"

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        return [
            run(Settings(**{**asdict(settings), "seed": seed, name: value}), data)
            for seed, value in itertools.product(seeds, values)
        ]
