"""A turn in a thread of its own, and the questions that it asks of the thread that owns the terminal.

One thread reads and writes the terminal, always. The turn's thread, and the threads of its tools, put what they have to show and
to ask into one queue, in order, and wait there for their answers.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import events as ev
from ...errors import LollmsError
from .approval import Approval, change_of

if TYPE_CHECKING:
    from .session import Session

__all__ = ["Change", "Failure", "Question", "Tick", "TurnInThread"]

T = TypeVar("T")
TICK_SECONDS = 0.1
"""How often the terminal is told that time passes while nothing happens."""


@dataclass(slots=True)
class Question(Generic[T]):
    """Something that a person is asked; whoever asks waits for `answer`.

    Attributes:
        subject: An `Approval`, or the request of a tool (tool guide §13).
        otherwise: The answer where nobody gives one.
    """

    subject: Any
    otherwise: T
    _answers: queue.SimpleQueue[T] = field(default_factory=queue.SimpleQueue)

    def answer(self, value: T) -> None:
        """Lets the asking thread go on."""
        self._answers.put(value)

    def wait(self) -> T:
        """The answer."""
        return self._answers.get()


@dataclass(slots=True)
class Change:
    """What a call that begins is about to change, as lines of a diff."""

    lines: list[str]


@dataclass(slots=True)
class Failure:
    """The turn ended by an error."""

    error: Exception


class Tick:
    """Time passes."""


class TurnInThread:
    """Plays a turn in a thread.

    Args:
        session: The conversation.
        play: Gives the turn's events.

    Attributes:
        cancelled: The person stopped it.
    """

    def __init__(self, session: Session, play: Callable[[], Iterator[ev.Event]]) -> None:
        self._session, self._play = session, play
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._over = threading.Event()
        self.cancelled = False
        self._tools = {name for name, _ in session.tool_table()}
        self._thread = threading.Thread(target=self._run, name="lollms-chat-turn", daemon=True)

    def items(self) -> Iterator[Any]:
        """What there is to show and to ask, until the turn is over: events, `Change`, `Question`, `Failure` and `Tick`."""
        session = self._session
        session.confirm, session.answer = self._confirm, self._interact
        self._thread.start()
        try:
            while True:
                try:
                    item = self._queue.get(timeout=TICK_SECONDS)
                except queue.Empty:
                    item = Tick()
                if item is None:
                    return
                yield item
        finally:
            self._over.set()
            session.confirm = session.answer = None
            self._answer_what_is_left()

    def cancel(self) -> None:
        """Ends the turn; what it still asks is to be answered with `otherwise`."""
        self.cancelled = True
        self._session.cancel()

    def _run(self) -> None:
        try:
            for event in self._play():
                if self.cancelled:  # it may have been stopped before there was anything to stop
                    self._session.cancel()
                self._queue.put(event)
                if isinstance(event, ev.ToolStarted):
                    lines = change_of(self._session.workspace, event.call.name, event.call.arguments)
                    if lines:
                        self._queue.put(Change(lines))
        except LollmsError as error:
            self._queue.put(Failure(error))
        except Exception as error:  # noqa: BLE001 - the thread's boundary: the person is told, the program goes on
            _log(error)
            self._queue.put(Failure(error))
        finally:
            self._queue.put(None)

    def _ask(self, question: Question[T]) -> T:
        self._queue.put(question)
        return question.otherwise if self._over.is_set() else question.wait()

    def _confirm(self, source: str, label: str, argv: list[Any] | None = None) -> tuple[Any, ...]:
        refused: tuple[Any, ...] = ("reject", "The user stopped the turn.")
        return self._ask(Question(Approval.of(source, label, argv, self._tools), refused))

    def _interact(self, request: dict[str, Any]) -> str | None:
        nothing: str | None = None
        return self._ask(Question(dict(request), nothing))

    def _answer_what_is_left(self) -> None:
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return
            if isinstance(item, Question):
                item.answer(item.otherwise)


def _log(error: Exception) -> None:
    from logging import getLogger

    getLogger(__name__).error("a turn failed", exc_info=error)
