"""Structural units of a text as it streams. Source: developer guide, "Collapsible Artifact UI Protocol"."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Outline", "Unit"]

_UNITS = (
    (re.compile(r"\s*(?:async\s+)?def\s+(\w+)\s*\("), "def {}()"),
    (re.compile(r"\s*class\s+(\w+)"), "class {}"),
    (re.compile(r"#{1,6}\s+(.+?)\s*#*$"), "Section: {}"),
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A section, a function or a class, and its line."""

    header: str
    line: int


class Outline:
    """Finds the units of one text."""

    def __init__(self, name: str, language: str = "") -> None:
        self._units = _UNITS[2:] if name.endswith((".md", ".markdown")) or language == "markdown" else _UNITS[:2]
        self._rest, self._line = "", 0

    def feed(self, text: str) -> list[Unit]:
        """Units whose lines this piece completes."""
        *lines, self._rest = (self._rest + text).split("\n")
        return [unit for line in lines for unit in self._look(line)]

    def close(self) -> list[Unit]:
        """Units of the last line."""
        return list(self._look(self._rest))

    def _look(self, line: str) -> list[Unit]:
        self._line += 1
        return [Unit(form.format(m[1][:80]), self._line) for pattern, form in self._units if (m := pattern.match(line))]
