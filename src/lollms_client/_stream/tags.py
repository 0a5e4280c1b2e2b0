"""The tags that a model may write: one row each, and how rows become patterns.

A new tag is a new row here and, where its body is of a new kind, one method of the parser. Source: CONTRACT J.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

__all__ = ["BLANKS", "TAGS", "Marks", "Tag", "beginning_finder", "read_attributes", "read_level"]

BLANKS = " \t\r\f\v"
"""What a line may hold and still count as blank."""

_FLAGS = re.IGNORECASE | re.ASCII
_SLACK = 16  # white space that may stand between a tag's name and its ">"


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag.

    Attributes:
        name: How options name it.
        spellings: How it may be written (letter case never matters).
        body: What stands between opening and closing tag: "thought", "call", "artefact", "worker", or "none".
        own_line: It counts only on a line that holds nothing but such tags, and no `|`.
        attributes: The opening tag may carry attributes.
        needs: One of these attributes must be there, else it is text (a tag that is merely mentioned has none).
        leads: The body must begin with one of these tags, else it is text.
    """

    name: str
    spellings: tuple[str, ...]
    body: str = "none"
    own_line: bool = False
    attributes: bool = False
    needs: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()


TAGS: tuple[Tag, ...] = (
    Tag("think", ("think", "thinking"), body="thought"),
    Tag("tool", ("tool", "tool_call"), body="call"),
    Tag("artifact", ("artifact", "artefact"), body="artefact", attributes=True, needs=("name", "title")),
    Tag("revert_artifact", ("revert_artifact", "revert_artefact"), attributes=True, needs=("name", "title")),
    Tag("agent", ("agent",), body="worker", attributes=True, leads=("task", "context_files")),
    Tag("effort", ("effort",), own_line=True, attributes=True),
    Tag("done", ("done",), own_line=True),
)


def _cases(char: str) -> tuple[str, str]:
    return char, char.upper()


def beginning_finder(marks: Collection[str]) -> Callable[[str], re.Match[str] | None]:
    """Finds in a piece where one of the markers may begin, by three characters at most; it may err only by finding too much."""
    sure = {re.escape(mark[:3]) for mark in marks}
    ends = {re.escape(mark[:n]) + r"\Z" for mark in marks for n in (1, 2)}
    return re.compile("|".join(sorted(sure | ends)) or "(?!)", _FLAGS).search


class Marks:
    """A set of markers that a stream is searched for, and all their beginnings.

    Args:
        tags: Markers of the form `<name` or `</name`: white space and `>` follow.
        literals: Markers taken as they are.
        names: Markers of the form `<name` after which attributes may follow; they match up to the name.

    Each is at least two characters long. No marker may be the beginning of another (`tags` and `names` cannot be; of `literals`
    the shorter wins, and one that begins with a whole tag is covered by that tag), so that what is found never depends on how a
    stream was cut.
    """

    __slots__ = ("complete", "firsts", "longest", "match", "may_begin", "pairs", "prefixes", "search", "source")

    def __init__(self, tags: Iterable[str] = (), literals: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        tags, names = tuple(tags), tuple(names)
        whole = tuple(f"{t}>" for t in tags)
        kept: list[str] = []
        for mark in sorted({m.lower() for m in literals}, key=len):
            if not mark.startswith((*whole, *kept)):
                kept.append(mark)
        parts = [re.escape(m) for m in kept]
        parts += [rf"{re.escape(t)}\s{{0,{_SLACK}}}>" for t in tags]
        parts += [rf"{re.escape(n)}(?=[\s/>])" for n in names]
        self.source = "|".join(parts) or "(?!)"
        pattern = re.compile(self.source, _FLAGS)
        self.match, self.search = pattern.match, pattern.search
        self.complete = frozenset(tags)
        marks = (*kept, *(f"{t}>" for t in (*tags, *names)))
        self.prefixes = frozenset(mark[:n] for mark in marks for n in range(1, len(mark)))
        self.firsts = frozenset(char for mark in marks for char in (mark[0], mark[0].upper()))
        self.pairs = self.firsts | {a + b for mark in marks for a in _cases(mark[0]) for b in _cases(mark[1])}
        self.may_begin = beginning_finder(marks)
        self.longest = max(map(len, self.prefixes), default=0) + _SLACK

    def viable(self, data: str, at: int) -> bool:
        """Whether `data` from `at` to its end is the beginning of a marker."""
        if len(data) - at > self.longest:
            return False
        tail = data[at:].lower()
        return tail in self.prefixes or tail.rstrip(" \t\n\r\f\v") in self.complete

    def tail(self, data: str, pos: int) -> int:
        """Where in `data`, from `pos` on, a beginning of a marker of the form `<…` runs into the end; its length if none does."""
        at = data.rfind("<", max(pos, len(data) - self.longest))
        return at if at >= 0 and self.viable(data, at) else len(data)


_ATTRIBUTE = re.compile(r"""\s+([A-Za-z_][\w:.-]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>=]+))?""", re.ASCII)


def read_attributes(text: str) -> dict[str, str] | None:
    """Read what stands between a tag's name and its end.

    Args:
        text: For example ` name="a.py" type=code`.

    Returns:
        Lower-case names and the values as written, without quotes; None where the text is no list of attributes.
    """
    found: dict[str, str] = {}
    pos, text = 0, text.rstrip()
    while pos < len(text):
        one = _ATTRIBUTE.match(text, pos)
        if one is None:
            return None
        value = one[2] or ""
        found.setdefault(one[1].lower(), value[1:-1] if value[:1] in ("'", '"') else value)
        pos = one.end()
    return found


_LEVELS = frozenset({"none", "low", "medium", "high", "max"})


def read_level(attributes: dict[str, str], body: str = "") -> str:
    """The level that an `<effort>` tag asks for.

    Args:
        attributes: `level=` or `value=`; any word is taken, since models have levels of their own.
        body: What stands between a pair of tags; it counts where it is one of the five levels and no attribute says another.

    Returns:
        The level in lower case, "medium" where none is given.
    """
    said = body.strip().lower()
    level = (attributes.get("level") or attributes.get("value") or "").strip().lower()
    return level or (said if said in _LEVELS else "medium")
