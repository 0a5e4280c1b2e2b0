"""What this process imports while tools write files beside it.

A program's own folder stands first on its import path, and is often the workspace of its tools as well. So a file that a tool
wrote there would run in this process, unasked and unconfined, as soon as anything imports a module of its name: `sqlite3.py`
instead of the standard library's. Hence from the moment on in which tools may write into a folder, no module is imported from a
file that was changed there later. Where one of the same name lies elsewhere, that one is meant; else the import is an error which
says why.

What was there before is the person's own and is imported as ever, from its source. So is what somebody imports by hand, at a
prompt or in a notebook, and what is loaded anew with `importlib.reload`.

Source: the import system of Python (importlib, `sys.meta_path`).
"""

# ruff: noqa: PTH116, PTH118, PTH120, PTH123 - text paths, as importlib has them
from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import FrameType, ModuleType

from lollms_client.errors import ChangedModuleError

__all__ = [
    "UnchangedSource",
    "accept",
    "accept_folder",
    "accepted",
    "read_unchanged",
    "safe_path",
    "starts",
    "watch",
    "watch_since",
]

_MOST = 10_000  # folders that are remembered as looked at
_looked: dict[str, int] = {}  # folder -> mark of the import path when it was looked at
_starts: dict[str, int] = {}  # real path of a folder -> since when tools write there, in ns since 1970
_folders: dict[str, int] = {}  # real path of a folder of code that the host named -> when
_accepted: dict[str, int] = {}  # file or folder of a tool library -> when the host had it read


def watch(folder: str) -> None:
    """Tools may write into a folder from now on.

    Args:
        folder: Its absolute path.
    """
    path = hash(tuple(sys.path))
    if _looked.get(folder) == path:
        return
    if len(_looked) >= _MOST:
        _looked.clear()
    _looked[folder] = path
    real = os.path.realpath(folder)
    if real not in _starts and any(_meet(os.path.realpath(one), real) for one in (*sys.path, *_accepted, *_folders)):
        watch_since({real: time.time_ns()})


def watch_since(starts: Mapping[str, int]) -> None:
    """Tools may write into these folders, since when they could in another process."""
    _kept_folders()  # now: it imports something itself
    _starts.update(starts)
    if _Guard not in sys.meta_path:
        at = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
        sys.meta_path.insert(at, _Guard)


def starts() -> dict[str, int]:
    """The folders into which tools may write, as far as modules lie there, and since when."""
    return dict(_starts)


def safe_path(entries: Iterable[str] | None = None) -> list[str]:
    """The import path, or other folders of modules, without those where tools write."""
    given = sys.path if entries is None else entries
    return [entry for entry in given if not (isinstance(entry, str) and _start_of(os.path.join(entry, "x")))]


def accept(path: str, at: int = 0) -> None:
    """The host had a tool library read, as it is now; later its file, and what lies beside it, is loaded only if unchanged.

    Args:
        path: The library's file.
        at: When that was, in ns since 1970; 0 for now.
    """
    at = at or time.time_ns()
    if path not in _accepted:
        _looked.clear()  # folders that were of no interest may be now
    _accepted[path] = at
    _accepted.setdefault(os.path.dirname(path), at)


def accept_folder(folder: str) -> None:
    """The host named a folder of code to load from, as it is now: what changes there later is not loaded.

    Args:
        folder: Its absolute path.
    """
    real = os.path.realpath(folder)
    if real not in _folders:
        _looked.clear()
    _folders[real] = time.time_ns()


def accepted(path: str) -> int:
    """When the host had a library read, or first one in its folder; 0 for never."""
    return _accepted.get(path) or _accepted.get(os.path.dirname(path), 0)


def _check_unchanged(name: str, path: str, since: int = 0) -> None:
    """Refuses a module's file that was changed where tools write.

    Args:
        name: The module.
        path: The file.
        since: When it was known to be the host's, in ns since 1970; 0 for when tools began to write there.

    Raises:
        ChangedModuleError: It was.
    """
    start = _start_of(path)
    if start and _changed(path) > (since or start):
        raise ChangedModuleError(name, path)


