"""Answers without content, which must earn nothing: the files that they leave alone are the template's."""


class AllToTrain:
    """Everything to train on, nothing put aside."""

    id = "training.all-to-train"
    of = "corpus"
    source = "own: no split"

    def split_poems(poems, fraction=0.1, seed=0):
        return list(poems), []


class SamePoems:
    """The first poem, both times."""

    id = "training.same-poems"
    of = "corpus"
    source = "own: right types, no content"

    def split_poems(poems, fraction=0.1, seed=0):
        return [poems[0]], [poems[0]]


class NothingSplit:
    """None."""

    id = "training.nothing-split"
    of = "corpus"
    source = "own: the return forgotten"

    def split_poems(poems, fraction=0.1, seed=0):
        pass


class Zeros:
    """Zeros everywhere; nothing learned, nothing measured."""

    id = "training.zeros"
    of = "train"
    source = "own: right shapes, no content"

    def cut_windows(data, starts, block_size):
        zeros = torch.zeros(len(starts), block_size, dtype=torch.int64)
        return zeros, zeros

    def training_step(model, optimizer, batch):
        return 0.0

    def evaluate(model, data):
        return 0.0


class LogOfVocabulary:
    """What guessing evenly costs, for everything."""

    id = "training.log-of-vocabulary"
    of = "train"
    source = "own: a plausible number"

    def cut_windows(data, starts, block_size):
        return starts, starts

    def training_step(model, optimizer, batch):
        return math.log(model.config.vocab_size)

    def evaluate(model, data):
        return math.log(model.config.vocab_size)


class NothingTrained:
    """None everywhere."""

    id = "training.nothing-trained"
    of = "train"
    source = "own: the returns forgotten"

    def cut_windows(data, starts, block_size):
        pass

    def training_step(model, optimizer, batch):
        pass

    def evaluate(model, data):
        pass


class NoRows:
    """An empty list."""

    id = "training.no-rows"
    of = "compare"
    source = "own: right type, no content"

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        return []


class MadeUpRows:
    """The settings as rows, with losses that fall with the heads."""

    id = "training.made-up-rows"
    of = "compare"
    source = "own: figures made up"

    def compare(data, settings, name, values, seeds=(0,), run=run_once):
        row = dict(training_loss=1.0, validation_loss=2.0, best_validation_loss=2.0, parameters=3168)
        return [row | {"seed": seed, name: value} for seed in seeds for value in values]
