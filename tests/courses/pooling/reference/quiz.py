"""Three questions. Your answers are graded when you hand them in."""


def first() -> str:
    """What does the mean over tokens forget? "order", "length" or "batch"."""
    # --- answer: quiz: return one of the three words
    return "order"
    # --- end


def second() -> str:
    """What must padding not change? "shape", "mean" or "dtype"."""
    # --- answer: quiz: return one of the three words
    return "mean"
    # --- end
