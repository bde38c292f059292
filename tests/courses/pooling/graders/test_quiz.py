"""Two questions, and the keys: this file is not for students."""

from harness.grading import check, expect

KEYS = {"first": "order", "second": "mean"}


@check("quiz.first", title="What the mean forgets", points=1, hint="Shuffle the tokens of a sentence.")
def test_first(student):
    expect.equal(student.quiz.first(), KEYS["first"], what="first()")


@check("quiz.second", title="What padding must not change", points=1, hint="Pad a sentence once more.")
def test_second(student):
    expect.equal(student.quiz.second(), KEYS["second"], what="second()")
