"""Finds tool files and reads them: the same libraries, in the same order, on every machine.

Folders are taken as given and their entries by name. A folder `X/` is a library: `X/X.py` first, then its other `*.py`
files; a loose `*.py` file is one too. `__init__.py`, files that begin with `_` or `.` and hidden folders are left out. Of
several tools of one name the first is kept. Whatever is left out for a reason that a person should hear is a diagnostic.

Source: tool guide §2, CONTRACT A5.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache as only_once
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lollms_client._tools.spec import Diagnostic, LibrarySpec, ToolSpec

if TYPE_CHECKING:
    from .cache import SchemaCache, Shelf

__all__ = ["Discovery", "candidates", "discover", "library_files", "read_library"]

_LARGEST_FILE = 8 << 20
_OPEN_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@dataclass(slots=True)
class Discovery:
    """What a scan found.

    Attributes:
        tools: Name -> tool; the first of each name.
        libraries: Absolute path -> the file, in loading order.
        diagnostics: What was left out or could not be read, and why.
        shelves: The parts of the cache that were looked into.
    """

    tools: dict[str, ToolSpec] = field(default_factory=dict)
    libraries: dict[str, LibrarySpec] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    shelves: list[Shelf] = field(default_factory=list, compare=False)

    def keep(self) -> None:
        """Writes to the cache what was read anew."""
        for shelf in self.shelves:
            shelf.save()

    def add(self, library: LibrarySpec) -> None:
        """Takes in one file; tools whose name is taken are left out and reported."""
        self.libraries[library.path] = library
        self.diagnostics.extend(library.diagnostics)
        for tool in library.tools:
            first = self.tools.setdefault(tool.name, tool)
            if first is not tool:
                said = f"{tool.name} of {tool.path} is not listed: {first.path} has a tool of that name and comes first."
                self.diagnostics.append(Diagnostic("duplicate", said, tool.path, tool.line))


class _File(NamedTuple):
    path: str
    folder: str
    status: os.stat_result


def discover(folders: Sequence[Path | str], files: Sequence[Path | str] = (), *, cache: SchemaCache | None = None) -> Discovery:
    """Reads every tool file of some folders, and some files besides.

    Args:
        folders: Folders to scan, in order.
        files: `.py` files to read after them, whatever their names; `__init__.py` is skipped here too.
        cache: Where schemas are kept between processes; None parses every file.

    Returns:
        Tools, libraries and diagnostics. Nothing that is wrong with a file or folder is raised, no tool file runs, and nothing
        is written until `keep` is called.
    """
    found = Discovery()
    for folder in folders:
        root = _absolute(folder)
        shelf = cache.shelf(root) if cache else None
        for _, group in _scan(root, found.diagnostics):
            _read(group, found, shelf)
        if shelf:
            found.shelves.append(shelf)
    shelves: dict[str, Shelf] = {}
    for named in files:
        file = _named_file(_absolute(named), found.diagnostics)
        if file is None:
            continue
        parent = file.path.rpartition(os.sep)[0]
        if cache and parent not in shelves:
            shelves[parent] = cache.shelf(f"files of {parent}")
        _read([file], found, shelves.get(parent))
    found.shelves.extend(shelves.values())
    return found


def candidates(folder: Path | str) -> dict[str, list[Path]]:
    """The libraries of a folder.

    Args:
        folder: The folder.

    Returns:
        Library name (a sub-folder's name or a loose file's stem) -> its files in loading order, in the documented order.
    """
    root = _absolute(folder)
    out: dict[str, list[Path]] = {}
    for name, group in _scan(root, []):
        out.setdefault(name, []).extend(Path(file.path) for file in group)
    return out


def library_files(entry: Path | str) -> list[Path]:
    """The files of one library in loading order.

    Args:
        entry: A library folder `X/` or a loose `.py` file.

    Returns:
        Its files; empty where there is no such library.
    """
    path = Path(_absolute(entry))
    if path.is_dir():
        return [Path(file.path) for file in _library(str(path), path.name, [])]
    return [path] if path.suffix == ".py" and path.is_file() else []


def read_library(path: Path | str, *, folder: str = "") -> LibrarySpec:
    """Reads one file; one that cannot be read is a library without tools and with a diagnostic that says why."""
    absolute = _absolute(path)
    try:
        data, _ = _content(absolute)
    except OSError as error:
        return LibrarySpec(_stem(absolute), absolute, folder, diagnostics=(_unreadable(absolute, error),))
    return _parse(absolute, folder, data)


def _absolute(path: Path | str) -> str:
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - ".." goes, links stay: pathlib has no such thing


def _stem(path: str) -> str:
    return path.rpartition(os.sep)[2].removesuffix(".py")


def _unreadable(path: str, error: OSError) -> Diagnostic:
    return Diagnostic("unreadable", f"{path} cannot be read: {error.strerror or error}.", path)


def _entries(folder: str, notes: list[Diagnostic]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        notes.append(Diagnostic("missing_folder", f"There is no folder {folder}; no tools are read from it.", folder))
    except NotADirectoryError:
        said = f"{folder} is a file, not a folder of tools; name it in tool_files to load it."
        notes.append(Diagnostic("missing_folder", said, folder))
    except OSError as error:
        notes.append(_unreadable(folder, error))
    return []


def _is_tool_file(name: str) -> bool:
    return name.endswith(".py") and name[0] not in "_."


def _scan(root: str, notes: list[Diagnostic]) -> Iterator[tuple[str, list[_File]]]:
    """The libraries of a folder in order: name and files."""
    for entry in _entries(root, notes):
        name = entry.name
        if name.endswith(".py"):
            if _is_tool_file(name) and (file := _file(entry, "", notes)):
                yield name[:-3], [file]
        elif name[0] != "." and name != "__pycache__" and _is_folder(entry):
            yield name, _library(entry.path, name, notes)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of links
        return False


def _library(path: str, name: str, notes: list[Diagnostic]) -> list[_File]:
    named = [entry for entry in _entries(path, notes) if _is_tool_file(entry.name)]
    named.sort(key=lambda entry: entry.name != f"{name}.py")
    return [file for entry in named if (file := _file(entry, name, notes))]


def _file(entry: os.DirEntry[str], folder: str, notes: list[Diagnostic]) -> _File | None:
    try:
        if entry.is_file():
            return _File(entry.path, folder, entry.stat())
        if entry.is_dir():
            said = f"{entry.path} is a folder, though it is named like a tool file; it is not read."
        elif entry.is_symlink():
            said = f"{entry.path} is a link to nothing; it is not read."
        else:
            said = f"{entry.path} is no regular file; it is not read."
    except OSError as error:
        said = f"{entry.path} cannot be read: {error.strerror or error}."
    notes.append(Diagnostic("unreadable", said, entry.path))
    return None


def _named_file(path: str, notes: list[Diagnostic]) -> _File | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - the status is kept
    except OSError as error:
        notes.append(_unreadable(path, error))
        return None
    if not path.endswith(".py"):
        said = "a tool file is a .py file"
    elif path.endswith(f"{os.sep}__init__.py"):
        said = "__init__.py never holds tools"
    elif stat.S_ISDIR(status.st_mode):
        said = "it is a folder; name it in tools_folders to scan it"
    elif not stat.S_ISREG(status.st_mode):
        said = "it is no regular file"
    else:
        return _File(path, "", status)
    notes.append(Diagnostic("unreadable", f"{path} is not read: {said}.", path))
    return None


def _read(files: Iterable[_File], found: Discovery, shelf: Shelf | None) -> None:
    for file in files:
        if file.path in found.libraries:
            continue
        library = shelf.get(file.path, file.status) if shelf else None
        if library is None:
            try:
                library = _read_anew(file, shelf)
            except OSError as error:
                found.diagnostics.append(_unreadable(file.path, error))
                continue
        found.add(library)


def _read_anew(file: _File, shelf: Shelf | None) -> LibrarySpec:
    data, status = _content(file.path)
    library = shelf.check(file.path, status, data) if shelf else None
    if library is None:
        library = _parse(file.path, file.folder, data)
        if shelf:
            shelf.put(file.path, status, data, library)
    return library


def _content(path: str) -> tuple[bytes, os.stat_result]:
    """A file's bytes, with the status of exactly what was read."""
    handle = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
    try:
        status = os.fstat(handle)
        if status.st_size > _LARGEST_FILE:
            raise OSError(f"it is larger than {_LARGEST_FILE >> 20} MiB, which no tool file is")
        data = part = os.read(handle, status.st_size + 1)
        while len(part) > status.st_size:  # it grew since
            part = os.read(handle, _LARGEST_FILE)
            data += part
        return data, status
    finally:
        os.close(handle)


def _parse(path: str, folder: str, data: bytes) -> LibrarySpec:
    try:
        text = _decoded(data)
    except (UnicodeDecodeError, LookupError) as error:
        note = Diagnostic("unreadable", f"{path} cannot be read as text: {error}.", path)
        return LibrarySpec(_stem(path), path, folder, name=_stem(path), diagnostics=(note,))
    return _schema_reader()(text, path, stem=_stem(path), folder=folder)


@only_once
def _schema_reader() -> Callable[..., LibrarySpec]:
    """`parse_source`, imported when the first file has to be parsed: with a warm cache none has."""
    from .schema import parse_source

    return parse_source


def _decoded(data: bytes) -> str:
    """The text of a Python file: UTF-8 unless one of its first two lines names another encoding (PEP 263)."""
    if data.startswith(b"\xef\xbb\xbf"):
        return data[3:].decode("utf-8")
    if b"coding" in data[:400]:
        for line in data[:400].split(b"\n", 2)[:2]:
            cookie = _COOKIE.match(line)
            if cookie:
                return data.decode(cookie[1].decode("ascii"))
            if line.strip() and not line.lstrip().startswith(b"#"):
                break
    return data.decode("utf-8")
