"""Whoever holds something that a fork must not copy is told before and after it.

SQLite's locks belong to a process, but what it knows of them lies in memory, which a fork copies: a child that opens a file that
was open in its parent believes it holds locks that it does not, and the log may be deleted while it writes to it. So connections
are closed before a fork, and each side opens its own again. Source: sqlite.org, "How To Corrupt An SQLite Database File", 2.6.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["Forkable", "watch"]


class Forkable(Protocol):
    """Something that has to do with forks."""

    def before_fork(self) -> None:
        """In the parent, by the thread that forks."""

    def after_fork_in_parent(self) -> None:
        """In the parent, by the same thread."""

    def after_fork_in_child(self) -> None:
        """In the child, whose one thread this is."""


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_told: list[Forkable] = []


def watch(thing: Forkable) -> None:
    """Tells it about forks for as long as it lives."""
    _watched.add(thing)


def _before() -> None:
    _told[:] = list(_watched)  # the same ones are told afterwards, and live until then
    for thing in _told:
        thing.before_fork()


def _in_parent() -> None:
    for thing in _told:
        thing.after_fork_in_parent()
    _told.clear()


def _in_child() -> None:
    for thing in _told:
        thing.after_fork_in_child()
    _told.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
