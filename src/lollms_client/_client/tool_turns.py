"""The documented calls that run a turn with tools: `generate_with_tools` and `generate_with_mcp`.

Source: CONTRACT C; developer guide §4.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._agent.callbacks import drain
from .._agent.toolsets import AskFirst, GivenTools, JoinedTools
from ..errors import BackendError, ConfigurationError
from ..events import Event, ToolCall, TurnEnded

if TYPE_CHECKING:
    from .._agent.ports import Tools
    from .._bindings.answers import StreamingCallback
    from ..lollms_core import LollmsClient
    from ..lollms_tools_binding import LollmsToolBinding

__all__ = ["generate_with_mcp", "generate_with_tools"]

GivenTool = str | os.PathLike[str] | Mapping[str, Any]
"""A file or a folder of tools, or a tool as a dict (see `GivenTools`)."""


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
    with _Handed(tools, client, auto_execute) as handed:
        end, pending = _play(client, prompt, handed.tools, callback, {**options, "auto_execute": auto_execute})
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
    names = [t for t in tools or () if isinstance(t, str) and not _is_path(t)]
    given = [t for t in tools or () if t not in names]
    own: list[Tools] = [client.need("tools")] if names or tools is None else []
    with _Handed(given, client, auto_execute=True) as handed:
        offered: Tools = JoinedTools([*own, handed.tools], [*names, *(s.name for s in handed.tools.specs())] if tools else None)
        if interactive:
            offered = AskFirst(offered, options.get("confirm_handler") or _handler_of(client))
        try:
            end, _ = _play(client, prompt, offered, callback, options)
        except BackendError as failed:
            end, said = TurnEnded("failed", "", 0), str(failed)
        else:
            said = f"The turn ended as {end.status!r}: {end.reason or 'no answer came'}."
    return {"final_answer": end.response, "error": None if end.status == "completed" else said, **_documented(end)}


def _play(
    client: LollmsClient, prompt: str, tools: Tools, callback: StreamingCallback | None, options: dict[str, Any]
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


class _Handed:
    """The tools that a caller hands over for one turn; files and folders become an LCP binding that ends with the turn."""

    def __init__(self, tools: Any, client: LollmsClient, auto_execute: bool) -> None:
        if isinstance(tools, Mapping):
            tools = tools.values()
        if isinstance(tools, (str, os.PathLike)):
            raise ConfigurationError("tools is a list: of files or folders of tools, or of dicts.")
        dicts = [t for t in tools if isinstance(t, Mapping)]
        self._paths = [Path(t).expanduser() for t in tools if not isinstance(t, Mapping)]
        self._given = GivenTools(dicts, may_lack_callable=not auto_execute)
        self._client = client
        self._libraries: list[LollmsToolBinding] = []

    def __enter__(self) -> _Handed:
        if missing := [str(p) for p in self._paths if not p.exists()]:
            raise ConfigurationError(f"There is no file or folder of tools {missing[0]!r}.")
        files, folders = [p for p in self._paths if p.is_file()], [p for p in self._paths if p.is_dir()]
        for keyword, where in (("tool_files", files), ("tools_folders", folders)):
            if where:
                self._libraries.append(self._client.manager_of("tools").create_binding("lcp", **{keyword: where}))
        self.tools: Tools = JoinedTools([*self._libraries, self._given])
        return self

    def __exit__(self, *_: object) -> None:
        for library in self._libraries:
            library.close()


def _is_path(text: str) -> bool:
    return os.sep in text or text.endswith(".py")


def _handler_of(client: LollmsClient) -> Any:
    """Who approves calls where the turn names nobody: whom the tools binding asks, else the person at the terminal."""
    from importlib import import_module

    handler = getattr(client.tools, "confirm_handler", None)
    return handler or import_module("..tools_bindings.lcp.confirmation", __package__).cli_confirm_handler
