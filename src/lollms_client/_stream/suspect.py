"""A closing tag of a thought inside a code fence: it is code if the fence goes on to be closed, else the thought's end."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..events import Event, ThoughtDelta
from .bodies import Body
from .lexer import Lexer

__all__ = ["SuspectEnd"]

_FENCE = re.compile(r" {0,3}(?:`{3}|~{3})")
_HEAD_LIMIT = 512


class SuspectEnd(Body):
    """Reads on until it is known what the tag was: to the next line that begins as a fence does, or to the end of the stream.

    Args:
        tag: The tag, as written.
        lexer: The thought's, inside the fence.
        end_thought: Ends the thought.
    """

    __slots__ = ("_end_thought", "_head", "_lexer", "_parts", "_tag")

    def __init__(self, tag: str, lexer: Lexer, end_thought: Callable[[list[Event]], None]) -> None:
        super().__init__()
        self._tag = tag
        self._lexer = lexer
        self._end_thought = end_thought
        self._parts: list[str] = []
        self._head: str | None = None  # this line so far, while it may be that line

    def quick(self, delta: str) -> list[Event] | None:
        """A piece that stays within a line that is not that one."""
        if self._head is not None or "\n" in delta:
            return None
        self._parts.append(delta)
        return []

    def read(self, data: str, pos: int, final: bool, out: list[Event]) -> int:
        """Go line by line."""
        begin = pos
        while (stop := data.find("\n", pos)) >= 0:
            line = None if self._head is None else self._head + data[pos:stop]
            self._head = ""
            pos = stop + 1
            if line is not None and len(line) <= _HEAD_LIMIT and _FENCE.match(line):
                self._parts.append(data[begin:pos])
                self._decide(line, out)
                return pos
        self._parts.append(data[begin:])
        if self._head is not None:
            head = self._head + data[pos:]
            self._head = head if len(head) <= _HEAD_LIMIT else None
        return len(data)

    def close(self, out: list[Event]) -> None:
        """The last line decides, though nothing follows it."""
        self._decide(self._head or "", out)

    def _decide(self, line: str, out: list[Event]) -> None:
        self.ended = True
        text = "".join(self._parts)
        if self._lexer.closes(line):
            self._lexer.leave_code()
            out.append(ThoughtDelta(self._tag + text))
        else:
            self._end_thought(out)
            self.again = text
