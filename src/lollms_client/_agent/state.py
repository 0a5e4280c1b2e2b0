"""The state of a turn: plain data that a host can store between any two rounds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ..events import ToolCall, Usage

__all__ = ["CallRecord", "TurnState", "call_key"]


_encode = json.JSONEncoder(sort_keys=True, default=str).encode


def call_key(call: ToolCall) -> str:
    """One text for one call: equal for equal names and arguments, whatever their order."""
    return f"{call.name} {_encode(call.arguments)}"


@dataclass(slots=True)
class CallRecord:
    """A call and its result."""

    round: int
    call: ToolCall
    result: dict[str, Any]
    seconds: float = 0.0


@dataclass(slots=True)
class TurnState:
    """What a turn has done so far.

    Attributes:
        transcript: The messages of this turn, the person's first; it only grows, and each call in it has its result.
        rounds: Rounds completed.
        texts: The visible text of each round, "" for a round without any.
        records: Calls with their results.
        executed: Calls that were run.
        usage: The sum over all rounds.
        stalls: Rounds in a row that brought neither a call nor an answer.
        calls_since_change: Key of a call -> its record, for calls since the last one that may have changed something.
        repeats: Calls in a row that only repeated an earlier one.
        barred: Tools that the next step may not ask for, because the same call was just repeated.
    """

    transcript: list[dict[str, Any]] = field(default_factory=list)
    rounds: int = 0
    texts: list[str] = field(default_factory=list)
    records: list[CallRecord] = field(default_factory=list)
    executed: int = 0
    usage: Usage = field(default_factory=Usage)
    stalls: int = 0
    calls_since_change: dict[str, CallRecord] = field(default_factory=dict)
    repeats: int = 0
    barred: frozenset[str] = frozenset()

    def response(self) -> str:
        """The answer: the visible text of the last round that had any (what stands before is commentary on the way)."""
        return next((text.strip() for text in reversed(self.texts) if text.strip()), "")

    def add_usage(self, usage: Usage) -> None:
        """Adds what one request cost."""
        self.usage.prompt_tokens += usage.prompt_tokens
        self.usage.completion_tokens += usage.completion_tokens
        self.usage.cached_tokens += usage.cached_tokens
