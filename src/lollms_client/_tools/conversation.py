"""What is said between this process and a worker during one call: the order, questions and their answers, the result."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any

from .._http.cancel import cancellable_by, nested_token
from ..errors import LollmsError, ToolError
from .calls import RunningCall
from .channel import Channel
from .live import Live, LiveObjects
from .stand_ins import error_of, raised

__all__ = ["Clock", "Conversation", "Over"]

POLL_SECONDS = 0.05


class Over(LollmsError):
    """Ends a conversation before its result came.

    Attributes:
        outcome: "late" or "cancelled".
    """

    def __init__(self, outcome: str) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Clock:
    """Says how long a call may still be waited for; the time that a person takes does not count.

    Args:
        call: The call.
        timeout: Seconds, None for no limit.
    """

    def __init__(self, call: RunningCall, timeout: float | None) -> None:
        self._call, self._timeout, self._started = call, timeout, time.monotonic()

    def __call__(self) -> float | None:
        """Seconds until it is to be called again, None for never.

        Raises:
            Over: There are none left.
        """
        cancelled = self._call.cancelled
        if cancelled is not None and cancelled.is_set():
            raise Over("cancelled")
        step = POLL_SECONDS if cancelled is not None else None
        if self._timeout is None:
            return step
        left = self._timeout + self._call.waited() - (time.monotonic() - self._started)
        if left <= 0:
            raise Over("late")
        return left if step is None else min(step, left)


class Conversation:
    """What is said about one call, to whichever worker runs it.

    Args:
        call: The call.
        timeout: Seconds until it is given up, None for no limit. Waiting for a person does not count.
        handlers: The handlers that the worker may ask, by name.

    Attributes:
        begun: The call is known to have begun.
    """

    def __init__(self, call: RunningCall, timeout: float | None, handlers: Mapping[str, Callable[..., Any]]) -> None:
        self.begun = False
        self._call, self._timeout, self._handlers = call, timeout, handlers
        self._live = LiveObjects(self._callback)
        self._turn = threading.RLock()  # of whoever reads the channel
        self._answering = 0

    def order(self, workspace: str, function: Callable[..., Any], args: tuple[Any, ...], lent: Any = None) -> bytes:
        """What the worker is told to do: `function(*args)`, or `function(*args, lent)` with live objects in what is lent.

        Raises:
            ToolError: Something in it cannot cross.
        """
        given = args if lent is None else (*args, self._live.share(lent))
        return self._pickled((workspace, function, given))

    def hold(self, channel: Channel, order: bytes) -> dict[str, Any]:
        """Sends the order, answers what is asked, and returns the reply.

        Raises:
            Over: The time was up.
            EOFError: The worker went, or said something that makes no sense.
            OSError: It went before it read all.
        """
        self.begun = False
        self._channel, self._clock = channel, Clock(self._call, self._timeout)
        channel.send(order, self._clock)
        return self._until("value", "error", answer_live=self._in_thread)

    def _until(self, *ends: str, answer_live: Callable[[dict[str, Any]], tuple[Any, ...]]) -> dict[str, Any]:
        while True:
            message = _parsed(self._channel.receive(self._clock))
            self._clock()
            if any(end in message for end in ends):
                return message
            self.begun = True
            if "live" in message:
                answer = answer_live(message)
            elif message.get("ask") in self._handlers and isinstance(message.get("args"), list):
                answer = _answered(self._handlers[message["ask"]], *message["args"])
            else:
                raise EOFError
            self._say(answer)

    def _say(self, answer: tuple[Any, ...]) -> None:
        self._channel.send(self._pickled(answer), self._clock)

    # Live objects.

    def _in_thread(self, message: dict[str, Any]) -> tuple[Any, ...]:
        """Answers in a thread of its own, so that the deadline of the tool holds while the host's object works."""
        found: list[tuple[Any, ...]] = []
        done, (given_up, untie) = threading.Event(), nested_token()
        context = copy_context()

        def work() -> None:
            try:
                with cancellable_by(given_up):
                    found.append(self._answer(message))
            finally:
                done.set()

        threading.Thread(target=context.run, args=(work,), name=f"lollms-host-of-{self._call.name}", daemon=True).start()
        try:
            while not done.is_set():
                done.wait(self._clock())
        except Over:
            given_up.cancel()  # what the host asks of a model for the tool
            raise
        finally:
            untie()
        if not found:
            raise EOFError
        return found[0]

    def _answer(self, message: dict[str, Any]) -> tuple[Any, ...]:
        self._answering += 1
        try:
            return _answered(self._live.answer, message["live"], message.get("of"), message.get("args"))
        finally:
            self._answering -= 1

    def _callback(self, number: int) -> Callable[..., Any]:
        """A function that runs a callback in the worker that gave it."""

        def call_back(*args: Any, **more: Any) -> Any:
            with self._turn:
                if not self._answering:
                    raise ToolError(f"The callback of {self._call.name} was called after what it was given to had returned.")
                self._say(("callback", number, self._live.share(args), self._live.share(more)))
                try:
                    reply = self._until("returned", "raised", answer_live=self._answer)
                except (Over, EOFError, OSError) as error:
                    raise ToolError(f"{self._call.name} ended before its callback answered.") from error
            if "raised" in reply:
                name, said = reply["raised"]
                raise error_of(str(name), str(said))
            return self._live.given(reply["returned"])

        return call_back

    def _pickled(self, value: Any) -> bytes:
        """A value as a pickle in which handlers and live objects stand by name and number."""
        buffer = io.BytesIO()
        try:
            _Pickler(buffer, self._handlers).dump(value)
        except Exception as error:  # noqa: BLE001 - an object may raise anything when it is pickled
            failed = error
        else:
            return buffer.getvalue()
        raise ToolError(
            f"{self._call.name} runs in a worker process, and something that it is to be given cannot be handed to it: {failed}. "
            "Give it plain values, or let its calls run in this process (isolation='thread', and no TOOL_ISOLATION)."
        ) from failed


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, handlers: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._names = {id(handler): key for key, handler in handlers.items()}

    def persistent_id(self, one: Any) -> tuple[str, Any] | None:
        if type(one) is Live:
            return "live", one.number
        return ("handler", self._names[id(one)]) if id(one) in self._names else None


def _answered(question: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    try:
        return "answer", question(*args)
    except Exception as error:  # noqa: BLE001 - it is the tool's, which asked
        return "raised", *raised(error)


def _parsed(data: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        message = json.loads(data)
        if isinstance(message, dict):
            return message
    raise EOFError
