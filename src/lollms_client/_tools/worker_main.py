"""The child's side of `workers.py`: runs one call after the other until its parent is gone."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

from .workspace import change_to

__all__ = ["main"]


class _Parent:
    """The pipe to the parent. A question may be asked while a call runs; the answer comes before anything else does."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.lock = threading.Lock()
        self.in_call = False

    def ask(self, handler: str, args: tuple[Any, ...]) -> Any:
        with self.lock:
            if not self.in_call:  # a thread that a tool left behind asks, and nobody listens
                return None
            self.pipe.send_bytes(json.dumps({"ask": handler, "args": args}, default=str).encode())
            return json.loads(self.pipe.recv_bytes())

    def reply(self, message: dict[str, Any]) -> None:
        with self.lock:
            self.in_call = False
            self.pipe.send_bytes(json.dumps(message).encode())


class _Question:
    """Stands for a handler of the parent."""

    def __init__(self, parent: _Parent, name: str) -> None:
        self.parent, self.name = parent, name

    def __call__(self, *args: Any, **more: Any) -> Any:
        answer = self.parent.ask(self.name, (*args, *more.values()))
        if self.name == "confirm_handler":
            return tuple(answer) if answer else ("reject", "Nobody can be asked outside a call.")
        return answer


def _unpickled(data: bytes, parent: _Parent, questions: dict[str, _Question]) -> Any:
    class Unpickler(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> _Question:
            return questions.setdefault(str(pid), _Question(parent, str(pid)))

    return Unpickler(io.BytesIO(data)).load()


def _die_with_parent(lifeline: int) -> None:
    def watch() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGKILL)  # this process leads its session: what a tool started goes too

    threading.Thread(target=watch, name="lollms-lifeline", daemon=True).start()


def _call(parent: _Parent, data: bytes, questions: dict[str, _Question]) -> dict[str, Any]:
    try:
        workspace, function, args = _unpickled(data, parent, questions)
        change_to(workspace)
        return {"value": function(*args)}
    except BaseException as error:  # noqa: BLE001 - the parent hears of it and decides
        return {"error": f"{type(error).__name__}: {error}" if str(error) else type(error).__name__}


def main(pipe: int, lifeline: int) -> None:
    """Serves calls.

    Args:
        pipe: File descriptor of the connection to the parent.
        lifeline: File descriptor that closes when the parent ends.
    """
    parent = _Parent(Connection(pipe))
    _die_with_parent(lifeline)
    questions: dict[str, _Question] = {}
    alone = threading.active_count()
    while True:
        try:
            data = parent.pipe.recv_bytes()
        except (EOFError, OSError):
            break
        parent.in_call = True
        message = _call(parent, data, questions)
        message["soiled"] = threading.active_count() > alone
        sys.stdout.flush()
        parent.reply(message)
    os._exit(0)
