"""`lollms chat` without a terminal: one prompt a line, the answers on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from ... import events as ev
from ...errors import ConfigurationError, LollmsError
from ...lollms_utilities import safe_text
from ..render import TurnRenderer
from ..steps import step_lines
from .commands import is_command, run_command

if TYPE_CHECKING:
    from .session import Session

__all__ = ["run_plain"]


def run_plain(session: Session, lines: TextIO) -> int:
    """Answers the lines of a file, until it ends or one says /exit.

    Nothing is asked: risky steps are refused unless the session allows everything.

    Returns:
        0 where every line came to an answer, else 1.
    """
    renderer, code = TurnRenderer(sys.stderr), 0
    for line in lines:
        if not line.strip():
            continue
        try:
            if is_command(line):
                said = run_command(session, line)
                if said.leave:
                    break
                if said.edits is not None:
                    raise ConfigurationError("/edit needs a terminal: over a pipe nobody can change a text.")
                if said.text:
                    print(said.text)
                if said.plays is not None and _answer(said.plays(), renderer) != "completed":
                    code = 1
            elif _answer(session.turn(line.strip()), renderer) != "completed":
                code = 1
        except LollmsError as error:
            print(f"lollms: {error}", file=sys.stderr)
            code = 1
        sys.stdout.flush()
    return code


def _answer(events: Iterator[ev.Event], renderer: TurnRenderer) -> str:
    status = "failed"
    for event in events:
        if isinstance(event, ev.TurnEnded):
            status = event.status
            print(safe_text(event.response) if sys.stdout.isatty() else event.response)
            if event.status != "completed":
                print(f"lollms: the turn ended as {event.status}: {event.reason}", file=sys.stderr)
        elif isinstance(event, (ev.ToolStarted, ev.ToolEnded, ev.WorkerEnded)) or step_lines(event):
            renderer.show(event)
    return status