def read_unchanged(name: str, path: str, since: int = 0) -> bytes:
    """The content of a module's file, which nobody changed up to the end of the reading.

    Raises:
        ChangedModuleError: Somebody did, where tools write.
    """
    _check_unchanged(name, path, since)
    with open(path, "rb") as file:
        data = file.read()
        start = _start_of(path)
        if start and os.fstat(file.fileno()).st_ctime_ns > (since or start):
            raise ChangedModuleError(name, path)
    return data


class UnchangedSource(SourceFileLoader):
    """Reads the source and no compiled form of it, which somebody could have put beside it."""

    def path_stats(self, path: str) -> dict[str, int]:
        raise OSError(f"{path} is compiled anew")

    def get_data(self, path: str) -> bytes:
        return read_unchanged(self.name, path) if path == self.path else super().get_data(path)


class _Guard:
    """Stands before the finder of the import path."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        entries = sys.path if path is None else path
        if target is not None or not any(_may_lead_there(entry, len(_starts)) for entry in entries if isinstance(entry, str)):
            return None
        spec = PathFinder.find_spec(name, entries)
        if spec is None or not spec.origin or not _start_of(spec.origin):
            return None
        try:
            _check_unchanged(name, spec.origin)
        except ChangedModuleError:
            if (other := _elsewhere(name, path, entries)) is not None:
                return other
            if _is_at_a_prompt():
                return None
            raise
        if type(spec.loader) is SourceFileLoader:
            spec.loader = UnchangedSource(name, spec.origin)
        return spec


def _elsewhere(name: str, path: Sequence[str] | None, entries: Iterable[str]) -> ModuleSpec | None:
    """A module of that name that lies where no tool writes."""
    later = [one for one in sys.meta_path[sys.meta_path.index(_Guard) + 1 :] if one is not PathFinder]
    found = [PathFinder.find_spec(name, safe_path(entries))]
    found += [finder.find_spec(name, path) for finder in later if hasattr(finder, "find_spec")]
    return next((spec for spec in found if spec and spec.loader and not _start_of(spec.origin or "")), None)


def _is_at_a_prompt() -> bool:
    """Whether the statement that imports was typed: what runs then has no file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        scope = frame.f_globals
        if not str(scope.get("__name__", "")).startswith(("importlib", "_frozen_importlib")) and scope is not globals():
            return scope.get("__name__") == "__main__" and "__file__" not in scope
        frame = frame.f_back
    return False


def _start_of(path: str) -> int:
    """Since when a tool may have changed a file that the host did not name since; 0 where none writes."""
    real = os.path.realpath(path)
    if any(_lies_in(real, folder) for folder in _kept_folders()):
        return 0
    start = min((at for folder, at in _starts.items() if _lies_in(real, folder)), default=0)
    named = max((at for folder, at in _folders.items() if _lies_in(real, folder)), default=0)
    return max(start, named) if start else 0


def _lies_in(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")


def _changed(path: str) -> int:
    """When a file was changed last, or the link that it is; now where that cannot be known."""
    try:
        return max(os.lstat(path).st_ctime_ns, os.stat(path).st_ctime_ns)
    except OSError:
        return time.time_ns()


@cache
def _may_lead_there(entry: str, known: int) -> bool:
    """Whether modules found by way of an entry may lie where tools write; `known` is how many such folders there are."""
    real = os.path.realpath(entry)
    return any(_meet(real, folder) for folder in _starts)


def _meet(one: str, other: str) -> bool:
    """Whether one of two real paths holds the other."""
    one, other = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return one.startswith(other) or other.startswith(one)


@cache
def _kept_folders() -> tuple[str, ...]:
    """This Python's own packages, which no tool changes wherever they lie."""
    import site

    found = [os.path.dirname(os.__file__), *site.getsitepackages([sys.prefix, sys.base_prefix])]
    return tuple(sorted({os.path.realpath(one) for one in found}))
