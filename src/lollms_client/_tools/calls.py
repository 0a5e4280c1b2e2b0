"""The call that runs right now, as its own thread, its nested calls and the handlers it asks can see it.

Context variables carry it: through the pool thread, into nested calls, not into threads that a tool starts by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

__all__ = [
    "CURRENT",
    "Cancelled",
    "ConfirmHandler",
    "InteractionHandler",
    "RunningCall",
    "autonomy_level",
    "waiting_for_a_person",
]

ConfirmHandler = Callable[..., Any]
"""`handler(source, script_label, argv=None) -> (decision, reason)` (tool guide §5)."""

InteractionHandler = Callable[[dict[str, Any]], Any]
"""`handler(request) -> str | None` (tool guide §13)."""


class Cancelled(Protocol):
    """What a call looks at to learn that its caller gave up; `threading.Event` is one."""

    def is_set(self) -> bool:
        """Whether the caller gave up."""
        ...


class RunningCall:
    """One call of a tool.

    Attributes:
        name: The tool.
        session: Names the session within the binding; what was allowed "always" holds in it.
        parent: The call that made this one from inside its tool.
        cancelled: Set when the caller gives up; a nested call inherits it.
        confirm_handler: A handler for this call alone.
        interaction_handler: The same for questions.
        granted: What a person approved for this call, by the hash of what they saw; taken by the first ask inside the tool.
        level: The autonomy level that holds for this call, "" where nobody said.
        lane: The thread of its own in which its library runs, "" for any.
    """

    __slots__ = (
        "_lock", "_since", "_waited", "_waiting", "cancelled", "confirm_handler", "granted", "interaction_handler", "lane",
        "level", "name", "parent", "session",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        *,
        session: str = "",
        parent: RunningCall | None = None,
        cancelled: Cancelled | None = None,
        confirm_handler: ConfirmHandler | None = None,
        interaction_handler: InteractionHandler | None = None,
        lane: str = "",
        level: str = "",
    ) -> None:
        self.name = name
        self.session = session
        self.parent = parent
        self.lane = lane
        self.level = level
        self.cancelled = cancelled
        self.confirm_handler = confirm_handler
        self.interaction_handler = interaction_handler
        self.granted: set[str] = set()
        self._lock = threading.Lock()
        self._waiting = 0
        self._waited = 0.0
        self._since = 0.0

    def chain(self) -> Iterator[RunningCall]:
        """This call and those around it, from the inside out."""
        call: RunningCall | None = self
        while call is not None:
            yield call
            call = call.parent

    def take_grant(self, *hashes: str) -> bool:
        """Uses up a person's approval of one of these hashes; False where there is none."""
        with self._lock:
            for one in hashes:
                if one in self.granted:
                    self.granted.discard(one)
                    return True
        return False

    def begin_wait(self) -> None:
        """From now on the call waits for a person, which is not the tool's time."""
        with self._lock:
            if self._waiting == 0:
                self._since = time.monotonic()
            self._waiting += 1

    def end_wait(self) -> None:
        """The person answered."""
        with self._lock:
            self._waiting -= 1
            if self._waiting == 0:
                self._waited += time.monotonic() - self._since

    def waited(self) -> float:
        """Seconds spent waiting for a person until now."""
        with self._lock:
            return self._waited + (time.monotonic() - self._since if self._waiting else 0.0)


CURRENT: ContextVar[RunningCall | None] = ContextVar("lollms_running_call", default=None)
"""The call in whose context this code runs."""


def autonomy_level(configured: str) -> str:
    """The autonomy level of the call that runs here: a turn may be played at another one than its library is configured to.

    Args:
        configured: What the library was told when it was loaded, which holds outside any call.
    """
    call = CURRENT.get()
    return (call.level if call is not None else "") or configured


@contextmanager
def waiting_for_a_person(call: RunningCall | None) -> Iterator[None]:
    """Stops the clocks of a call and of those around it while a handler has a person decide."""
    calls = list(call.chain()) if call is not None else []
    for one in calls:
        one.begin_wait()
    try:
        yield
    finally:
        for one in calls:
            one.end_wait()
