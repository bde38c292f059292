"""Mistakes in training and comparing: each must be caught and named."""


class TrainedOnAll:
    """All poems are trained on, those for validation too."""

    id = "training.trained-on-all"
    of = "corpus"
    source = "own: the split forgotten for one of the lists"
    hint = (
        "The poems for validation are also in your training list. A model knows by heart what it was "
        "trained on, so its validation loss would tell nothing."
    )

    def split_poems(poems, fraction=0.1, seed=0):
        shuffled = list(poems)
        random.Random(seed).shuffle(shuffled)
        held_out = max(1, round(fraction * len(shuffled)))
        return shuffled, shuffled[:held_out]


class FileOrder:
    """The first poems of the file are put aside."""

    id = "training.file-order"
    of = "corpus"
    source = "own: a slice without a shuffle"
    hint = (
        "You put aside the first poems of the file, whatever the seed. Neighbours in a collection are "
        "alike: choose by chance."
    )

    def split_poems(poems, fraction=0.1, seed=0):
        held_out = max(1, round(fraction * len(poems)))
        return list(poems[held_out:]), list(poems[:held_out])


class ListsExchanged:
    """The list for validation comes first."""

    id = "training.lists-exchanged"
    of = "corpus"
    source = "own: the pair the other way round"
    hint = "Your lists are exchanged: the large one, to train on, comes first."

    def split_poems(poems, fraction=0.1, seed=0):
        shuffled = list(poems)
        random.Random(seed).shuffle(shuffled)
        held_out = max(1, round(fraction * len(shuffled)))
        return shuffled[:held_out], shuffled[held_out:]


class RoundedDown:
    """int() for round(), and nothing put aside of a few poems."""

    id = "training.rounded-down"
    of = "corpus"
    source = "own: int as rounding"
    hint = (
        "You cut the number off instead of rounding it, and of a few poems you put none aside. Without "
        "one there is no validation."
    )

    def split_poems(poems, fraction=0.1, seed=0):
        shuffled = list(poems)
        random.Random(seed).shuffle(shuffled)
        held_out = int(fraction * len(shuffled))
        return shuffled[held_out:], shuffled[:held_out]


class SeedIgnored:
    """random.shuffle draws from the global generator."""

    id = "training.seed-ignored"
    of = "corpus"
    source = "own: the argument seed not used"
    hint = (
        "You shuffle with the global generator: the same seed gives another split each time. "
        "random.Random(seed) has a state of its own."
    )

    def split_poems(poems, fraction=0.1, seed=0):
        shuffled = list(poems)
        random.shuffle(shuffled)
        held_out = max(1, round(fraction * len(shuffled)))
        return shuffled[held_out:], shuffled[:held_out]


class DrawnWithReplacement:
    """The poems for validation are drawn one by one, the same one possibly twice."""

    id = "training.drawn-with-replacement"
    of = "corpus"
    source = "own: choices for sample"
    hint = "You draw with replacement: a poem may be put aside twice, and fewer are validated on than you count."

    def split_poems(poems, fraction=0.1, seed=0):
        held_out = max(1, round(fraction * len(poems)))
        aside = random.Random(seed).choices(list(poems), k=held_out)
        return [poem for poem in poems if poem not in aside], aside


class PoemsCut:
    """Every poem is cut in two: its beginning is trained on, its end is validated on."""

    id = "training.poems-cut"
    of = "corpus"
    source = "own: split by characters, as for one long text"
    hint = (
        "You cut poems in two. The end of a poem is easy for a model that knows its beginning; put whole poems aside."
    )

    def split_poems(poems, fraction=0.1, seed=0):
        shuffled = list(poems)
        random.Random(seed).shuffle(shuffled)
        cut = [len(poem.text) - max(1, round(fraction * len(poem.text))) for poem in shuffled]
        begin = [Poem(p.title, p.author, p.text[:c]) for p, c in zip(shuffled, cut)]
        end = [Poem(p.title, p.author, p.text[c:]) for p, c in zip(shuffled, cut)]
        return begin, end


