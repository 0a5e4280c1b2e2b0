"""Where a JSON value ends, found without reading it."""

from __future__ import annotations

import re

__all__ = ["INSIDE", "OUTSIDE", "JsonScanner"]

OUTSIDE = r'["\\{}\[\]]'
"""What counts outside of strings, as a pattern."""

INSIDE = r'["\\]'
"""What counts inside of strings, as a pattern."""

_SEARCH = re.compile(OUTSIDE).search, re.compile(INSIDE).search


class JsonScanner:
    """Follows the strings and brackets of a JSON text, piece by piece.

    Attributes:
        string: We are inside a string.
        complete: The first object or array has ended.
    """

    __slots__ = ("_depth", "_escaped", "complete", "string")

    def __init__(self) -> None:
        self._depth = 0
        self._escaped = False  # the last piece ended with a backslash
        self.string = False
        self.complete = False

    def feed(self, data: str, pos: int = 0) -> int:
        """Go on; returns the place behind the end of the first object or array, `len(data)` where it does not end in `data`."""
        pos = self.resume(data, pos)
        while not self.complete:
            hit = _SEARCH[self.string](data, pos)
            if hit is None:
                return len(data)
            pos = self.take(data, hit.start())
        return pos

    def resume(self, data: str, pos: int) -> int:
        """Where to go on in a new piece: behind the character whose meaning a backslash at the end of the last one took."""
        if self._escaped and pos < len(data):
            self._escaped = False
            return pos + 1
        return pos

    def take(self, data: str, at: int) -> int:
        """Take the quote, bracket or backslash at `at`; returns where to go on."""
        char = data[at]
        if char == "\\":
            self._escaped = at + 1 == len(data)
            return at + 2
        if char == '"':
            self.string = not self.string
        elif char in "{[":
            self._depth += 1
        elif self._depth:
            self._depth -= 1
            self.complete = not self._depth
        return at + 1
