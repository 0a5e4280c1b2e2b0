"""Native tool calls, put together from their fragments.

Backends differ, and err: one position for every call, none at all, an id with the first fragment only or never, the name repeated
with each fragment, whole calls one behind the other. Which call a fragment goes on with is decided by its id, then by its
position, then by what is still open. A name begins a new call, unless it repeats that of a call whose arguments are not complete.
"""

from __future__ import annotations

from collections.abc import Callable

from ..events import ToolCall
from .calls import read_arguments
from .deltas import ToolCallDelta
from .json_scan import JsonScanner

__all__ = ["CallAssembler"]


class _Slot:
    """A call that is being put together."""

    __slots__ = ("id", "index", "name", "parts", "scanner")

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.parts: list[str] = []
        self.scanner = JsonScanner()

    def take(self, delta: ToolCallDelta) -> None:
        self.id = self.id or delta.id
        self.name = self.name or delta.name
        if delta.arguments:
            self.parts.append(delta.arguments)
            self.scanner.feed(delta.arguments)

    def goes_on_with(self, delta: ToolCallDelta) -> bool:
        """Whether a fragment that points here belongs here, and does not begin a call of its own."""
        if not delta.name or not self.name:
            return True
        return delta.name == self.name and not (self.scanner.complete and delta.arguments.strip())


class CallAssembler:
    """Puts the fragments of one answer together.

    Args:
        mint_id: Makes an id for a call that came without one, or with one that another call has.
    """

    __slots__ = ("_mint_id", "_slots")

    def __init__(self, mint_id: Callable[[], str]) -> None:
        self._mint_id = mint_id
        self._slots: list[_Slot] = []

    def add(self, delta: ToolCallDelta) -> None:
        """Take one fragment."""
        slot = self._find(delta)
        if slot is None or not slot.goes_on_with(delta):
            slot = _Slot(delta.index)
            self._slots.append(slot)
        slot.take(delta)

    def finish(self, cut_off: bool = False) -> list[ToolCall]:
        """The calls, in the order in which they began; the assembler is empty afterwards.

        Args:
            cut_off: The answer ended for length.
        """
        slots, self._slots = self._slots, []
        calls: list[ToolCall] = []
        taken: set[str] = set()
        for slot in slots:
            raw = "".join(slot.parts)
            name, arguments, problem = read_arguments(raw, slot.name, cut_off)
            call_id = slot.id if slot.id and slot.id not in taken else self._mint_id()
            taken.add(call_id)
            calls.append(ToolCall(name, arguments, call_id, raw, problem, "native"))
        return calls

    def _find(self, delta: ToolCallDelta) -> _Slot | None:
        """The call that a fragment points to."""
        slots = self._slots
        if delta.id:
            for slot in reversed(slots):
                if slot.id == delta.id:
                    return slot
            if delta.name:
                return None
        if delta.index is not None:
            for slot in reversed(slots):
                if slot.index == delta.index:
                    return slot
            if delta.name or not slots or slots[-1].index is not None:
                return None
        return slots[-1] if slots else None
