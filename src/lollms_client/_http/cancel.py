"""The token by which one thread tells another to stop."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from ..errors import CancelledError

__all__ = ["CancelToken", "cancellable_by", "nested_token", "surround", "surrounding_token"]


class CancelToken:
    """Cancelled at most once, for good; safe to use from any thread.

    A callback registered with `on_cancel` runs in the thread that cancels, once, or at once where the token is cancelled already.

    Attributes:
        cancelled: Whether `cancel` was called.
    """

    __slots__ = ("_callbacks", "_lock", "_waiting", "cancelled")

    def __init__(self) -> None:
        self.cancelled = False
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], object]] = {}
        self._waiting: list[threading.Event] = []  # made where somebody waits: each call of a tool has a token, and few wait

    def is_set(self) -> bool:
        """Whether `cancel` was called, under the name that `threading.Event` has for it."""
        return self.cancelled

    def cancel(self) -> None:
        """Cancel: wake whoever waits, then run the callbacks."""
        with self._lock:
            self.cancelled = True
            callbacks, self._callbacks = list(self._callbacks.values()), {}
            for waits in self._waiting:
                waits.set()
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Have `callback` run when the token is cancelled.

        Returns:
            A function that takes the callback back; calling it again does nothing.
        """
        key = object()
        with self._lock:
            waits = not self.cancelled
            if waits:
                self._callbacks[key] = callback
        if not waits:
            callback()

        def forget() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return forget

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the token is cancelled, at most `timeout` seconds; returns whether it is."""
        waits = threading.Event()
        with self._lock:
            if self.cancelled:
                return True
            self._waiting.append(waits)
        try:
            return waits.wait(timeout)
        finally:
            with self._lock:
                self._waiting.remove(waits)

    def raise_if_cancelled(self) -> None:
        """Raise CancelledError where the token is cancelled.

        Raises:
            CancelledError: The token is cancelled.
        """
        if self.cancelled:
            raise CancelledError("The request was cancelled.")


_surrounding: ContextVar[CancelToken | None] = ContextVar("lollms_cancel_token", default=None)


def surrounding_token() -> CancelToken | None:
    """The token by which whoever surrounds this code ends what it calls, None where nobody does."""
    return _surrounding.get()


def nested_token() -> tuple[CancelToken, Callable[[], None]]:
    """A token that is cancelled with the surrounding one too, and what unties the two again."""
    token, around = CancelToken(), surrounding_token()
    return token, around.on_cancel(token.cancel) if around is not None else _nothing


def _nothing() -> None:
    return None


def surround(token: CancelToken) -> None:
    """In this context from now on, requests and turns end when the token is cancelled."""
    _surrounding.set(token)


@contextlib.contextmanager
def cancellable_by(token: CancelToken) -> Iterator[None]:
    """Within this block, and in threads that take over its context, requests and turns end when the token is cancelled."""
    before = _surrounding.set(token)
    try:
        yield
    finally:
        _surrounding.reset(before)
