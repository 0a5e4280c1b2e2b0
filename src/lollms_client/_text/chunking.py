"""Long texts in pieces that fit."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..errors import ConfigurationError

__all__ = ["split_text"]

# Where a text is best cut: the first kind that has a place in the last half of a piece wins.
_BORDERS = tuple(re.compile(p) for p in (r"\n[ \t\r]*\n\s*", r"\n", r"[.!?…。！？][\"')\]]*\s+", r"\s+"))

_WORD_BEGIN = re.compile(r"\s+")
_BISECTIONS = 8  # a piece may stay this fine a part of its size below what would fit


def split_text(text: str, size: int, *, count: Callable[[str], int] = len, overlap: int = 0) -> list[str]:
    """Split a text into pieces of at most `size`.

    Cuts fall between paragraphs, else lines, else sentences, else words, else anywhere. Without overlap the pieces joined are the
    text; with it, each piece but the first begins with what the one before ended with, from a word's beginning on.

    Args:
        text: The text.
        size: The most that a piece may measure, in what `count` counts. A single character that measures more stays a piece.
        count: Measures a text: `len` for characters, a tokenizer's count for tokens. Called a few times for each piece.
        overlap: How much of a piece is repeated at the beginning of the next, at most, in the same measure; less than `size`.

    Returns:
        The pieces; an empty text has none.

    Raises:
        ConfigurationError: `size` or `overlap` cannot be.
    """
    if size < 1 or not 0 <= overlap < size:
        raise ConfigurationError(f"Pieces of {size} with an overlap of {overlap} cannot be: size at least 1, overlap below size.")
    pieces: list[str] = []
    begin = fresh = 0  # where the next piece begins, and where what no piece holds yet begins
    guess = size
    while fresh < len(text):
        end = _furthest(text, begin, fresh + 1, guess, lambda part: count(part) <= size)
        if end < len(text):
            end = _border(text, fresh + 1, end)
            while end > fresh + 1 and count(text[begin:end]) > size:  # a tokenizer may count a beginning for more than the whole
                end = fresh + 1 + (end - fresh - 1) // 2
        if end == fresh + 1 and begin < fresh and count(text[begin:end]) > size:
            begin = fresh  # the overlap leaves no room: go on without it
            continue
        pieces.append(text[begin:end])
        guess = max(end - begin, 1)
        begin, fresh = _overlap_begin(text, begin, end, overlap, count) if overlap else end, end
    return pieces


def _furthest(text: str, begin: int, least: int, guess: int, fits: Callable[[str], bool]) -> int:
    """About the furthest end, at least `least`, up to which a piece from `begin` fits; `guess` is a length to try first."""
    low, high = least, len(text) + 1  # `low` fits or is the least there is, `high` does not fit
    end = begin + guess
    while low < high - 1:
        end = min(max(end, least + 1), len(text))
        if not fits(text[begin:end]):
            high = end
            break
        low = end
        if end == len(text):
            break
        end += end - begin
    for _ in range(_BISECTIONS):
        if high - low <= 1 or low == len(text):
            break
        middle = (low + high) // 2
        if fits(text[begin:middle]):
            low = middle
        else:
            high = middle
    return low


def _border(text: str, least: int, end: int) -> int:
    """The best place to cut, not before the middle of what is new."""
    middle = least + (end - least) // 2
    for kind in _BORDERS:
        last = 0
        for hit in kind.finditer(text, middle, end):
            last = hit.end()
        if last > least:
            return last
    return end


def _overlap_begin(text: str, begin: int, end: int, overlap: int, count: Callable[[str], int]) -> int:
    """Where the repeated end of a piece begins: at a word, behind the piece's own beginning."""
    low, high = begin + 1, end  # what begins at `high` fits
    for _ in range(_BISECTIONS * 2):
        if low >= high:
            break
        middle = (low + high) // 2
        if count(text[middle:end]) <= overlap:
            high = middle
        else:
            low = middle + 1
    word = _WORD_BEGIN.search(text, high, end)
    return word.end() if word and high > 0 and not text[high - 1].isspace() else high
