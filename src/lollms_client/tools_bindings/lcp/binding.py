"""LCP, the Lollms Communication Protocol: plain Python functions as tools, found by their source, run in this process.

Source: tool guide, CONTRACT A1 to A17. Parts: `discovery` finds, `schema` describes, `mounting` registers, `loader` loads;
`lollms_client._tools` checks, decides and runs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lollms_client._imports import accepted, starts, watch
from lollms_client._kept import holds_home, records_beneath
from lollms_client._tools.asks import fingerprint
from lollms_client._tools.calls import CURRENT, ConfirmHandler, InteractionHandler, RunningCall
from lollms_client._tools.effects import DEFAULT_LEVEL, check_level
from lollms_client._tools.execute import Order, call_tool, execute, failure
from lollms_client._tools.gate import Gate
from lollms_client._tools.spec import DEFAULT_LIMIT, Diagnostic, LibrarySpec, ToolSpec
from lollms_client._tools.threads import run_in_thread, still_running, stop_lane
from lollms_client._tools.workspace import choose_isolation, pin_import_path, resolve_workspace, start_folder
from lollms_client.errors import ToolError, ToolLoadError, ToolTimeoutError, UnknownNameError
from lollms_client.lollms_tools_binding import LollmsToolBinding

from .handlers import CONFIRM, HANDLER_KEYS, INTERACTION, HostHandlers
from .loader import ToolLoader
from .mounting import DEFAULT_TOOLS, Entry, Toolbox
from .prompts import described, has_providers, provided_texts
from .settings import Places, cache_at, checked_configs, current_folder, paths, positive, unknown_settings

if TYPE_CHECKING:
    from types import ModuleType

    from lollms_client._tools.workers import WorkerPool

__all__ = ["LCPBinding"]

DEFAULT_TIMEOUT = 600.0
"""Seconds that a call may take unless configured; waiting for a person does not count."""

PROMPT_SECONDS = 10.0
"""Seconds that a library's prompt providers may take together."""

_AT_HOME = "the workspace holds the home folder, where 'safe' asks as 'strict' does"
_numbers = count(1)


@dataclass(slots=True)
class _Place:
    """Where and how one call runs."""

    entry: Entry
    running: RunningCall
    workspace: str
    timeout: float | None


