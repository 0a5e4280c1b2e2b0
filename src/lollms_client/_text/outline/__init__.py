"""Structural units of a text as it streams: sections, functions and classes.

A line is looked at when it is complete; of a very long one, its beginning. What is inside strings, comments, fences and the like
is no unit. Source: developer guide, "Collapsible Artifact UI Protocol".
"""

from __future__ import annotations

from ..patch import is_patch
from .code import CodeScanner
from .languages_data import scanner_for
from .markup import Scanner
from .units import Unit, name_of

__all__ = ["Outline", "Unit"]

_PART = 4096
_FENCES = ("```", "~~~")


class Outline:
    """Finds the units of one text, however it is cut.

    Args:
        name: The name of its file.
        language: Its language; where that is "" or not known, the file's ending tells it.
    """

    def __init__(self, name: str, language: str = "") -> None:
        self._scanner: Scanner | None = scanner_for(name, language)
        self._parts: list[str] = []
        self._size = 0  # of the parts
        self._line = 1
        self._begins = True
        self._blank = True  # nothing but blank lines, and a fence around all, so far
        self._fenced = False

    def feed(self, text: str) -> list[Unit]:
        """The units of the lines that a piece of the text completes, in order.

        Args:
            text: The next piece, of any size.
        """
        found: list[Unit] = []
        at = 0
        while self._scanner is not None and at < len(text):
            end = text.find("\n", at)
            stop = min(len(text) if end < 0 else end, at + _PART - self._size)
            self._parts.append(text[at:stop])
            self._size += stop - at
            at = stop
            if self._size == _PART:
                self._take(ends=False)
            if stop == end:
                found += self._take(ends=True)
                at += 1
        return found

    def close(self) -> list[Unit]:
        """The units of a last line that has no end."""
        if self._begins and not self._size:
            return []
        return self._take(ends=True)

    def _take(self, *, ends: bool) -> list[Unit]:
        text = "".join(self._parts)
        begins, self._begins = self._begins, ends
        self._parts, self._size = [], 0
        line = self._line
        self._line += ends
        if ends:
            text = text.removesuffix("\r")
        if begins and self._blank and self._opens(text):
            text = ""
        if self._scanner is None:
            return []
        units = self._scanner.scan(text, begins=begins, ends=ends)
        named = ((kind, name_of(kind, name), line - ago) for kind, name, ago in units)
        return [Unit(kind, name, number) for kind, name, number in named if name]

    def _opens(self, text: str) -> bool:
        """Whether the first line that says something is the fence around all of it; a patch is no text with an outline."""
        if not text.strip():
            return False
        if not self._fenced and text.startswith(_FENCES):
            self._fenced = True
            return isinstance(self._scanner, CodeScanner)
        if is_patch(text):
            self._scanner = None
        self._blank = False
        return False
