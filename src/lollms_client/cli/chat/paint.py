"""Two kinds of lines on a terminal: those that are finished, printed once, and the open ones below, which are painted again.

Only as many open lines are painted as fit on the screen, so nothing that scrolled away is ever touched, and lines are overwritten
in place, in one write, so nothing flickers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["Painter"]


class Painter:
    """Paints lines.

    Args:
        write: Writes to the terminal and flushes.
        height: The terminal's height in lines, now.
    """

    def __init__(self, write: Callable[[str], None], height: Callable[[], int]) -> None:
        self._write, self._height = write, height
        self._open = 0
        self._last: tuple[str, ...] = ()

    def print(self, finished: Sequence[str], below: Sequence[str] = ()) -> None:
        """Prints lines for good, and paints the open ones below them.

        Args:
            finished: Lines that never change again, each no wider than the terminal.
            below: Open lines; only the last ones are painted where they do not fit.
        """
        room = max(1, self._height() - 2)
        shown = tuple(below[-room:])
        if not finished and shown == self._last:
            return
        up = f"\x1b[{self._open}A" if self._open else ""
        body = "".join(f"{line}\x1b[K\n" for line in (*finished, *shown))
        rest = "\x1b[J" if self._open > len(finished) + len(shown) else ""
        self._write(f"{up}\r{body}{rest}" if self._open else body)
        self._open, self._last = len(shown), shown

    def clear(self) -> None:
        """Takes the open lines away."""
        if self._open:
            self._write(f"\x1b[{self._open}A\r\x1b[J")
        self._open, self._last = 0, ()
