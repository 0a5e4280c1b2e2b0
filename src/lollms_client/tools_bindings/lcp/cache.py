"""Schemas kept between processes, so that files that did not change are not parsed again.

One file per scanned folder, replaced atomically: concurrent writers overwrite each other's equal knowledge and never mix
it. An entry holds when the file's path, size, times and inode are what they were; where they differ, when its content does.
A file that changed so shortly before it was read that its time stamp could hide another change is checked by content too.

Whatever is wrong with a cache file (another version of Python or of this package, another owner, a torn or foreign
content) makes it absent, never an error.
"""

from __future__ import annotations

import hashlib
import logging
import marshal
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from lollms_client._paths import home
from lollms_client._tools.spec import Diagnostic, LibrarySpec, ToolSpec

__all__ = ["SchemaCache", "Shelf"]

logger = logging.getLogger(__name__)

_Stamp = tuple[int, int, int, int]
"""Size, modification and change time in nanoseconds, inode."""
_Entry = tuple[_Stamp, bytes, tuple[Any, ...]]

_MAGIC = b"lollms tool schemas 1 "
_DIGEST_SIZE = 16
_UNSETTLED: _Stamp = (-1, -1, -1, -1)
_TICK_NS, _COARSE_TICK_NS = 50_000_000, 2_000_000_000  # a kernel's clock tick with room; file systems of whole seconds
_KEPT_FILES = 256
_TOOL_FIELDS = tuple(item.name for item in fields(ToolSpec))
_LIBRARY_FIELDS = tuple(item.name for item in fields(LibrarySpec))
_NOTE_FIELDS = tuple(item.name for item in fields(Diagnostic))
_TOOLS, _NOTES = _LIBRARY_FIELDS.index("tools"), _LIBRARY_FIELDS.index("diagnostics")


class SchemaCache:
    """The folder of cache files.

    Args:
        directory: Where they lie; below `home("cache")` where it is not given.
    """

    def __init__(self, directory: Path | str | None = None) -> None:
        self.directory = Path(directory) if directory is not None else home("cache", "tool_schemas")

    def shelf(self, group: str) -> Shelf:
        """What is known of one scanned folder.

        Args:
            group: Its absolute path, or another name that stands for a set of files.
        """
        return Shelf(self.directory / f"{_digest(group.encode('utf-8', 'surrogateescape')).hex()}.bin")


class Shelf:
    """The entries of one scanned folder; `save` writes them back when something changed.

    Args:
        path: The cache file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: dict[str, _Entry] = _load(path)
        self._changed = False

    def get(self, path: str, status: os.stat_result) -> LibrarySpec | None:
        """The library at a path, when the file's status is that of the file that was read."""
        entry = self._entries.get(path)
        if entry is None or entry[0] != _stamp(status):
            return None
        return _unpacked(entry[2])

    def check(self, path: str, status: os.stat_result, data: bytes) -> LibrarySpec | None:
        """The library at a path, when the file's content is the one that was read."""
        entry = self._entries.get(path)
        if entry is None or entry[1] != _digest(data):
            return None
        self._keep(path, _stamp(status), entry[1], entry[2])
        return _unpacked(entry[2])

    def put(self, path: str, status: os.stat_result, data: bytes, library: LibrarySpec) -> None:
        """Keeps what was read from a file.

        Args:
            path: The file's absolute path.
            status: Its status when it was opened.
            data: Its content.
            library: What was read.
        """
        self._keep(path, _stamp(status), _digest(data), _packed(library))

    def _keep(self, path: str, now: _Stamp, digest: bytes, packed: tuple[Any, ...]) -> None:
        coarse = now[1] % 1_000_000_000 == 0
        settled = max(now[1], now[2]) + (_COARSE_TICK_NS if coarse else _TICK_NS) < time.time_ns()
        entry = (now if settled else _UNSETTLED, digest, packed)
        if self._entries.get(path) != entry:
            self._entries[path] = entry
            self._changed = True

    def save(self) -> None:
        """Writes the entries back where they changed; a cache that cannot be written is no error."""
        if not self._changed:
            return
        kept = {path: entry for path, entry in self._entries.items() if os.path.lexists(path)}
        try:
            payload = marshal.dumps(kept)
        except ValueError:  # a value that marshal does not know: the folder stays uncached
            logger.debug("tool schemas of %s cannot be kept", self.path, exc_info=True)
            return
        try:
            _replace(self.path, _header(payload) + payload)
            _prune(self.path.parent)
        except OSError:
            logger.debug("tool schemas cannot be kept at %s", self.path, exc_info=True)
        self._changed = False


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_SIZE).digest()


def _reader_version() -> bytes:
    """Changes with Python and with the text of the modules that read schemas."""
    with os.scandir(Path(__file__).parent) as entries:
        sources = sorted((e.name, e.stat().st_mtime_ns, e.stat().st_size) for e in entries if e.name.endswith(".py"))
    return _digest(repr((sys.version, _TOOL_FIELDS, _LIBRARY_FIELDS, sources)).encode())


def _header(payload: bytes) -> bytes:
    return _MAGIC + _reader_version() + _digest(payload)


def _load(path: Path) -> dict[str, _Entry]:
    try:
        with path.open("rb") as file:
            if hasattr(os, "getuid") and os.fstat(file.fileno()).st_uid != os.getuid():
                return {}
            content = file.read()
        length = len(_MAGIC) + 2 * _DIGEST_SIZE
        if len(content) <= length or content[:length] != _header(content[length:]):
            return {}
        entries = marshal.loads(content[length:])  # noqa: S302 - our own bytes: owner, version and digest were checked
    except (OSError, ValueError, EOFError, TypeError):
        return {}
    return entries if isinstance(entries, dict) else {}


def _replace(path: Path, content: bytes) -> None:
    import tempfile  # heavier than all else here, and only a changed cache is written

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    temporary = Path(name)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _prune(directory: Path) -> None:
    """Removes the cache files that were written longest ago, so that folders that are gone leave nothing behind."""
    files = [(entry.stat().st_mtime_ns, entry.path) for entry in os.scandir(directory) if entry.is_file()]
    for _, path in sorted(files)[: max(0, len(files) - _KEPT_FILES)]:
        Path(path).unlink(missing_ok=True)


def _values(item: object, names: Iterable[str]) -> list[Any]:
    return [getattr(item, name) for name in names]


def _packed(library: LibrarySpec) -> tuple[Any, ...]:
    values = _values(library, _LIBRARY_FIELDS)
    values[_TOOLS] = tuple(tuple(_values(tool, _TOOL_FIELDS)) for tool in library.tools)
    values[_NOTES] = tuple(tuple(_values(note, _NOTE_FIELDS)) for note in library.diagnostics)
    return tuple(values)


def _unpacked(packed: tuple[Any, ...]) -> LibrarySpec:
    values = list(packed)
    values[_TOOLS] = tuple([ToolSpec(*tool) for tool in values[_TOOLS]])
    values[_NOTES] = tuple([Diagnostic(*note) for note in values[_NOTES]]) if values[_NOTES] else ()
    return LibrarySpec(*values)
