"""Tags in the text, for models whose backend has neither native calls nor a schema that binds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._bindings.request import ChatRequest
from ..._tools.spec import ToolSpec
from ...events import ToolCall
from ..prompt import describe_tool, report_block, tool_result_block
from ..state import CallRecord, Reply
from .base import Dialect, Reader, RoundView, tag_parser

__all__ = ["TagsDialect"]

_HOW = """You can use tools. To call one, write a line of this form and then stop and wait:
<tool>{{"name": "tool_x", "parameters": {{"argument": "value"}}}}</tool>
The result comes back as <tool_result name="tool_x">…</tool_result>. Then go on: call another tool, or answer.
When you have what you need, answer in plain text without any tag.

Tools:
{tools}"""


class TagsDialect(Dialect):
    """Calls as `<tool>{…}</tool>`, results as `<tool_result …>`. Source: CONTRACT J."""

    name = "tags"

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """How to write a call, and the tools as text."""
        return _HOW.format(tools="\n".join(describe_tool(t) for t in tools if not t.broken)) if tools else ""

    def request(self, view: RoundView) -> ChatRequest:
        """The transcript as it stands."""
        return self._base_request(view)

    def reader(self, view: RoundView, mint_id: Callable[[], str]) -> Reader:
        """The stream parser with all tags."""
        return tag_parser(self.capabilities, view, mint_id)

    def assistant_message(self, reply: Reply) -> dict[str, Any]:
        """The reply as the model wrote it, tags and all: the next round's prefix stays byte-identical."""
        return {"role": "assistant", "content": reply.raw}

    def result_messages(self, records: Sequence[CallRecord], limit: int | None) -> list[dict[str, Any]]:
        """All results of a round in one message of the user."""
        blocks = [
            report_block(r.call.arguments, r.result, limit)
            if r.call.dialect == ToolCall.WORKER
            else tool_result_block(r.call.name, r.result, limit)
            for r in records
        ]
        return [{"role": "user", "content": "\n".join(blocks)}] if blocks else []
