"""What waits for a person, as plain data, and what a person may decide about it. Source: CONTRACT A13."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError, UnknownNameError
from ..events import ApprovalRequested
from .leftovers import OUTCOME_DECISIONS

if TYPE_CHECKING:
    from .._store.turns import Waiting

__all__ = ["asked", "decision_about", "waits"]

APPROVAL_DECISIONS = ("allow", "always", "reject")


def asked(event: ApprovalRequested) -> dict[str, Any]:
    """What a turn asked: `{"turn_id", "ticket", "kind", "reason", "name", "parameters"}`."""
    call = event.call
    return _plain(event.turn_id, event.ticket, event.kind, event.reason, call.name, call.arguments)


def waits(waiting: Waiting) -> dict[str, Any]:
    """The same of a stored call; the parameters are those that a person decides about."""
    call, result = waiting.call, (waiting.call.result or {}).get("result") or {}
    parameters = result.get("arguments", call.payload.get("ran", call.payload["arguments"]))
    kind, reason = str(result.get("kind") or "approval"), str(result.get("reason") or "")
    return _plain(waiting.turn.id, call.ticket or "", kind, reason, call.name, parameters)


def _plain(turn_id: str, ticket: str, kind: str, reason: str, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"turn_id": turn_id, "ticket": ticket, "kind": kind, "reason": reason, "name": name, "parameters": dict(parameters)}


def decision_about(
    kind: str,
    decision: str | None = None,
    *,
    reason: str = "",
    arguments: Mapping[str, Any] | None = None,
    answer: str | None = None,
    result: Any = None,
) -> dict[str, Any]:
    """A person's decision, as the store keeps it.

    Args:
        kind: What they decide about: "approval" of a call, "question" of the model, "outcome" of a call that was interrupted.
        decision: "allow", "always" or "reject" an approval; "retry", "skip" or "result" for an outcome.
        reason: Why, for the model.
        arguments: Other arguments for a call that is allowed.
        answer: The answer to a question.
        result: What an interrupted call brought, as the person knows it.

    Raises:
        UnknownNameError: No such decision about that.
        ConfigurationError: A question without an answer.
    """
    if kind == "question":
        if answer is None:
            raise ConfigurationError("A question needs an answer.")
        return {"answer": answer}
    known = OUTCOME_DECISIONS if kind == "outcome" else APPROVAL_DECISIONS
    if decision not in known:
        raise UnknownNameError(f"decision about an {kind}", decision, known)
    more: dict[str, Any] = {"arguments": dict(arguments)} if arguments is not None else {}
    if decision == "result":
        more["result"] = result
    return {"decision": decision, "reason": reason, **more}
