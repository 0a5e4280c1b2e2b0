"""Loading tool libraries on first use, with the host's configuration.

A library is run once for each binding, when one of its tools or its prompt is first needed, and stays: its module-level state
lasts over calls. The first binding that loads a library owns the documented module name `persistent_<stem>`, another one's module
gets a suffix. After the module has run, its hooks are called in the documented order: `set_confirm_handler`,
`set_user_interaction_handler`, `init_tools_library`.

Source: tool guide §3 (hooks), §6, §13, CONTRACT A4 and A17.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any, Protocol

from lollms_client._tools.spec import LibrarySpec, ToolSpec
from lollms_client.errors import ToolLoadError

from .handlers import CONFIRM, HANDLER_KEYS, INTERACTION

__all__ = ["HandlerSource", "LoadedLibrary", "ToolLoader"]

_ATTRIBUTES = {CONFIRM: "_CONFIRM_HANDLER", INTERACTION: "_USER_INTERACTION_HANDLER"}

_owners: dict[str, weakref.ref[ToolLoader]] = {}
_owners_lock = threading.Lock()


class HandlerSource(Protocol):
    """Where a library's handlers come from."""

    def of(self, stem: str, key: str) -> Callable[..., Any]:
        """The handler that a library gets."""
        ...

    def available(self, stem: str, key: str) -> bool:
        """Whether somebody stands behind it right now."""
        ...


class LoadedLibrary:
    """A library that has run.

    Attributes:
        spec: As read from its source.
        module: Its module.
        source: The text that ran.
        handlers: The handlers it gets, by configuration key.
        given: Which of them it has.
        level: The autonomy level that it was told, None for none.
    """

    def __init__(self, spec: LibrarySpec, module: ModuleType, source: str, handlers: dict[str, Callable[..., Any]]) -> None:
        self.spec = spec
        self.module = module
        self.source = source
        self.handlers = handlers
        self.given = dict.fromkeys(handlers, False)
        self.level: str | None = None
        self._functions: dict[str, Callable[..., Any]] = {}

    def function(self, tool: ToolSpec) -> Callable[..., Any]:
        """A tool's function.

        Raises:
            ToolLoadError: The module ran and did not define it.
        """
        found = self._functions.get(tool.name)
        if found is None:
            made = self._nested(tool) if tool.nested_in else getattr(self.module, tool.name, None)
            if not callable(made):
                where = f"{tool.path or self.spec.stem}, line {tool.line}"
                raise ToolLoadError(f"{tool.name} stands in {where}, but running the file did not define it.")
            found = self._functions[tool.name] = made
        return found

    def _nested(self, tool: ToolSpec) -> Any:
        """Compiles a tool that stands inside another function alone, in the module's globals; what is around it never runs."""
        from .nested import nested_code

        code = nested_code(self.source, tool.path, tool)
        scope: dict[str, Any] = {}
        if code is not None:
            exec(code, self.module.__dict__, scope)  # noqa: S102 - a function of a library that has run already
        return scope.get(tool.name)

    def give(self, key: str, present: bool) -> None:
        """Hands a handler to the library, by its hook, else by its documented attribute; None where nobody is there."""
        handler = self.handlers[key] if present else None
        if not self.call_hook(key, handler) and hasattr(self.module, _ATTRIBUTES[key]):
            setattr(self.module, _ATTRIBUTES[key], handler)
        self.given[key] = present

    def call_hook(self, key: str, handler: Callable[..., Any] | None) -> bool:
        """Calls the module's `set_confirm_handler` or its brother; False where it has none."""
        hook = getattr(self.module, f"set_{key}", None)
        if not callable(hook):
            return False
        hook(handler)
        return True

    def tell_level(self, level: str | None) -> None:
        """Tells the library another autonomy level than the one it knows, by its hook, else by the attribute of the guide."""
        if level is None or level == self.level:
            return
        self.level = level
        hook = getattr(self.module, "set_autonomy_level", None)
        if callable(hook):
            hook(level)
        elif hasattr(self.module, "AUTONOMY_LEVEL"):
            self.module.__dict__["AUTONOMY_LEVEL"] = level

    def close(self) -> None:
        """Tells the library that its binding is done with it, by its hook `close_tools_library` where it has one."""
        hook = getattr(self.module, "close_tools_library", None)
        if not callable(hook):
            return
        try:
            hook()
        except Exception as error:  # noqa: BLE001 - a library that cannot end its own must not keep the others from ending theirs
            _log_failure(self.spec.stem, error)


