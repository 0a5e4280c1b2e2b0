"""Live objects of this process, as a worker process sees them: values cross, everything else stays and is asked.

What the host hands to a tool in a worker, its client for example, becomes a stand-in there (`stand_ins.py`). Whoever reads an
attribute of it or calls it asks here. Answers are pickled on their way there; what comes from there is JSON, in which bytes,
live objects and callbacks are marked by a single key, so that a worker can make this process do nothing but what the host's
objects offer by public names. A worker that nobody trusts gets no such objects.

Source: docs/architecture.md (tools in processes of their own).
"""

from __future__ import annotations

import base64
import datetime
import decimal
import enum
import itertools
import uuid
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from ..errors import ToolError

__all__ = ["Live", "LiveObjects"]

_VALUES = (str, bytes, bytearray, int, float, complex, bool, type(None), datetime.date, datetime.time, datetime.timedelta)
_MORE_VALUES = (decimal.Decimal, uuid.UUID, range, PurePath)
_EXACT = frozenset((*_VALUES, datetime.datetime))
_PLAIN: tuple[tuple[type, Callable[[Any], Any]], ...] = ((str, str.__str__), (int, int.__int__), (float, float.__float__))
_DEPTH = 40

_numbers = itertools.count(1)
"""Of all live objects of all calls: a stand-in that a tool kept from an earlier call finds nothing, not another object."""


class Live:
    """Marks an object that stays here."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class LiveObjects:
    """The live objects of one call.

    Args:
        callback: Makes a function out of the number of a worker's callback.
    """

    def __init__(self, callback: Callable[[int], Callable[..., Any]]) -> None:
        self._callback = callback
        self._objects: dict[int, Any] = {}
        self._known: dict[int, int] = {}
        self._ops: dict[str, Callable[..., Any]] = {
            "get": _public,
            "call": lambda one, args, more: one(*args, **more),
            "item": lambda one, key: one[key],
            "length": len,
            "iterate": iter,
            "next": _next,
            "contains": lambda one, value: value in one,
            "truth": bool,
            "text": str,
        }

    def share(self, value: Any, depth: int = 0) -> Any:
        """A value as it crosses: plain values as they are, in containers too, and whatever else is live."""
        kind = type(value)
        if kind in _EXACT or isinstance(value, _MORE_VALUES) or _is_our_enum(value):
            return value
        for plain, as_plain in _PLAIN:
            if isinstance(value, plain):
                return as_plain(value)
        if depth < _DEPTH:
            if kind in (list, tuple, set, frozenset):
                return kind(self.share(one, depth + 1) for one in value)
            if kind is dict:
                return {self.share(key, depth + 1): self.share(one, depth + 1) for key, one in value.items()}
        return Live(self._number(value))

    def _number(self, value: Any) -> int:
        number = self._known.get(id(value))
        if number is None:
            number = self._known[id(value)] = next(_numbers)
            self._objects[number] = value  # kept, so that its id stays its own
        return number

    def answer(self, operation: str, number: int, arguments: list[Any]) -> Any:
        """Does what a stand-in asks for, and returns the value as it crosses.

        Raises:
            ToolError: The object was lent for another call.
            Exception: Whatever the object raised.
        """
        if number not in self._objects:
            raise ToolError("This object of the host was lent for one call of a tool, and that call is over.")
        return self.share(self._ops[operation](self._objects[number], *map(self.given, arguments)))

    def given(self, value: Any) -> Any:
        """A value that came from a worker."""
        if isinstance(value, list):
            return [self.given(one) for one in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            mark, content = next(iter(value.items()))
            if mark == "$bytes":
                return base64.b64decode(content)
            if mark == "$live":
                return self._objects[content]
            if mark == "$callback":
                return self._callback(content)
            if mark == "$pairs":
                return {self.given(key): self.given(one) for key, one in content}
        return {key: self.given(one) for key, one in value.items()}


def _is_our_enum(value: Any) -> bool:
    return isinstance(value, enum.Enum) and type(value).__module__.startswith("lollms_client.")


def _public(one: Any, name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(
            f"{name} is not public; a tool in a process of its own reads public names of the host's objects alone."
        )
    return getattr(one, name)


def _next(one: Any) -> list[Any]:
    """The next value in a list, or an empty list at the end."""
    return list(itertools.islice(one, 1))
