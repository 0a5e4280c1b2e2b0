"""Server-sent events from bytes that arrive in any pieces.

Source: the event stream format of the WHATWG HTML standard, §9.2.6 (fields data, event, id; comments; CR, LF and CRLF line ends).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["SseEvent", "SseParser", "parse_sse"]

_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class SseEvent:
    """One event: its data lines joined by newlines, and its name and id where it has them."""

    data: str
    event: str = ""
    id: str = ""


class SseParser:
    """A parser to be fed with bytes. Its cost is linear in their number, however they are cut.

    An event that no empty line ended is given by `close`: servers are known to forget the last one.
    """

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._after_cr = False
        self._first = True
        self._data: list[str] = []
        self._event = self._id = ""

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that `chunk` completes."""
        if self._after_cr and chunk:
            chunk = chunk[1:] if chunk.startswith(b"\n") else chunk
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        lines = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._pending.append(lines[0])
        if len(lines) == 1:
            return []
        lines[0] = b"".join(self._pending)
        self._pending = [lines.pop()]
        return [event for line in lines if (event := self._line(line)) is not None]

    def close(self) -> list[SseEvent]:
        """The event that the end of the stream completes, if any."""
        last = b"".join(self._pending)
        self._pending = []
        events = [self._line(last)] if last else []
        return [event for event in [*events, self._dispatch()] if event is not None]

    def _line(self, line: bytes) -> SseEvent | None:
        if self._first:
            line, self._first = line.removeprefix(_BOM), False
        if not line:
            return self._dispatch()
        name, _, raw = line.partition(b":")
        value = raw.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
        elif name == b"id":
            self._id = value
        return None

    def _dispatch(self) -> SseEvent | None:
        data, event = self._data, self._event
        self._data, self._event = [], ""
        return SseEvent("\n".join(data), event, self._id) if data else None


def parse_sse(chunks: Iterable[bytes]) -> Iterator[SseEvent]:
    """The events of a whole stream, each as soon as it is complete."""
    parser = SseParser()
    for chunk in chunks:
        yield from parser.feed(chunk)
    yield from parser.close()
