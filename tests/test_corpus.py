"""The anthology: its form, its characters, no poem twice; and how it is read and split."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.support.reference import loaded

COUPLET = re.compile(r"[\u4e00-\u9fff]{5}，[\u4e00-\u9fff]{5}。")

# Lines that two poems of the Han share in every edition.
SHARED = {"相去万余里", "客从远方来", "常恐秋节至"}

# Outside GB 2312, where a traditional form would show up: each was looked at and has no simpler form in use.
RARE = set("湲矰橦垞艅艎秾蘋鄜晞焜雊緌楛")


@pytest.fixture(scope="module")
def course() -> Iterator[SimpleNamespace]:
    with loaded("corpus", "gpt") as modules:
        yield modules


@pytest.fixture(scope="module")
def poems(course: SimpleNamespace) -> list:
    return course.corpus.read_poems()


def lines_of(text: str) -> list[str]:
    return re.findall(r"[^，。]+", text)


def test_there_are_enough_poems_and_every_couplet_has_two_lines_of_five_characters(poems) -> None:
    assert len(poems) == 310
    for poem in poems:
        couplets = [poem.text[i : i + 12] for i in range(0, len(poem.text), 12)]
        assert len(couplets) >= 2, poem.title
        for couplet in couplets:
            assert COUPLET.fullmatch(couplet), f"{poem.author}, {poem.title}: {couplet}"


def test_titles_and_authors_are_chinese_and_no_poem_is_named_twice(poems) -> None:
    for poem in poems:
        assert re.fullmatch(r"[\u4e00-\u9fff]+( 其[一二三四五六七八九十]+|首 其.| .歌)?", poem.title), poem.title
        assert re.fullmatch(r"[\u4e00-\u9fff]{2,5}", poem.author), poem.author
    named = Counter((poem.title, poem.author) for poem in poems)
    assert [name for name, count in named.items() if count > 1] == []


def test_no_two_poems_are_alike(poems) -> None:
    count = Counter(line for poem in poems for line in set(lines_of(poem.text)))
    assert {line for line, poems_with_it in count.items() if poems_with_it > 1} == SHARED
    pairs = [(poem, {line[i : i + 2] for line in lines_of(poem.text) for i in range(4)}) for poem in poems]
    for (first, a), (second, b) in combinations(pairs, 2):
        overlap = len(a & b) / min(len(a), len(b))
        assert overlap < 0.3, f"{first.title} and {second.title} share {overlap:.0%} of their pairs of characters"


def test_the_rare_characters_are_those_that_were_looked_at(poems) -> None:
    characters = set("".join(poem.text for poem in poems)) - set("，。")
    rare = {character for character in characters if not character.encode("gb2312", "ignore")}
    assert rare == RARE


def test_poems_are_read_with_comments_extra_lines_and_a_byte_order_mark(course, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes("\ufeff# mine\r\n\r\n甲\r\n乙\r\n一二\r\n三四\r\n\r\n\r\n丙\r\n丁\r\n五六\r\n".encode())
    Poem = course.corpus.Poem
    assert course.corpus.read_poems(path) == [Poem("甲", "乙", "一二三四"), Poem("丙", "丁", "五六")]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "holds no poem"),
        (b"# only a comment\n", "holds no poem"),
        ("甲\n乙\n".encode(), "needs a title line, an author line and a poem"),
        ("甲".encode("gbk"), "is not UTF-8"),
    ],
)
def test_a_corpus_that_cannot_be_used_is_explained(course, tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=problem):
        course.corpus.read_poems(path)


def test_the_split_keeps_poems_whole_and_apart(course, poems) -> None:
    before = list(poems)
    training, validation = course.corpus.split_poems(poems)
    assert poems == before
    assert len(validation) == 31
    assert Counter(training + validation) == Counter(poems)
    assert not set(training) & set(validation)
    assert course.corpus.split_poems(poems) == (training, validation)
    other_training, other_validation = course.corpus.split_poems(poems, seed=1)
    assert other_validation != validation
    assert set(other_training) | set(other_validation) == set(poems)
    assert validation != poems[:31], "the poems must be shuffled: their neighbours are by the same author"


def test_the_split_gives_at_least_one_poem_to_each_side(course, poems) -> None:
    assert [len(part) for part in course.corpus.split_poems(poems[:2], 0.01)] == [1, 1]
    with pytest.raises(ValueError, match="1 poem cannot be split"):
        course.corpus.split_poems(poems[:1])


def test_prepared_data_has_every_poem_once_as_numbers(course, poems) -> None:
    data = course.corpus.prepare()
    training, validation = course.corpus.split_poems(poems)
    assert data.training.dtype == torch.int64
    for part, numbers in ((training, data.training), (validation, data.validation)):
        text = data.tokenizer.decode(numbers.tolist())
        assert text == "\n" + "".join(poem.text + "\n" for poem in part)
