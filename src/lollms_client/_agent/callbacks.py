"""A turn's events for a streaming callback: `cb(chunk, msg_type, params, metadata)`. Source: CONTRACT C, I."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .. import events as ev
from .._bindings.answers import StreamingCallback, adapted
from ..lollms_types import MSG_TYPE

if TYPE_CHECKING:
    from .._http import CancelToken

__all__ = ["drain"]

_Told = tuple[str, MSG_TYPE, dict[str, Any] | None]


def drain(events: Iterator[ev.Event], callback: StreamingCallback | None, cancel: CancelToken) -> ev.TurnEnded:
    """Plays a turn to its end.

    Args:
        events: The turn.
        callback: Hears of it; False ends the turn, and what was done so far is kept.
        cancel: The turn's token.

    Returns:
        How it ended.
    """
    say = adapted(callback) if callback is not None else None
    end: ev.TurnEnded | None = None
    for event in events:
        if isinstance(event, ev.TurnEnded):
            end = event
        for told in _said(event) if say is not None else ():
            if say is not None and say(*told) is False:
                cancel.cancel()
                say = None
    assert end is not None, "a turn's last event is TurnEnded, or it raises"
    return end


def _said(event: ev.Event) -> tuple[_Told, ...]:
    """What a callback hears of an event: nothing, one thing, or of an artefact that was saved two."""
    if isinstance(event, ev.ArtefactSaved):
        facts = {"name": event.name, "version": event.version, "action": event.action, "size": event.size}
        done = (event.problem or event.name, MSG_TYPE.MSG_TYPE_ARTEFACT_DONE, {**facts, "problem": event.problem})
        return (done,) if event.problem else (done, (event.name, MSG_TYPE.MSG_TYPE_ARTEFACTS_STATE_CHANGED, facts))
    teller = _TELLERS.get(type(event))
    return (teller(event),) if teller is not None else ()


def _call(event: Any) -> dict[str, Any]:
    return {"round": event.round, "id": event.call.id, "name": event.call.name, "parameters": event.call.arguments}


_NOTICES = {"context_compression": MSG_TYPE.MSG_TYPE_CONTEXT_COMPRESSION}
"""Kinds of notices that have a type of their own."""

_TELLERS: dict[type[ev.Event], Callable[[Any], _Told]] = {
    ev.TextDelta: lambda e: (e.text, MSG_TYPE.MSG_TYPE_CHUNK, None),
    ev.ThoughtDelta: lambda e: (e.text, MSG_TYPE.MSG_TYPE_THOUGHT_CHUNK, None),
    ev.RoundStarted: lambda e: (f"Round {e.round}", MSG_TYPE.MSG_TYPE_ROUND_START, {"round": e.round}),
    ev.RoundEnded: lambda e: (
        f"Round {e.round} ended",
        MSG_TYPE.MSG_TYPE_ROUND_END,
        {"round": e.round, "seconds": e.seconds, "usage": e.usage.to_dict()},
    ),
    ev.ToolStarted: lambda e: (e.call.name, MSG_TYPE.MSG_TYPE_TOOL_START, _call(e)),
    ev.ToolEnded: lambda e: (
        e.call.name,
        MSG_TYPE.MSG_TYPE_TOOL_END,
        {**_call(e), "result": e.result, "seconds": e.seconds},
    ),
    ev.ToolCall: lambda e: (e.name, MSG_TYPE.MSG_TYPE_TOOL_CALL, {"id": e.id, "name": e.name, "parameters": e.arguments}),
    ev.Notice: lambda e: (
        e.text,
        _NOTICES.get(e.kind) or (MSG_TYPE.MSG_TYPE_WARNING if e.level == "warning" else MSG_TYPE.MSG_TYPE_INFO),
        {"kind": e.kind},
    ),
    ev.ApprovalRequested: lambda e: (
        e.reason,
        MSG_TYPE.MSG_TYPE_INFO,
        {**_call(e), "kind": e.kind, "ticket": e.ticket, "turn_id": e.turn_id},
    ),
    ev.EffortChange: lambda e: (f"Effort: {e.level}", MSG_TYPE.MSG_TYPE_INFO, {"kind": "effort", "level": e.level}),
    ev.ArtefactStart: lambda e: (
        e.name,
        MSG_TYPE.MSG_TYPE_ARTEFACT_BUILD_START,
        {"name": e.name, "type": e.type, "language": e.language},
    ),
    ev.ArtefactChunk: lambda e: (e.text, MSG_TYPE.MSG_TYPE_ARTEFACT_CHUNK, {"name": e.name}),
    ev.ArtefactSymbol: lambda e: (
        e.header,
        MSG_TYPE.MSG_TYPE_ARTEFACT_SYMBOL_DETECTED,
        {"name": e.name, "header": e.header, "line": e.line},
    ),
    ev.ArtefactEnd: lambda e: (e.name, MSG_TYPE.MSG_TYPE_ARTEFACT_BUILD_END, {"name": e.name, "complete": e.complete}),
    ev.WorkerStarted: lambda e: (e.call.arguments.get("task", ""), MSG_TYPE.MSG_TYPE_WORKER_SPAWN_START, _call(e)),
    ev.WorkerEnded: lambda e: (
        str(e.result.get("output") or ""),
        MSG_TYPE.MSG_TYPE_WORKER_SPAWN_END,
        {**_call(e), "result": e.result, "seconds": e.seconds},
    ),
}
