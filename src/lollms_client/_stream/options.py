"""How a stream is to be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count

from .tags import TAGS

__all__ = ["ParserOptions"]

_ALL_TAGS = frozenset(tag.name for tag in TAGS)


@cache
def _ids() -> Iterator[str]:
    start = os.urandom(5).hex()
    return (f"call_{start}{n:x}" for n in count(1))


def _mint_id() -> str:
    """An id that no other call of this process has, nor one of another process."""
    return next(_ids())


@dataclass(frozen=True, slots=True)
class ParserOptions:
    """How a stream is to be read.

    Attributes:
        implicit_think: The stream begins inside a thought, without an opening tag.
        thinking_tags: Further pairs of markers that enclose thoughts.
        bare_json_calls: Names of the mounted tools, where a reply that is nothing but one JSON object of a call's shape is one.
        mint_id: Makes the ids of calls that come without one.
        tags: Names of the tags that are obeyed (see `tags.TAGS`).
    """

    implicit_think: bool = False
    thinking_tags: tuple[tuple[str, str], ...] = ()
    bare_json_calls: frozenset[str] | None = None
    mint_id: Callable[[], str] = _mint_id
    tags: frozenset[str] = _ALL_TAGS
