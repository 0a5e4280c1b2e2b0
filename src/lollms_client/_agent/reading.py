"""Reads a model's reply: its deltas into events that are shown as they come, and into what the round acts on afterwards."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from .._stream.deltas import ReasoningDelta, SignedDelta
from .._text.outline import Outline
from ..events import (
    ArtefactChunk,
    ArtefactEnd,
    ArtefactRevert,
    ArtefactStart,
    ArtefactSymbol,
    DoneTag,
    EffortChange,
    Event,
    Notice,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    WorkerRequest,
)
from .guards import LoopWatch
from .state import ArtefactBlock, OpenRound, Reply, call_key

if TYPE_CHECKING:
    from .._stream.deltas import Delta
    from .turn import Turn

__all__ = ["read_reply"]


def read_reply(turn: Turn, now: OpenRound) -> Generator[Event, None, bool]:
    """Asks the model, and reads its reply into the round.

    Args:
        turn: The running turn.
        now: Its open round.

    Yields:
        What is shown as it comes: text, thoughts, artefacts.

    Returns:
        Whether that is the whole reply: False for a turn that was cancelled.
    """
    view, reply = turn.view(), now.reply
    reader = turn.dialect.reader(view, turn.mint_id)
    sorter, heard = _Sorter(turn, now), _Heard(reply)
    deltas = turn.host.model.stream(turn.dialect.request(view), turn.cancel)
    try:
        for delta in deltas:
            for event in reader.feed(heard.take(delta)):
                yield from sorter.take(event)
            if turn.cancelled() or reply.looped:
                break
    finally:
        close = getattr(deltas, "close", None)
        if close is not None:
            close()
        reply.raw = heard.text()
        sorter.finish()
    for event in reader.close():
        yield from sorter.take(event)
    sorter.finish()
    reply.raw = turn.dialect.kept(reply.raw, view, apart=heard.apart)
    if reply.looped:  # each call once, and none that was cut with it
        reply.calls = list({call_key(call): call for call in reversed(reply.calls) if not call.problem}.values())[::-1]
    now.read = not turn.cancelled()
    return now.read


class _Heard:
    """What the backend gave, as it came; a text or a thought that goes round in circles is cut there.

    Args:
        reply: Is told what is no text.

    Attributes:
        apart: The backend keeps thoughts apart from the text, and gave one before it.
    """

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._text, self._thoughts = LoopWatch(), LoopWatch()
        self.apart = False

    def take(self, delta: Delta) -> Delta:
        """Takes the next piece; gives what is to be read of it."""
        reply = self._reply
        if isinstance(delta, str):
            kept = self._text.take(delta)
            reply.looped = self._text.looped
            return kept
        if isinstance(delta, ReasoningDelta):
            self.apart = self.apart or not self._text.taken
            kept = self._thoughts.take(delta.text)
            reply.looped = self._thoughts.looped
            return delta if len(kept) == len(delta.text) else ReasoningDelta(kept)
        if isinstance(delta, SignedDelta):
            reply.signed.append({"fields": delta.fields, "calls": delta.calls})
        return delta

    def text(self) -> str:
        """The text so far."""
        return self._text.text()


class _Sorter:
    """Puts each event where the round looks for it."""

    def __init__(self, turn: Turn, now: OpenRound) -> None:
        self._turn, self._reply = turn, now.reply
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._block: ArtefactBlock | None = None
        self._body: list[str] = []
        self._outline: Outline | None = None

    def take(self, event: Event) -> Iterator[Event]:
        """Sorts an event; yields what is shown of it."""
        if isinstance(event, TextDelta):
            self._text.append(event.text)
            yield event
        elif isinstance(event, ThoughtDelta):
            self._thoughts.append(event.text)
            yield event
        elif isinstance(event, ToolCall):
            self._reply.calls.append(event)
        elif isinstance(event, Usage):
            self._reply.usage = event
        elif isinstance(event, DoneTag):
            self._reply.done = True
            yield event
        else:
            yield from self._rarer(event)

    def _rarer(self, event: Event) -> Iterator[Event]:
        reply = self._reply
        if isinstance(event, EffortChange):
            yield from self._effort(event)
        elif isinstance(event, WorkerRequest):
            reply.calls.append(_worker_call(event, self._turn.mint_id()))
        elif isinstance(event, ArtefactRevert):
            reply.artefacts.append(ArtefactBlock(event.name, revert=event.version))
        elif isinstance(event, (ArtefactStart, ArtefactChunk, ArtefactEnd)):
            yield event
            yield from self._artefact(event)
        else:
            yield event

    def _effort(self, event: EffortChange) -> Iterator[Event]:
        if not self._turn.options.dynamic_effort:
            return
        if self._turn.place_of_effort(event.level) is None:
            yield Notice(f"The model asked for an effort that nobody knows: {event.level!r}.", "warning", "effort")
            return
        self._reply.effort = event.level
        yield event

    def _artefact(self, event: ArtefactStart | ArtefactChunk | ArtefactEnd) -> Iterator[Event]:
        if isinstance(event, ArtefactStart):
            self._block, self._body = ArtefactBlock(event.name, event.type, event.language), []
            self._outline = Outline(event.name, event.language)
            return
        if isinstance(event, ArtefactChunk):
            self._body.append(event.text)
            units = self._outline.feed(event.text) if self._outline is not None else []
        else:
            units = self._outline.close() if self._outline is not None else []
        yield from (ArtefactSymbol(event.name, unit.header, unit.line) for unit in units)
        if isinstance(event, ArtefactEnd) and self._block is not None:
            self._block.body, self._block.complete = "".join(self._body), event.complete
            self._reply.artefacts.append(self._block)
            self._block = None

    def finish(self) -> None:
        """What was said so far, as one text."""
        self._reply.text, self._reply.thoughts = "".join(self._text), "".join(self._thoughts)


def _worker_call(asked: WorkerRequest, call_id: str) -> ToolCall:
    arguments = {**asked.attributes, "name": asked.name, "task": asked.task, "context_files": asked.context_files}
    problem = "" if asked.task else "An <agent> needs a <task>…</task> that says what it is to do."
    return ToolCall(ToolCall.WORKER, arguments, call_id, "", problem, ToolCall.WORKER)
