"""The client for programs with an event loop: each call can be awaited, a turn's events can be iterated over.

The core is synchronous; here stands one adapter for all of it. A call runs in a thread of its own, never in the loop's, so
nothing blocks the loop, and however many calls run, none waits for a thread. A task that is cancelled cancels its call, and that
call alone.

Source: developer guide §10 (asynchronous operations), docs/architecture.md.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextvars import copy_context
from typing import Any, TypeVar

from ._http.cancel import CancelToken, cancellable_by
from .events import Event
from .lollms_core import LollmsClient

__all__ = ["AsyncLollmsClient"]

R = TypeVar("R")

AHEAD = 256
"""Events that a turn may be ahead of who iterates over them."""


async def _in_thread(function: Callable[[], R]) -> R:
    """What a function gives, called in a thread of its own with this task's context; cancelled with this task."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()
    token = CancelToken()

    def settle(method: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            method(value)

    def run() -> None:
        try:
            with cancellable_by(token):
                value = function()
        except BaseException as error:  # noqa: BLE001 - raised again in the task
            _post(loop, settle, future.set_exception, error)
        else:
            _post(loop, settle, future.set_result, value)

    threading.Thread(target=copy_context().run, args=(run,), name="lollms-async-call", daemon=True).start()
    try:
        return await future
    except asyncio.CancelledError:
        token.cancel()
        raise


def _post(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: Any) -> None:
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:  # the loop was closed: nobody waits any more
        return


def _awaited(method: Callable[..., R]) -> Callable[..., Coroutine[Any, Any, R]]:
    """A method of the client as one that is awaited."""

    @functools.wraps(method)
    async def call(self: AsyncLollmsClient, *args: Any, **kwargs: Any) -> R:
        return await _in_thread(lambda: method(self.client, *args, **kwargs))

    return call


def _iterated(method: Callable[..., Iterator[Event]]) -> Callable[..., AsyncIterator[Event]]:
    """A method that plays a turn as one whose events are iterated over; leaving the iteration ends the turn."""

    @functools.wraps(method)
    async def play(self: AsyncLollmsClient, *args: Any, **kwargs: Any) -> AsyncIterator[Event]:
        turn = _Turn(lambda: method(self.client, *args, **kwargs))
        try:
            while (event := await turn.next()) is not None:
                yield event
        finally:
            turn.token.cancel()

    return play


class _Turn:
    """A turn that plays in a thread of its own, a little ahead of who listens."""

    def __init__(self, begin: Callable[[], Iterator[Event]]) -> None:
        self.token = CancelToken()
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()
        self._room = threading.Semaphore(AHEAD)
        self.token.on_cancel(self._room.release)  # whoever waits for room goes on, and finds the turn cancelled
        threading.Thread(target=copy_context().run, args=(self._play, begin), name="lollms-async-turn", daemon=True).start()

    def _play(self, begin: Callable[[], Iterator[Event]]) -> None:
        end: BaseException | None = None
        try:
            with cancellable_by(self.token):
                for event in begin():
                    if not self.token.cancelled:  # nobody makes room any more; a cancelled turn goes on to its end
                        self._room.acquire()
                    _post(self._loop, self._events.put_nowait, event)
        except BaseException as error:  # noqa: BLE001 - raised again in the task
            end = error
        _post(self._loop, self._events.put_nowait, end)

    async def next(self) -> Event | None:
        """The next event, None behind the last."""
        event = await self._events.get()
        if isinstance(event, BaseException):
            raise event
        self._room.release()
        return event


class AsyncLollmsClient:
    """A `LollmsClient` whose calls are awaited; their arguments, returns and errors are the same.

    Every method of `LollmsClient` stands here: `run_turn` is iterated over (`async for event in client.run_turn(…)`), `cancel`
    and what only splits a text answer at once, all others are awaited. Streaming callbacks and handlers are called in the call's
    own thread.

    Args:
        client: A client that is there already; else one is built.
        **settings: What `LollmsClient` takes.

    Attributes:
        client: The synchronous client. Its attributes (`llm`, `tools`, registries …) are found here too.
    """

    def __init__(self, client: LollmsClient | None = None, **settings: Any) -> None:
        self.client = client if client is not None else LollmsClient(**settings)

    def __getattr__(self, name: str) -> Any:
        if name in _INNER:
            raise AttributeError(f"AsyncLollmsClient has no {name!r}; it belongs to its synchronous client, as client.{name}.")
        return getattr(self.client, name)

    async def __aenter__(self) -> AsyncLollmsClient:
        """The client itself; it is closed at the end of the `async with` block."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the client."""
        await _in_thread(self.client.close)


_AT_ONCE = frozenset({"cancel", "extract_code_blocks", "extract_thinking_blocks", "remove_thinking_blocks"})
_INNER = frozenset({"generator", "manager_of", "need", "thinking_tags", "turn_with"})


def _adapt() -> None:
    for name in dir(LollmsClient):
        method = getattr(LollmsClient, name)
        if name.startswith("_") or name in _AT_ONCE | _INNER or not inspect.isfunction(method):
            continue
        setattr(AsyncLollmsClient, name, _iterated(method) if name == "run_turn" else _awaited(method))


_adapt()
