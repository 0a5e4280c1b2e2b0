"""One named remedy each for the ways in which models get stuck: a repeated call, a malformed call, an unknown tool, a stall.

A model's fault is told to the model and the turn goes on; a fault of ours raises.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

from ..events import Notice, ToolCall
from .state import CallRecord, TurnState

__all__ = [
    "LOOP_NUDGE",
    "PREAMBLE_NUDGE",
    "STALL_NUDGE",
    "LoopWatch",
    "failed_first",
    "is_preamble",
    "only_reads",
    "refuse",
    "remember",
    "without_loop",
]

STALL_NUDGE = "Your last reply was empty. Go on with the task: take the next step, or answer if everything is done."
LOOP_NUDGE = "Your last reply repeated itself and was stopped. Do not repeat it: take the next step, or answer in a few words."
PREAMBLE_NUDGE = "You announced a step and did not take it. Take it now, in this reply; or answer, if everything is done."

READ_ONLY = frozenset({"read", "idempotent"})


def refuse(
    call: ToolCall, key: str, state: TurnState, known: Collection[str], room: int | None = None
) -> tuple[CallRecord, Notice] | None:
    """Says why a call must not run, in words for the model.

    Args:
        call: What the model asked for.
        key: Its `call_key`.
        state: The turn so far.
        known: Names of the tools that are mounted.
        room: How many calls may still run, None for any number.

    Returns:
        The result that the model gets instead, and a notice for the person; None for a call that may run.
    """
    if call.problem:
        return _failure(call, state, "malformed_call", call.problem)
    if call.name not in known:
        near = get_close_matches(call.name, known, n=3, cutoff=0.4)
        there = ", ".join([*near, *sorted(set(known) - set(near))][:30])
        return _failure(call, state, "unknown_tool", f"There is no tool named {call.name!r}. There are: {there or 'none'}.")
    if room is not None and room < 1:
        text = f"{state.executed} calls have run, which is all that this turn may make. Answer now with what you know."
        return _failure(call, state, "call_limit", text)
    earlier = state.calls_since_change.get(key)
    if earlier is not None:
        return _repeated(call, state, earlier)
    return None


def _repeated(call: ToolCall, state: TurnState, earlier: CallRecord) -> tuple[CallRecord, Notice]:
    """A first repetition is answered with what the call brought; a second one also bars the tool from the next step."""
    state.repeats += 1
    if state.repeats > 1:
        state.barred = state.barred | {call.name}
    text = f"You made exactly this call in step {earlier.round} and nothing has changed since, so it was not run again. "
    if earlier.result.get("success"):
        text += "Its result stands above: use it, take a different step, or answer."
    else:
        text += f"It failed: {earlier.result.get('error')} Make it differently."
    return _failure(call, state, "repeated_call", text)


def only_reads(effects: frozenset[str] | None) -> bool:
    """Whether declared effects are those of a tool that changes nothing."""
    return effects is not None and effects <= READ_ONLY


def failed_first(state: TurnState) -> str:
    """The tool whose call just ran and failed, where the call before it did not; "" otherwise."""
    failed = [r.result.get("status_code") == 500 for r in state.records[-2:]]
    return state.records[-1].call.name if failed and failed[-1] and not any(failed[:-1]) else ""


def _failure(call: ToolCall, state: TurnState, kind: str, text: str) -> tuple[CallRecord, Notice]:
    result = {"output": None, "error": text, "success": False, "status_code": 404 if kind == "unknown_tool" else 400}
    record = CallRecord(state.rounds + 1, call, result)
    return record, Notice(f"{call.name or 'a call'}: {text}", "warning", kind)


def remember(record: CallRecord, key: str, state: TurnState, effects: frozenset[str] | None) -> None:
    """Keeps a call that ran, so that the same one is not run again while nothing has changed.

    Args:
        record: The call with its result.
        key: Its `call_key`.
        state: The turn.
        effects: The tool's declared effects; a tool that may change something (or does not say) lets earlier calls be made again.
    """
    if not only_reads(effects):
        state.calls_since_change = {}
    state.calls_since_change[key] = record
    state.barred, state.repeats = frozenset(), 0


_ANNOUNCED = re.compile(
    r"(?:(?:ok(?:ay)?|sure|certainly|alright|great|now|next|first|then|so)[,.!: ]+)*"
    r"(?:let me|let's|let us|i(?:'ll| will| am going to|'m going to| need to| should)(?: now| first| start by| begin by)?)\b",
    re.IGNORECASE,
)
_LONGEST_PREAMBLE = 300


def is_preamble(text: str) -> bool:
    """Whether a reply only announces what it is about to do: one short paragraph that begins so, and ends by leading on.

    Args:
        text: The visible reply, which asks for no call.
    """
    said = text.strip()
    return (
        len(said) <= _LONGEST_PREAMBLE
        and "\n\n" not in said
        and said.endswith((":", "…", "..."))
        and bool(_ANNOUNCED.match(said))
    )


_WINDOW, _STEP, _LEAST_REPEATS = 1500, 500, 8


class LoopWatch:
    """Watches a reply for a text that comes again and again without end.

    The last 1,500 characters are looked at from time to time: where they are one piece, at least eight times over, the model has
    come into a loop. Lines, rules and padding repeat in good texts too, so a piece must hold words.
    """

    __slots__ = ("_parts", "_since", "_tail")

    def __init__(self) -> None:
        self._tail = ""
        self._parts: list[str] = []
        self._since = 0

    def sees_a_loop(self, delta: str) -> bool:
        """Takes the next piece of a reply; True once it goes round in circles."""
        self._parts.append(delta)
        self._since += len(delta)
        if self._since < _STEP:
            return False
        self._tail = (self._tail + "".join(self._parts))[-_WINDOW:]
        self._parts, self._since = [], 0
        return len(self._tail) == _WINDOW and _period(self._tail) is not None


def _period(text: str) -> int | None:
    """The length of the piece that a text is made of, None where it is no repetition of words."""
    fallback = [0] * len(text)
    at = 0
    for i in range(1, len(text)):  # the failure function of Knuth, Morris and Pratt: a period is what it leaves over
        while at and text[i] != text[at]:
            at = fallback[at - 1]
        at += text[i] == text[at]
        fallback[i] = at
    period = len(text) - at
    letters = {c for c in text[:period] if c.isalpha()}
    return period if period * _LEAST_REPEATS <= len(text) and len(letters) >= 3 else None


def without_loop(text: str) -> str:
    """A looping text with what repeats itself said once."""
    period = _period(text[-_WINDOW:])
    if period is None:
        return text
    unit, end = text[-period:], len(text)
    while end >= 2 * period and text[end - 2 * period : end - period] == unit:
        end -= period
    return text[:end]
