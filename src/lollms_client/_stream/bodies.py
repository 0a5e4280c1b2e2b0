"""Bodies of tags that are read whole: how far a tool call's JSON reaches, and what a worker's request says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from .tags import Marks
from .values import decode_one

__all__ = ["CallBody", "CallMarks", "JsonScanner", "read_worker_body"]

_OUTSIDE = r'["\\{}\[\]]'
_INSIDE = r'["\\]'
_PLAIN = re.compile(_OUTSIDE).search, re.compile(_INSIDE).search
_TO_LINE_END = re.compile(r'["\\\n]').search
_DEBRIS = " \t\r\n`~}])"  # what may stand behind complete JSON without saying anything


class JsonScanner:
    """Follows the strings and brackets of a JSON text, piece by piece, without reading it.

    Attributes:
        string: We are inside a string.
        complete: The first object or array has ended.
        escaped: The last piece ended with a backslash.
    """

    __slots__ = ("_depth", "complete", "escaped", "string")

    def __init__(self) -> None:
        self._depth = 0
        self.escaped = False
        self.string = False
        self.complete = False

    def feed(self, data: str, pos: int = 0) -> int:
        """Go on; returns the place behind the end of the first object or array, `len(data)` where it does not end in `data`."""
        pos = self.resume(data, pos)
        while not self.complete:
            hit = _PLAIN[self.string](data, pos)
            if hit is None:
                return len(data)
            pos = self.take(data, hit.start())
        return pos

    def resume(self, data: str, pos: int) -> int:
        """Where to go on in a new piece: behind the character whose meaning a backslash at the end of the last one took."""
        if self.escaped and pos < len(data):
            self.escaped = False
            return pos + 1
        return pos

    def take(self, data: str, at: int) -> int:
        """Take the quote, bracket or backslash at `at`; returns where to go on."""
        char = data[at]
        if char == "\\":
            self.escaped = at + 1 == len(data)
            return at + 2
        if char == '"':
            self.string = not self.string
        elif char in "{[":
            self._depth += 1
        elif self._depth:
            self._depth -= 1
            self.complete = not self._depth
        return at + 1


_Place = tuple[int, int]
"""A place in a body: which of its parts, and where in it."""


class CallMarks:
    """The patterns that `CallBody` searches for, compiled once.

    Args:
        closers: Closing tags of calls, without `>`.
        openers: Opening tags of calls, without `>`.
    """

    __slots__ = ("behind", "closer", "inside", "is_closer", "outside", "tail")

    def __init__(self, closers: Iterable[str], openers: Iterable[str]) -> None:
        ends, both = Marks(tags=closers), Marks(tags=(*closers, *openers))
        flags = re.IGNORECASE | re.ASCII
        self.is_closer, self.closer = ends.match, ends.search
        self.behind = both.search
        self.outside = re.compile(f"{_OUTSIDE}|{both.source}", flags).search
        self.inside = re.compile(f"{_INSIDE}|{ends.source}", flags).search
        self.tail = both.tail


class CallBody:
    """Collects the body of one tool call and finds where it ends.

    A closing tag ends it, unless it stands inside a JSON string. Models leave strings open, and JSON strings hold no line breaks:
    so one inside a string that does not end on its line ends the body after all. Another opening tag outside a string ends it
    too: the closing tag was forgotten. Every character is looked at once, and at most once more as text when it stood behind
    such an end.

    Attributes:
        ended: The end was found.
        text: The body, once it has ended.
        rest: What was taken behind the end and is to be read anew.
        value: The body as JSON, where it was read already.
    """

    __slots__ = ("_marks", "_parts", "_scanner", "_suspect", "_trail", "_unread", "ended", "rest", "text", "value")

    def __init__(self, marks: CallMarks) -> None:
        self._marks = marks
        self._parts: list[str] = []
        self._unread: list[str] = []
        self._scanner = JsonScanner()
        self._trail: _Place | None = None  # where the complete JSON ended
        self._suspect: tuple[_Place, _Place] | None = None  # a closing tag in the string we are in: where it begins and ends
        self.ended = False
        self.text = ""
        self.rest = ""
        self.value: Any = None

    @property
    def calm(self) -> bool:
        """A piece without `>` cannot end the body, and may go straight to `add`."""
        return self._suspect is None

    @property
    def add(self) -> Callable[[str], None]:
        """Takes such a piece, to be looked at later."""
        return self._unread.append

    def feed(self, data: str, pos: int, final: bool = False) -> int:
        """Take `data` from `pos` on; returns where to go on: behind the end, or where a tag may have begun (unless `final`)."""
        unread = "".join(self._unread)
        self._unread.clear()
        data, begin = (unread + data[pos:], 0) if unread else (data, pos)
        go_on = self._try_whole(data, begin) or self._scan(data, begin, final)
        if go_on < len(unread):  # another opening tag that began there ended the body
            self.rest = unread[go_on:]
            return pos
        return pos + go_on - len(unread) if unread else go_on

    def _try_whole(self, data: str, pos: int) -> int:
        """The common case, tried once: all is there, and valid. What `_scan` would find is found at once."""
        if self._parts:
            return 0
        end = self._marks.closer(data, pos)
        self.value = decode_one(data[pos : end.start()]) if end else None
        if end is None or self.value is None:
            return 0
        self._end(data[pos : end.start()])
        return end.end()

    def _scan(self, data: str, pos: int, final: bool) -> int:
        begin, part = pos, len(self._parts)
        scanner = self._scanner
        pos = scanner.resume(data, pos)
        while (hit := self._search()(data, pos)) is not None:
            at = hit.start()
            char = data[at]
            if char == "<":
                if not scanner.string or scanner.complete:
                    self._parts.append(data[begin:at])
                    self._end("".join(self._parts))
                    return hit.end() if self._marks.is_closer(data, at) else at
                self._suspect = (part, at - begin), (part, hit.end() - begin)
                pos = hit.end()
            elif char == "\n":
                self._parts.append(data[begin:at])
                self._end_at_suspect()
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

    def close(self) -> bool:
        """The stream ended first: make the best of what is there; returns whether the call was all there."""
        self.feed("", 0, final=True)
        if self._suspect:
            self._end_at_suspect()
        elif self._trail:
            behind = self._from(self._trail)
            self._end(self._to(self._trail), behind if behind.strip(_DEBRIS) else "")
        else:
            self._end("".join(self._parts))
            return False
        return True

    def _search(self) -> Callable[[str, int], re.Match[str] | None]:
        if self._scanner.complete:
            return self._marks.behind
        if not self._scanner.string:
            return self._marks.outside
        return _TO_LINE_END if self._suspect else self._marks.inside

    def _end_at_suspect(self) -> None:
        if self._suspect:
            begin, end = self._suspect
            self._end(self._to(begin), self._from(end))

    def _to(self, place: _Place) -> str:
        part, offset = place
        return "".join(self._parts[:part]) + self._parts[part][:offset]

    def _from(self, place: _Place) -> str:
        part, offset = place
        return self._parts[part][offset:] + "".join(self._parts[part + 1 :])

    def _end(self, text: str, rest: str = "") -> None:
        self.ended, self.text, self.rest = True, text, rest


_TASK = re.compile(r"<task\s*>", re.IGNORECASE | re.ASCII)
_TASK_END = re.compile(r"</task\s*>", re.IGNORECASE | re.ASCII)
_FILES = re.compile(r"<context_files\s*>", re.IGNORECASE | re.ASCII)
_BULLET = re.compile(r"[-*]\s+")
_FILES_END = re.compile(r"</context_files\s*>", re.IGNORECASE | re.ASCII)


def read_worker_body(body: str) -> tuple[str, list[str]]:
    """Read `<task>…</task>` and `<context_files>…</context_files>` (file names, one a line or separated by commas).

    Args:
        body: What stands between `<agent …>` and `</agent>`; an element that is not closed reaches to its end.

    Returns:
        The task and the file names.
    """
    lines = _between(body, _FILES, _FILES_END).replace(",", "\n").split("\n")
    files = [_BULLET.sub("", line.strip(), count=1) for line in lines]
    return _between(body, _TASK, _TASK_END).strip(), [name for name in files if name]


def _between(text: str, opener: re.Pattern[str], closer: re.Pattern[str]) -> str:
    begin = opener.search(text)
    if begin is None:
        return ""
    end = closer.search(text, begin.end())
    return text[begin.end() : end.start() if end else len(text)]
