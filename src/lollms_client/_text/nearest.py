"""The lines of a text that are most like others: what to show to someone who quoted it wrongly."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from .patched_lines import split_lines

__all__ = ["Like", "Nearest"]

_WORD = re.compile(r"\w+")
_WORDS_READ, _COMMON, _CANDIDATES, _COMPARED, _SHOWN, _LINE_LIMIT = 400, 300, 12, 1500, 12, 2000
_LINES_COMPARED = 60


@dataclass(frozen=True, slots=True)
class Like:
    r"""Lines that are like others.

    Attributes:
        text: The lines, each ended by "\n".
        line: The number of the first, from 1.
        difference: Where they begin to differ, as the end of a sentence; "" where that cannot be said in one line.
    """

    text: str
    line: int
    difference: str


class Nearest:
    """Finds similar lines; what it needs to know of the text is read once, on first use.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self.lines = [line.removesuffix("\r") for line in split_lines(text)]
        self._places: dict[str, list[int]] | None = None

    def to(self, search: str) -> Like | None:
        """The lines that are most like some others.

        Args:
            search: The lines as somebody remembers them.

        Returns:
            At most 12 lines around the first difference; None where no word of them is in the text.
        """
        wanted = split_lines(search)
        starts = self._candidates(wanted)
        if not starts:
            return None
        start = max(starts, key=lambda at: self._similarity(at, wanted))
        off = next((i for i, line in enumerate(wanted) if self._said(start + i) != line.strip()), 0)
        difference = ""
        if start + off < len(self.lines) and max(len(wanted[off]), len(self.lines[start + off])) <= 120:
            difference = f": line {start + off + 1} is {self.lines[start + off]!r} where the search has {wanted[off]!r}"
        first = max(start, start + off - 3)
        shown = self.lines[first : max(min(first + _SHOWN, start + len(wanted)), first + 1)]
        return Like("".join(f"{line[:_LINE_LIMIT]}\n" for line in shown), first + 1, difference)

    def _said(self, at: int) -> str | None:
        return self.lines[at].strip() if at < len(self.lines) else None

    def _candidates(self, wanted: list[str]) -> list[int]:
        """Where the lines could begin, judged by the places of their rarer words."""
        places = self._index()
        votes: Counter[int] = Counter()
        words = ((offset, word) for offset, line in enumerate(wanted) for word in set(_WORD.findall(line[:_LINE_LIMIT])))
        for (offset, word), _ in zip(words, range(_WORDS_READ), strict=False):
            there = places.get(word, ())
            for line in there[:_COMMON]:
                votes[max(line - offset, 0)] += 1 + 100 // len(there)
        return [start for start, _ in votes.most_common(_CANDIDATES)]

    def _similarity(self, start: int, wanted: list[str]) -> float:
        from difflib import SequenceMatcher

        there = "\n".join(line.strip()[:_COMPARED] for line in self.lines[start : start + min(len(wanted), _LINES_COMPARED)])
        asked = "\n".join(line.strip()[:_COMPARED] for line in wanted[:_LINES_COMPARED])
        return SequenceMatcher(None, there[:_COMPARED], asked[:_COMPARED]).ratio()

    def _index(self) -> dict[str, list[int]]:
        """The lines of each word."""
        if self._places is None:
            self._places = {}
            for number, line in enumerate(self.lines):
                for word in set(_WORD.findall(line[:_LINE_LIMIT])):
                    self._places.setdefault(word, []).append(number)
        return self._places
