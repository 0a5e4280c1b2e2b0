"""What came of a worker, as the result of the call that asked for it. Source: CONTRACT H, tool guide §7.7."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._tools.normalise import failure
from ..events import TurnEnded, Usage
from .state import TurnState

__all__ = ["Outcome", "Used", "prices_of", "report"]

Prices = Mapping[str, float] | None
_MOST_FILES = 50


def prices_of(model: Any) -> Prices:
    """What tokens of a model cost, None where its profile does not say."""
    return (getattr(model, "profile_facts", None) or {}).get("prices")


@dataclass(slots=True)
class Outcome:
    """How a worker's turn ended.

    Attributes:
        turn_id: The turn.
        status: As in `TurnEnded`.
        reason: Why it ended, where the status does not say.
        output: Its last words.
        rounds: Rounds that it completed.
        calls: `{round, name, parameters}` of each call that it asked for.
        changes: What it did to the workspace.
        used: What it used.
    """

    turn_id: str
    status: str
    reason: str
    output: str
    rounds: int
    calls: list[dict[str, Any]]
    changes: list[dict[str, Any]]
    used: Used

    @staticmethod
    def of_end(turn_id: str, end: TurnEnded, prices: Prices) -> Outcome:
        """Of a turn that was played to its end."""
        calls = [{name: call[name] for name in ("round", "name", "parameters")} for call in end.tool_calls]
        used = Used.of(end.usage, (one["result"] for one in end.tool_results), prices)
        return Outcome(turn_id, end.status, end.reason, end.response, end.rounds, calls, end.workspace_changes, used)

    @staticmethod
    def of_state(turn_id: str, status: str, reason: str, state: TurnState, prices: Prices) -> Outcome:
        """Of a turn that ended earlier."""
        records = list(state.all_records())
        calls = [{"round": r.round, "name": r.call.name, "parameters": r.call.arguments} for r in records]
        used = Used.of(state.usage, (record.result for record in records), prices)
        return Outcome(turn_id, status, reason, state.response(), state.rounds, calls, state.changes, used)


@dataclass(slots=True)
class Used:
    """What a turn used, the workers that it asked for among it.

    Attributes:
        usage: Tokens.
        cost: What was paid, None where prices are not known.
    """

    usage: Usage = field(default_factory=Usage)
    cost: float | None = None

    @staticmethod
    def of(own: Usage, results: Iterable[Mapping[str, Any]], prices: Prices) -> Used:
        """What a turn used.

        Args:
            own: Its own tokens.
            results: The results of its calls; those of workers say what these used.
            prices: What tokens of its model cost.
        """
        total = Used(Usage(own.prompt_tokens, own.completion_tokens, own.cached_tokens), own.cost(prices))
        for result in results:
            theirs = result.get("usage") if "child_rounds" in result else None
            if isinstance(theirs, Mapping):
                total.usage.prompt_tokens += theirs["prompt_tokens"]
                total.usage.completion_tokens += theirs["completion_tokens"]
                total.usage.cached_tokens += theirs["cached_tokens"]
                if theirs["cost"] is not None:
                    total.cost = (total.cost or 0.0) + theirs["cost"]
        return total

    def to_dict(self) -> dict[str, Any]:
        """`{"prompt_tokens", "completion_tokens", "cached_tokens", "cost"}`."""
        return {name: getattr(self.usage, name) for name in _TOKENS} | {"cost": self.cost}


_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens")


def report(outcome: Outcome) -> dict[str, Any]:
    """A worker's outcome as a result, as `Delegation.run` returns it.

    What it left unfinished is a failure; what it said last stands in the error too, because a model reads only that then.
    """
    files = [change["path"] for change in outcome.changes if change["action"] != "deleted"]
    more: dict[str, Any] = {
        "files": files,
        "child_tool_calls": outcome.calls,
        "child_rounds": outcome.rounds,
        "usage": outcome.used.to_dict(),
        "turn_status": outcome.status,
        "turn_id": outcome.turn_id,
    }
    if files:
        named = ", ".join(files[:_MOST_FILES]) + (f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else "")
        more["warnings"] = [f"Files that the worker created or modified: {named}"]
    if outcome.status == "completed":
        return {"output": outcome.output, "success": True, "status_code": 200, **more}
    if outcome.status == "cancelled":
        return failure("The worker was cancelled.", output=outcome.output, status_code=499, **more)
    said = f" Its last words: {outcome.output}" if outcome.output else ""
    if outcome.status == "limit":
        return failure(f"The worker stopped at {outcome.reason}.{said}", output=outcome.output, **more)
    return failure(f"{outcome.reason or outcome.status}{said}", output=outcome.output, **more)
