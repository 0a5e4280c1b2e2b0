"""Native tool calls: the backend takes tool specs and answers with calls; tags are not obeyed except control tags."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ..._bindings.request import Capabilities, ChatRequest
from ..._tools.spec import ToolSpec
from ...events import ToolCall
from ..prompt import report_block, result_text
from ..state import CallRecord, Reply
from .base import Dialect, Reader, RoundView, tag_parser

__all__ = ["NativeDialect"]


class NativeDialect(Dialect):
    """The OpenAI form of tools, calls and results. Source: CONTRACT J ("native tool calls where the backend has them")."""

    name = "native"

    def __init__(self, capabilities: Capabilities) -> None:
        super().__init__(capabilities)
        self._told: tuple[Sequence[ToolSpec], tuple[dict[str, Any], ...]] | None = None

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """Nothing: the backend tells the model about tools in its own way."""
        return ""

    def request(self, view: RoundView) -> ChatRequest:
        """The transcript, with the specs beside it."""
        return self._base_request(view, tools=self._specs(view.tools))

    def _specs(self, tools: Sequence[ToolSpec]) -> tuple[dict[str, Any], ...]:
        """The tools as the backend takes them, made once: a turn's tools stay the same."""
        if self._told is None or self._told[0] is not tools:
            self._told = (tools, tuple(spec.to_dict() for spec in tools if not spec.broken))
        return self._told[1]

    def reader(self, view: RoundView, mint_id: Callable[[], str]) -> Reader:
        """The stream parser; a model that writes tags all the same is understood too."""
        return tag_parser(self.capabilities, view, mint_id)

    def assistant_message(self, reply: Reply) -> dict[str, Any]:
        """The reply with its calls, and with what the provider wants to have back inside one tool loop."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.raw}
        if calls := [c for c in reply.calls if c.dialect != ToolCall.WORKER]:
            message["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": _written(c)}} for c in calls
            ]
        for signed in reply.signed:
            message.update(signed["fields"])
            for call in message.get("tool_calls", ()):
                call.update(signed["calls"].get(call["id"], {}))
        return message

    def result_messages(self, records: Sequence[CallRecord], limit: int | None) -> list[dict[str, Any]]:
        """One tool message a call, in the calls' order; what workers report that were asked for by a tag goes last."""
        messages = [
            {"role": "tool", "tool_call_id": r.call.id, "name": r.call.name, "content": result_text(r.result, limit)}
            for r in records
            if r.call.dialect != ToolCall.WORKER
        ]
        reports = [report_block(r.call.arguments, r.result, limit) for r in records if r.call.dialect == ToolCall.WORKER]
        return [*messages, {"role": "user", "content": "\n".join(reports)}] if reports else messages


def _written(call: ToolCall) -> str:
    """A call's arguments as the model wrote them, where they are what was understood: a signature may be over these bytes."""
    try:
        as_written = not call.problem and json.loads(call.raw) == call.arguments
    except ValueError:
        as_written = False
    return call.raw if as_written else json.dumps(call.arguments, ensure_ascii=False)
