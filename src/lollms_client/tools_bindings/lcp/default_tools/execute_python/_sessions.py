"""Python processes that are held open between calls, so that variables stay."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lollms_client.errors import ToolError

if TYPE_CHECKING:
    from lollms_client._tools.calls import Cancelled

    from ._child import Child, Question, Ran, Script

__all__ = ["Key", "Sessions"]

IDLE = 900.0  # seconds after which a session that nobody used ends
_STOPPED = 10.0  # seconds for a script to be ended

Key = tuple[str, str]
"""The binding's session and the workspace."""


@dataclass(slots=True)
class _Held:
    """One session's process, under its lock; `level` is the one whose policy holds it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    child: Child | None = None
    level: str = ""
    slept: bool = False  # its process was ended because nobody used it

    def ready(self, level: str, start: Callable[[], Child]) -> tuple[Child, str]:
        """A process for this level, and what is to be said where it is not the one of the last call."""
        note = ""
        if self.child is not None and self.level != level:
            note = "The autonomy level changed, so this is a new session without the variables of the one before."
        elif self.child is not None and not self.child.alive():
            note = "The session's process had ended, so this is a new session without the variables of the one before."
        elif self.slept:
            note = "Nobody used the session for long, so this is a new one without the variables of the one before."
        self.slept = False
        if note:
            self.drop()
        if self.child is None:
            self.child, self.level = start(), level
        return self.child, note

    def drop(self) -> None:
        """Ends the process."""
        child, self.child = self.child, None
        if child is not None:
            child.end()


class Sessions:
    """The sessions of one library; they end when nobody used them for `idle` seconds, with `close`, and with this object."""

    def __init__(self) -> None:
        self.idle = IDLE
        self._held: dict[Key, _Held] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._end = weakref.finalize(self, _end_all, self._held)

    def run(
        self,
        key: Key,
        level: str,
        start: Callable[[], Child],
        script: Script,
        question: Question,
        cancelled: Cancelled | None,
    ) -> Ran:
        """Runs a script in a session's process, which is started where there is none.

        Args:
            key: Whose session.
            level: The autonomy level; under another one the session begins anew.
            start: Makes a process.
            script: What to run.
            question: Decides about attempts.
            cancelled: Ends it when set.

        Raises:
            ToolError: Another script runs in this session, and does not end.
        """
        with self._lock:
            held = self._held.setdefault(key, _Held())
        if not held.lock.acquire(timeout=script.seconds):
            raise ToolError("Another script runs in this session. Try again, or use session=false.")
        try:
            child, note = held.ready(level, start)
            ran = child.run(script, question, cancelled)
            if ran.ended:
                ran.notes.append("The session's variables are lost; the next call begins a new one.")
                held.drop()
            if note:
                ran.notes.append(note)
            return ran
        finally:  # a process that ended since it answered stays for the next call, which tells of it
            held.lock.release()
            self._watch()

    def count(self) -> int:
        """How many processes are held."""
        return sum(held.child is not None for held in self._held.values())

    def sweep(self) -> None:
        """Ends what nobody used for long."""
        for held in list(self._held.values()):
            if held.lock.acquire(blocking=False):  # else a script runs in it
                try:
                    if held.child is not None and time.monotonic() - held.child.used >= self.idle:
                        held.drop()
                        held.slept = True
                finally:
                    held.lock.release()

    def close(self) -> None:
        """Ends all of them."""
        with self._lock:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        _end_all(self._held)

    def _watch(self) -> None:
        """Sees to it that somebody looks again when the last one may have become idle."""
        with self._lock:
            if self._timer is not None or not self.count():
                return
            self._timer = threading.Timer(self.idle + 0.01, _look, (weakref.ref(self),))
            self._timer.daemon = True
            self._timer.name = "idle sessions of execute_python"
            self._timer.start()


def _look(where: weakref.ref[Sessions]) -> None:
    sessions = where()
    if sessions is not None:
        with sessions._lock:
            sessions._timer = None
        sessions.sweep()
        sessions._watch()


def _end_all(held: dict[Key, _Held]) -> None:
    for one in list(held.values()):
        if (running := one.child) is not None:
            running.stop()
        if one.lock.acquire(timeout=_STOPPED):  # else a script is still on its way out, and its process with it
            try:
                one.drop()
            finally:
                one.lock.release()
    held.clear()
