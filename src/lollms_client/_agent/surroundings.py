"""What surrounds code that a turn runs: the call that it serves, and how many agents stand above it.

Context variables carry both, as they carry the running call (`_tools/calls.py`): through pool threads and nested calls.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ports import WorkSite

__all__ = ["Surroundings", "depth", "one_deeper", "surrounded_by", "surroundings"]


class Surroundings:
    """The call that code serves.

    Attributes:
        site: The call, in its turn.
    """

    __slots__ = ("_numbers", "site")

    def __init__(self, site: WorkSite) -> None:
        self.site = site
        self._numbers = itertools.count(1)

    def key(self) -> str:
        """Names the next task that the call hands out, the same in every go: it is the first, the second … of this call."""
        return f"{self.site.key}/{next(self._numbers)}"


_here: ContextVar[Surroundings | None] = ContextVar("lollms_surroundings", default=None)
_depth: ContextVar[int] = ContextVar("lollms_depth", default=0)


def surroundings() -> Surroundings | None:
    """The call in whose context this code runs, None outside any."""
    return _here.get()


def depth() -> int:
    """How many agents stand above this code, each of which asked the next one for a task."""
    return _depth.get()


@contextmanager
def surrounded_by(site: WorkSite) -> Iterator[None]:
    """Within this block, code serves a call."""
    before = _here.set(Surroundings(site))
    try:
        yield
    finally:
        _here.reset(before)


@contextmanager
def one_deeper(level: int) -> Iterator[None]:
    """Within this block, an agent plays that has this many above it; no call surrounds it yet."""
    before, here = _depth.set(level), _here.set(None)
    try:
        yield
    finally:
        _here.reset(here)
        _depth.reset(before)
