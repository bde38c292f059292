"""A wrong answer whose hint says as much as the key."""


class Batch:
    """The batch is confused with time."""

    id = "quiz.batch"
    of = "quiz"
    source = "own: which axis the mean goes over"
    hint = "Sentences stay apart. It is the order of the tokens that is lost."

    def first():
        return "batch"
