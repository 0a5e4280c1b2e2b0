"""The state of a turn: plain data that a host can store between any two rounds, and the round that is not over yet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..events import ToolCall, Usage

__all__ = ["ArtefactBlock", "CallRecord", "Journaled", "OpenRound", "Reply", "TurnState", "call_key"]


_encode = json.JSONEncoder(sort_keys=True, default=str).encode


def call_key(call: ToolCall) -> str:
    """One text for one call: equal for equal names and arguments, whatever their order."""
    return f"{call.name} {_encode(call.arguments)}"


@dataclass(slots=True)
class CallRecord:
    """A call and its result.

    Attributes:
        round: The round in which the model asked for it.
        call: What it asked.
        result: What came of it, in the form of the tool guide's §7.7.
        seconds: How long it took.
        ran: Whether it was carried out; a call that was refused has a result too.
    """

    round: int
    call: ToolCall
    result: dict[str, Any]
    seconds: float = 0.0
    ran: bool = False

    @property
    def waiting(self) -> str:
        """What it waits for a person for: "approval", "question", "outcome", or "worker" where a worker's call waits; else ""."""
        return str(self.result.get("kind") or "approval") if self.result.get("status") == "pending" else ""


@dataclass(slots=True)
class ArtefactBlock:
    """What a reply says about one artefact.

    Attributes:
        name: Its name, as written.
        type: "code", "document", "data" …, as written.
        language: Its language, as written.
        body: The whole content, or a patch; "" for a revert.
        revert: The version to go back to, None for a block with a body ("" is the one before the last).
        complete: False where the reply ended first.
    """

    name: str
    type: str = ""
    language: str = ""
    body: str = ""
    revert: str | None = None
    complete: bool = True


@dataclass(slots=True)
class Reply:
    """What a model said in one round.

    Attributes:
        raw: The text as it came, tags and all.
        text: What a person sees of it.
        thoughts: What it thought.
        calls: The calls that it asks for, workers among them, in order.
        artefacts: What it says about artefacts, in order.
        usage: What it cost.
        effort: The effort that it asks for in the next round, "" for none.
        done: It says that the turn is finished.
        looped: It was stopped because it went round in circles.
        signed: What the provider wants to have back with this reply, as it came: `{"fields", "calls"}` each (`SignedDelta`).
    """

    raw: str = ""
    text: str = ""
    thoughts: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    artefacts: list[ArtefactBlock] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    effort: str = ""
    done: bool = False
    looped: bool = False
    signed: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Journaled:
    """What the journal of an interrupted turn says about a call.

    Attributes:
        status: "planned", "started", "done" or "waiting".
        result: What came of it, where it is done; what it waits for, where it waits.
        seconds: How long it took.
        ran: Whether it was carried out.
        decision: What a person decided while it waited, None for nothing yet.
    """

    status: str
    result: dict[str, Any] | None = None
    seconds: float = 0.0
    ran: bool = False
    decision: Mapping[str, Any] | None = None


@dataclass(slots=True)
class OpenRound:
    """A round that is not over.

    Attributes:
        number: Which.
        reply: What the model said so far.
        read: Whether that is all that it said.
        records: The calls that came to a result, by their position in the reply.
        keys: The `call_key` of each call that was looked at, by position.
        journal: What an interrupted round left behind, by position.
        saved: What became of its artefacts: `{name, version, action, size, problem}` each.
        messages: What the round adds to the transcript, once it is over.
    """

    number: int
    reply: Reply = field(default_factory=Reply)
    read: bool = False
    records: dict[int, CallRecord] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)
    journal: dict[int, Journaled] = field(default_factory=dict)
    saved: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)

    def versions(self) -> list[dict[str, Any]]:
        """The versions of artefacts that it made: `{name, version, action, size}` each."""
        return [{k: v for k, v in one.items() if k != "problem"} for one in self.saved if one["action"] != "failed"]

    def waiting(self) -> list[CallRecord]:
        """The calls that wait for a person."""
        return [record for _, record in sorted(self.records.items()) if record.waiting]

    def any_call_began(self) -> bool:
        """Whether an interrupted round came as far as its calls."""
        return any(left.status != "planned" for left in self.journal.values())


@dataclass(slots=True)
class TurnState:
    """What a turn has done so far.

    Attributes:
        transcript: The messages of this turn, the person's first; it only grows, and each call in it has its result.
        rounds: Rounds completed.
        texts: The visible text of each round, "" for a round without any.
        thoughts: The thoughts of each round that had some.
        records: Calls of the rounds completed, with their results.
        open: The round that is not over, None between rounds.
        closing: What makes the transcript a valid conversation where the turn ended inside a round: the round as far as it came.
        executed: Calls that were run.
        usage: The sum over all rounds.
        stalls: Rounds in a row that brought nothing new.
        calls_since_change: Key of a call -> its record, for calls since the last one that may have changed something.
        repeats: Calls in a row that only repeated an earlier one.
        barred: Tools that the next step may not ask for, because the same call was just repeated.
        effort: The reasoning effort of the next round, None to leave it to the model.
        code_intent: Whether the last round wrote code or asked for a tool.
        changes: What the turn did to its workspace, as of the last round that may have changed something.
        artefacts: The versions that the turn made.
        status: How the turn ended, "" while it goes on.
    """

    transcript: list[dict[str, Any]] = field(default_factory=list)
    rounds: int = 0
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    records: list[CallRecord] = field(default_factory=list)
    open: OpenRound | None = None
    closing: list[dict[str, Any]] = field(default_factory=list)
    executed: int = 0
    usage: Usage = field(default_factory=Usage)
    stalls: int = 0
    calls_since_change: dict[str, CallRecord] = field(default_factory=dict)
    repeats: int = 0
    barred: frozenset[str] = frozenset()
    effort: str | float | None = None
    code_intent: bool = False
    changes: list[dict[str, Any]] = field(default_factory=list)
    artefacts: list[dict[str, Any]] = field(default_factory=list)
    status: str = ""

    def response(self) -> str:
        """The answer: the visible text of the last round that had any (what stands before is commentary on the way)."""
        texts = [*self.texts, self.open.reply.text] if self.open is not None else self.texts
        return next((text.strip() for text in reversed(texts) if text.strip()), "")

    def all_records(self) -> Iterator[CallRecord]:
        """Every call that has a result, those of the open round too."""
        yield from self.records
        if self.open is not None:
            yield from (record for _, record in sorted(self.open.records.items()))

    def all_thoughts(self) -> str:
        """Everything that the model thought, round by round."""
        now = [self.open.reply.thoughts] if self.open is not None else []
        return "\n\n".join(filter(None, [*self.thoughts, *now]))

    def add_usage(self, usage: Usage) -> None:
        """Adds what one request cost."""
        self.usage.prompt_tokens += usage.prompt_tokens
        self.usage.completion_tokens += usage.completion_tokens
        self.usage.cached_tokens += usage.cached_tokens

    @property
    def stalled(self) -> int:
        """How many times in a row the model came no further, in whatever way."""
        return self.stalls + self.repeats
