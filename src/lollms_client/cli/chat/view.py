"""What a person sees of a turn: Markdown as it is written, thoughts in one line, tool calls, changes, figures."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ... import events as ev
from ...errors import MissingDependencyError
from ...lollms_utilities import one_line, safe_text, shorten
from ..steps import outcome, step_lines
from .blocks import finished_length
from .paint import Painter
from .worker import Change, Failure, Tick

if TYPE_CHECKING:
    from rich.console import RenderableType

    from .session import Exchange, Session

__all__ = ["View", "figures"]

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PAINT_SECONDS = 0.08
_RESULT_CHARS, _ARGUMENT_CHARS, _VALUE_CHARS = 500, 400, 120
_DIFF_SHOWN = 40


class View:
    """Shows what happens, on a terminal.

    Args:
        out: The terminal.

    Attributes:
        last_change: The change that was shown last, before the call that makes it.

    Raises:
        MissingDependencyError: `rich` is not installed.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        try:
            from rich.console import Console
        except ImportError:
            raise MissingDependencyError("rich", "cli", "lollms chat on a terminal") from None
        self._out = out or sys.stdout
        self.console = Console(file=self._out, highlight=False, soft_wrap=False)
        self._painter = Painter(self._write, lambda: self.console.size.height)
        self._text = ""
        self._thought = ""
        self._since = 0.0
        self._doing, self._doing_since = "", 0.0
        self._painted, self._pace, self._stopping = 0.0, _PAINT_SECONDS, False
        self._wrote, self._blank = False, True
        self.last_change: list[str] = []

    # ---- turns ----------------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A turn begins."""
        self._text = self._thought = ""
        self._stopping = False
        self._wrote, self._blank = False, True
        self._do("waiting for the model")

    def show(self, item: Any) -> None:
        """Shows what a turn brings."""
        match item:
            case Tick():
                self._paint()
            case ev.ThoughtDelta():
                if not self._thought:
                    self._end_text()
                    self._since = time.perf_counter()
                    self._do("thinking")
                self._thought += item.text
                self._paint(soon=True)
            case ev.TextDelta():
                self._add(item.text)
            case ev.ArtefactChunk():
                pass  # only the names of what is in it are shown, in lines of their own
            case _:
                self._show_step(item)

    def _show_step(self, item: Any) -> None:
        self._end_thought()
        match item:
            case ev.RoundStarted():
                self._end_text()
                self._do("waiting for the model")
            case ev.ToolStarted():
                self._end_text()
                self.last_change = []
                self._styled(f"→ {item.call.name}  {_arguments(item.call.arguments)}", "cyan")
                self._do(f"{item.call.name} runs")
            case Change():
                self.show_diff(item.lines)
                self.last_change = item.lines
            case ev.ToolEnded() | ev.WorkerEnded():
                self._ended(item)
            case ev.TurnEnded():
                self._turn_ended(item)
            case Failure():
                self._end_text()
                self.error(str(item.error))
            case _:
                self._show_lines(item)

    def _show_lines(self, item: ev.Event) -> None:
        for text, style in step_lines(item):
            self._end_text()
            self._styled(text, style)
        match item:
            case ev.ArtefactStart():
                self._do(f"writing {one_line(item.name, _VALUE_CHARS)}")
            case ev.WorkerStarted():
                self._do("a worker is at it")
            case ev.ArtefactEnd():
                self._do("waiting for the model")
            case _:
                pass

    def finish(self, exchange: Exchange | None, session: Session) -> None:
        """The turn is over: leaves nothing open, and says what it took."""
        self._end_thought()
        self._end_text()
        self._painter.clear()
        if exchange is not None:
            self._styled(figures(exchange, session.paid), "dim")

    def stopping(self) -> None:
        """The person wants the turn to end. Paints nothing, so that a signal handler can call it at any moment."""
        self._do("stopping; Ctrl-C again ends the program")
        self._stopping = True

    def pause(self) -> None:
        """Takes the open lines away, so that something else can be written."""
        self._end_thought()
        self._end_text()
        self._painter.clear()

    def _ended(self, event: ev.ToolEnded | ev.WorkerEnded) -> None:
        self._end_text()
        mark, body, style = outcome(event, _RESULT_CHARS)
        what = "worker" if isinstance(event, ev.WorkerEnded) else safe_text(event.call.name)
        self._styled(f"{mark} {what} ({event.seconds:.2f} s)  {body}", style)
        self._do("waiting for the model")

    def _turn_ended(self, event: ev.TurnEnded) -> None:
        self._end_text()
        if event.response and not self._wrote:  # it came in no piece
            self._add(event.response)
            self._end_text()
        changed = [f"{c['action']} {safe_text(c['path'])}" for c in event.workspace_changes]
        if changed:
            self._styled(f"Files: {', '.join(changed)}", "magenta")
        if event.status != "completed":
            self._styled(f"The turn ended as {event.status}{f': {event.reason}' if event.reason else ''}.", "yellow")
        if event.status in ("waiting_approval", "waiting_user"):
            self._styled("`lollms pending` takes your answer, and /resume goes on with it.", "dim")

    # ---- text and thoughts ----------------------------------------------------------------------------------------------------

    def _add(self, text: str) -> None:
        self._end_thought()
        if not self._text:
            text = text.lstrip("\n")
            if not text:
                return
            self._do("")
        self._text += safe_text(text)
        self._wrote = True
        self._paint(soon=True)

    def _end_text(self) -> None:
        if self._text.strip():
            self._print(self._block(self._text))
            self._blank = False
        self._text = ""

    def _end_thought(self) -> None:
        if not self._thought.strip():
            self._thought = ""
            return
        seconds, text = time.perf_counter() - self._since, self._thought.strip()
        head = f"∴ thought for {seconds:.1f} s, {len(text):,} characters: "
        self._thought = ""
        self._styled(head + one_line(text, max(20, self.console.size.width - len(head) - 1)), "dim italic")

    def _paint(self, soon: bool = False) -> None:
        started = time.perf_counter()
        if soon and started - self._painted < self._pace:
            return
        finished: list[str] = []
        if self._text and (length := finished_length(self._text)):
            finished = self._block(self._text[:length])
            self._text, self._blank = self._text[length:], False
        self._print(finished, keep_open=True)
        self._painted = time.perf_counter()
        self._pace = max(_PAINT_SECONDS, 4 * (self._painted - started))  # painting a long block never takes most of the time

    def _block(self, text: str) -> list[str]:
        """Blocks of Markdown as lines, a blank one before them where something stands above."""
        from rich.markdown import Markdown

        lines = self._lines(Markdown(text, code_theme="ansi_dark", hyperlinks=False))
        while lines and not lines[0]:
            del lines[0]
        while lines and not lines[-1]:
            del lines[-1]
        return lines if self._blank or not lines else ["", *lines]

    def _open_lines(self) -> list[str]:
        lines = self._block(self._text) if self._text.strip() else []
        if self._doing:
            seconds = time.perf_counter() - self._doing_since
            turn = _SPINNER[int(seconds * 10) % len(_SPINNER)]
            length = f", {len(self._thought):,} characters" if self._thought else ""
            lines += self._lines(_text(f"{turn} {self._doing} {seconds:.0f} s{length}", "dim"))
        return lines

    def _do(self, what: str) -> None:
        if not self._stopping:
            self._doing, self._doing_since = what, time.perf_counter()

    # ---- everything else ------------------------------------------------------------------------------------------------------

    def say(self, text: str, style: str = "") -> None:
        """Writes lines of plain text."""
        self._styled(safe_text(text), style)

    def markdown(self, text: str) -> None:
        """Writes Markdown."""
        self._blank = True
        self._print(self._block(safe_text(text)))

    def error(self, text: str) -> None:
        """Writes what went wrong."""
        self._styled(safe_text(text), "bold red")

    def show_diff(self, lines: Sequence[str], limit: int = _DIFF_SHOWN) -> None:
        """Writes a unified diff in colours."""
        from rich.text import Text

        shown = Text()
        for line in lines[:limit]:
            shown.append(f"  {safe_text(line)}\n", _diff_style(line))
        if len(lines) > limit:
            shown.append(f"  … and {len(lines) - limit} more lines\n", "dim")
        shown.rstrip()
        self._print(self._lines(shown))

    def _styled(self, text: str, style: str) -> None:
        self._print(self._lines(_text(text, style)))
        self._blank = False

    def _lines(self, what: RenderableType) -> list[str]:
        """What rich makes of something, as lines that leave the terminal's last column free, where erasing would eat a letter."""
        with self.console.capture() as captured:
            self.console.print(what, width=max(20, self.console.size.width - 1))
        return [line.rstrip(" ") for line in captured.get().splitlines()]

    def _print(self, lines: Sequence[str], keep_open: bool = False) -> None:
        self._painter.print(lines, self._open_lines() if keep_open else ())

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def figures(exchange: Exchange, paid: float | None) -> str:
    """What a turn took, in one line.

    Args:
        exchange: The turn.
        paid: What the whole conversation cost so far, None where no prices are known.
    """
    usage = exchange.usage
    cost = f" · cost {exchange.cost:.4f} (together {paid or 0.0:.4f})" if exchange.cost is not None else ""
    rate = f" · {exchange.rate:.1f} tokens/s" if exchange.rate else ""
    return (
        f"{usage.prompt_tokens:,} prompt ({usage.cached_tokens:,} cached) · {usage.completion_tokens:,} generated"
        f"{rate} · {exchange.seconds:.1f} s{cost}"
    )


def _text(text: str, style: str) -> Any:
    from rich.text import Text

    return Text(text, style)


def _arguments(arguments: dict[str, Any]) -> str:
    said = (f"{safe_text(k)}={_value(v)}" for k, v in arguments.items())
    return shorten(", ".join(said), _ARGUMENT_CHARS)


def _value(value: Any) -> str:
    return shorten(safe_text(json.dumps(value, ensure_ascii=False, default=str)), _VALUE_CHARS)


def _diff_style(line: str) -> str:
    if line.startswith(("---", "+++", "rename", "copy")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
