"""What in a workspace only its own programs change: repositories of git, environments of Python, records of ours.

Whoever runs git somewhere runs what the hooks and settings there name, and whoever starts a Python runs what lies in its
environment. So to change either is to have a person's next command run something, whoever changes it: a program that a model
wrote, or a tool that writes a file for it. And whoever writes into our records can decide what a person is asked about.

Source: gitrepository-layout(5), PEP 405.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Collection, Iterator
from pathlib import Path

__all__ = [
    "ENVIRONMENT",
    "GIT",
    "RECORDS",
    "belongs_to",
    "holds_home",
    "identity",
    "is_beneath",
    "is_repository",
    "keep_records",
    "makes_repository",
    "records_beneath",
]

GIT = ".git"
"""The name of a repository in its project."""

RECORDS = "our records of turns and decisions"
"""What we call databases and logs of ours."""

ENVIRONMENT = "pyvenv.cfg"
"""The file that makes a folder an environment of Python."""

_HEAD, _PARTS, _ELSEWHERE = "HEAD", frozenset({"objects", "refs"}), "commondir"
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)

_records: dict[str, set[str]] = {}  # name of a file -> real paths of the folders in which it is a record of ours


def keep_records(*paths: str) -> None:
    """Records of ours lie here, or will: what persons decided stands in them, so a tool that wrote there could decide itself.

    Args:
        paths: Files: databases and what their engine puts beside them, logs.
    """
    for path in paths:
        folder, _, name = os.path.realpath(path).rpartition("/")
        _records.setdefault(name, set()).add(folder or "/")


def records_beneath(folder: str) -> list[str]:
    """Our records in a folder, whether they are there already or not.

    Args:
        folder: Its path.
    """
    inside = f"{os.path.realpath(folder).rstrip('/')}/"
    return sorted(f"{place}/{name}" for name, places in _records.items() for place in places if f"{place}/".startswith(inside))


def _is_record(folder: int, name: str) -> bool:
    for place in _records.get(name, ()):
        with contextlib.suppress(OSError):
            if os.path.samestat(Path(place).stat(), os.fstat(folder)):
                return True
    return False


@functools.lru_cache(maxsize=256)
def holds_home(folder: str) -> bool:
    """Whether a folder is the person's home folder or holds it: then what is written there may be what their next shell runs.

    Args:
        folder: Its absolute path.
    """
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - as text, like all paths here
    try:
        return f"{home}/".startswith(f"{os.path.realpath(folder).rstrip('/')}/")
    except ValueError:  # no path at all, which whoever enters it says
        return False


def is_repository(names: Collection[str]) -> bool:
    """Whether a folder with these names in it is a repository without a `.git`, whose settings git follows.

    Args:
        names: The names.
    """
    return _HEAD in names and (_ELSEWHERE in names or all(part in names for part in _PARTS))


def makes_repository(folder: int, name: str) -> bool:
    """Whether an open folder becomes a repository by one more name in it."""
    marks = (_HEAD, _ELSEWHERE, *_PARTS)
    return name in marks and is_repository({name, *(mark for mark in marks if _is_there(folder, mark))})


def belongs_to(folder: int, name: str, root: tuple[int, int]) -> str:
    """What a name in an open folder is a part of: a repository, an environment of Python, our records; "" for nothing of that.

    Args:
        folder: Its descriptor.
        name: The name, of something that is there or not.
        root: Device and inode of the folder at which to stop; that one may be an environment, as a whole.
    """
    if name.casefold() == GIT or makes_repository(folder, name):
        return "a repository"
    if _is_record(folder, name):
        return RECORDS
    inner: tuple[int, int] | None = None
    for at in _upwards(folder, root):
        here = identity(os.fstat(at))
        if inner is not None and _identity_at(at, GIT) == inner:
            return "a repository"
        if _is_there(at, _HEAD) and makes_repository(at, _HEAD):
            return "a repository"
        if here != root and _is_there(at, ENVIRONMENT):
            return "an environment of Python"
        inner = here
    return ""


def is_beneath(folder: int, other: tuple[int, int], root: tuple[int, int]) -> bool:
    """Whether an open folder is another one, or lies beneath it.

    Args:
        folder: Its descriptor.
        other: Device and inode of the other one, which lies beneath `root`.
        root: Those of the folder at which to stop.
    """
    return any(identity(os.fstat(at)) == other for at in _upwards(folder, root))


def _upwards(folder: int, root: tuple[int, int]) -> Iterator[int]:
    """A folder and those above it up to `root`, or up to the top of all where somebody moved it out meanwhile."""
    at, before = os.dup(folder), None
    try:
        while (here := identity(os.fstat(at))) != before:
            yield at
            if here == root:
                return
            inner, at, before = at, os.open("..", _FOLDER, dir_fd=at), here
            os.close(inner)
    finally:
        os.close(at)


def _identity_at(folder: int, name: str) -> tuple[int, int] | None:
    try:
        return identity(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except OSError:
        return None


def _is_there(folder: int, name: str) -> bool:
    return _identity_at(folder, name) is not None


def identity(about: os.stat_result) -> tuple[int, int]:
    """What tells a thing from all others, whatever its path."""
    return about.st_dev, about.st_ino