class TargetsNotShifted:
    """y is x: the model is asked for the character that it sees."""

    id = "training.targets-not-shifted"
    of = "train"
    source = "karpathy/nanoGPT: x and y from the same slice"
    hint = (
        "Your targets are the characters that the model is shown. It learns to copy, and the loss falls "
        "to 0: y must hold what comes next."
    )

    def cut_windows(data, starts, block_size):
        x = torch.stack([data[i : i + block_size] for i in starts])
        return x, x.clone()


class TargetsShiftedTwice:
    """y is two characters ahead."""

    id = "training.targets-shifted-twice"
    of = "train"
    source = "own: one shift here, one more there"
    hint = "Your targets are two characters ahead. A position should be asked for the very next character."

    def cut_windows(data, starts, block_size):
        pad = torch.cat((data, data[:1]))
        rows = starts[:, None] + torch.arange(block_size)
        return data[rows], pad[rows + 2]


class TargetsShiftedBack:
    """y holds the character before each position."""

    id = "training.targets-shifted-back"
    of = "train"
    source = "own: the shift in the wrong direction"
    hint = "Your targets are the characters before: the past, which the model has seen. The shift goes the other way."

    def cut_windows(data, starts, block_size):
        rows = starts[:, None] + torch.arange(block_size)
        return data[rows], data[rows - 1]


class TargetsRolled:
    """y is x rolled round: the last answer of a row is its first character."""

    id = "training.targets-rolled"
    of = "train"
    source = "own: x.roll(-1)"
    hint = (
        "All of your targets are right but the last of each row, which is the row's first character. It "
        "lies in the text, one beyond x."
    )

    def cut_windows(data, starts, block_size):
        x = data[starts[:, None] + torch.arange(block_size)]
        return x, x.roll(-1, dims=1)


class StartsIgnored:
    """All rows follow one another from the first start."""

    id = "training.starts-ignored"
    of = "train"
    source = "own: view(B, T) of one long slice"
    hint = "Your rows follow one another from the first start on. Every row has a start of its own."

    def cut_windows(data, starts, block_size):
        rows = (starts[0] + torch.arange(len(starts) * block_size)).view(len(starts), block_size)
        rows = rows % (len(data) - 1)
        return data[rows], data[rows + 1]


class NoZeroGrad:
    """Old gradients are never cleared."""

    id = "training.no-zero-grad"
    of = "train"
    source = "pytorch forum's most frequent slip"
    hint = "Your steps follow the sum of the gradients of all batches so far: nothing clears the old ones."

    def training_step(model, optimizer, batch):
        loss = model(*batch)[1]
        loss.backward()
        optimizer.step()
        return loss.item()


class ClearedTooLate:
    """The gradients are cleared between backward and step: nothing moves."""

    id = "training.cleared-too-late"
    of = "train"
    source = "own: the four lines in another order"
    hint = (
        "Nothing moves. There are no gradients when optimizer.step() wants them: either backward() is "
        "missing, or they are cleared after it, or step() itself is missing."
    )

    def training_step(model, optimizer, batch):
        loss = model(*batch)[1]
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        return loss.item()


class LossAfterStep:
    """The loss is computed once more after the step."""

    id = "training.loss-after-step"
    of = "train"
    source = "own: the loss as of now"
    hint = (
        "You return the loss after the step, which costs another forward pass. Asked for is the one that "
        "backward() started from."
    )

    def training_step(model, optimizer, batch):
        optimizer.zero_grad()
        model(*batch)[1].backward()
        optimizer.step()
        with torch.no_grad():
            return model(*batch)[1].item()


class TensorReturned:
    """The loss is returned as a tensor, with all that backward needed."""

    id = "training.tensor-returned"
    of = "train"
    source = "pytorch docs, FAQ: accumulating history"
    hint = (
        "You return the tensor, which holds on to what backward() needed. Whoever keeps it for a curve "
        "keeps all of that."
    )

    def training_step(model, optimizer, batch):
        optimizer.zero_grad()
        _, loss = model(*batch)
        loss.backward()
        optimizer.step()
        return loss


