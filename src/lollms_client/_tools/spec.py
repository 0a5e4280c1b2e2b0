"""What a tool is, as read from its source: the value between discovery, the call plan, the gate and the model.

Source: tool guide §4, CONTRACT A2-A6, F.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["DEFAULT_LIMIT", "HIDDEN_PARAMETERS", "Diagnostic", "LibrarySpec", "ToolSpec"]

HIDDEN_PARAMETERS = frozenset({"tool_context", "lollms_client_instance", "discussion_instance"})
"""Parameters that the host injects and no schema shows (tool guide §4.5)."""

DEFAULT_LIMIT = 200_000
"""Characters of output that a result keeps unless configured (CONTRACT A7)."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something that discovery noticed and did not hide: a dropped duplicate, a closure, a file that does not parse.

    Attributes:
        kind: "duplicate", "closure", "syntax_error", "unreadable", "unresolved_annotation" …
        message: For a person, with file and line.
        path: The file.
        line: The line, 0 where none can be named.
    """

    kind: str
    message: str
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool.

    Attributes:
        name: The function's name, which is the tool's name.
        description: First paragraph of the docstring.
        input_schema: JSON Schema of the visible parameters: `{"type": "object", "properties": {...}, "required": [...]}`.
        library: The stem of the file that holds it.
        path: That file ("" for a tool registered from code).
        line: Where the function stands.
        hidden: Host parameters that the function declares.
        accepts_kwargs: It declares `**kwargs`: nothing is filtered, every host object is injected.
        positional_only: Names of visible parameters that cannot be passed by name.
        is_async: `async def`.
        nested_in: Qualified path of the enclosing functions for a nested tool ("outer" or "outer.inner"), else "".
        output: Source text of the return annotation ("" where there is none).
        prompt_provider: Name of the function whose text replaces the description at spec-build time, "" where there is none.
        effects: Declared effects (`TOOL_EFFECTS`), None where the library declares none for this tool.
        workspace_paths: Argument name -> glob of the workspace files it may name (`TOOL_WORKSPACE_PATHS`), for its schema.
        broken: Why the tool cannot be called (it was read from a file that does not parse), "" where it can.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    library: str
    path: str = ""
    line: int = 0
    hidden: frozenset[str] = frozenset()
    accepts_kwargs: bool = False
    positional_only: tuple[str, ...] = ()
    is_async: bool = False
    nested_in: str = ""
    output: str = ""
    prompt_provider: str = ""
    effects: frozenset[str] | None = None
    workspace_paths: dict[str, str] = field(default_factory=dict)
    broken: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The documented form: name, description, input_schema (and the marker of §4.6 where it applies)."""
        out: dict[str, Any] = {"name": self.name, "description": self.description, "input_schema": self.input_schema}
        if self.broken:
            out["_parsed_via_regex_fallback"] = True
        return out


@dataclass(frozen=True, slots=True)
class LibrarySpec:
    """One file of tools, as read from its source; nothing of it has run.

    Attributes:
        stem: File name without `.py`: the key of `host_tool_configs`.
        path: The file.
        folder: The library's folder name where it is `X/…`, else "".
        name: `TOOL_LIBRARY_NAME`, else the stem.
        description: `TOOL_LIBRARY_DESC`.
        icon: `TOOL_LIBRARY_ICON`.
        tools: Its tools, in source order.
        prompt_provider: `tool_<stem>_prompt`, which describes the whole library ("" where there is none).
        thread: `TOOL_THREAD`: "own" asks for one thread that runs all its calls, "" for any.
        isolation: `TOOL_ISOLATION`: "process" asks for one worker process that runs all its calls, "" for none.
        diagnostics: What reading it brought up.
    """

    stem: str
    path: str
    folder: str = ""
    name: str = ""
    description: str = ""
    icon: str = ""
    tools: tuple[ToolSpec, ...] = ()
    prompt_provider: str = ""
    thread: str = ""
    isolation: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
