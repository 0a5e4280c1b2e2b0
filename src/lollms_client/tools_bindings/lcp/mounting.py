"""The tools of one binding: found at construction, mounted later, registered from code.

Source: tool guide §2 and §8, CONTRACT A5.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lollms_client._imports import accept
from lollms_client._tools.spec import Diagnostic, LibrarySpec, ToolSpec
from lollms_client.errors import ToolLoadError

if TYPE_CHECKING:
    from lollms_client._tools.plan import CallPlan

    from .cache import SchemaCache
    from .discovery import Discovery

__all__ = ["DEFAULT_TOOLS", "Entry", "Toolbox"]

DEFAULT_TOOLS = Path(__file__).parent / "default_tools"


@dataclass(slots=True)
class Entry:
    """A tool that can be called.

    Attributes:
        spec: The tool.
        library: Its library.
        code: The library's source, where it is no file.
    """

    spec: ToolSpec
    library: LibrarySpec
    code: str | None = None
    _plan: CallPlan | None = field(default=None, repr=False)

    @property
    def plan(self) -> CallPlan:
        """How it is called; compiled when it is first needed."""
        if self._plan is None:
            from lollms_client._tools.plan import CallPlan

            self._plan = CallPlan(self.spec)
        return self._plan


class Toolbox:
    """The registered tools and the folders that more can be mounted from.

    Args:
        folders: Folders of libraries, in order.
        cache: Where schemas are kept between processes, None for nowhere.

    Attributes:
        entries: Name -> tool.
        discovered: Name -> its documented dict; the public face of `entries`.
        libraries: Path -> library, for those with a registered tool or found by a scan.
        diagnostics: What was noticed and not hidden.
    """

    def __init__(self, folders: Sequence[Path], cache: SchemaCache | None = None) -> None:
        self.folders = list(folders)
        self.cache = cache
        self.entries: dict[str, Entry] = {}
        self.discovered: dict[str, dict[str, Any]] = {}
        self.libraries: dict[str, LibrarySpec] = {}
        self.diagnostics: list[Diagnostic] = []
        self._lock = threading.RLock()
        self._warned: set[str] = set()
        self._codes = 0
        self._unsaved: list[Discovery] = []

    def get(self, name: str) -> Entry | None:
        """A registered tool; one that the host took out of `discovered` is not there any more."""
        return self.entries.get(name) if name in self.discovered else None

    def scan(self, files: Sequence[Path] = ()) -> None:
        """Registers what stands in the folders, or in some files instead of them."""
        from .discovery import discover

        found = discover([] if files else self.folders, files, cache=self.cache)
        with self._lock:
            self._unsaved.append(found)
            self.libraries.update(found.libraries)
            for path in found.libraries:
                accept(path)
            self.diagnostics.extend(found.diagnostics)
            for spec in found.tools.values():
                self._register(Entry(spec, found.libraries[spec.path]))

    def keep(self) -> None:
        """Writes to the cache what the scans read anew, once: the first use does it, so that a constructor writes nothing."""
        if not self._unsaved:
            return
        with self._lock:
            found, self._unsaved = self._unsaved, []
        for one in found:
            one.keep()

    def _register(self, entry: Entry) -> None:
        self.entries[entry.spec.name] = entry
        self.discovered[entry.spec.name] = entry.spec.to_dict()

    # Libraries by name.

    def mount(self, name: str, *, warn_again: bool = True) -> bool:
        """Registers the tools of a library of the folders, or of the default ones.

        Args:
            name: The library's folder, or its file without `.py`.
            warn_again: Whether to say so at every failed attempt, or only at the first.

        Returns:
            Whether all its tools are registered now. A tool whose name is taken by another library is not.
        """
        with self._lock:
            libraries = self._read(name)
            if self._is_mounted(libraries):
                return True
            for library in libraries:
                self._add(library)
            mounted = self._is_mounted(libraries)
        if not mounted and (warn_again or name not in self._warned):
            self._warned.add(name)
            self._warn(name, libraries)
        return mounted

    def is_mounted(self, name: str) -> bool:
        """Whether every tool of a library is registered; False for a library that is not there."""
        return self._is_mounted(self._read(name))

    def _is_mounted(self, libraries: list[LibrarySpec]) -> bool:
        tools = [tool for library in libraries for tool in library.tools]
        return bool(tools) and all((e := self.get(t.name)) is not None and e.spec.path == t.path for t in tools)

    def _add(self, library: LibrarySpec) -> None:
        if library.path not in self.libraries:
            self.diagnostics.extend(library.diagnostics)
        self.libraries[library.path] = library
        accept(library.path)
        for tool in library.tools:
            taken = self.get(tool.name)
            if taken is None:
                self._register(Entry(tool, library))
            elif taken.spec.path != tool.path:
                said = f"{tool.name} of {tool.path} is not listed: {taken.spec.path} has a tool of that name and comes first."
                self.diagnostics.append(Diagnostic("duplicate", said, tool.path, tool.line))

    def _warn(self, name: str, libraries: list[LibrarySpec]) -> None:
        if libraries:
            said = f"The tool library {name!r} is not fully mounted; the diagnostics name the tools that are not listed, and why."
        else:
            known = sorted({n for n, _ in self._candidates()})
            said = f"There is no tool library {name!r} in {', '.join(map(str, self._places()))}. There are: {', '.join(known)}."
        self.diagnostics.append(Diagnostic("mount", said))
        from logging import getLogger

        getLogger(__name__).warning("%s", said)

    def _places(self) -> list[Path]:
        return self.folders if DEFAULT_TOOLS in self.folders else [*self.folders, DEFAULT_TOOLS]

    def _read(self, name: str) -> list[LibrarySpec]:
        """The files of a library, from the first place that has it."""
        from .discovery import library_files, read_library

        if Path(name).name != name or name in ("", ".."):
            return []
        for place in self._places():
            for entry, folder in ((place / name, name), (place / f"{name}.py", "")):
                if files := library_files(entry):
                    return [read_library(file, folder=folder) for file in files]
        return []

    def _candidates(self) -> Iterator[tuple[str, list[Path]]]:
        from .discovery import candidates

        for place in self._places():
            yield from candidates(place).items()

    def library_of(self, tool: str) -> str | None:
        """The library, by folder or file name, that provides a tool, registered or not; None where none does."""
        from .discovery import read_library

        entry = self.get(tool)
        if entry is not None:
            return entry.library.folder or entry.library.stem
        guess = tool.removeprefix("tool_")
        if any(t.name == tool for library in self._read(guess) for t in library.tools):
            return guess
        for name, files in self._candidates():
            for file in files:
                if _mentions(file, tool) and any(t.name == tool for t in read_library(file).tools):
                    return name
        return None

    # Libraries from code.

    def code_library(self, prefix: str, code: str) -> LibrarySpec:
        """Reads a library from its source text.

        Raises:
            ToolLoadError: The text is not valid Python.
        """
        from .schema import parse_source

        with self._lock:
            self._codes += 1
            path = f"<tools {prefix} {self._codes}>"
        library = parse_source(code, path, stem=prefix)
        for note in library.diagnostics:
            if note.kind == "syntax_error":
                raise ToolLoadError(f"The code for {prefix!r} cannot be registered: {note.message}")
        return library

    def register_code(self, library: LibrarySpec, code: str) -> list[str]:
        """Registers a library's tools in place of those of the same names; returns paths that no tool is left of."""
        with self._lock:
            self.libraries[library.path] = library
            self.diagnostics.extend(library.diagnostics)
            for tool in library.tools:
                self._register(Entry(tool, library, code))
            return self._drop_empty()

    def unregister(self, prefix: str) -> tuple[list[str], list[str]]:
        """Takes out `prefix`, `tool_<prefix>` and `tool_<prefix>_…`; returns their names, and paths that no tool is left of."""
        if not prefix:
            return [], []
        exact, longer = f"tool_{prefix}", f"tool_{prefix}_"
        with self._lock:
            names = [n for n in self.entries if n in (prefix, exact) or n.startswith(longer)]
            for name in names:
                del self.entries[name]
                self.discovered.pop(name, None)
            return names, self._drop_empty()

    def _drop_empty(self) -> list[str]:
        """Forgets libraries from code whose last tool is gone."""
        used = {entry.library.path for entry in self.entries.values()}
        gone = [path for path in self.libraries if path.startswith("<") and path not in used]
        for path in gone:
            del self.libraries[path]
        return gone


def _mentions(file: Path, text: str) -> bool:
    try:
        return text.encode() in file.read_bytes()
    except OSError:
        return False
