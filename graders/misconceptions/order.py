"""Mistakes in the order experiment: each must be caught and named."""

import copy

import torch


class FirstPosition:
    """The logits at the first position are compared."""

    id = "order.first-position"
    of = "heads_positions"
    source = "own: [0, 0] for [0, -1]"
    hint = (
        "You compare the scores after the first character, where almost nothing has been read. Which "
        "position has seen the whole text?"
    )

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, 0] for t in (first, second))
        return (a - b).abs().max().item()


class AllPositions:
    """The largest difference over all positions, not at the last one."""

    id = "order.all-positions"
    of = "heads_positions"
    source = "own: the index of the position left out"
    hint = (
        "Your number covers every position, and the first ones differ simply because their characters do. "
        "Only what follows the whole text is asked for."
    )

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0] for t in (first, second))
        return (a - b).abs().max().item()


class MeanDifference:
    """The mean of the absolute differences instead of the largest."""

    id = "order.mean-difference"
    of = "heads_positions"
    source = "own: 'how far apart' read as an average"
    hint = (
        "Your number is the average over the vocabulary. The docstring asks for the one character on which "
        "the two texts disagree most."
    )

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, -1] for t in (first, second))
        return (a - b).abs().mean().item()


class SignKept:
    """The largest difference without the absolute value."""

    id = "order.sign-kept"
    of = "heads_positions"
    source = "own: abs forgotten"
    hint = (
        "Swap the two texts and your number changes. A large difference below zero is as much of a "
        "difference as one above."
    )

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, -1] for t in (first, second))
        return (a - b).max().item()


class DifferenceOfMaxima:
    """The two largest logits are compared, whichever characters they belong to."""

    id = "order.difference-of-maxima"
    of = "heads_positions"
    source = "own: max taken before the subtraction"
    hint = (
        "You take the largest score of each text first and subtract then. Compare character by character, "
        "and look for the largest afterwards."
    )

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, -1] for t in (first, second))
        return (a.max() - b.max()).abs().item()


class SummedDifference:
    """The sum of the absolute differences."""

    id = "order.summed-difference"
    of = "heads_positions"
    source = "own: an L1 distance"
    hint = (
        "Your number adds the differences of all characters up and so grows with the vocabulary. The "
        "docstring asks for the largest one."
    )

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, -1] for t in (first, second))
        return (a - b).abs().sum().item()


class EuclideanDistance:
    """The Euclidean norm of the difference."""

    id = "order.euclidean-distance"
    of = "heads_positions"
    source = "own: torch.dist or norm() with its default"
    hint = "Your number is the Euclidean length of the difference. The docstring asks for its largest entry."

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, -1] for t in (first, second))
        return torch.dist(a, b).item()


class Probabilities:
    """The probabilities are compared instead of the logits."""

    id = "order.probabilities"
    of = "heads_positions"
    source = "own: softmax out of habit"
    hint = "You compare probabilities. The scores themselves are asked for, as the model gives them out."

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, -1].softmax(-1) for t in (first, second))
        return (a - b).abs().max().item()


class BestGuesses:
    """The likeliest characters are compared: 0 or 1."""

    id = "order.best-guesses"
    of = "heads_positions"
    source = "own: argmax for an untrained model"
    hint = "You only ask whether the two best guesses agree. The scores can differ long before the best guess does."

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)]))[0][0, -1].argmax() for t in (first, second))
        return float(a != b)


class SameTextTwice:
    """The first text is read twice."""

    id = "order.same-text-twice"
    of = "heads_positions"
    source = "own: a line copied and not changed"
    hint = "Your difference is exactly 0 for any two texts. Look at which text each of your two runs gets."

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a = model(torch.tensor([tokenizer.encode(first)]))[0][0, -1]
            b = model(torch.tensor([tokenizer.encode(first)]))[0][0, -1]
        return (a - b).abs().max().item()


class NoBatchAxis:
    """The numbers go into the model without a batch axis."""

    id = "order.no-batch-axis"
    of = "heads_positions"
    source = "own: tensor(encode(text)) without the outer brackets"
    hint = (
        "The model reads batches, (B, T), and you give it the T numbers of one text alone. How does a batch "
        "of one text look?"
    )

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor(tokenizer.encode(t)))[0][-1] for t in (first, second))
        return (a - b).abs().max().item()