class LCPBinding(LollmsToolBinding):
    """Finds Python tools and runs them, each call in its workspace and behind one gate.

    Args:
        tools_folders: Folders of tool libraries, one or several (tool guide §2); the built-in ones where neither folders nor
            files are given.
        tools_folder_path: Another name of the same.
        tool_files: Files of tools; where given, folders are not scanned (libraries can still be mounted from them).
        host_tool_configs: Configuration of libraries, by stem (tool guide §6).
        confirm_handler: Who approves risky calls (tool guide §5).
        user_interaction_handler: Who answers tools' questions (tool guide §13).
        workspace_path: Working directory of calls whose `tool_context` names none; the current directory where it is not given.
        autonomy_level: "strict", "safe" or "full_access", for libraries whose configuration has none. In a workspace that
            holds the home folder, "safe" asks as "strict" does.
        approval: What happens to a call that needs a person where there is no handler: "ask" refuses it, "defer" leaves it
            pending.
        timeout: Seconds a call may take, None for no limit.
        max_output_chars: Characters of output that a result keeps, None for all.
        schema_cache: Where schemas are kept between processes: True for below the home folder, False for nowhere, or a folder.
        audit: Where is noted who decided about calls: True for the log that the process keeps, False for nowhere, or a file.
        isolation: "thread" or "process" for the working directory of calls; "auto" takes threads where the system allows it.
        **unknown: Anything else is an error.

    Attributes:
        discovered_tools: Name -> `{"name", "description", "input_schema"}`.
        diagnostics: What discovery noticed: dropped duplicates, closures, files that do not parse.
        workspace_path: The default working directory.

    Raises:
        ConfigurationError: A setting that is unknown, or has a value that it cannot have.
    """

    def __init__(
        self,
        tools_folders: Places | None = None,
        *,
        tools_folder_path: Places | None = None,
        tool_files: Places | None = None,
        host_tool_configs: Mapping[str, Mapping[str, Any]] | None = None,
        confirm_handler: ConfirmHandler | None = None,
        user_interaction_handler: InteractionHandler | None = None,
        workspace_path: str | os.PathLike[str] | None = None,
        autonomy_level: str = DEFAULT_LEVEL,
        approval: Literal["ask", "defer"] = "ask",
        timeout: float | None = DEFAULT_TIMEOUT,
        max_output_chars: int | None = DEFAULT_LIMIT,
        schema_cache: bool | str | os.PathLike[str] = True,
        isolation: str = "auto",
        audit: bool | str | os.PathLike[str] = True,
        **unknown: Any,
    ) -> None:
        super().__init__(binding_name="lcp")
        if unknown:
            raise unknown_settings(unknown, [n for n in LCPBinding.__init__.__annotations__ if n not in ("unknown", "return")])
        start_folder()
        self._folder = current_folder()
        self.workspace_path = resolve_workspace(workspace_path, self._folder) if workspace_path else self._folder
        self.host_tool_configs = checked_configs(host_tool_configs)
        self.autonomy_level = check_level(autonomy_level, "autonomy_level")
        self.timeout = positive("timeout", timeout)
        self.max_output_chars = positive("max_output_chars", max_output_chars)
        self.isolation = choose_isolation(isolation)
        self._confined: set[str] = set()  # libraries that a model wrote
        self.gate = Gate(approval, audit)
        self._handlers = HostHandlers(self.gate, self.host_tool_configs)
        self._loader = ToolLoader(self.host_tool_configs, self._handlers)
        self._number = next(_numbers)
        self._workers: WorkerPool | None = None
        self._lock = threading.Lock()
        self._failed_prompts: set[str] = set()
        self.set_confirm_handler(confirm_handler)
        self.set_user_interaction_handler(user_interaction_handler)
        folders = [*paths(tools_folders), *paths(tools_folder_path)]
        if tools_folders is None and tools_folder_path is None and not tool_files:
            folders = [DEFAULT_TOOLS]
        self._toolbox = Toolbox(folders, cache_at(schema_cache))
        pin_import_path()
        self._discover_local_tools(paths(tool_files))
        watch(self.workspace_path)

    def _discover_local_tools(self, files: Sequence[Path] = ()) -> None:
        """Reads the tool files of the folders, or `files` instead (tool guide §2). Nothing of them runs."""
        self._toolbox.scan(files)

    @property
    def discovered_tools(self) -> dict[str, dict[str, Any]]:
        """Name -> `{"name", "description", "input_schema"}` of every tool that can be called."""
        return self._toolbox.discovered

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What was noticed and not hidden."""
        return self._toolbox.diagnostics

    @property
    def libraries(self) -> list[LibrarySpec]:
        """The libraries, with their names, descriptions and icons for user interfaces; none is loaded for it."""
        return list(self._toolbox.libraries.values())

    # What there is.

    def specs(self) -> list[ToolSpec]:
        """The tools as read from their source, in the order in which they were found."""
        self._toolbox.keep()
        return [entry.spec for name, entry in self._toolbox.entries.items() if name in self.discovered_tools]

    def tool_spec(self, name: str) -> ToolSpec:
        """One tool as read from its source.

        Raises:
            UnknownNameError: There is none of that name.
        """
        entry = self._toolbox.get(name)
        if entry is None:
            raise UnknownNameError("tool", name, self.discovered_tools)
        return entry.spec

    def discover_tools(self, tool_context: Mapping[str, Any] | None = None, **_: Any) -> list[dict[str, Any]]:
        """The tools with their descriptions as they are right now; prompt providers run for it (tool guide §3).

        Args:
            tool_context: Its `workspace_path` is where providers look.
            **_: Nothing else counts.

        Returns:
            `{"name", "description", "input_schema"}` each; yours to change.
        """
        self._toolbox.keep()
        texts = self._provided(tool_context)
        tools = []
        for name, shown in self.discovered_tools.items():
            tool = deepcopy(shown)
            if (entry := self._toolbox.entries.get(name)) is not None:
                tool["description"] = described(shown["description"], texts.get(entry.library.path, {}), name)
            tools.append(tool)
        return tools

    def to_chat_tool_specs(self, tool_context: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
        """See `LollmsToolBinding.to_chat_tool_specs`; prompt providers run for it."""
        tools = self.discover_tools(tool_context)
        return {tool["name"]: self.chat_spec(tool, self.tool_spec(tool["name"]).output) for tool in tools}

    def library_prompts(self, tool_context: Mapping[str, Any] | None = None) -> dict[str, str]:
        """What libraries say about the workspace as it is right now.

        Args:
            tool_context: Its `workspace_path` is where providers look.

        Returns:
            Library name -> its text, and tool name -> text where a single tool has a provider.
        """
        prompts: dict[str, str] = {}
        for path, texts in self._provided(tool_context).items():
            for name, text in texts.items():
                prompts[name or self._toolbox.libraries[path].name] = text
        return prompts

    def _provided(self, tool_context: Mapping[str, Any] | None) -> dict[str, dict[str, str]]:
        """The texts of all prompt providers by library path; "" stands for the library, else tool names."""
        workspace = self._workspace_of(tool_context)
        listed = {entry.library.path: entry for entry in self._toolbox.entries.values()}
        found: dict[str, dict[str, str]] = {}
        for path, entry in listed.items():
            if not has_providers(entry.library) or entry.spec.broken or path in self._confined:
                continue
            try:
                texts, failures = self._in_library(entry, workspace, "prompts", PROMPT_SECONDS)
            except ToolError as error:
                texts, failures = {}, {"": str(error)}
            found[path] = texts
            for said in failures.values():
                self._note_failed_prompt(entry.library, said)
        return found

    def _note_failed_prompt(self, library: LibrarySpec, said: str) -> None:
        message = f"{library.stem}: a prompt provider gave no text, the plain description stands: {said}"
        if message not in self._failed_prompts:
            self._failed_prompts.add(message)
            self.diagnostics.append(Diagnostic("prompt", message, library.path))

    # Calls.

    def announces(self, tool_name: str) -> bool:
        """True: each call that passed the gate is told to `about_to`."""
        return True

    def execute_tool(
        self, tool_name: str, params: dict[str, Any], discussion_instance: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Runs a tool (tool guide §7): check, decide, run in the workspace, normalise.

        Args:
            tool_name: Which.
            params: What the model sent, by name.
            discussion_instance: For tools that declare it.
            **kwargs: `lollms_client_instance` and `tool_context` for tools that declare them; `tool_context["workspace_path"]` is
                the call's working directory. `timeout` (seconds), `cancelled` (a `threading.Event` or the like), `session`,
                `confirm_handler`, `user_interaction_handler`, `autonomy_level` for this call alone; `autonomy_levels`, the same
                by the stem of a library, which goes first; `approval`, a decision that was made while the call was pending:
                `{"ticket", "decision", "reason"[, "arguments"]}`; `defer_approval`, True to leave it pending where nobody can be
                asked; `about_to(arguments)`, told right before the call runs. Others are ignored.

        Returns:
            The result; see `lollms_client._tools.execute.execute`. An unknown tool has status_code 404.
        """
        self._toolbox.keep()
        entry = self._toolbox.get(tool_name)
        if entry is None:
            return failure(str(UnknownNameError("tool", tool_name, self.discovered_tools)), status_code=404)
        if entry.spec.broken:
            return failure(f"{tool_name} cannot be called: {entry.spec.broken}")
        stem = entry.library.stem
        context = kwargs.get("tool_context")
        running = self._running(entry, context, discussion_instance, kwargs)
        place = _Place(entry, running, self._workspace_of(context), kwargs.get("timeout", self.timeout))
        watch(place.workspace)
        trusted = entry.library.path not in self._confined
        own_level = (kwargs.get("autonomy_levels") or {}).get(stem, kwargs.get("autonomy_level"))
        running.level = check_level(own_level, "autonomy_level") if own_level is not None else self._level(stem)
        at_home = running.level == "safe" and holds_home(place.workspace)
        if at_home:
            running.level = "strict"  # a file there may be what the person's next shell runs
        order = Order(
            entry.plan,
            params,
            running,
            effects=entry.spec.effects if trusted else None,  # what a model says about its own tools is no promise
            trusted=trusted,
            code="" if trusted else fingerprint(stem, entry.code or ""),
            level=running.level,
            because=_AT_HOME if at_home else "",
            handler=self._who_confirms(stem, running),
            ends_with_deadline=not trusted or self._in_process(entry.library),
        ).take(kwargs)
        host = {
            "tool_context": context if context is not None else {},
            "lollms_client_instance": kwargs.get("lollms_client_instance"),
            "discussion_instance": discussion_instance,
        }

        def carry_out(arguments: dict[str, Any]) -> tuple[str, Any]:
            return self._carry_out(place, arguments, host)

        return execute(order, self.gate, carry_out)

    def _carry_out(self, place: _Place, arguments: dict[str, Any], host: Mapping[str, Any]) -> tuple[str, Any]:
        entry, limit = place.entry, self.max_output_chars
        if entry.library.path in self._confined:
            from .confined import call_confined

            where = (place.workspace, place.running)
            return call_confined(entry, arguments, host, *where, timeout=place.timeout, limit=limit)
        if self._in_process(entry.library):
            needed = {name: value for name, value in host.items() if name in entry.spec.hidden or entry.spec.accepts_kwargs}
            return self._in_worker(place, "call", needed, tool=entry.spec, arguments=arguments)

        def function() -> Callable[..., Any]:
            return self._loader.load(entry.library, entry.code).function(entry.spec)

        def work() -> dict[str, Any]:
            return call_tool(entry.plan, function, arguments, host, limit)

        return run_in_thread(work, place.workspace, place.running, place.timeout)

    def _running(
        self, entry: Entry, context: Mapping[str, Any] | None, discussion: Any, kwargs: Mapping[str, Any]
    ) -> RunningCall:
        outer = CURRENT.get()
        session = kwargs.get("session") or (context or {}).get("session") or getattr(discussion, "id", None)
        cancelled = kwargs.get("cancelled")
        if outer is not None:
            session = session or outer.session
            cancelled = cancelled or outer.cancelled
        return RunningCall(
            entry.spec.name,
            session=str(session or ""),
            parent=outer,
            cancelled=cancelled,
            confirm_handler=kwargs.get(CONFIRM),
            interaction_handler=kwargs.get(INTERACTION),
            lane=self._lane(entry.library),
        )

    def _level(self, stem: str) -> str:
        level: str = (self.host_tool_configs.get(stem) or {}).get("autonomy_level", self.autonomy_level)
        return level

    def _who_confirms(self, stem: str, running: RunningCall) -> ConfirmHandler | None:
        for call in running.chain():
            if call.confirm_handler is not None:
                return call.confirm_handler
        return self._handlers.current(stem, CONFIRM)

    def _lane(self, library: LibrarySpec) -> str:
        return f"{self._number}:{library.path}" if library.thread == "own" or library.isolation == "process" else ""

    def _in_process(self, library: LibrarySpec) -> bool:
        """Whether a library's calls run in worker processes."""
        return self.isolation == "process" or library.isolation == "process"

    def _workspace_of(self, context: Mapping[str, Any] | None) -> str:
        path = context.get("workspace_path") if context else None
        return resolve_workspace(path, self._folder) if path else self.workspace_path

    def _in_library(self, entry: Entry, workspace: str, what: Literal["load", "prompts"], timeout: float | None) -> Any:
        """Loads a library, or runs its prompt providers, where its calls run.

        Raises:
            ToolLoadError: It cannot be loaded.
            ToolTimeoutError: That took too long.
        """
        running = RunningCall(entry.spec.name, parent=CURRENT.get(), lane=self._lane(entry.library))

        def work() -> Any:
            module = self._loader.load(entry.library, entry.code).module
            return module if what == "load" else provided_texts(entry.library, module)

        if self._in_process(entry.library):
            outcome, value = self._in_worker(_Place(entry, running, workspace, timeout), what)
        else:
            outcome, value = run_in_thread(work, workspace, running, timeout)
        if outcome != "done":
            said = f"The tool library {entry.library.stem!r} took longer than {timeout:g} seconds to load or to describe itself."
            raise ToolTimeoutError(said, still_running=not self._in_process(entry.library))
        return value

    def _in_worker(self, place: _Place, what: str, host: Mapping[str, Any] | None = None, **more: Any) -> tuple[str, Any]:
        """Runs a function of `remote` in a worker process, and lends it host objects."""
        from . import remote

        library, stem = place.entry.library, place.entry.library.stem
        guards = {key: self._handlers.of(stem, key) for key in HANDLER_KEYS}
        there = {key: guard for key, guard in guards.items() if self._handlers.available(stem, key, place.running)}
        config = {k: v for k, v in (self.host_tool_configs.get(stem) or {}).items() if k not in HANDLER_KEYS}
        level, limit = place.running.level, self.max_output_chars
        more |= {"since": accepted(library.path), "starts": starts(), "records": records_beneath(place.workspace)}
        order = remote.RemoteOrder(library, place.entry.code, config, there, level=level, limit=limit, **more)
        where = (place.workspace, place.running)
        run = self._worker_pool().run
        return run(getattr(remote, what), (order,), *where, timeout=place.timeout, handlers=guards, lent=host)

    def _worker_pool(self) -> WorkerPool:
        with self._lock:
            if self._workers is None:
                from lollms_client._tools.workers import WorkerPool

                self._workers = WorkerPool()
            return self._workers

    def _get_or_load_tool_module(self, name: str) -> ModuleType:
        """The module of a tool or of a library, loaded where its calls run and kept (tool guide §6).

        Args:
            name: A tool's name, or a library's stem.

        Returns:
            The module. Where calls run in worker processes, modules are there and not here, and this is an error.

        Raises:
            UnknownNameError: Neither a tool nor a library with a registered tool.
            ToolLoadError: The library cannot be loaded.
        """
        entry = self._toolbox.get(name)
        if entry is None:
            entry = next((e for e in self._toolbox.entries.values() if e.library.stem == name), None)
        if entry is None:
            raise UnknownNameError("tool or tool library", name, self.discovered_tools)
        if self._in_process(entry.library):
            raise ToolLoadError(f"{name} is loaded in worker processes here, not in this one.")
        module: ModuleType = self._in_library(entry, self.workspace_path, "load", None)
        return module

    def still_running(self) -> list[str]:
        """Tools of this process whose caller went on at a deadline or a cancel, and whose thread has not ended yet."""
        return still_running()

    # Handlers.

    def set_confirm_handler(self, handler: ConfirmHandler | None) -> None:
        """Sets who approves risky calls from now on; libraries that are loaded get to know (tool guide §6)."""
        super().set_confirm_handler(handler)
        self._set_handler(CONFIRM, handler)

    def set_user_interaction_handler(self, handler: InteractionHandler | None) -> None:
        """Sets who answers tools' questions from now on; libraries that are loaded get to know (tool guide §13)."""
        super().set_user_interaction_handler(handler)
        self._set_handler(INTERACTION, handler)

    def _set_handler(self, key: str, handler: Callable[..., Any] | None) -> None:
        self._handlers.host[key] = handler
        self._loader.handler_changed(key)

    def set_autonomy_level(self, library: str | None, level: str) -> None:
        """Sets how much a library may do alone from its next call on, whether it is loaded or not (tool guide §5).

        A loaded library gets to know by its hook `set_autonomy_level(level)`, else by its `AUTONOMY_LEVEL`. What a person allowed
        "always" in a session still holds; `gate.forget` takes that back.

        Args:
            library: Its stem; None for all that have no level of their own.
            level: "strict", "safe" or "full_access".

        Raises:
            ConfigurationError: Another level.
        """
        checked = check_level(level, "autonomy_level")
        if library is None:
            self.autonomy_level = checked
        else:
            self.host_tool_configs[library] = {**(self.host_tool_configs.get(library) or {}), "autonomy_level": checked}

    # Mounting (tool guide §8).

    def mount_tool_library(self, lib_name: str) -> bool:
        """Mounts a library of the tools folders or of the default ones; True when all its tools are registered."""
        return self._toolbox.mount(lib_name)

    def mount_tool_library_if_absent(self, lib_name: str) -> bool:
        """Does the same, and warns of a failure only once."""
        return self._toolbox.mount(lib_name, warn_again=False)

    def is_library_mounted(self, lib_name: str) -> bool:
        """Whether every tool of a library is registered."""
        return self._toolbox.is_mounted(lib_name)

    def find_library_for_tool(self, tool_name: str) -> str | None:
        """The library (folder or file) that provides a tool, mounted or not; None where none does."""
        return self._toolbox.library_of(tool_name)

    def is_tool_available(self, tool_name: str) -> bool:
        """Whether a tool is registered, or could be mounted."""
        return self._toolbox.library_of(tool_name) is not None

    def load_tool_by_name(self, tool_name: str) -> dict[str, Any] | None:
        """Mounts the library that owns a tool where needed; returns the tool's spec dict, None where no library has it."""
        if tool_name not in self.discovered_tools and (library := self._toolbox.library_of(tool_name)) is not None:
            self._toolbox.mount(library)
        return self.discovered_tools.get(tool_name)

    def register_tool_from_code(self, prefix: str, code: str, trusted: bool = True) -> list[str]:
        """Runs source text as a module in memory and registers every `tool_*` function of it, in place of those of that name.

        Args:
            prefix: Names the library, as a file's stem would.
            code: Its source.
            trusted: Whether it comes from the host. Code that a model wrote does not: nothing of it runs here, each call of its
                tools runs confined in a process of its own, and is asked about in strict and safe (CONTRACT A17).

        Returns:
            The names of the tools.

        Raises:
            ToolLoadError: The code does not parse or does not run, or is not trusted and would replace a tool that is; nothing
                is registered then.
        """
        library = self._toolbox.code_library(prefix, code)
        if not library.tools:
            return []
        if not trusted:
            for tool in library.tools:
                if (there := self._toolbox.entries.get(tool.name)) is not None and there.library.path not in self._confined:
                    raise ToolLoadError(
                        f"{tool.name} is a tool of {there.library.stem!r}, which code that nobody trusts cannot replace."
                    )
            self._confined.add(library.path)
            self._forget(self._toolbox.register_code(library, code))
            return [tool.name for tool in library.tools]
        self._in_library(Entry(library.tools[0], library, code), self.workspace_path, "load", self.timeout)
        self._forget(self._toolbox.register_code(library, code))
        return [tool.name for tool in library.tools]

    def unregister_tools_by_prefix(self, prefix: str) -> list[str]:
        """Takes out the tools named `prefix`, `tool_<prefix>` or `tool_<prefix>_…`; returns their names."""
        names, paths = self._toolbox.unregister(prefix)
        self._forget(paths)
        return names

    def _forget(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._confined.discard(path)
            self._loader.forget(path)

    def close(self) -> None:
        """Ends worker processes and threads of libraries, and drops the loaded modules; a later call loads them anew."""
        for library in self._toolbox.libraries.values():
            if lane := self._lane(library):
                stop_lane(lane)
        with self._lock:
            workers, self._workers = self._workers, None
        if workers is not None:
            workers.close()
        self._loader.close()
