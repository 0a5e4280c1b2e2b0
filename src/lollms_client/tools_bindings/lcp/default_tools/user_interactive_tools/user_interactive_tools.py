"""user_interactive_tools: asks the person for text, for a secret, or for a choice.

Source: tool guide §13; CONTRACT A9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lollms_client._tools.calls import CURRENT
from lollms_client._tools.secrets import keep
from lollms_client.errors import ToolArgumentError, ToolRejectedError
from lollms_client.tools_bindings.lcp.default_tools._support import answers, as_text

TOOL_LIBRARY_NAME = "Questions"
TOOL_LIBRARY_DESC = "Asks the person for text, for a secret, or for a choice."
TOOL_LIBRARY_ICON = "💬"

TOOL_EFFECTS = {"tool_ask_for_text": ["read"], "tool_ask_for_secret": ["read"], "tool_ask_for_choice": ["read"]}

_Handler = Callable[[dict[str, Any]], Any]
_HANDLER: _Handler | None = None


def init_tools_library(config: dict[str, Any] | None = None) -> None:
    """Take the host's configuration.

    Args:
        config: `user_interaction_handler`.
    """
    handler = (config or {}).get("user_interaction_handler")
    if callable(handler):
        set_user_interaction_handler(handler)


def set_user_interaction_handler(handler: _Handler | None) -> None:
    """Ask this handler from now on."""
    global _HANDLER
    _HANDLER = handler


@answers
def tool_ask_for_text(question: str, default: str = "") -> str:
    """Asks the person a question and returns the answer.

    Args:
        question (str): What to ask.
        default (str): The answer to suggest.
    """
    return _ask("text", "Question", question, default=as_text(default, "default") or None)


@answers
def tool_ask_for_secret(name: str, question: str = "") -> str:
    """Asks the person for a secret (an API key, a password). It is kept for other tools under its name; you never see it.

    Args:
        name (str): What it is called, for example "WEATHER_API_KEY".
        question (str): What to ask; by itself "Please enter NAME".
    """
    called = as_text(name, "name").strip()
    if not called:
        raise ToolArgumentError("A secret needs a name.", "name")
    value = _ask("secret", called, as_text(question, "question").strip() or f"Please enter {called}.")
    if not value:
        raise ToolRejectedError("The person gave no answer.")
    call = CURRENT.get()
    keep(call.session if call is not None else "", called, value)
    return f"The person entered {called}. It is kept for tools that use it, and is not shown."


@answers
def tool_ask_for_choice(question: str, options: list[str]) -> str:
    """Has the person choose one of several options and returns the choice.

    Args:
        question (str): What to ask.
        options (list): What there is to choose from.
    """
    given = [as_text(one, "options").strip() for one in options] if isinstance(options, list) else []
    if len(given) < 2:
        raise ToolArgumentError("There must be at least two options to choose from.", "options")
    chosen = _ask("select", "Choice", question, options=given)
    if chosen not in given:
        raise ToolRejectedError(f"The person answered {chosen!r}, which is none of the options.")
    return chosen


# -- helpers -------------------------------------------------------------------------------------------------------------------


def _ask(kind: str, title: str, question: str, *, options: list[str] | None = None, default: str | None = None) -> str:
    """The person's answer.

    Raises:
        ToolArgumentError: There is no question.
        ToolRejectedError: Nobody can be asked, or the person gave no answer.
    """
    prompt = as_text(question, "question").strip()
    if not prompt:
        raise ToolArgumentError("The question is empty.", "question")
    if _HANDLER is None:
        raise ToolRejectedError("Nobody can be asked here: no user_interaction_handler is configured.")
    answer = _HANDLER({"type": kind, "title": title, "prompt": prompt, "options": options or [], "default": default})
    if answer is None:
        raise ToolRejectedError("The person gave no answer.")
    return str(answer)
