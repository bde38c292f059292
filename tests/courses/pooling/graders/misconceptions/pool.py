"""Mistakes as people make them: each must lose points, and be named as itself."""


class PaddingCounted:
    """The mean goes over all T places."""

    id = "pool.padding-counted"
    of = "pooling"
    source = "own: x.mean(1), and lengths not read"
    hint = "Your mean is that of all places, padding too: what do the lengths say?"

    def mean_pool(x, lengths):
        return x.mean(1)


class DividedByAll:
    """The padding is left out of the sum but not of the number."""

    id = "pool.divided-by-all"
    of = "pooling"
    source = "own: the mask in the sum alone"
    hint = "Your sum is right. It is divided by T, which is not the number of tokens of a short sentence."

    def mean_pool(x, lengths):
        own = (lengths[:, None] > x.new_ones(x.shape[:2]).cumsum(1) - 1).to(x.dtype)
        return (x * own[:, :, None]).mean(1)
