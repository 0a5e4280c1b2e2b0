"""The child's side of `workers.py`: runs one call after the other until its parent is gone."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from ..errors import ToolError
from .channel import Channel
from .stand_ins import StandIns, error_of, raised
from .workspace import change_to

__all__ = ["main"]


class _Parent:
    """The way to the parent. While a call runs, it may be asked; the answer comes before anything else does."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.lock = threading.RLock()
        self.in_call = False
        self.stand_ins = StandIns()
        self.questions: dict[str, _Question] = {}

    def begin(self, data: bytes) -> tuple[str, Callable[..., Any], tuple[Any, ...]]:
        """Begins a call: its workspace, its function and the arguments."""
        self.in_call, self.stand_ins = True, StandIns()
        order: tuple[str, Callable[..., Any], tuple[Any, ...]] = self._loaded(data)
        return order

    def ask(self, handler: str, args: tuple[Any, ...]) -> Any:
        """Asks a handler; None where nobody listens, since the thread that asks was left behind by a call."""
        with self.lock:
            return self._exchange({"ask": handler, "args": args}, default=str) if self.in_call else None

    def live(self, operation: str, number: int, *arguments: Any) -> Any:
        """Asks about a live object."""
        with self.lock:
            if not self.in_call:
                raise ToolError("The host's objects can be used while the call that was given them runs, and it has ended.")
            return self._exchange({"live": operation, "of": number, "args": [self.stand_ins.encode(one) for one in arguments]})

    def reply(self, message: dict[str, Any]) -> None:
        """Ends the call."""
        with self.lock:
            self.in_call = False
            self._say(message)

    def _exchange(self, message: dict[str, Any], default: Callable[[Any], Any] | None = None) -> Any:
        self._say(message, default)
        while True:
            kind, *said = self._loaded(self.channel.receive())
            if kind == "callback":
                self._call_back(*said)
            elif kind == "raised":
                raise error_of(*said)
            else:
                return said[0]

    def _call_back(self, number: int, args: tuple[Any, ...], more: dict[str, Any]) -> None:
        try:
            said: dict[str, Any] = {"returned": self.stand_ins.encode(self.stand_ins.callbacks[number](*args, **more))}
        except BaseException as error:  # noqa: BLE001 - it is for whoever called back, in the parent
            said = {"raised": raised(error)}
        self._say(said)

    def _say(self, message: dict[str, Any], default: Callable[[Any], Any] | None = None) -> None:
        self.channel.send(json.dumps(message, default=default).encode())

    def _loaded(self, data: bytes) -> Any:
        return _Unpickler(io.BytesIO(data), self).load()


class _Question:
    """Stands for a handler of the parent."""

    def __init__(self, parent: _Parent, name: str) -> None:
        self.parent, self.name = parent, name

    def __call__(self, *args: Any, **more: Any) -> Any:
        answer = self.parent.ask(self.name, (*args, *more.values()))
        if self.name == "confirm_handler":
            return tuple(answer) if answer else ("reject", "Nobody can be asked outside a call.")
        return answer


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, parent: _Parent) -> None:
        super().__init__(file)
        self._parent = parent

    def persistent_load(self, pid: Any) -> Any:
        kind, which = pid
        if kind == "live":
            return self._parent.stand_ins.of(self._parent, which)
        return self._parent.questions.setdefault(which, _Question(self._parent, which))


def _die_with_parent(lifeline: int) -> None:
    def watch() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGKILL)  # this process leads its session: what a tool started goes too

    threading.Thread(target=watch, name="lollms-lifeline", daemon=True).start()


def _call(parent: _Parent, data: bytes) -> dict[str, Any]:
    try:
        workspace, function, args = parent.begin(data)
        change_to(workspace)
        return {"value": function(*args)}
    except BaseException as error:  # noqa: BLE001 - the parent hears of it and decides
        return {"error": f"{type(error).__name__}: {error}" if str(error) else type(error).__name__}


def main(connection: int, lifeline: int) -> None:
    """Serves calls.

    Args:
        connection: File descriptor of the socket to the parent.
        lifeline: File descriptor that closes when the parent ends.
    """
    parent = _Parent(Channel(connection))
    _die_with_parent(lifeline)
    alone = threading.active_count()
    while True:
        try:
            data = parent.channel.receive()
        except (EOFError, OSError):
            break
        message = _call(parent, data)
        message["soiled"] = threading.active_count() > alone
        sys.stdout.flush()
        parent.reply(message)
    os._exit(0)
