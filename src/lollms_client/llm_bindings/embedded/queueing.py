"""Who goes next: a fixed number of places, given out in the order of asking."""

from __future__ import annotations

import collections
import threading

from ..._http.cancel import CancelToken

__all__ = ["FairPlaces", "Place"]


class Place:
    """One place that was given out; `leave` gives it back, once, from any thread."""

    __slots__ = ("_left", "_places")

    def __init__(self, places: FairPlaces) -> None:
        self._places, self._left = places, False

    def leave(self) -> None:
        """Give the place back; doing it again does nothing."""
        with self._places._lock:
            if self._left:
                return
            self._left = True
            self._places._give_on()


class FairPlaces:
    """A semaphore that serves first come, first served, and whose waiters can be cancelled.

    Args:
        count: Places to give out.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._free = count
        self._queue: collections.deque[threading.Event] = collections.deque()

    def take(self, cancel: CancelToken) -> Place:
        """Wait for a place.

        Raises:
            CancelledError: `cancel` fired first.
        """
        wake = threading.Event()
        with self._lock:
            if self._free and not self._queue:
                self._free -= 1
                return Place(self)
            self._queue.append(wake)
        forget = cancel.on_cancel(wake.set)
        try:
            wake.wait()
        finally:
            forget()
        with self._lock:
            if wake not in self._queue:  # a place was given to us, whether or not we are cancelled by now
                place = Place(self)
            else:
                self._queue.remove(wake)
                place = None
        if cancel.cancelled and place is not None:
            place.leave()
        cancel.raise_if_cancelled()
        assert place is not None
        return place

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._queue)

    def _give_on(self) -> None:
        if self._queue:
            self._queue.popleft().set()
        else:
            self._free += 1
