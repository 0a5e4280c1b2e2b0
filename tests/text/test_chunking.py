"""Long texts in pieces that fit: nothing lost, nothing too long, cut where a reader would."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._text.chunking import split_text
from lollms_client.errors import ConfigurationError


def words(text: str) -> int:
    """A tokenizer of its own: words and single marks count one each."""
    return len(re.findall(r"\w{1,4}|\S", text))


texts = st.text(alphabet="ab .\n!é", max_size=400)


@given(texts, st.integers(1, 60), st.sampled_from([len, words]))
def test_pieces_join_to_the_text_and_fit(text, size, count):
    pieces = split_text(text, size, count=count)
    assert "".join(pieces) == text
    assert all(pieces)
    assert all(count(piece) <= size for piece in pieces)


@given(texts, st.integers(2, 60), st.data(), st.sampled_from([len, words]))
def test_with_overlap_each_piece_fits_and_begins_in_the_one_before(text, size, data, count):
    overlap = data.draw(st.integers(0, size - 1))
    pieces = split_text(text, size, count=count, overlap=overlap)
    assert all(count(piece) <= size for piece in pieces)
    end = 0
    for piece in pieces:
        begin = max(at for at in range(end + 1) if text.startswith(piece, at) and at + len(piece) > end)
        assert count(text[begin:end]) <= overlap
        end = begin + len(piece)
    assert end == len(text)


def test_cuts_fall_between_paragraphs_then_sentences_then_words():
    assert split_text("one two.\n\nthree four.\n\nfive", 24) == ["one two.\n\nthree four.\n\n", "five"]
    assert split_text("One is here. Two is there. Three.", 28) == ["One is here. Two is there. ", "Three."]
    assert split_text("alpha beta gamma delta", 12) == ["alpha beta ", "gamma delta"]
    assert split_text("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_the_overlap_begins_at_a_word():
    pieces = split_text("alpha beta gamma delta epsilon zeta eta theta", 20, overlap=8)
    assert pieces[0] == "alpha beta gamma "
    assert pieces[1].startswith("gamma ")


def test_a_character_that_measures_more_than_a_piece_stays_whole():
    assert split_text("é€", 1, count=lambda text: len(text.encode())) == ["é", "€"]


def test_an_empty_text_has_no_pieces():
    assert split_text("", 10) == []


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (5, 5), (5, -1)])
def test_sizes_that_cannot_be_are_refused(size, overlap):
    with pytest.raises(ConfigurationError, match="cannot be"):
        split_text("text", size, overlap=overlap)


@pytest.mark.parametrize("unit", ["word ", "x", "\n", "A sentence. "])
def test_the_work_grows_with_the_text_and_no_faster(unit):
    counted = 0

    def count(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return len(text)

    begun = time.perf_counter()
    text = unit * (1_000_000 // len(unit))
    split_text(text, 2_000, count=count, overlap=200)
    assert counted < 30 * len(text)
    assert time.perf_counter() - begun < 20