class SwitchedToTrain:
    """The model is put in training mode."""

    id = "training.switched-to-train"
    of = "train"
    source = "own: model.train() at the top of the step"
    hint = "After your step the model is in training mode, whatever it was in. The mode is the caller's to choose."

    def training_step(model, optimizer, batch):
        model.train()
        optimizer.zero_grad()
        _, loss = model(*batch)
        loss.backward()
        optimizer.step()
        return loss.item()


class SwitchedToEval:
    """The model is put in eval mode: no dropout in training."""

    id = "training.switched-to-eval"
    of = "train"
    source = "own: eval() copied from evaluate"
    hint = "After your step the model is in eval mode: dropout would never be used. The mode is the caller's to choose."

    def training_step(model, optimizer, batch):
        model.eval()
        optimizer.zero_grad()
        _, loss = model(*batch)
        loss.backward()
        optimizer.step()
        return loss.item()


class ShiftedAgain:
    """The targets are shifted once more within the step."""

    id = "training.shifted-again"
    of = "train"
    source = "huggingface: models that shift labels themselves"
    hint = (
        "You shift the targets in the step, but y is shifted already: your model learns the character after the next."
    )

    def training_step(model, optimizer, batch):
        x, y = batch
        optimizer.zero_grad()
        logits = model(x)[0][:, :-1]
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss.item()


class LastPositionOnly:
    """The loss counts the last position of each row alone."""

    id = "training.last-position-only"
    of = "train"
    source = "own: [:, -1] as in sampling"
    hint = "Your loss counts the last position only. Every position of a row has an answer to learn from."

    def training_step(model, optimizer, batch):
        x, y = batch
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x)[0][:, -1], y[:, -1])
        loss.backward()
        optimizer.step()
        return loss.item()


class SummedLoss:
    """The sum over the characters instead of the mean."""

    id = "training.summed-loss"
    of = "train"
    source = "own: reduction=sum"
    hint = (
        "You return the sum over all characters of the batch. The loss is the mean: it must not depend on "
        "the size of the batch."
    )

    def training_step(model, optimizer, batch):
        x, y = batch
        optimizer.zero_grad()
        loss = model(x, y)[1]
        loss.backward()
        optimizer.step()
        return loss.item() * y.numel()


