"""A turn's events on a terminal: thoughts dim, tool calls with arguments, result and time, the answer, the figures."""

from __future__ import annotations

import json
import os
import sys
from typing import TextIO

from .. import events as ev
from ..lollms_utilities import safe_text, shorten
from .steps import outcome, step_lines

__all__ = ["TurnRenderer", "use_colour"]

_STYLES = {"dim": "2", "bold": "1", "cyan": "36", "green": "32", "red": "31", "yellow": "33"}
_ARGUMENT_CHARS = 300
_RESULT_CHARS = 400


def use_colour(stream: TextIO) -> bool:
    """Whether a stream wants colours: a terminal, and `NO_COLOR` is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _short(text: str, limit: int) -> str:
    return shorten(safe_text(text), limit)


class TurnRenderer:
    """Writes events as they come.

    Args:
        out: Where to; standard output by default.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._colour = use_colour(self._out)
        self._open = ""  # "thought" or "text" while such a line is being written

    def show(self, event: ev.Event) -> None:
        """Writes one event; the kinds that people need not see are passed over."""
        match event:
            case ev.ThoughtDelta():
                self._stream("thought", event.text)
            case ev.TextDelta():
                self._stream("text", event.text)
            case ev.TurnStarted():
                going_on = " · going on" if event.resumed else ""
                self._line(f"{event.model} · {event.dialect} · {len(event.tools)} tools{going_on}", "dim")
            case ev.RoundStarted():
                self._line(f"— round {event.round}", "dim")
            case ev.ToolStarted():
                arguments = json.dumps(event.call.arguments, ensure_ascii=False)
                self._line(f"→ {event.call.name} {_short(arguments, _ARGUMENT_CHARS)}", "cyan")
            case ev.ToolEnded() | ev.WorkerEnded():
                mark, body, style = outcome(event, _RESULT_CHARS)
                self._line(f"{mark} {body}  ({event.seconds:.2f} s)", style)
            case ev.TurnEnded():
                self._turn_ended(event)
            case _:
                for text, style in step_lines(event):
                    self._line(text, style)

    def _turn_ended(self, event: ev.TurnEnded) -> None:
        self._close()
        if event.status != "completed":
            reason = f": {event.reason}" if event.reason else ""
            self._line(f"The turn ended as {event.status}{reason}.", "yellow")
        self._line("")
        self._line("Answer", "bold")
        self._line(_short(event.response, 20_000) or "(none)")
        if event.workspace_changes:
            self._line("")
            self._line("Files", "bold")
            for change in event.workspace_changes:
                self._line(f"  {change['action']} {safe_text(change['path'])} ({change['size']} bytes)")
        usage, calls = event.usage, len(event.tool_calls)
        rate = usage.completion_tokens / event.seconds if event.seconds else 0.0
        self._line("")
        self._line("Figures", "bold")
        self._line(
            f"  {event.rounds} rounds, {calls} tool calls, {usage.prompt_tokens} prompt tokens ({usage.cached_tokens} cached), "
            f"{usage.completion_tokens} generated, {event.seconds:.1f} s ({rate:.1f} tokens/s)"
        )

    def _stream(self, kind: str, text: str) -> None:
        if self._open != kind:
            self._close()
            self._open = kind
            self._write("  · " if kind == "thought" else "  ", "dim" if kind == "thought" else "")
        self._write(safe_text(text), "dim" if kind == "thought" else "")

    def _close(self) -> None:
        if self._open:
            self._open = ""
            self._write("\n")

    def _line(self, text: str, style: str = "") -> None:
        self._close()
        self._write(text, style)
        self._write("\n")

    def _write(self, text: str, style: str = "") -> None:
        if style and self._colour and text.strip():
            text = f"\x1b[{_STYLES[style]}m{text}\x1b[0m"
        self._out.write(text)
        self._out.flush()
