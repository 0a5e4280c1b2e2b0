"""Imports inside a tool library: what stands beside its file can be imported, and nothing of it meets another library.

A library is loaded as a package of its own, `…lcp.persistent_<stem>`, whose folder is the file's. `from .helpers import x` works
by that alone; `import helpers` is looked for beside the file by the library's own `__import__`, also when the statement runs
later, inside a function. So two libraries may both have a `helpers.py`, and `sys.path` is left alone. Names of the standard
library always mean the standard library.

Source: tool guide §10.8 (auxiliary modules as siblings), §6 (module names).
"""

from __future__ import annotations

import builtins
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from lollms_client._imports import accepted, read_unchanged

__all__ = ["PREFIX", "CodeLoader", "new_module"]

PREFIX = "lollms_client.tools_bindings.lcp.persistent_"


class LibraryLoader(SourceFileLoader):
    """Runs a library's file, or a module beside it, with the library's own imports, unless a tool changed it meanwhile.

    It reads the source every time and writes no bytecode: a library may be edited between two loads within one tick of the file
    system's clock, and folders of tools are not ours to write into.
    """

    source = ""

    def exec_module(self, module: ModuleType) -> None:
        """Compiles the file and runs it."""
        data = self.read()
        self.source = importlib.util.decode_source(data)
        code = self.source_to_code(data, self.path)
        give_imports(module, os.path.dirname(self.path))  # noqa: PTH120 - the text is what importlib has
        exec(code, module.__dict__)  # noqa: S102 - loading a library is running it

    def read(self) -> bytes:
        """The source."""
        return read_unchanged(self.name, self.path, accepted(self.path))


class CodeLoader(LibraryLoader):
    """Runs a library that is a text in memory.

    Args:
        name: The module's name.
        path: The name that stands for its file.
        code: The text.
    """

    def __init__(self, name: str, path: str, code: str) -> None:
        super().__init__(name, path)
        self.code = code

    def exec_module(self, module: ModuleType) -> None:
        """Compiles the text and runs it; tracebacks and `inspect` find its lines."""
        import linecache

        linecache.cache[self.path] = (len(self.code), None, self.code.splitlines(keepends=True), self.path)
        self.source = self.code
        exec(self.source_to_code(self.code.encode(), self.path), module.__dict__)  # noqa: S102 - registering it is running it


class _LibraryFinder:
    """Finds the modules beside a library, so that they get its imports too."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if path is None or not fullname.startswith(PREFIX):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = LibraryLoader(fullname, spec.loader.path)
        return spec


def new_module(name: str, path: str, loader: LibraryLoader) -> ModuleType:
    """A module for a library, in `sys.modules`, not yet run."""
    if _LibraryFinder not in sys.meta_path:
        sys.meta_path.insert(0, _LibraryFinder)
    folder = [] if isinstance(loader, CodeLoader) else [os.path.dirname(path)]  # noqa: PTH120 - as above
    spec = spec_from_file_location(name, path, loader=loader, submodule_search_locations=folder)
    if spec is None:
        raise ImportError(f"{path} cannot be loaded as a module")
    module = module_from_spec(spec)
    sys.modules[name] = module
    return module


def give_imports(module: ModuleType, folder: str) -> None:
    """Gives a module the `__import__` that looks beside its library first."""
    package = PREFIX + module.__name__.removeprefix(PREFIX).partition(".")[0]
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import_beside(package, folder)}


def _import_beside(package: str, folder: str) -> Callable[..., Any]:
    real = builtins.__import__
    stem = package.removeprefix(PREFIX).partition("__")[0]

    def beside(
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the signature of __import__
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> Any:
        top = name.partition(".")[0]
        if level or top in sys.stdlib_module_names or not _stands(folder, top):
            return real(name, globals, locals, fromlist, level)
        if top == stem and top == name:  # a module beside the library imports the library
            return sys.modules[package]
        full = f"{package}.{name}"
        if fromlist:
            return real(full, globals, locals, fromlist, 0)
        importlib.import_module(full)
        return sys.modules[f"{package}.{top}"]

    return beside


def _stands(folder: str, name: str) -> bool:
    base = os.path.join(folder, name)  # noqa: PTH118 - runs at every import of a library
    return os.path.isfile(base + ".py") or os.path.isfile(os.path.join(base, "__init__.py"))  # noqa: PTH113, PTH118