class HeadOnly:
    """Gradients reach the last layer alone: everything before it is detached."""

    id = "training.head-only"
    of = "train"
    source = "own: no_grad around too much"
    hint = (
        "Only the head of your model learns. What comes before it is run without gradients, so none reach its weights."
    )

    def training_step(model, optimizer, batch):
        x, y = batch
        optimizer.zero_grad()
        kept = []
        hook = model.ln_f.register_forward_hook(lambda part, args, out: kept.append(out.detach()))
        model(x)
        hook.remove()
        loss = nn.functional.cross_entropy(model.head(kept[0]).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()


class MeanOfMeans:
    """The mean of the batches' means: a batch of three characters counts as much as one of a hundred."""

    id = "training.mean-of-means"
    of = "train"
    source = "own: mean over batches"
    hint = (
        "You average the losses of the batches. The last one holds a few characters only, and yours "
        "counts it as much as a full one."
    )

    def evaluate(model, data):
        mode = model.training
        model.eval()
        losses = []
        with torch.no_grad():
            for x, y in whole_text(data, model.config.block_size):
                losses.append(model(x, y)[1].item())
        model.train(mode)
        return sum(losses) / len(losses)


class FirstBatchOnly:
    """The loss of the first batch."""

    id = "training.first-batch-only"
    of = "train"
    source = "own: a return inside the loop"
    hint = "You measure the first batch only. The whole text counts, to its last character."

    def evaluate(model, data):
        mode = model.training
        model.eval()
        losses = []
        with torch.no_grad():
            for x, y in whole_text(data, model.config.block_size):
                losses.append(model(x, y)[1].item())
        model.train(mode)
        return losses[0]


class RestForgotten:
    """The last, shorter piece is left out."""

    id = "training.rest-forgotten"
    of = "train"
    source = "own: len(data) // block_size pieces"
    hint = "You leave out the end of the text, where no whole piece fits any more. Its characters count as well."

    def evaluate(model, data):
        mode = model.training
        model.eval()
        total, count = 0.0, 0
        with torch.no_grad():
            for x, y in whole_text(data, model.config.block_size):
                if y.size(1) == model.config.block_size:
                    total += model(x, y)[1].item() * y.numel()
                    count += y.numel()
        model.train(mode)
        return total / count


class DividedByLength:
    """Divided by the number of characters in the text, not by the number of answers."""

    id = "training.divided-by-length"
    of = "train"
    source = "own: len(data) for len(data) - 1"
    hint = "You divide by len(data). Nothing is asked about the first character, so there is one answer less."

    def evaluate(model, data):
        mode = model.training
        model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in whole_text(data, model.config.block_size):
                total += model(x, y)[1].item() * y.numel()
        model.train(mode)
        return total / len(data)


class Perplexity:
    """exp of the loss."""

    id = "training.perplexity"
    of = "train"
    source = "own: the other usual figure"
    hint = "You return the perplexity, the exponential of the loss. Asked for are nats."

    def evaluate(model, data):
        mode = model.training
        model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in whole_text(data, model.config.block_size):
                total += model(x, y)[1].item() * y.numel()
        model.train(mode)
        return math.exp(total / (len(data) - 1))


class DropoutInEvaluation:
    """Measured with dropout, if the model comes from training."""

    id = "training.dropout-in-evaluation"
    of = "train"
    source = "pytorch#124464"
    hint = (
        "Your loss is measured with dropout: chance is in it, and it is too high. A model is measured as "
        "it will be used."
    )

    def evaluate(model, data):
        total = 0.0
        with torch.no_grad():
            for x, y in whole_text(data, model.config.block_size):
                total += model(x, y)[1].item() * y.numel()
        return total / (len(data) - 1)


class LeftInEval:
    """The model stays in eval mode."""

    id = "training.left-in-eval"
    of = "train"
    source = "own: eval() without a way back"
    hint = (
        "After your evaluation the model is in eval mode: from the first one on, training would go on without dropout."
    )

    def evaluate(model, data):
        model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in whole_text(data, model.config.block_size):
                total += model(x, y)[1].item() * y.numel()
        return total / (len(data) - 1)


class AlwaysToTrain:
    """The model is in training mode afterwards, whatever it was in."""

    id = "training.always-to-train"
    of = "train"
    source = "karpathy/nanoGPT: estimate_loss ends with model.train()"
    hint = "After your evaluation the model is in training mode, also when it came in eval mode. Remember what it was."

    def evaluate(model, data):
        model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in whole_text(data, model.config.block_size):
                total += model(x, y)[1].item() * y.numel()
        model.train()
        return total / (len(data) - 1)


class GradientsTracked:
    """Measured with gradients on, which nobody uses."""

    id = "training.gradients-tracked"
    of = "train"
    source = "own: no_grad forgotten"
    hint = (
        "Your loss is right, but all that backward() would need is kept on the way. That costs memory and "
        "time for nothing."
    )

    def evaluate(model, data):
        mode = model.training
        model.eval()
        total = 0.0
        for x, y in whole_text(data, model.config.block_size):
            total += model(x, y)[1].item() * y.numel()
        model.train(mode)
        return total / (len(data) - 1)


class BackwardInEvaluation:
    """backward() is called in the evaluation: gradients of validation data are left in the model."""

    id = "training.backward-in-evaluation"
    of = "train"
    source = "own: the training loop copied"
    hint = (
        "Your evaluation leaves gradients in the model. A training step that does not clear them first "
        "would learn from validation data."
    )

    def evaluate(model, data):
        mode = model.training
        model.eval()
        total = 0.0
        for x, y in whole_text(data, model.config.block_size):
            loss = model(x, y)[1]
            loss.backward()
            total += loss.item() * y.numel()
        model.train(mode)
        return total / (len(data) - 1)


class LearnsInEvaluation:
    """A step of learning on validation data."""

    id = "training.learns-in-evaluation"
    of = "train"
    source = "own: training_step reused to get a loss"
    hint = (
        "Your evaluation changes the weights: the model learns from what it is measured on, and its "
        "validation loss means nothing any more."
    )

    def evaluate(model, data):
        mode = model.training
        model.eval()
        total = 0.0
        for x, y in whole_text(data, model.config.block_size):
            optimizer = make_optimizer(model, Settings())
            total += training_step(model, optimizer, (x, y)) * y.numel()
        model.train(mode)
        return total / (len(data) - 1)


class SizeWithHeads:
    """n_embd grows with the number of heads."""

    id = "training.size-with-heads"
    of = "compare"
    source = "own: the size of a head kept instead of the model's"
    hint = "With more heads your models are wider too. Then nobody can say which of the two made the difference."

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        rows = []
        for seed in seeds:
            for value in values:
                changed = {name: value, "seed": seed}
                if name == "n_head":
                    changed["n_embd"] = settings.n_embd * value
                rows.append(run(replace(settings, **changed), data))
        return rows


class SeedLeftOut:
    """Every run has the seed of the shared settings."""

    id = "training.seed-left-out"
    of = "compare"
    source = "own: the loop over seeds repeats the same run"
    hint = "Your runs all have the same seed, so the repetitions are copies, and their spread is 0."

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        return [run(replace(settings, **{name: value}), data) for seed in seeds for value in values]


class SeedForEachRun:
    """Each run has another seed."""

    id = "training.seed-for-each-run"
    of = "compare"
    source = "own: seed += 1 in the loop"
    hint = "Within a seed your runs differ in the seed too. What differs between two values may then be luck alone."

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        runs = [(seed, value) for seed in seeds for value in values]
        return [run(replace(settings, **{name: value, "seed": seed + i}), data) for i, (seed, value) in enumerate(runs)]


class ValuesOutside:
    """All seeds of the first value, then those of the next."""

    id = "training.values-outside"
    of = "compare"
    source = "own: the loops the other way round"
    hint = (
        "Your rows are ordered by value first. Whoever stops early should have whole comparisons: all "
        "values of one seed."
    )

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        return [run(replace(settings, **{name: value, "seed": seed}), data) for value in values for seed in seeds]


class FirstSeedOnly:
    """Only the first seed is run."""

    id = "training.first-seed-only"
    of = "compare"
    source = "own: seeds[0]"
    hint = "You run one seed. A single difference may be luck; that is what the others are for."

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        return [run(replace(settings, **{name: value, "seed": seeds[0]}), data) for value in values]


class DefaultsInstead:
    """The shared settings are lost: each run starts from the defaults."""

    id = "training.defaults-instead"
    of = "compare"
    source = "own: Settings(...) for replace"
    hint = "Your runs start from the default settings. What the caller has chosen, size and steps among it, must stay."

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        kept = {key: getattr(settings, key) for key in ("steps", "block_size", "n_embd", "n_layer")}
        return [run(Settings(**{**kept, name: value, "seed": seed}), data) for seed in seeds for value in values]


class OwnRun:
    """run_once is called whatever `run` is."""

    id = "training.own-run"
    of = "compare"
    source = "own: the argument not used"
    hint = (
        "You call run_once whatever was handed in as run. compare.py brings a run that shows progress and keeps rows."
    )

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        return [run_once(replace(settings, **{name: value, "seed": seed}), data) for seed in seeds for value in values]


class StepsShared:
    """The steps are shared out among the values."""

    id = "training.steps-shared"
    of = "compare"
    source = "own: one budget divided"
    hint = "Your runs are shorter than what was asked for. Every run has all of the steps."

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        steps = max(1, settings.steps // len(values))
        return [
            run(replace(settings, **{name: value, "seed": seed, "steps": steps}), data)
            for seed in seeds
            for value in values
        ]
