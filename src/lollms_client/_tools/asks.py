"""Asking a person: what counts as an answer, and the handlers that libraries get.

A library never holds the host's handler itself but a guard around it, for these reasons: what is no documented decision is a
refusal also for a library that does not look; a question that the gate has asked already is answered by that approval; "always"
holds for that tool and kind of action and no further; a handler that the host swaps reaches libraries that were loaded before;
and the time a person takes is not the tool's.

Source: tool guide §5 and §13, CONTRACT A9 and A17.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .audit import Note
from .calls import CURRENT, ConfirmHandler, InteractionHandler, RunningCall, waiting_for_a_person
from .secrets import hear

if TYPE_CHECKING:
    from .gate import Gate

__all__ = ["NO_HANDLER", "GuardedConfirm", "GuardedInteraction", "arguments_text", "ask", "fingerprint"]

NO_HANDLER = (
    "Nobody can be asked: no confirm handler is configured. The host can set confirm_handler=, or allow the library with "
    'host_tool_configs={"<library>": {"autonomy_level": "full_access"}}.'
)

DECISIONS = ("allow", "always", "reject")


def fingerprint(name: str, text: str) -> str:
    """What an approval is bound to: a hash of a tool's name and of the text that was shown."""
    from hashlib import sha256

    return sha256(f"{name}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def arguments_text(arguments: Any) -> str:
    """Arguments as a person is shown them, and as an approval is bound to them."""
    return json.dumps(arguments, ensure_ascii=False, default=repr)


def ask(handler: ConfirmHandler, source: str, label: str, argv: list[Any] | None) -> tuple[str, str, Any]:
    """Asks a confirm handler, and takes only a documented answer for one.

    Args:
        handler: Who decides.
        source: What is about to run: a script, or a tool's JSON arguments.
        label: What it is called.
        argv: The command line, where there is one.

    Returns:
        (decision, reason, edited arguments or None). Whatever is no documented decision is ("reject", why, None).
    """
    try:
        with waiting_for_a_person(CURRENT.get()):
            answer = handler(source, label) if argv is None else handler(source, label, argv)
    except Exception as error:  # noqa: BLE001 - a handler that fails has not allowed anything
        _log_failure(error, "The confirm handler failed for %s", label)
        return "reject", f"The confirm handler failed ({type(error).__name__}: {error}), so nothing was allowed.", None
    if isinstance(answer, (tuple, list)) and len(answer) in (2, 3) and isinstance(answer[0], str) and answer[0] in DECISIONS:
        return answer[0], str(answer[1] or ""), answer[2] if len(answer) == 3 else None
    if callable(close := getattr(answer, "close", None)) and hasattr(answer, "cr_await"):
        close()
    return "reject", f"The confirm handler answered {answer!r:.100}, which is none of allow, always and reject.", None


class GuardedConfirm:
    """The confirm handler that a library gets.

    Args:
        gate: Remembers what was allowed always.
        library: The library's stem, which names asks from threads of the tool's own.
        current: The host's handler as it is now, None where there is none.
    """

    def __init__(self, gate: Gate, library: str, current: Callable[[], ConfirmHandler | None]) -> None:
        self._gate, self._library, self._current = gate, library, current

    def __call__(self, source: str = "", script_label: str = "", argv: list[Any] | None = None) -> tuple[str, str]:
        """Asks the host as the tool guide's §5 says: returns (decision, reason)."""
        call = CURRENT.get()
        tool, session = (call.name, call.session) if call is not None else (self._library, "")
        if call is not None and call.granted and self._granted(call, source, argv):
            return "allow", ""  # noted when it was asked
        kind = f"asked by the tool: {script_label}"
        by, decision, reason = self._decide(session, tool, kind, (source, script_label, argv))
        Note(
            tool=tool,
            session=session,
            kind=kind,
            by=by,
            decision="reject" if decision == "reject" else "allow",
            arguments=fingerprint(tool, source),
            reason=reason,
        ).write(self._gate.audit)
        return decision, reason

    def _decide(self, session: str, tool: str, kind: str, question: tuple[str, str, list[Any] | None]) -> tuple[str, str, str]:
        """Who decided, what, and why."""
        if self._gate.remembers(session, tool, kind):
            return "always", "allow", ""
        handler = _of_call(CURRENT.get(), "confirm_handler") or self._current()
        if handler is None:
            return "nobody", "reject", NO_HANDLER
        decision, reason, edited = ask(handler, *question)
        if edited is not None:
            return (
                "handler",
                "reject",
                "The operator edited a question that was asked from inside a tool, where an edit cannot be applied.",
            )
        if decision == "always":
            self._gate.remember(session, tool, kind)
        return "handler", decision, reason

    @staticmethod
    def _granted(call: RunningCall, source: str, argv: list[Any] | None) -> bool:
        if argv and fingerprint("", arguments_text(argv)) not in call.granted:
            return False
        return call.take_grant(fingerprint("", source))


class GuardedInteraction:
    """The user interaction handler that a library gets.

    Args:
        library: The library's stem, for the log.
        current: The host's handler as it is now, None where there is none.
    """

    def __init__(self, library: str, current: Callable[[], InteractionHandler | None]) -> None:
        self._library, self._current = library, current

    def __call__(self, request: dict[str, Any]) -> str | None:
        """Asks the person as the tool guide's §13 says: returns the answer, None when there is none."""
        call = CURRENT.get()
        handler = _of_call(call, "interaction_handler") or self._current()
        if handler is None:
            return None
        try:
            with waiting_for_a_person(call):
                answer = handler(request)
        except Exception as error:  # noqa: BLE001 - a handler that fails has got no answer
            _log_failure(error, "The user interaction handler failed for the library %s", self._library)
            return None
        if answer is None:
            return None
        text = answer if isinstance(answer, str) else str(answer)
        if isinstance(request, dict) and request.get("type") == "secret":
            hear(text)
        return text


def _of_call(call: RunningCall | None, attribute: str) -> Any:
    """A handler given for one call, or for a call around it."""
    if call is not None:
        for one in call.chain():
            if (handler := getattr(one, attribute)) is not None:
                return handler
    return None


def _log_failure(error: BaseException, message: str, *args: object) -> None:
    from logging import getLogger

    getLogger(__name__).error(message, *args, exc_info=error)
