"""What a turn does besides thinking and talking, in lines for a person: said here once, for whoever shows turns."""

from __future__ import annotations

import json
from typing import TypeAlias

from .. import events as ev
from ..lollms_utilities import safe_text, shorten

__all__ = ["Line", "outcome", "step_lines"]

Line: TypeAlias = "tuple[str, str]"
"""A text that is safe for a terminal, and its style: a colour, "dim" or ""."""

_TASK_CHARS = 300


def step_lines(event: ev.Event) -> list[Line]:
    """The lines that an event is to a person; none for events that say nothing by themselves, or are shown in another way.

    An artefact is its file's name and its structural units, never its body (developer guide, "Collapsible Artifact UI Protocol").
    """
    match event:
        case ev.TurnStarted(resumed=True):
            return [("↻ The turn goes on where it stopped.", "dim")]
        case ev.Notice():
            return [(f"! {safe_text(event.text)}", "yellow")]
        case ev.ApprovalRequested():
            return [(f"? {safe_text(event.call.name)} waits ({event.kind}): {safe_text(event.reason)}", "yellow")]
        case ev.EffortChange():
            return [(f"  effort from now on: {safe_text(event.level)}", "dim")]
        case ev.WorkerStarted():
            task = shorten(safe_text(str(event.call.arguments.get("task") or "")), _TASK_CHARS)
            return [(f"⇢ worker {task}", "cyan")]
        case ev.ArtefactStart():
            return [(f"▸ {safe_text(event.name)}", "cyan")]
        case ev.ArtefactSymbol():
            return [(f"    {safe_text(event.header)}", "dim")]
        case ev.ArtefactSaved(problem=""):
            return [(f"✓ {safe_text(event.name)} {event.action}", "green")]
        case ev.ArtefactSaved():
            return [(f"✗ {safe_text(event.name)}: {safe_text(event.problem)}", "red")]
        case _:
            return []


def outcome(event: ev.ToolEnded | ev.WorkerEnded, limit: int) -> tuple[str, str, str]:
    """What became of a call or of a worker: a mark, what it brought in at most `limit` characters, and a style."""
    result = event.result
    ok = bool(result.get("success"))
    shown = result.get("output") if ok else result.get("error")
    text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False, default=str)
    return "✓" if ok else "✗", shorten(safe_text(text.strip()), limit), "green" if ok else "red"