class ToolLoader:
    """Loads the libraries of one binding.

    Args:
        configs: `host_tool_configs`, by stem.
        handlers: Where handlers come from.
    """

    def __init__(self, configs: Mapping[str, Mapping[str, Any]], handlers: HandlerSource) -> None:
        self.configs = configs
        self.handlers = handlers
        self._loaded: dict[str, LoadedLibrary] = {}
        self._locks: dict[str, threading.RLock] = {}
        self._lock = threading.Lock()

    def get(self, path: str) -> LoadedLibrary | None:
        """A library that is loaded already."""
        return self._loaded.get(path)

    def load(self, library: LibrarySpec, code: str | None = None) -> LoadedLibrary:
        """Loads a library, or returns it where that has happened.

        Args:
            library: Which.
            code: Its source, where it is no file.

        Raises:
            ToolLoadError: It could not be run; the cause is chained. The next call tries again.
        """
        found = self._loaded.get(library.path)
        if found is None:
            with self._lock:
                lock = self._locks.setdefault(library.path, threading.RLock())
            with lock:
                found = self._loaded.get(library.path)
                if found is None:
                    return self._run(library, code)
        self._renew(found)
        return found

    def _run(self, library: LibrarySpec, code: str | None) -> LoadedLibrary:
        from .imports import CodeLoader, LibraryLoader, new_module

        name = self._claim(library.stem)
        loader = LibraryLoader(name, library.path) if code is None else CodeLoader(name, library.path, code)
        try:
            module = new_module(name, library.path, loader)
            loader.exec_module(module)
            handlers = {key: self.handlers.of(library.stem, key) for key in HANDLER_KEYS}
            loaded = LoadedLibrary(library, module, loader.source, handlers)
            self._configure(loaded)
        except BaseException as error:  # noqa: BLE001 - whatever a library raises while it loads, it is not loaded
            failed = error
        else:
            self._loaded[library.path] = loaded
            return loaded
        self._release(name)
        said = f"{type(failed).__name__}: {failed}" if str(failed) else type(failed).__name__
        raise ToolLoadError(f"The tool library {library.stem!r} ({library.path}) cannot be loaded: {said}") from failed

    def _claim(self, stem: str) -> str:
        """A module name for a library: the documented one, or one with a suffix where another library has that."""
        from .imports import PREFIX

        with _owners_lock:
            name, number = PREFIX + stem, 1
            while (owner := _owners.get(name)) is not None and owner() is not None:
                number += 1
                name = f"{PREFIX}{stem}__{number}"
            _owners[name] = weakref.ref(self)
            return name

    @staticmethod
    def _release(name: str) -> None:
        with _owners_lock:
            _owners.pop(name, None)
            for key in [k for k in sys.modules if k == name or k.startswith(name + ".")]:
                del sys.modules[key]

    def _configure(self, loaded: LoadedLibrary) -> None:
        """Calls the hooks of a module that has just run."""
        stem = loaded.spec.stem
        config = dict(self.configs.get(stem) or {})
        for key, handler in loaded.handlers.items():
            if self.handlers.available(stem, key):
                config[key] = handler
                loaded.give(key, True)
        loaded.level = config.get("autonomy_level")
        init = getattr(loaded.module, "init_tools_library", None)
        if callable(init):
            if _takes_positional(init):
                init(config)
            else:
                init()

    def _renew(self, loaded: LoadedLibrary) -> None:
        """What a loaded library is told at each use: the interaction hook (tool guide §13), what came later or changed."""
        loaded.tell_level((self.configs.get(loaded.spec.stem) or {}).get("autonomy_level"))
        for key, handler in loaded.handlers.items():
            if not loaded.given[key]:
                if self.handlers.available(loaded.spec.stem, key):
                    loaded.give(key, True)
            elif key == INTERACTION:
                loaded.call_hook(key, handler)

    def handler_changed(self, key: str) -> None:
        """Tells every loaded library that the host has another handler now (tool guide §6)."""
        for loaded in list(self._loaded.values()):
            loaded.give(key, self.handlers.available(loaded.spec.stem, key))

    def forget(self, path: str) -> None:
        """Drops a library; its module goes with it."""
        loaded = self._loaded.pop(path, None)
        if loaded is not None:
            loaded.close()
            self._release(loaded.module.__name__)

    def close(self) -> None:
        """Drops all libraries and gives their module names free."""
        for path in list(self._loaded):
            self.forget(path)


def _log_failure(stem: str, error: Exception) -> None:
    from logging import getLogger

    getLogger(__name__).error("The tool library %r failed to close", stem, exc_info=error)


def _takes_positional(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with one positional argument (tool guide §3)."""
    if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
        code = function.__code__
        return code.co_argcount > 0 or bool(code.co_flags & 0x04)
    import inspect

    try:
        kinds = {p.kind for p in inspect.signature(function).parameters.values()}
    except (TypeError, ValueError):
        return True
    wanted = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    return bool(kinds & wanted)
