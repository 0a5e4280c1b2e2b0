"""Questions of the model to the person: a tool that is answered by a person, now or, from whatever process, later.

Source: tool guide §13 (the request), CONTRACT A13 ("waiting_user").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._tools.normalise import failure, normalise
from .._tools.plan import CallPlan
from .._tools.spec import ToolSpec
from ..errors import ToolArgumentError

__all__ = ["ASK_USER", "AskUser"]

ASK_USER = ToolSpec(
    "tool_ask_user",
    "Asks the person a question and returns the answer. Only for what you cannot find out and must not assume.",
    {
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "The question, complete in itself."},
            "options": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The answers to choose from; leave it out for a free answer.",
                "default": [],
            },
        },
        "required": ["question"],
    },
    library="person",
    effects=frozenset({"read"}),
)


class AskUser:
    """One tool, `tool_ask_user`. Where nobody is there to answer, the call waits, and the turn with it."""

    def __init__(self) -> None:
        self._plan = CallPlan(ASK_USER)

    def specs(self) -> Sequence[ToolSpec]:
        """The one tool."""
        return (ASK_USER,)

    def library_prompts(self, tool_context: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Nothing."""
        return {}

    def announces(self, tool_name: str) -> bool:
        """True, and it never announces anything: a question that was put and not answered is simply put again."""
        return True

    def execute_tool(self, tool_name: str, params: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Asks the handler `user_interaction_handler`; without one the result is pending."""
        try:
            asked, warnings = self._plan.prepare(params)
        except ToolArgumentError as wrong:
            return failure(str(wrong), argument=wrong.argument)
        options = [str(option) for option in asked.get("options") or ()]
        request = {"type": "select" if options else "text", "title": "The assistant asks", "prompt": asked["question"]}
        request |= {"options": options, "default": None}
        handler = kwargs.get("user_interaction_handler")
        if handler is None:
            ticket = f"{(kwargs.get('tool_context') or {}).get('idempotency_key', '')}:question"
            waits = {"status": "pending", "kind": "question", "ticket": ticket, "reason": asked["question"], "request": request}
            return failure("The question waits for the person's answer.", status_code=202, **waits)
        answer = handler(request)
        if answer is None:
            return failure("The person gave no answer.")
        result = normalise({"success": True, "output": str(answer)})
        return {**result, "warnings": list(warnings)} if warnings else result
