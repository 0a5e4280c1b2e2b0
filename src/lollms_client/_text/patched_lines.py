"""A text as lines that can be found and replaced many times, each time at the cost of what is touched.

Lines are nodes of a linked list, and an index leads from what a line says (without the white space around it) to its nodes. The
nodes of the original are numbered as its lines are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Match", "PatchedLines", "Shift", "reindent", "split_lines"]

_END = -1
_WORK_LIMIT = 3_000_000  # comparisons of lines for all searches: reached only where thousands of lines in a row are alike


@dataclass(frozen=True, slots=True)
class Shift:
    """How indentation differs: lines of the search begin with one string, those of the text with another."""

    written: str = ""
    there: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """A place where a search was found: how, its first node, and how far its indentation is off."""

    how: Literal["exact", "trailing", "indented"]
    first: int
    shift: Shift


def split_lines(text: str) -> list[str]:
    r"""Lines without their ends ("\n"); an end begins no further line."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


class PatchedLines:
    """The lines of a text.

    Args:
        text: The text; lines end with LF or CRLF.
    """

    MOST = 20
    """Places that a search is found in at most."""

    def __init__(self, text: str) -> None:
        self._said: list[str] = []
        self._ends: list[str] = []
        for line in split_lines(text):
            said = line.removesuffix("\r")
            self._said.append(said)
            self._ends.append("\n" if len(said) == len(line) else "\r\n")
        self._original = len(self._said)
        if text and not text.endswith("\n"):
            self._said[-1], self._ends[-1] = text[text.rfind("\n") + 1 :], ""
        self._next = [*range(1, self._original), _END] if self._original else []
        self._before = list(range(-1, self._original - 1))
        self._head = 0 if self._original else _END
        self._index: dict[str, dict[int, None]] | None = None
        self._work = 0

    def text(self) -> str:
        """All of it."""
        parts: list[str] = []
        node = self._head
        while node != _END:
            parts += self._said[node], self._ends[node]
            node = self._next[node]
        return "".join(parts)

    def number(self, node: int) -> int:
        """A node's line in the original, from 1; 0 where it is not of the original."""
        return node + 1 if node < self._original else 0

    def is_blank(self, *, exactly: bool) -> bool:
        """Whether there is nothing: no line (`exactly`), or nothing but white space."""
        if exactly or self._head == _END:
            return self._head == _END
        return not any(nodes for said, nodes in self._nodes().items() if said)

    def fill(self, lines: list[str]) -> None:
        """Puts lines in the place of all there is."""
        self._head, self._index = _END, {}
        self._insert(_END, _END, lines, "\n")

    def find(self, search: list[str]) -> list[Match] | None:
        """The places where lines are: the exact ones if there are any, else those of the next laxer kind.

        Args:
            search: At least one line.

        Returns:
            At most `MOST` places; None where so many lines are alike that it would take too long to tell.
        """
        keys = [line.strip() for line in search]
        index = self._nodes()
        rarest = min(range(len(keys)), key=lambda at: len(index.get(keys[at], ())))
        found: dict[str, list[Match]] = {"exact": [], "trailing": [], "indented": []}
        for candidate in index.get(keys[rarest], ()):
            nodes, compared = self._run(candidate, rarest, keys)
            self._work += compared
            if nodes is not None and (match := self._compare(search, nodes)) is not None:
                found[match.how].append(match)
            if len(found["exact"]) == self.MOST:
                break
            if self._work > _WORK_LIMIT:
                return None
        return next((places[: self.MOST] for places in found.values() if places), [])

    def put(self, first: int, count: int, kept: tuple[int, int], lines: list[str]) -> None:
        """Replaces a run of nodes.

        Args:
            first: The first node of the run.
            count: How many nodes it has.
            kept: How many of them stay at its beginning, and at its end.
            lines: What comes between those.
        """
        before, behind = kept
        run = [first]
        while len(run) < count:
            run.append(self._next[run[-1]])
        ends = next((self._ends[node] for node in (*run, self._head) if self._ends[node]), "\n")
        after = self._next[run[-1]]
        unterminated = not self._ends[run[-1]]
        if unterminated:
            self._ends[run[-1]] = ends
        left = run[before - 1] if before else self._before[first]
        right = run[count - behind] if behind else after
        for node in run[before : count - behind]:
            del self._nodes()[self._said[node].strip()][node]
        last = self._insert(left, right, lines, ends)
        if unterminated:
            last = run[-1] if behind else last
            if before or behind or lines:
                self._ends[last] = ""

    def _insert(self, left: int, right: int, lines: list[str], ends: str) -> int:
        """Links lines between two nodes; returns the node before `right`."""
        index = self._nodes()
        for line in lines:
            node = len(self._said)
            self._said.append(line)
            self._ends.append(ends)
            self._before.append(left)
            self._next.append(_END)
            index.setdefault(line.strip(), {})[node] = None
            self._link(left, node)
            left = node
        self._link(left, right)
        return left

    def _link(self, left: int, right: int) -> None:
        if left == _END:
            self._head = right
        else:
            self._next[left] = right
        if right != _END:
            self._before[right] = left

    def _nodes(self) -> dict[str, dict[int, None]]:
        if self._index is None:
            self._index = {}
            for node, said in enumerate(self._said):
                self._index.setdefault(said.strip(), {})[node] = None
        return self._index

    def _run(self, candidate: int, at: int, keys: list[str]) -> tuple[list[int] | None, int]:
        """The nodes that say what the keys say, given one of them; and how many were compared."""
        nodes = [candidate]
        node = candidate
        for key in keys[at + 1 :]:
            node = self._next[node]
            if node == _END or self._said[node].strip() != key:
                return None, len(nodes)
            nodes.append(node)
        front: list[int] = []
        node = candidate
        for key in reversed(keys[:at]):
            node = self._before[node]
            if node == _END or self._said[node].strip() != key:
                return None, len(nodes) + len(front)
            front.append(node)
        return [*reversed(front), *nodes], len(keys)

    def _compare(self, search: list[str], nodes: list[int]) -> Match | None:
        """How a search and nodes that say the same differ in white space; None where they do in more than is tolerated."""
        there = [self._said[node] for node in nodes]
        if there == search:
            return Match("exact", nodes[0], Shift())
        wanted, given = [line.rstrip() for line in search], [line.rstrip() for line in there]
        if wanted == given:
            return Match("trailing", nodes[0], Shift())
        shift = Shift(_indentation(wanted), _indentation(given))
        cut, other = len(shift.written), len(shift.there)
        if all(a[cut:] == b[other:] for a, b in zip(wanted, given, strict=True)):
            return Match("indented", nodes[0], shift)
        return None


def _indentation(lines: list[str]) -> str:
    """What all lines that are not blank begin with: white space."""
    spaces = [line[: len(line) - len(line.lstrip())] for line in lines if line]
    if not spaces:
        return ""
    least, most = min(spaces), max(spaces)  # what these two share, all do
    return next((least[:at] for at, char in enumerate(least) if most[at] != char), least)


def reindent(lines: list[str], shift: Shift) -> list[str] | None:
    """Lines moved as far as a search was off; None where one of them does not reach that far."""
    written, there = shift.written, shift.there
    if written == there:
        return lines
    if there.endswith(written):
        written, there = "", there.removesuffix(written)
    elif written.endswith(there):
        written, there = written.removesuffix(there), ""
    if not all(line.startswith(written) for line in lines if line.strip()):
        return None
    return [there + line[len(written) :] if line.strip() else line for line in lines]
