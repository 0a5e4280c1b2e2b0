"""A reply that is nothing but one JSON object of a call's shape, fenced or not (CONTRACT J, where a model's profile says so)."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..events import Event, ToolCall
from .bodies import Body
from .calls import read_bare_call
from .json_scan import JsonScanner

__all__ = ["BARE_FIRSTS", "BareBody"]

BARE_FIRSTS = frozenset("{`~")
"""What such a reply begins with."""

_LIMIT = 512  # length of what may stand before the first value, and of what may stand behind the object
_HEAD = re.compile(
    r"""\s*(?:(?P<fence>`{3,}|~{3,})[ \t]*[\w-]*[ \t]*\r?\n\s*)?(?P<begin>\{)\s*"(?:name|parameters|arguments|id|type)"\s*:"""
)
_HEAD_BEGINNING = re.compile(r"""\s*(?:(?:`+|~+)[ \t]*[\w-]*[ \t]*\r?(?:\n\s*)?)?(?:\{\s*(?:"(?:[a-z]*(?:"\s*)?)?)?)?""")


class BareBody(Body):
    """Collects a reply while it may still be such an object.

    Args:
        names: The tools that are mounted.
        mint_id: Makes the id of the call.
    """

    __slots__ = ("_begin", "_fence", "_mint_id", "_names", "_parts", "_scanner", "_short")

    def __init__(self, names: frozenset[str], mint_id: Callable[[], str]) -> None:
        super().__init__()
        self._names = names
        self._mint_id = mint_id
        self._parts: list[str] = []
        self._short = ""  # what stands before the first value, then what stands behind the object
        self._scanner: JsonScanner | None = None
        self._begin = 0
        self._fence = ""

    def quick(self, delta: str) -> list[Event] | None:
        """There is no short way: every piece may show that the reply is no call."""
        return None

    def read(self, data: str, pos: int, final: bool, out: list[Event]) -> int:
        """Take the rest of the piece."""
        piece = data[pos:]
        self._parts.append(piece)
        if not self._may_go_on(piece):
            self._give_up()
        return len(data)

    def close(self, out: list[Event]) -> None:
        """The reply is over: now it is known what it was."""
        scanner, text = self._scanner, "".join(self._parts)
        call = None
        if scanner is not None and scanner.complete:
            call = read_bare_call(text[self._begin : len(text) - len(self._short)], self._names)
        if call is None:
            self._give_up()
            return
        name, arguments, problem = call
        out.append(ToolCall(name, arguments, self._mint_id(), text, problem, "bare_json"))

    def _give_up(self) -> None:
        self.ended, self.again = True, "".join(self._parts)

    def _may_go_on(self, data: str) -> bool:
        scanner = self._scanner
        if scanner is None:
            return self._feed_head(data)
        return self._feed_tail(data if scanner.complete else data[scanner.feed(data) :])

    def _feed_head(self, data: str) -> bool:
        self._short += data
        head = _HEAD.match(self._short)
        if head is None:
            return len(self._short) <= _LIMIT and _HEAD_BEGINNING.fullmatch(self._short) is not None
        if head.end() > _LIMIT:
            return False
        self._begin, self._fence = head.start("begin"), head["fence"] or ""
        self._scanner = JsonScanner()
        rest = self._short[self._begin :]
        self._short = ""
        return self._feed_tail(rest[self._scanner.feed(rest) :])

    def _feed_tail(self, data: str) -> bool:
        """Behind the object only white space and the end of the fence may stand."""
        self._short += data
        said = self._short.strip()
        return len(self._short) <= _LIMIT and (not said or (self._fence != "" and not said.strip(self._fence[0])))
