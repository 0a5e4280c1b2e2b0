"""The documented calls that run a turn with tools: `generate_with_tools` and `generate_with_mcp`.

Source: CONTRACT C; developer guide §4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._agent.callbacks import drain
from .._agent.toolsets import AskFirst
from ..errors import BackendError
from ..events import Event, ToolCall, TurnEnded
from .handed import GivenTool, HandedTools, is_path

if TYPE_CHECKING:
    from .._agent.ports import Tools
    from .._bindings.answers import StreamingCallback
    from ..lollms_core import LollmsClient

__all__ = ["generate_with_mcp", "generate_with_tools"]


def generate_with_tools(
    client: LollmsClient,
    prompt: str,
    tools: Sequence[GivenTool] | Mapping[str, Any],
    *,
    callback: StreamingCallback | None,
    auto_execute: bool,
    **options: Any,
) -> dict[str, Any]:
    """Plays a turn with the tools that the caller hands over; see `LollmsClient.generate_with_tools`."""
    given = [Path(t) if isinstance(t, str) else t for t in tools] if isinstance(tools, (list, tuple)) else tools
    with HandedTools(client, given, may_lack_callable=not auto_execute) as handed:
        end, pending = _play(client, prompt, handed, callback, {**options, "auto_execute": auto_execute})
    answer = _documented(end)
    if pending is not None:
        answer["pending_tool"] = {"name": pending.name, "parameters": pending.arguments, "raw": pending.raw}
    return answer


def generate_with_mcp(
    client: LollmsClient,
    prompt: str,
    tools: Sequence[Any] | None,
    *,
    callback: StreamingCallback | None,
    interactive: bool,
    **options: Any,
) -> dict[str, Any]:
    """Plays a turn with the client's own tools; see `LollmsClient.generate_with_mcp`."""
    named = tools is None or any(isinstance(t, str) and not is_path(t) for t in tools)
    with HandedTools(client, tools, own=client.need("tools") if named else None) as handed:
        offered = handed
        if interactive and handed is not None:
            offered = AskFirst(handed, options.get("confirm_handler") or _handler_of(client))
        try:
            end, _ = _play(client, prompt, offered, callback, options)
        except BackendError as failed:
            end, said = TurnEnded("failed", "", 0), str(failed)
        else:
            said = f"The turn ended as {end.status!r}: {end.reason or 'no answer came'}."
    return {"final_answer": end.response, "error": None if end.status == "completed" else said, **_documented(end)}


def _play(
    client: LollmsClient, prompt: str, tools: Tools | None, callback: StreamingCallback | None, options: dict[str, Any]
) -> tuple[TurnEnded, ToolCall | None]:
    pending: list[ToolCall] = []
    if handler := options.pop("confirm_handler", None):
        options["call_options"] = {**options.get("call_options", {}), "confirm_handler": handler}
    events, cancel = client.turn_with(tools, prompt, **options)

    def heard() -> Iterator[Event]:
        for event in events:
            if isinstance(event, ToolCall):
                pending.append(event)
            yield event

    with closing(events):  # also where a callback raises: a turn that nobody plays on must not stay half open
        end = drain(heard(), callback if callback is not None else client.callback, cancel)
    return end, next(iter(pending), None)


def _documented(end: TurnEnded) -> dict[str, Any]:
    return {
        "response": end.response,
        "tool_calls": end.tool_calls,
        "tool_results": end.tool_results,
        "rounds": end.rounds,
    }


def _handler_of(client: LollmsClient) -> Any:
    """Who approves calls where the turn names nobody: whom the tools binding asks, else the person at the terminal."""
    from importlib import import_module

    handler = getattr(client.tools, "confirm_handler", None)
    return handler or import_module("..tools_bindings.lcp.confirmation", __package__).cli_confirm_handler
