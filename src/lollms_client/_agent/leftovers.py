"""What an interrupted round left behind: which of its calls may simply be run, and which a person has to decide about.

A call that came to a result is never run again. One that was planned was not run. One that was started and has no result may have
done its work or not: where the tool is declared to read or to be idempotent it runs again, with the same key; else somebody
decides. Source: developer guide "Turn Checkpointing", CONTRACT A13.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._tools.effects import may_run_again
from .._tools.normalise import failure, normalise
from .state import CallRecord, Journaled, OpenRound

if TYPE_CHECKING:
    from .turn import Turn

__all__ = ["OUTCOME_DECISIONS", "settle"]

OUTCOME_DECISIONS = ("retry", "skip", "result")
"""What a person may decide about a call that was started and has no result."""


def settle(turn: Turn, now: OpenRound, position: int) -> CallRecord | None:
    """What the journal says about a call.

    Args:
        turn: The running turn.
        now: Its open round.
        position: The call's place in it.

    Returns:
        Its record where it is not to be run: a result that a person gave, or that it still waits; None where it is to be run.
    """
    left, call = now.journal.get(position), now.reply.calls[position]
    if left is None or left.status == "planned" or turn.is_worker(call):
        return None
    if left.status == "waiting":
        result = _waited(turn, left)
    elif may_run_again(turn.effects(call)):
        result = None
    else:
        result = _unknown(turn, call.name, position)
    return None if result is None else CallRecord(turn.round, call, result, left.seconds, ran="status" not in result)


def _waited(turn: Turn, left: Journaled) -> dict[str, Any] | None:
    waits = left.result or {}
    kind, decision = waits.get("kind") or "approval", left.decision
    if kind == "approval":
        return waits if decision is None and not turn.can_ask() else None  # the gate decides, once more and at last
    if decision is None:
        return None if kind == "question" and turn.can_answer() else dict(waits)
    if kind == "question":
        return normalise({"success": True, "output": decision.get("answer")})
    return _decided(str(waits.get("tool") or "The tool"), decision)


def _decided(tool: str, decision: Mapping[str, Any]) -> dict[str, Any] | None:
    match decision.get("decision"):
        case "retry":
            return None
        case "result":
            return normalise(decision.get("result"))
        case _:
            return _skipped(tool, str(decision.get("reason") or ""))


def _skipped(tool: str, reason: str) -> dict[str, Any]:
    said = f"{tool} was started and interrupted; whether it did its work is not known. The operator skipped it."
    return failure(f"{said} {reason}".strip(), status_code=499, skipped=True)


def _unknown(turn: Turn, tool: str, position: int) -> dict[str, Any] | None:
    policy = turn.options.on_unknown
    if policy == "retry":
        return None
    if policy == "skip":
        return _skipped(tool, "")
    said = f"{tool} was started, and the process ended before it came to a result. It may have done its work or not."
    waits = {"status": "pending", "kind": "outcome", "ticket": f"{turn.key_of(position)}:outcome", "reason": said, "tool": tool}
    return failure(said, status_code=202, **waits, choices=list(OUTCOME_DECISIONS))
