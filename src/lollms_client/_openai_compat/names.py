"""Tool names on the wire, both ways.

Providers take tool names of `[A-Za-z0-9_-]{1,64}` and refuse the whole request for a single other one. A name that fits goes as
it is; any other gets a form that fits, which ends in eight hexadecimal digits of its own hash: the same name has the same form in
every request, and two names never share one.

Source: CONTRACT A11.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._bindings.request import ChatRequest

__all__ = ["WireNames", "names_of"]

_FITS = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
_HASH = 8
_LONGEST = 64


class WireNames:
    """The wire names of one request.

    Args:
        names: The tools' names, in any order.
    """

    __slots__ = ("_ours", "_theirs")

    def __init__(self, names: Iterable[str] = ()) -> None:
        every = sorted(set(names))
        self._theirs: dict[str, str] = {}
        self._ours: dict[str, str] = {}
        taken = {name for name in every if _FITS.fullmatch(name)}
        for name in every:
            if name in taken:
                continue
            wire, salt = _wire_name(name, 0), 0
            while wire in taken:  # another tool really has that name
                salt += 1
                wire = _wire_name(name, salt)
            taken.add(wire)
            self._theirs[name], self._ours[wire] = wire, name

    def __bool__(self) -> bool:
        """Whether any name differs on the wire."""
        return bool(self._theirs)

    def out(self, name: str) -> str:
        """The wire's form of a name of ours."""
        return self._theirs.get(name, name)

    def back(self, wire: str) -> str:
        """Our name for one that came over the wire; a name that was never sent stays as it is."""
        return self._ours.get(wire, wire)


def names_of(request: ChatRequest) -> WireNames:
    """The wire names of a request: of its tools, and of the tools that its transcript speaks of."""
    names = [str(tool["name"]) for tool in request.tools]
    for message in request.messages:
        if message.get("role") == "tool" and message.get("name"):
            names.append(str(message["name"]))
        names += [_called(call) for call in message.get("tool_calls") or ()]
    return WireNames(name for name in names if name)


def _called(call: Mapping[str, Any]) -> str:
    return str((call.get("function") or {}).get("name") or "")


def _wire_name(name: str, salt: int) -> str:
    mark = hashlib.sha256(f"{name}{chr(0) * salt}".encode()).hexdigest()[:_HASH]
    return f"{_UNFIT.sub('_', name)[: _LONGEST - _HASH - 1]}_{mark}"
