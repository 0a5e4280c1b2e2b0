"""Between a stream of deltas and the documented calls: what turns one into the other, both ways."""

from __future__ import annotations

import contextlib
import inspect
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

from .._http.cancel import CancelToken
from .._stream.deltas import Delta, FinishDelta, ReasoningDelta
from ..errors import CancelledError, ConfigurationError
from ..events import Event, TextDelta, ThoughtDelta
from ..lollms_types import MSG_TYPE
from .request import Capabilities

if TYPE_CHECKING:
    from .._stream.parser import StreamParser

__all__ = ["StreamingCallback", "adapted", "as_prompt", "call_with_known", "collect", "pieces_of_call"]

StreamingCallback = Callable[..., Any]
"""`cb(chunk, msg_type, params, metadata) -> bool`, of two to four positional parameters (CONTRACT C)."""

_NOTHING_KNOWN = Capabilities()
_OPEN, _CLOSE = "<think>", "</think>"


def collect(
    deltas: Iterator[Delta], callback: StreamingCallback | None, pieces: bool, capabilities: Capabilities = _NOTHING_KNOWN
) -> str:
    """The text of an answer.

    Args:
        deltas: The answer.
        callback: Told of it; False stops, and what came so far is kept.
        pieces: Whether the callback gets the pieces as they come (thoughts as thoughts), or the whole at the end.
        capabilities: How the model marks its thoughts.

    Returns:
        What the model wrote. Its thoughts stand in it between `<think>` and `</think>`, also where the backend keeps them apart,
        so that they can be found and taken out again (developer guide, "Thought Stream Handling").
    """
    say = adapted(callback) if callback is not None else None
    reader = _thought_reader(capabilities) if say is not None and pieces else None
    written = _Written(capabilities.implicit_think)
    with contextlib.ExitStack() as stack:
        close = getattr(deltas, "close", None)
        if close is not None:
            stack.callback(close)
        stack.enter_context(contextlib.suppress(CancelledError))
        for delta in deltas:
            written.take(delta)
            if reader is not None and say is not None and not _told(say, reader.feed(delta)):
                reader = None
                break
        if reader is not None and say is not None:
            _told(say, reader.close())
    whole = written.text()
    if say is not None and not pieces:
        say(whole, MSG_TYPE.MSG_TYPE_CONTENT)
    return whole


def _thought_reader(capabilities: Capabilities) -> StreamParser:
    """Tells thoughts from text; every other tag is text here."""
    from .._stream.options import ParserOptions
    from .._stream.parser import StreamParser

    thinking, tags = capabilities.thinking_tags, frozenset({"think"})
    return StreamParser(ParserOptions(implicit_think=capabilities.implicit_think, thinking_tags=thinking, tags=tags))


class _Written:
    """Puts an answer together as one text, thoughts between their delimiters."""

    def __init__(self, implicit_think: bool) -> None:
        self._parts: list[str] = []
        self._implicit = implicit_think
        self._apart = False  # in a thought that the backend keeps apart

    def take(self, delta: Delta) -> None:
        if isinstance(delta, str):
            self._switch(apart=False)
            if self._implicit and not self._parts:
                self._parts.append(_OPEN)
            self._parts.append(delta)
        elif isinstance(delta, ReasoningDelta):
            self._switch(apart=True)
            self._parts.append(delta.text)

    def _switch(self, *, apart: bool) -> None:
        if apart != self._apart:
            self._parts.append(_OPEN if apart else _CLOSE)
            self._apart = apart

    def text(self) -> str:
        self._switch(apart=False)
        return "".join(self._parts)


def _told(say: Callable[..., Any], events: list[Event]) -> bool:
    for event in events:
        if isinstance(event, TextDelta):
            heard = say(event.text, MSG_TYPE.MSG_TYPE_CHUNK)
        elif isinstance(event, ThoughtDelta):
            heard = say(event.text, MSG_TYPE.MSG_TYPE_THOUGHT_CHUNK)
        else:
            continue
        if heard is False:
            return False
    return True


def adapted(callback: StreamingCallback) -> Callable[..., Any]:
    """The callback as `say(chunk, msg_type, params=None)`, whether it takes two, three or four positional parameters.

    Raises:
        ConfigurationError: It takes fewer than two, or needs more than four.
    """
    try:
        parameters = list(inspect.signature(callback).parameters.values())
    except (TypeError, ValueError):  # a callable that says nothing about itself
        return lambda chunk, kind, params=None: callback(chunk, kind)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes = 4 if any(p.kind is p.VAR_POSITIONAL for p in parameters) else min(4, len(positional))
    if takes < 2 or sum(p.default is p.empty for p in positional) > 4:
        raise ConfigurationError(f"A streaming callback takes (chunk, msg_type[, params[, metadata]]); {callback!r} does not.")
    return lambda chunk, kind, params=None: callback(*(chunk, kind, params, None)[:takes])


def call_with_known(function: Callable[..., Any], said: Any, documented: dict[str, Any], ours: dict[str, Any]) -> str:
    """Call a third party's method with what it knows.

    Args:
        function: The method.
        said: The prompt or the messages.
        documented: Documented options; given where the method names them or takes any keyword. None means not said.
        ours: Options that only this library knows; given where the method names them.
    """
    parameters = inspect.signature(function).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    options = {name: value for name, value in documented.items() if takes_any or name in parameters}
    options |= {name: value for name, value in ours.items() if name in parameters}
    return str(function(said, **{name: value for name, value in options.items() if value is not None}))


def as_prompt(messages: list[dict[str, Any]]) -> tuple[str, str]:
    """A conversation as (system prompt, prompt), for a binding that takes no messages."""
    system = "\n\n".join(_text(m) for m in messages if m.get("role") == "system")
    rest = [m for m in messages if m.get("role") != "system"]
    if len(rest) == 1:
        return system, _text(rest[0])
    lines = [f"{str(m.get('role', 'user')).capitalize()}: {_text(m)}" for m in rest]
    return system, "\n\n".join([*lines, "Assistant:"])


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "" if content is None else str(content)


def pieces_of_call(call: Callable[[StreamingCallback], str], token: CancelToken) -> Generator[Delta, None, None]:
    """The pieces that a documented call hands to its callback, as a generator.

    The call runs in a thread of its own. When the consumer leaves or the token fires, its callback answers False.

    Raises:
        CancelledError: The token fired.
    """
    pieces: queue.SimpleQueue[str | BaseException | None] = queue.SimpleQueue()
    left, heard = threading.Event(), threading.Event()

    def callback(chunk: str, msg_type: Any = MSG_TYPE.MSG_TYPE_CHUNK, params: Any = None, metadata: Any = None) -> bool:
        if msg_type == MSG_TYPE.MSG_TYPE_CHUNK and not left.is_set():
            heard.set()
            pieces.put(str(chunk))
        return not left.is_set()

    def run() -> None:
        try:
            whole = call(callback)
            if not heard.is_set():
                pieces.put(whole)
            pieces.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again in the consumer's thread
            pieces.put(error)

    def cancelled() -> None:
        left.set()
        pieces.put(CancelledError("The request was cancelled."))

    forget = token.on_cancel(cancelled)
    threading.Thread(target=run, name="answer of a documented call", daemon=True).start()
    try:
        while (piece := pieces.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
        yield FinishDelta()
    finally:
        left.set()
        forget()
