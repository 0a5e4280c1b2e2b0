"""Ready-made handlers for people at a terminal and for user interfaces.

Terminal handlers write to standard output and read from standard input, one question at a time. Without a terminal they refuse:
whoever wants tools to run unattended says so (`full_access`, or `--yes` on the command line).

Source: tool guide §5 and §13, CONTRACT A9.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from typing import Any

from lollms_client._text.terminal import safe_text

__all__ = [
    "cli_confirm_handler",
    "cli_user_interaction_handler",
    "make_gui_confirm_handler",
    "make_gui_user_interaction_handler",
]

_RULE = "=" * 60
_SHOWN = 500
_terminal = threading.RLock()


def cli_confirm_handler(source: str, script_label: str, argv: list[Any] | None = None) -> tuple[str, str]:
    """Asks a person at the terminal whether an action may run.

    Args:
        source: What is about to run: a script, or a tool's JSON arguments; its first 500 characters are shown, all of it on
            demand. Characters that could command the terminal are shown as escapes.
        script_label: What it is called.
        argv: Its command line, where it has one.

    Returns:
        ("allow", ""), ("always", "") or ("reject", why). Enter allows. Without a terminal: rejected.
    """
    if not _has_terminal():
        return "reject", (
            "Nobody can be asked: standard input is not a terminal. Run in a terminal, pass --yes, "
            "or set autonomy_level 'full_access' for this library."
        )
    with _terminal:
        shown = safe_text(source[:_SHOWN]) + ("..." if len(source) > _SHOWN else "")
        _write(f"\n{_RULE}\n⚠️ AUTHORIZATION REQUIRED: {safe_text(script_label)}\n{_RULE}\n{shown}\n")
        if argv:
            _write(f"with: {safe_text(str(argv))}\n")
        _write(f"{_RULE}\n")
        return _decision(source)


def _decision(source: str) -> tuple[str, str]:
    more = f" / [v]iew all {len(source):,} characters" if len(source) > _SHOWN else ""
    question = f"Authorize action? [y]es / [n]o / [a]lways{more}: "
    try:
        while True:
            choice = input(question).strip().lower()
            if choice in ("v", "view"):
                _write(f"{safe_text(source)}\n{_RULE}\n")
            if choice in ("y", "yes", ""):
                return "allow", ""
            if choice in ("a", "always"):
                return "always", ""
            if choice in ("n", "no"):
                return "reject", input("Optional feedback for the agent: ").strip() or "User declined authorization."
    except (EOFError, KeyboardInterrupt):
        return "reject", "Operation cancelled by user."


def make_gui_confirm_handler(event_queue: queue.Queue[dict[str, Any]], timeout: float = 300) -> Callable[..., tuple[str, str]]:
    """A confirm handler that asks through a user interface.

    Args:
        event_queue: The interface reads it; for each question it gets `{"type": "approval_request", "source", "script_label",
            "argv", "response_queue"}` and answers by putting `(decision, reason)` on `response_queue`.
        timeout: Seconds until a question without an answer is rejected; an answer after that is logged and does not count.

    Returns:
        The handler. It blocks the thread of the agent, never the interface.
    """

    def handler(source: str, script_label: str, argv: list[Any] | None = None) -> tuple[str, str]:
        answers = _Answers(script_label)
        event_queue.put(
            {
                "type": "approval_request",
                "source": source,
                "script_label": script_label,
                "argv": argv,
                "response_queue": answers,
            }
        )
        try:
            answer: tuple[str, str] = answers.first(timeout)
        except queue.Empty:
            return "reject", "Approval request timed out."
        return answer

    return handler


def cli_user_interaction_handler(request: dict[str, Any]) -> str | None:
    """Asks a person at the terminal for text, a secret or a choice.

    Args:
        request: `{"type": "text" | "secret" | "select", "title", "prompt", "options", "default"}`.

    Returns:
        The answer; None when the person cancels, or when there is no terminal. Enter takes the default. Of options, the number
        or the text is accepted.
    """
    if not _has_terminal():
        return None
    options = [str(option) for option in request.get("options") or ()]
    default = request.get("default")
    hint = f" [{safe_text(str(default))}]" if default and request.get("type") != "secret" else ""
    with _terminal:
        if title := request.get("title"):
            _write(f"\n{_RULE}\n{safe_text(str(title))}\n{_RULE}\n")
        for number, option in enumerate(options, 1):
            _write(f"  {number}. {safe_text(option)}\n")
        question = f"{safe_text(str(request.get('prompt') or 'Your answer'))}{hint}: "
        try:
            return _answer(str(request.get("type") or "text"), question, options, default)
        except (EOFError, KeyboardInterrupt):
            return None


def _answer(kind: str, question: str, options: list[str], default: Any) -> str | None:
    while True:
        if kind == "secret":
            from getpass import getpass

            answer = getpass(question)
        else:
            answer = input(question).strip()
        if not answer and default is not None:
            return str(default)
        if kind != "select" or not options:
            return answer
        if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(options):
            return options[int(answer) - 1]
        if answer in options:
            return answer


def make_gui_user_interaction_handler(
    event_queue: queue.Queue[dict[str, Any]], timeout: float = 300
) -> Callable[[dict[str, Any]], str | None]:
    """A user interaction handler that asks through a user interface.

    Args:
        event_queue: The interface reads it; for each question it gets `{"type": "user_interaction_request", "request",
            "response_queue"}` and answers by putting a text, or None for cancel, on `response_queue`.
        timeout: Seconds until a question without an answer counts as cancelled.

    Returns:
        The handler.
    """

    def handler(request: dict[str, Any]) -> str | None:
        answers = _Answers(str(request.get("title") or request.get("prompt") or request.get("type")))
        event_queue.put({"type": "user_interaction_request", "request": request, "response_queue": answers})
        try:
            answer: str | None = answers.first(timeout)
        except queue.Empty:
            return None
        return answer

    return handler


class _Answers(queue.Queue[Any]):
    """The queue for the answer to one question: the first one in time counts, another is logged and let go.

    Args:
        question: What the question is called in the log; an answer, which may be a secret, never stands there.
    """

    def __init__(self, question: str) -> None:
        super().__init__(maxsize=1)
        self._question = question
        self._over = False
        self._deciding = threading.Lock()

    def first(self, timeout: float) -> Any:
        """Waits for the answer; raises `queue.Empty` when there is none in time, and takes none from then on."""
        try:
            return self.get(timeout=timeout)
        except queue.Empty:
            with self._deciding:
                self._over = True
                if self.empty():
                    raise
                return self.get_nowait()  # it came in this very moment
        finally:
            self._over = True

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Answers the question. Never blocks."""
        with self._deciding:
            if self._over or self.full():
                _log_late(self._question)
            else:
                super().put(item, block, timeout)


def _log_late(question: str) -> None:
    from logging import getLogger

    getLogger(__name__).warning("An answer to %r came when its question was over, and does not count.", question)


def _has_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # it was closed
        return False


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
