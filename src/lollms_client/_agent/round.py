"""One round: a request, its reply read into events, its calls run, everything recorded."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from ..events import ApprovalRequested, DoneTag, Event, Notice, RoundEnded, RoundStarted, TextDelta, ToolCall, Usage
from .calls import run_calls
from .guards import STALL_NUDGE
from .turn import Turn

__all__ = ["play_round"]


@dataclass(slots=True)
class _Reply:
    raw: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    done: bool = False
    cut: bool = False


def play_round(turn: Turn) -> Generator[Event, None, str]:
    """Plays one round.

    Args:
        turn: The running turn.

    Yields:
        The round's events.

    Returns:
        The turn's new status: "" when it goes on, "completed", "cancelled", "waiting_approval" or "pending_tool".
    """
    turn.round = turn.state.rounds + 1
    started = time.perf_counter()
    yield RoundStarted(turn.round)
    reply = _Reply()
    try:
        yield from _read(turn, reply)
    finally:
        turn.state.texts.append("".join(reply.text))
        turn.state.add_usage(reply.usage)
    if turn.cancelled():
        _record_cut(turn, reply)
        return "cancelled"
    if reply.calls and not turn.options.auto_execute:
        turn.state.transcript.append({"role": "assistant", "content": "".join(reply.raw)})
        turn.state.rounds = turn.round
        yield reply.calls[0]
        return "pending_tool"
    status = yield from _act(turn, reply)
    turn.state.rounds = turn.round
    yield RoundEnded(turn.round, time.perf_counter() - started, reply.usage)
    return status


def _read(turn: Turn, reply: _Reply) -> Iterator[Event]:
    view = turn.view()
    reader = turn.dialect.reader(view, turn.mint_id)
    deltas = turn.host.model.stream(turn.dialect.request(view), turn.cancel)
    try:
        for delta in deltas:
            if isinstance(delta, str):
                reply.raw.append(delta)
            for event in reader.feed(delta):
                if _take(event, reply):
                    yield event
            if turn.cancelled():
                reply.cut = True
                break
    finally:
        close = getattr(deltas, "close", None)
        if close is not None:
            close()
    for event in reader.close():
        if _take(event, reply):
            yield event


def _take(event: Event, reply: _Reply) -> bool:
    """Sorts an event into the reply; False for what is not shown as it comes."""
    if isinstance(event, TextDelta):
        reply.text.append(event.text)
        return True
    if isinstance(event, ToolCall):
        reply.calls.append(event)
        return False
    if isinstance(event, Usage):
        reply.usage = event
        return False
    if isinstance(event, DoneTag):
        reply.done = True
    return True


def _record_cut(turn: Turn, reply: _Reply) -> None:
    """A reply that was cut off stays as the text that was seen: no call without a result enters the history."""
    text = "".join(reply.text)
    if text:
        turn.state.transcript.append({"role": "assistant", "content": text})


def _act(turn: Turn, reply: _Reply) -> Generator[Event, None, str]:
    state = turn.state
    if reply.calls:
        state.stalls = 0
        return (yield from _act_on_calls(turn, reply))
    if reply.done or "".join(reply.text).strip():
        state.transcript.append(turn.dialect.assistant_message("".join(reply.raw), ()))
        return "completed"
    state.stalls += 1
    state.transcript.append({"role": "assistant", "content": "".join(reply.raw)})
    state.transcript.append({"role": "user", "content": STALL_NUDGE})
    yield Notice("the model's reply was empty; it was asked to go on", "warning", "stall")
    return ""


def _act_on_calls(turn: Turn, reply: _Reply) -> Generator[Event, None, str]:
    state = turn.state
    first = len(state.records)
    try:
        yield from run_calls(turn, reply.calls)
    finally:
        records = state.records[first:]
        if len(records) == len(reply.calls):
            state.transcript.append(turn.dialect.assistant_message("".join(reply.raw), reply.calls))
            state.transcript.extend(turn.dialect.result_messages(records, turn.result_chars()))
    if turn.cancelled():
        return "cancelled"
    waiting = [r for r in records if r.result.get("status") == "pending"]
    for record in waiting:
        yield ApprovalRequested(
            turn.round, record.call, str(record.result.get("ticket", "")), str(record.result.get("reason", ""))
        )
    if waiting:
        return "waiting_approval"
    return "completed" if reply.done else ""
