"""Tools that a caller hands over for one turn, beside those that are there already; and what its calls are run with.

Source: tool guide §8 ("Mounting at Discussion / Chat Time"), CONTRACT C, G, H.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._agent.toolsets import GivenTools, JoinedTools
from .._tools.effects import check_level
from ..errors import ConfigurationError

if TYPE_CHECKING:
    from .._agent.ports import Tools
    from ..lollms_core import LollmsClient
    from ..lollms_tools_binding import LollmsToolBinding

__all__ = ["AS_CONFIGURED", "GivenTool", "HandedTools", "ToolFiles", "call_options", "is_path"]

GivenTool = Any
"""The name of a tool that is there, a file or a folder of tools, a tool as a dict (see `GivenTools`), or a tools binding."""

ToolFiles = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""A file or a folder of tools, or several."""


class _Unsaid(str):
    """A default that can be told from the same word said by somebody."""

    __slots__ = ()


AS_CONFIGURED = _Unsaid("safe")
"""The default of `shell_autonomy_level` and its like: what the library is configured to, which is "safe" where nobody said."""


def call_options(
    given: Mapping[str, Any] | None = None,
    *,
    confirm_handler: Callable[..., Any] | None = None,
    shell_autonomy_level: str | None = AS_CONFIGURED,
    python_autonomy_level: str | None = AS_CONFIGURED,
) -> dict[str, Any]:
    """What every call of a tool in a turn is run with.

    Args:
        given: Further keywords for each call (see `LCPBinding.execute_tool`).
        confirm_handler: Who approves risky calls of this turn; None for whom the tools ask anyway.
        shell_autonomy_level: The autonomy level of the library `system_shell` in this turn.
        python_autonomy_level: The autonomy level of the library `execute_python` in this turn.

    Raises:
        ConfigurationError: A level that is none.
    """
    options = dict(given or {})
    if confirm_handler is not None:
        options["confirm_handler"] = confirm_handler
    levels = dict(options.get("autonomy_levels") or {})
    said = {
        "shell_autonomy_level": ("system_shell", shell_autonomy_level),
        "python_autonomy_level": ("execute_python", python_autonomy_level),
    }
    for keyword, (library, level) in said.items():
        if level is not None and level is not AS_CONFIGURED:
            levels[library] = check_level(level, keyword)
    if levels:
        options["autonomy_levels"] = levels
    return options


class HandedTools:
    """The tools of one turn, as a context manager: files and folders become an LCP binding that ends with it.

    Args:
        client: Whose tools bindings are built.
        tools: What is handed over: a list of `GivenTool`, a dict of tools by name (as `to_chat_tool_specs()` gives it), or a
            tools binding. Names choose among `own`: where some are given, no other of `own` is offered. An empty list offers
            nothing, None offers all of `own`.
        tool_files: Files and folders of tools besides.
        own: The tools that are there already, None for none.
        may_lack_callable: Whether a tool may stand here that is never called.

    Entering it gives the tools, None where there is none. What is handed over takes the place of tools of `own` that have the
    same name; files are asked about as the client's tools are: by its handlers.

    Raises:
        ConfigurationError: Something of it is no tool, or no file.
        UnknownNameError: A name that `own` does not have (on entering).
    """

    def __init__(
        self,
        client: LollmsClient,
        tools: Sequence[GivenTool] | Mapping[str, Any] | Any = None,
        tool_files: ToolFiles | None = None,
        *,
        own: Tools | None = None,
        may_lack_callable: bool = False,
    ) -> None:
        listed = _listed(tools)
        self._names = [t for t in listed if isinstance(t, str) and not is_path(t)]
        self._sets: list[Tools] = [t for t in listed if _is_binding(t)]
        dicts = [t for t in listed if isinstance(t, Mapping)]
        self._sets += _bound(dicts)
        self._given = GivenTools([d for d in dicts if _home(d) is None], may_lack_callable=may_lack_callable)
        paths = [t for t in listed if isinstance(t, os.PathLike) or (isinstance(t, str) and is_path(t))]
        for other in listed:
            if not (isinstance(other, (str, os.PathLike, Mapping)) or _is_binding(other)):
                raise ConfigurationError(f"A tool is a name, a path, a dict or a tools binding, not {other!r}.")
        self._paths = [Path(p).expanduser() for p in (*paths, *_files(tool_files))]
        self._own = None if tools is not None and not listed else own
        self._client = client
        self._libraries: list[LollmsToolBinding] = []

    def __enter__(self) -> Tools | None:
        """The tools of the turn."""
        if missing := [str(p) for p in self._paths if not p.exists()]:
            raise ConfigurationError(f"There is no file or folder of tools {missing[0]!r}.")
        try:
            return self._joined()
        except BaseException:
            self.__exit__()
            raise

    def _joined(self) -> Tools | None:
        files, folders = [p for p in self._paths if p.is_file()], [p for p in self._paths if p.is_dir()]
        for keyword, where in (("tool_files", files), ("tools_folders", folders)):
            if where:
                library = self._client.manager_of("tools").create_binding("lcp", **{keyword: where})
                library.set_confirm_handler(getattr(self._client.tools, "confirm_handler", None))
                library.set_user_interaction_handler(getattr(self._client.tools, "user_interaction_handler", None))
                self._libraries.append(library)
        handed: list[Tools] = [*self._libraries, *self._sets, *([self._given] if self._given.specs() else [])]
        if not handed and not self._names:
            return self._own
        theirs = {spec.name for one in handed for spec in one.specs()}
        there = [self._own] if self._own is not None else []
        wanted = self._names or [spec.name for one in there for spec in one.specs()]
        return JoinedTools([JoinedTools(there, [name for name in wanted if name not in theirs]), *handed])

    def __exit__(self, *_: object) -> None:
        """Ends the bindings that were built for the turn."""
        for library in self._libraries:
            library.close()
        self._libraries = []


def is_path(text: str) -> bool:
    """Whether a text means a file or a folder, not the name of a tool."""
    return os.sep in text or text.endswith(".py")


def _listed(tools: Any) -> list[Any]:
    if tools is None:
        return []
    if isinstance(tools, (str, os.PathLike)):
        raise ConfigurationError("tools is a list: of names, of files or folders of tools, or of dicts.")
    if _is_binding(tools):
        return [tools]
    return list(tools.values()) if isinstance(tools, Mapping) else list(tools)


def _is_binding(thing: Any) -> bool:
    return hasattr(thing, "execute_tool") and hasattr(thing, "specs")


def _files(tool_files: ToolFiles | None) -> list[Any]:
    if tool_files is None:
        return []
    return [tool_files] if isinstance(tool_files, (str, os.PathLike)) else list(tool_files)


def _home(tool: Mapping[str, Any]) -> Tools | None:
    """The binding that described a tool in the form of `to_chat_tool_specs`, where it still has the name that it had there."""
    binding, name = getattr(tool.get("callable"), "bound_tool", (None, None))
    return binding if name == tool.get("name") else None


def _bound(dicts: Iterable[Mapping[str, Any]]) -> list[Tools]:
    """Tools that a binding described run there, as any call: in the turn's workspace, with its handlers."""
    names: dict[int, tuple[Tools, list[str]]] = {}
    for tool in dicts:
        if (binding := _home(tool)) is not None:
            names.setdefault(id(binding), (binding, []))[1].append(str(tool["name"]))
    return [JoinedTools([binding], chosen) for binding, chosen in names.values()]
