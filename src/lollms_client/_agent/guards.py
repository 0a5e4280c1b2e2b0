"""One named remedy each for the ways in which models get stuck: a repeated call, a malformed call, an unknown tool, a stall.

A model's fault is told to the model and the turn goes on; a fault of ours raises.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from ..events import Notice, ToolCall
from .state import CallRecord, TurnState

__all__ = ["STALL_NUDGE", "failed_first", "only_reads", "refuse", "remember"]

STALL_NUDGE = "Your last reply was empty. Go on with the task: take the next step, or answer if everything is done."

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
