"""`lollms chat` on a terminal: a person types, a turn plays, what it asks is asked. One thread owns the terminal."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import LollmsError
from ...lollms_utilities import one_line, safe_text, shorten
from ..editing import editor, in_editor, mended
from .approval import Approval, change_of
from .commands import is_command, run_command
from .worker import Question, TurnInThread

if TYPE_CHECKING:
    from ...events import Event
    from .lines import LineReader
    from .session import Session
    from .view import View

__all__ = ["Terminal"]

_SOURCE_CHARS, _DIFF_LINES = 4000, 200
DECLINED = "The user declined and gave no reason."


class Terminal:
    """The program that a person sees.

    Args:
        session: The conversation.
        view: Writes.
        reader: Reads.
    """

    def __init__(self, session: Session, view: View, reader: LineReader) -> None:
        self._session, self._view, self._reader = session, view, reader
        self._again = ""  # what the next prompt begins with

    def run(self, *, resume: bool = False) -> int:
        """Talks until the person leaves.

        Args:
            resume: Begin by going on with the turn that is not over: the person wants that.

        Returns:
            The exit code.
        """
        self._view.say(f"{self._session.title()} · {self._session.workspace} · /help shows what there is", "dim")
        if self._session.exchanges:
            self._view.say(f"Going on with: {one_line(self._session.talk.title, 80)}", "dim")
        self._offer_to_resume(wanted=resume)
        while True:
            try:
                line = self._reader.prompt(default=self._again)
            except (EOFError, KeyboardInterrupt):
                return 0
            self._again = ""
            if not line.strip():
                continue
            try:
                if is_command(line):
                    if self._command(line):
                        return 0
                else:
                    self._turn(partial(self._session.turn, line))
            except LollmsError as error:
                self._view.error(str(error))
            except KeyboardInterrupt:
                self._view.pause()
                self._view.say("Interrupted twice: the program ends.", "yellow")
                return 130

    def _offer_to_resume(self, *, wanted: bool) -> None:
        """A conversation whose last turn is not over begins with it, where the person likes."""
        if not self._session.talk.has_resumable_turn():
            return
        question = "The last turn is not over. Resume it? [Y/n]: "
        if wanted or self._reader.ask(question).strip().lower() in ("", "y", "yes"):
            try:
                self._turn(self._session.resumed)
            except LollmsError as error:
                self._view.error(str(error))

    def _command(self, line: str) -> bool:
        said = run_command(self._session, line)
        if said.text:
            self._view.say(said.text)
        if said.plays is not None:
            self._turn(said.plays)
        if said.edits is not None:
            self._resend(said.prompt, said.edits)
        else:
            self._again = said.prompt
        return said.leave

    def _resend(self, text: str, play: Callable[[str], Iterator[Event]]) -> None:
        """Has the person change a prompt, in their editor where they have one; left empty or as it is, it is not sent."""
        try:
            command = editor()
            changed = in_editor(text, command) if command else self._reader.prompt(default=text)
        except (EOFError, KeyboardInterrupt):
            changed = ""
        if not changed.strip() or changed == text:
            self._view.say("Nothing was sent. /retry has the same answered once more.", "dim")
        else:
            self._turn(partial(play, changed))

    # ---- a turn ---------------------------------------------------------------------------------------------------------------

    def _turn(self, play: Callable[[], Iterator[Event]]) -> None:
        turns = self._session.turns
        work = TurnInThread(self._session, play)
        self._view.begin()
        with _silent_keys(), _interrupts(work, self._view):
            for item in work.items():
                if isinstance(item, Question):
                    self._view.pause()
                    item.answer(item.otherwise if work.cancelled else self._answer(item, work))
                else:
                    self._view.show(item)
        self._view.finish(self._session.last if self._session.turns > turns else None, self._session)

    def _answer(self, question: Question[Any], work: TurnInThread) -> Any:
        """Asks the person; Ctrl-C at a question stops the turn."""
        try:
            if isinstance(question.subject, Approval):
                return self._decide(question.subject)
            return self._interact(question.subject)
        except KeyboardInterrupt:
            work.cancel()
            return question.otherwise
        except EOFError:
            return question.otherwise

    # ---- approvals ------------------------------------------------------------------------------------------------------------

    def _decide(self, approval: Approval) -> tuple[Any, ...]:
        edited: dict[str, Any] | None = None
        while True:
            self._show(approval, edited)
            can_edit = approval.arguments is not None
            choice = self._reader.ask(f"Allow it? [y]es / [n]o / [a]lways{' / [e]dit' if can_edit else ''}: ").strip().lower()
            if choice in ("y", "yes"):
                return ("allow", "") if edited is None else ("allow", "", edited)
            if choice in ("a", "always"):
                return ("always", "") if edited is None else ("always", "", edited)
            if choice in ("n", "no"):
                return "reject", self._reader.ask("Why not (the model is told; Enter for nothing): ").strip() or DECLINED
            if choice in ("e", "edit") and approval.arguments is not None:
                edited = self._edit(approval.label, approval.arguments if edited is None else edited)

    def _edit(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._view.say("Edit the arguments. Alt-Enter (Esc, Enter) is done, Ctrl-X Ctrl-E opens $EDITOR.", "dim")
        return mended(tool, arguments, self._session.check_arguments, self._reader.edit, self._view.say)

    def _show(self, approval: Approval, edited: dict[str, Any] | None) -> None:
        self._view.say(f"? {approval.label} wants your approval", "bold yellow")
        arguments = edited if edited is not None else approval.arguments
        if arguments is None:
            self._view.say(shorten(approval.source, _SOURCE_CHARS))
        else:
            lines = change_of(self._session.workspace, approval.label, arguments)
            if lines and lines != self._view.last_change:
                self._view.show_diff(lines, _DIFF_LINES)
            elif not lines:
                self._view.say(shorten(json.dumps(arguments, indent=2, ensure_ascii=False), _SOURCE_CHARS))
        if approval.argv:
            self._view.say(f"with: {approval.argv}")

    # ---- questions of tools ---------------------------------------------------------------------------------------------------

    def _interact(self, request: dict[str, Any]) -> str | None:
        options = tuple(str(option) for option in request.get("options") or ())
        default = request.get("default")
        if title := request.get("title"):
            self._view.say(f"? {title}", "bold yellow")
        for number, option in enumerate(options, 1):
            self._view.say(f"  {number}. {option}")
        kind = str(request.get("type") or "text")
        hint = f" [{default}]" if default and kind != "secret" else ""
        question = f"{safe_text(str(request.get('prompt') or 'Your answer'))}{safe_text(hint)}: "
        while True:
            words = options if kind == "select" else ()
            said = self._reader.ask(question, secret=kind == "secret", words=words)
            answer = said if kind == "secret" else said.strip()
            if not answer and default is not None:
                return str(default)
            if kind != "select" or not options or answer in options:
                return answer
            if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(options):
                return options[int(answer) - 1]
            self._view.say(f"Please answer with one of them, or its number from 1 to {len(options)}.", "yellow")


@contextmanager
def _interrupts(work: TurnInThread, view: View) -> Iterator[None]:
    """The first Ctrl-C stops the turn, a second one while it still stops ends the program."""

    def interrupt(_signal: int, _frame: object) -> None:
        if work.cancelled:
            raise KeyboardInterrupt
        work.cancel()
        view.stopping()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _silent_keys() -> Iterator[None]:
    """Keys that are typed while a turn plays are not echoed into it; the next prompt gets them."""
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    silent = termios.tcgetattr(descriptor)
    silent[3] &= ~(termios.ECHO | termios.ICANON)
    silent[0] &= ~termios.ICRNL  # Enter stays Enter, as the prompt wants it
    termios.tcsetattr(descriptor, termios.TCSANOW, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
