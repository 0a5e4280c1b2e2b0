"""What a confined program prints: kept up to a cap, and without what would steer a terminal."""

from __future__ import annotations

import re

__all__ = ["Kept", "clean"]

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x07|\x1b\\|$)|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]", re.DOTALL)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_OVERWRITTEN = re.compile(r"[^\n\r]*\r(?!\n|$)")


def clean(text: str) -> str:
    """A text without terminal controls; of a line that was written over, what stood there last."""
    if not text.isascii() or _CONTROLS.search(text):
        text = _SEQUENCE.sub("", text).replace("\r\n", "\n")
        text = _CONTROLS.sub("", _OVERWRITTEN.sub("", text))
    return text


class Kept:
    """The beginning and the end of an output.

    Args:
        limit: Bytes to keep.
    """

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head, self._tail = bytearray(), bytearray()
        self._cut = 0

    def add(self, data: bytes) -> None:
        """Takes more of it."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room < len(data) else b""
        if len(self._tail) > 2 * self._half:
            self._trim()

    def _trim(self) -> None:
        over = len(self._tail) - self._half
        if over > 0:
            self._cut += over
            del self._tail[:over]

    def text(self) -> tuple[str, int]:
        """What is kept, and how many bytes are not."""
        self._trim()
        if not self._cut:
            return clean((self._head + self._tail).decode("utf-8", "replace")), 0
        head, tail = (clean(part.decode("utf-8", "replace")) for part in (self._head, self._tail))
        return f"{head}\n[{self._cut} bytes are left out here]\n{tail}", self._cut
