"""A reply that is nothing but one JSON object of a call's shape, fenced or not (CONTRACT J, where a model's profile says so)."""

from __future__ import annotations

import re

from .bodies import JsonScanner
from .calls import Call, read_bare_call

__all__ = ["BareCall"]

_HEAD_LIMIT = 512
_KEYS = "name|parameters|arguments|id|type"
_HEAD = re.compile(rf"\s*(?:(?P<fence>`{{3,}}|~{{3,}})[ \t]*[\w-]*[ \t]*\r?\n\s*)?(?P<begin>\{{)\s*\"(?:{_KEYS})\"\s*:")
_HEAD_BEGINNING = re.compile(r"\s*(?:(?:`+|~+)[ \t]*[\w-]*[ \t]*\r?(?:\n\s*)?)?(?:\{\s*(?:\"(?:[a-z]*(?:\"\s*)?)?)?)?")


class BareCall:
    """Collects a reply while it may still be such an object.

    Args:
        names: The tools that are mounted.
    """

    __slots__ = ("_begin", "_fence", "_names", "_parts", "_scanner", "_short")

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._parts: list[str] = []
        self._short = ""  # what stands before the first value, then what stands behind the object
        self._scanner: JsonScanner | None = None
        self._begin = 0
        self._fence = ""

    @property
    def text(self) -> str:
        """Everything, as it came."""
        return "".join(self._parts)

    def feed(self, data: str) -> bool:
        """Take the next piece; returns whether the reply may still be nothing but a call."""
        self._parts.append(data)
        scanner = self._scanner
        if scanner is None:
            return self._feed_head(data)
        return self._feed_tail(data if scanner.complete else data[scanner.feed(data) :])

    def finish(self) -> Call | None:
        """The call, None where the reply was none."""
        if self._scanner is None or not self._scanner.complete:
            return None
        text = self.text
        return read_bare_call(text[self._begin : len(text) - len(self._short)], self._names)

    def _feed_head(self, data: str) -> bool:
        self._short += data
        head = _HEAD.match(self._short)
        if head is None:
            return len(self._short) <= _HEAD_LIMIT and _HEAD_BEGINNING.fullmatch(self._short) is not None
        if head.end() > _HEAD_LIMIT:
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
        if len(self._short) > _HEAD_LIMIT:
            return False
        return not said or (bool(self._fence) and said.strip(self._fence[0]) == "")
