"""Messages between a worker process and its parent: a length and that many bytes, over a pair of sockets.

Neither side ever blocks in a read or a write: what runs in a worker may send half a message, or read nothing, and its parent
still comes to its deadline.
"""

from __future__ import annotations

import os
import select
import struct
from collections.abc import Callable

__all__ = ["MAX_MESSAGE", "Channel", "Step"]

Step = Callable[[], float | None]
"""Called before each wait: gives the seconds until it wants to be called again (None for never), or raises to give up."""

MAX_MESSAGE = 256 << 20
"""Bytes of the longest message that is taken."""

_LENGTH = struct.Struct("!Q")
_CHUNK = 1 << 18


def _patient() -> None:
    return None


class Channel:
    """One end.

    Args:
        descriptor: Of a connected stream socket; it belongs to the channel from now on.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._read = bytearray()
        self._poll = select.poll()

    def send(self, data: bytes, step: Step = _patient) -> None:
        """Sends a message.

        Raises:
            OSError: The other side is gone.
        """
        left = memoryview(_LENGTH.pack(len(data)) + data)
        while left:
            try:
                left = left[os.write(self._descriptor, left[:_CHUNK]) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, step)

    def receive(self, step: Step = _patient) -> bytes:
        """The next message.

        Raises:
            EOFError: The other side is gone, or sent more than `MAX_MESSAGE`.
            OSError: The other side went without reading what it was sent.
        """
        while (message := self._whole()) is None:
            try:
                data = os.read(self._descriptor, _CHUNK)
            except BlockingIOError:
                self._wait(select.POLLIN, step)
                continue
            if not data:
                raise EOFError
            self._read += data
        return message

    def _whole(self) -> bytes | None:
        if len(self._read) < _LENGTH.size:
            return None
        end = _LENGTH.size + _LENGTH.unpack_from(self._read)[0]
        if end > MAX_MESSAGE:
            raise EOFError
        if len(self._read) < end:
            return None
        message = bytes(self._read[_LENGTH.size : end])
        del self._read[:end]
        return message

    def _wait(self, event: int, step: Step) -> None:
        seconds = step()
        self._poll.register(self._descriptor, event)
        self._poll.poll(None if seconds is None else max(seconds, 0.0) * 1000)

    def close(self) -> None:
        """Closes this end."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
