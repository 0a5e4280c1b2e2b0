"""The body of a `<tool>` element: where it ends, and which calls it holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from ..events import Event, ToolCall
from .bodies import Body
from .calls import read_calls
from .json_scan import INSIDE, OUTSIDE, JsonScanner
from .tags import Marks
from .values import decode_one

__all__ = ["CallBody", "CallMarks"]

_TO_LINE_END = re.compile(f"{INSIDE}|\n").search
_DEBRIS = " \t\r\n`~}])"  # what may stand behind complete JSON without saying anything

_Place = tuple[int, int]
"""A place in a body: which of its parts, and where in it."""


class CallMarks:
    """The patterns that `CallBody` searches for, compiled once.

    Args:
        closers: Closing tags of calls, without `>`.
        openers: Opening tags of calls, without `>`.
    """

    __slots__ = ("beginnings", "behind", "closer", "inside", "is_closer", "outside", "tail")

    def __init__(self, closers: Iterable[str], openers: Iterable[str]) -> None:
        ends, both = Marks(tags=closers), Marks(tags=(*closers, *openers))
        flags = re.IGNORECASE | re.ASCII
        self.is_closer, self.closer = ends.match, ends.search
        self.behind = both.search
        self.beginnings = both.prefixes
        self.outside = re.compile(f"{OUTSIDE}|{both.source}", flags).search
        self.inside = re.compile(f"{INSIDE}|{ends.source}", flags).search
        self.tail = both.tail


class CallBody(Body):
    """Collects the body of one element and finds where it ends.

    A closing tag ends it, unless it stands inside a JSON string. Models leave strings open, and JSON strings hold no line breaks:
    so one inside a string that does not end on its line ends the body after all. Another opening tag outside a string ends it
    too: the closing tag was forgotten. Every character is looked at once, and at most once more as text when it stood behind
    such an end.

    Args:
        marks: The patterns.
        mint_id: Makes the ids of the calls.
    """

    __slots__ = ("_marks", "_mint_id", "_parts", "_scanner", "_suspect", "_trail", "_unread")

    def __init__(self, marks: CallMarks, mint_id: Callable[[], str]) -> None:
        super().__init__(marks.beginnings)
        self._marks = marks
        self._mint_id = mint_id
        self._unread: list[str] = []  # pieces without `>`, not looked at yet
        self._parts: list[str] = []
        self._scanner = JsonScanner()
        self._trail: _Place | None = None  # where the complete JSON ended
        self._suspect: tuple[_Place, _Place] | None = None  # a closing tag in the string we are in: where it begins and ends

    def quick(self, delta: str) -> list[Event] | None:
        """A piece without `>` cannot end the body; it is looked at later."""
        if ">" in delta or self._suspect:
            return None
        self._unread.append(delta)
        return []

    def read(self, data: str, pos: int, final: bool, out: list[Event]) -> int:
        """Look at what was not looked at yet."""
        if not final and self.quick(data[pos:]) is not None:
            return len(data)
        unread = "".join(self._unread)
        self._unread.clear()
        if unread:
            data, pos = unread + data[pos:], pos - len(unread)
        begin = 0 if unread else pos
        go_on = self._try_whole(data, begin, out) or self._scan(data, begin, final, out)
        if not unread:
            return go_on
        if go_on < len(unread):  # another opening tag that began there ended the body
            self.again = unread[go_on:]
            return pos + len(unread)
        return pos + go_on

    def close(self, out: list[Event]) -> None:
        """Make the best of what is there."""
        self.read("", 0, True, out)
        if self.ended:
            return
        if self._suspect:
            self._end_at_suspect(out)
        elif self._trail:
            behind = self._from(self._trail)
            self._end(self._to(self._trail), out, again=behind if behind.strip(_DEBRIS) else "")
        else:
            self._end("".join(self._parts), out, closed=False)

    def _try_whole(self, data: str, pos: int, out: list[Event]) -> int:
        """The common case, tried once: all is there, and valid. What `_scan` would find is found at once."""
        if self._parts:
            return 0
        end = self._marks.closer(data, pos)
        if end is None:
            return 0
        text = data[pos : end.start()]
        value = decode_one(text)
        if value is None:
            return 0
        self._end(text, out, value=value)
        return end.end()

    def _scan(self, data: str, pos: int, final: bool, out: list[Event]) -> int:
        begin, part = pos, len(self._parts)
        scanner = self._scanner
        pos = scanner.resume(data, pos)
        while (hit := self._search()(data, pos)) is not None:
            at = hit.start()
            char = data[at]
            if char == "<":
                if not scanner.string or scanner.complete:
                    self._parts.append(data[begin:at])
                    self._end("".join(self._parts), out)
                    return hit.end() if self._marks.is_closer(data, at) else at
                self._suspect = (part, at - begin), (part, hit.end() - begin)
                pos = hit.end()
            elif char == "\n":
                self._parts.append(data[begin:at])
                self._end_at_suspect(out)
                return at
            else:
                pos = scanner.take(data, at)
                if not scanner.string:
                    self._suspect = None
                    if scanner.complete:
                        self._trail = part, pos - begin
        keep = len(data) if final else self._marks.tail(data, pos)
        self._parts.append(data[begin:keep])
        return keep

    def _search(self) -> Callable[[str, int], re.Match[str] | None]:
        if self._scanner.complete:
            return self._marks.behind
        if not self._scanner.string:
            return self._marks.outside
        return _TO_LINE_END if self._suspect else self._marks.inside

    def _end_at_suspect(self, out: list[Event]) -> None:
        if self._suspect:
            begin, end = self._suspect
            self._end(self._to(begin), out, again=self._from(end))

    def _to(self, place: _Place) -> str:
        part, offset = place
        return "".join(self._parts[:part]) + self._parts[part][:offset]

    def _from(self, place: _Place) -> str:
        part, offset = place
        return self._parts[part][offset:] + "".join(self._parts[part + 1 :])

    def _end(self, text: str, out: list[Event], *, closed: bool = True, value: Any = None, again: str = "") -> None:
        for name, arguments, problem in read_calls(text, closed, value):
            out.append(ToolCall(name, arguments, self._mint_id(), text, problem))
        self.ended, self.again = True, again