class LossIncluded:
    """The pair (logits, loss) is taken for the logits."""

    id = "order.loss-included"
    of = "heads_positions"
    source = "own: the second value that forward returns overlooked"
    hint = "The model gives back two things, the logits and a loss, and you treat the pair as if it were the logits."

    def order_difference(model, tokenizer, first, second):
        with torch.no_grad():
            a, b = (model(torch.tensor([tokenizer.encode(t)])) for t in (first, second))
            return (a[0, -1] - b[0, -1]).abs().max().item()


class OriginalCleared:
    """The table of the model itself is cleared: no copy is made."""

    id = "order.original-cleared"
    of = "heads_positions"
    source = "own: the lesson's zero_() in place; copy.copy, which shares the table, does the same"
    hint = (
        "After your function the model that was handed in has lost its positions too. A copy must have a "
        "table of its own, and a shallow copy has not."
    )

    def without_positions(model):
        with torch.no_grad():
            model.pos_emb.weight.zero_()
        return model


class CharactersCleared:
    """The table of the characters is cleared instead of that of the positions."""

    id = "order.characters-cleared"
    of = "heads_positions"
    source = "own: the two embeddings confused"
    hint = (
        "Your copy can no longer tell any two characters apart, but still counts positions. There are two "
        "tables: which one did you clear?"
    )

    def without_positions(model):
        blind = copy.deepcopy(model)
        with torch.no_grad():
            blind.tok_emb.weight.zero_()
        return blind


class OneRowCleared:
    """Only the first row of the table is cleared."""

    id = "order.one-row-cleared"
    of = "heads_positions"
    source = "own: weight[0] for the whole weight"
    hint = "Only the first position lost its vector. The table has a row for every position."

    def without_positions(model):
        blind = copy.deepcopy(model)
        with torch.no_grad():
            blind.pos_emb.weight[0].zero_()
        return blind


class CopyNotCleared:
    """A copy is made and returned as it is."""

    id = "order.copy-not-cleared"
    of = "heads_positions"
    source = "own: weight * 0 computed and thrown away"
    hint = "Your copy still has its positions. An operation that makes a new tensor leaves the table as it was."

    def without_positions(model):
        blind = copy.deepcopy(model)
        blind.pos_emb.weight * 0
        return blind


class LeafInPlace:
    """The copy's parameter is changed in place while gradients are recorded."""

    id = "order.leaf-in-place"
    of = "heads_positions"
    source = "own: the lesson's zero_() without no_grad, a common RuntimeError"
    hint = (
        "PyTorch refuses to overwrite a parameter while it records gradients. Tell it that nothing needs to "
        "be recorded here."
    )

    def without_positions(model):
        blind = copy.deepcopy(model)
        blind.pos_emb.weight.zero_()
        return blind


class TwoRows:
    """The table stays at the lesson's two rows."""

    id = "order.two-rows"
    of = "heads_positions"
    source = "own: range(1, 3) stops before 3; or the exercise overlooked"
    hint = "Your table has the lesson's two rows. The exercise asks for one more depth; a range stops before its end."

    def order_table(seed=0):
        return [order_row(n_layer, seed) for n_layer in range(1, 3)]


class OnlyThreeLayers:
    """The new row replaces the other two."""

    id = "order.only-three-layers"
    of = "heads_positions"
    source = "own: 'one more' read as 'instead'"
    hint = "Your table has only the new row. To compare, the rows of the lesson must stay."

    def order_table(seed=0):
        return [order_row(3, seed)]


class LayersFromZero:
    """The rows are counted from 0: a model without layers."""

    id = "order.layers-from-zero"
    of = "heads_positions"
    source = "own: range(3)"
    hint = "Your first row asks for a model of 0 layers. Where does a range begin when you do not say so?"

    def order_table(seed=0):
        return [order_row(n_layer, seed) for n_layer in range(3)]


class SeedNotPassedOn:
    """The seed is not passed on: every table is that of seed 0."""

    id = "order.seed-not-passed-on"
    of = "heads_positions"
    source = "own: a parameter that is never used"
    hint = "Your table is the same for every seed. Does order_row learn which seed was asked for?"

    def order_table(seed=0):
        return [order_row(n_layer) for n_layer in (1, 2, 3)]
