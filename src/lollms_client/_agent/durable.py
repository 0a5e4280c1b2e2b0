"""A host whose turns survive: every step of a turn goes to a store, and what stands there becomes a turn again.

`DurableHost` is the journal half of a host; a discussion and a personality each say what their turns stand on. Nothing here
decides anything: what may be run again is decided in `leftovers.py`, who may go on with a turn in the store's leases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from .._bindings.request import Sampling
from .._store.turns import Lease, StoredTurn, TurnRow, TurnStore
from ..errors import LeaseLostError
from ..events import ToolCall, Usage
from .guards import only_reads, remember
from .options import Limits, TurnOptions
from .state import ArtefactBlock, CallRecord, Journaled, OpenRound, Reply, TurnState, call_key
from .turn import Resumption

if TYPE_CHECKING:
    from .._store.db import Tx
    from .._tools.spec import ToolSpec
    from .turn import Turn

__all__ = ["DurableHost", "checkpoint", "kept_status", "partial_answer", "resumption", "stored_options", "transcript"]

_KEPT = ("rounds", "stalls", "repeats", "effort", "code_intent", "changes", "artefacts")
"""What of a state is written with each round; the rest follows from the rounds themselves."""

_REPLY_FIELDS = tuple(f.name for f in fields(Reply))
_CALL_FIELDS = tuple(f.name for f in fields(ToolCall))
_USAGE_FIELDS = tuple(f.name for f in fields(Usage))

_PACKED_OTHERWISE = {"sampling", "limits", "tool_context", "material", "images", "videos"}  # the last three stand in the opening
_NOT_STORED = frozenset({*_PACKED_OTHERWISE, "tool_objects", "call_options", "budget"})
"""Options that are packed otherwise, or that only a living process has."""


class DurableHost:
    """Writes a turn's journal; a subclass adds what the turn stands on.

    Args:
        store: Where turns are stored.
        row: What is known about a new turn before it begins; its facts are filled in here.

    Attributes:
        lease: The right to write about the turn, None before it began.
    """

    def __init__(self, store: TurnStore, row: TurnRow, lease: Lease | None = None) -> None:
        self._store, self._row = store, row
        self.lease = lease
        self._written = 0  # the last round whose reply is in the store
        self._results: set[int] = set()  # positions of its calls whose results are

    # ---- for subclasses -------------------------------------------------------------------------------------------------------

    def also_known(self) -> dict[str, Any]:
        """What else a turn is stored with when it begins, as plain data: what whoever goes on with it has to know."""
        return {}

    def also_begins(self, tx: Tx) -> None:
        """Writes what else begins with the turn, in the same transaction."""

    def also_ends(self, tx: Tx, turn: Turn, status: str, reason: str) -> None:
        """Writes what else ends with the turn, in the same transaction."""

    # ---- the journal ----------------------------------------------------------------------------------------------------------

    def turn_begun(self, turn: Turn) -> None:
        """Stores the turn, and takes its lease."""
        self._row.id = turn.id
        self._row.facts = {
            "prompt": turn.options.prompt,
            "opening": list(turn.state.transcript),
            "dialect": turn.dialect.name,
            "model": turn.host.model.model_name or "",
            "options": stored_options(turn.options),
            "before": [[path, *about] for path, about in turn.before.items()],
            **self.also_known(),
        }
        self._row.state = _state(turn, "", 0.0)
        self.lease = self._store.begin(self._row, self.also_begins)

    def go_on(self, now: OpenRound | None) -> None:
        """Says what of an open round is in the store already."""
        if now is not None:
            self._written = now.number
            self._results = {p for p, left in now.journal.items() if left.status == "done"}

    def reply_read(self, turn: Turn, now: OpenRound) -> None:
        """Stores the reply and the calls that it asks for."""
        calls = [(call.name, call.arguments) for call in now.reply.calls]
        self._leased.reply_read(now.number, _reply(now.reply), calls)
        self._written, self._results = now.number, set()

    def artefact_begins(self, turn: Turn) -> None:
        """Makes sure that the turn is still this process's: a file has no fence of its own."""
        self._leased.hold()

    def call_started(self, turn: Turn, position: int, arguments: Mapping[str, Any]) -> None:
        """Stores that a call is about to run."""
        assert turn.state.open is not None
        asked = turn.state.open.reply.calls[position].arguments
        self._leased.call_started(turn.round, position, asked, arguments)

    def call_ended(self, turn: Turn, position: int, record: CallRecord) -> None:
        """Stores what came of a call."""
        self._leased.call_ended(turn.round, position, *_result(record))
        self._results.add(position)

    def round_ended(self, turn: Turn, ended: OpenRound) -> None:
        """Stores the round's outcome and the turn's state, at once."""
        reply = _reply(ended.reply) if self._written < ended.number else None
        state = _state(turn, "", turn.seconds())
        self._leased.round_ended(ended.number, _outcome(ended), state, self._left(ended), reply=reply)
        self._written, self._results = ended.number, set()

    def turn_ended(self, turn: Turn, status: str, reason: str, ended: OpenRound | None) -> None:
        """Stores how the turn ended, and what of its last round is not stored yet; the lease is given back."""
        if self.lease is None:
            return
        kept = kept_status(status)
        now = ended if ended is not None else turn.state.open
        last = None
        if now is not None and (ended is not None or now.read):
            reply = _reply(now.reply) if self._written < now.number else None
            last = (now.number, _outcome(now) if ended is not None else None, self._left(now), reply)
        lease, self.lease = self.lease, None
        state = _state(turn, reason, turn.seconds())
        if now is not None and not now.read:  # it will be asked for again; until then a person has seen this much of it
            state["cut"] = [now.reply.text, now.reply.thoughts]
        try:
            lease.turn_ended(
                kept,
                state,
                turn.state.rounds,
                last=last,
                also=lambda tx: self.also_ends(tx, turn, kept, reason),
            )
        except LeaseLostError:
            if status != "failed":  # else it is what the turn failed by, and is on its way to the caller
                raise
        except BaseException:
            lease.abandon()
            raise

    @property
    def _leased(self) -> Lease:
        assert self.lease is not None, "a turn begins before anything else happens in it"
        return self.lease

    def _left(self, now: OpenRound) -> dict[int, tuple[dict[str, Any], str | None]]:
        """Results that are not in the store yet: of calls that were refused, or that could not be written when they came."""
        return {
            position: _result(record)
            for position, record in now.records.items()
            if position not in self._results and record.result.get("status_code") != 499
        }


def kept_status(status: str) -> str:
    """The status under which a turn is stored that ended as the loop says (CONTRACT A13)."""
    return "cancelled" if status in ("limit", "pending_tool") else status


# ---- from a turn to what is stored ------------------------------------------------------------------------------------------


def stored_options(options: TurnOptions) -> dict[str, Any]:
    """The options of a turn as plain data; what only a living process has is left out."""
    plain = {f.name: getattr(options, f.name) for f in fields(options) if f.name not in _NOT_STORED}
    context = {k: v for k, v in options.tool_context.items() if _is_plain(v)}
    return {**plain, "sampling": asdict(options.sampling), "limits": asdict(options.limits), "tool_context": context}


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _state(turn: Turn, reason: str, seconds: float) -> dict[str, Any]:
    """Where a turn stands; what it did to its workspace is looked up where its last round may have changed something."""
    state, last = turn.state, turn.untold
    if last is not None and (last.saved or not all(only_reads(turn.effects(r.call)) for r in last.records.values() if r.ran)):
        state.changes = turn.workspace_changes()
    more = {"barred": sorted(state.barred), "seconds": seconds, "reason": reason, "limited": state.status == "limit"}
    return {**_filled(state, _KEPT), **{name: value for name, value in more.items() if value}}


def _filled(holder: object, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields that hold something; the empty ones are what they are in a fresh one, so nobody has to store them."""
    return {name: value for name in names if (value := getattr(holder, name))}


def _reply(reply: Reply) -> dict[str, Any]:
    """A reply as plain data, made once a round: `asdict` copies everything twice."""
    plain = _filled(reply, _REPLY_FIELDS)
    plain["calls"] = [{**_filled(call, _CALL_FIELDS), "arguments": call.arguments} for call in reply.calls]
    if reply.artefacts:
        plain["artefacts"] = [asdict(block) for block in reply.artefacts]
    plain["usage"] = _filled(reply.usage, _USAGE_FIELDS)
    return plain


def _result(record: CallRecord) -> tuple[dict[str, Any], str | None]:
    plain = {"result": record.result, "seconds": record.seconds, "ran": record.ran}
    return plain, str(record.result.get("ticket") or "") if record.waiting else None


def _outcome(ended: OpenRound) -> dict[str, Any]:
    return {"messages": ended.messages, "saved": ended.saved, "text": ended.reply.text}


# ---- from what is stored to a turn ------------------------------------------------------------------------------------------


def resumption(stored: StoredTurn, specs: Mapping[str, ToolSpec]) -> tuple[TurnOptions, Resumption]:
    """A stored turn as the loop goes on with it.

    Args:
        stored: The turn.
        specs: The tools as they are now, by name: what they are declared to do is theirs to say.

    Returns:
        What was asked, and what the turn goes on from.
    """
    facts, kept = stored.row.facts, stored.row.state
    calls: dict[int, dict[int, Any]] = {}
    for call in stored.calls:
        calls.setdefault(call.round, {})[call.position] = call
    state = TurnState(transcript=list(facts["opening"]))
    for name in _KEPT:
        if name in kept:
            setattr(state, name, kept[name])
    state.barred = frozenset(kept.get("barred", ()))
    repeats, barred = state.repeats, state.barred
    for one in stored.rounds:
        reply, mine = _read_reply(one.reply), calls.get(one.number, {})
        state.add_usage(reply.usage)
        if one.outcome is None:
            state.open = _open_round(one.number, reply, mine)
            state.executed += sum(r.ran for r in state.open.records.values())
            continue
        state.transcript += one.outcome["messages"]
        state.texts.append(str(one.outcome.get("text", reply.text)))
        state.thoughts += [reply.thoughts] if reply.thoughts else []
        for position, call in sorted(mine.items()):
            record = _record(one.number, reply.calls[position], call.result or {})
            state.records.append(record)
            state.executed += record.ran
            if record.ran:
                spec = specs.get(record.call.name)
                remember(record, call_key(record.call), state, spec.effects if spec is not None else None)
    state.repeats, state.barred = repeats, barred
    before = {path: (size, modified) for path, size, modified in facts.get("before", ())}
    options, seconds = _options(facts), float(kept.get("seconds", 0.0))
    if kept.get("limited"):
        state.stalls = 0
        options = replace(options, limits=_once_more(options.limits, state, seconds))
    return options, Resumption(state, facts["dialect"], before, seconds, facts.get("model", ""))


def _once_more(limits: Limits, state: TurnState, seconds: float) -> Limits:
    """The limits of a turn that stopped at one: whoever has it go on gives it as much again."""
    used = state.usage.completion_tokens
    return replace(
        limits,
        rounds=limits.rounds + state.rounds,
        calls=None if limits.calls is None else limits.calls + state.executed,
        tokens=None if limits.tokens is None else limits.tokens + used,
        seconds=None if limits.seconds is None else limits.seconds + seconds,
    )


def _options(facts: Mapping[str, Any]) -> TurnOptions:
    given = dict(facts["options"])
    sampling, limits = Sampling(**given.pop("sampling")), Limits(**given.pop("limits"))
    known = {f.name for f in fields(TurnOptions)}
    return TurnOptions(sampling=sampling, limits=limits, **{k: v for k, v in given.items() if k in known})


def _read_reply(plain: Mapping[str, Any]) -> Reply:
    given = dict(plain)
    given["calls"] = [ToolCall(**call) for call in given["calls"]]
    given["artefacts"] = [ArtefactBlock(**block) for block in given.get("artefacts", ())]
    given["usage"] = Usage(**given["usage"])
    return Reply(**given)


def _open_round(number: int, reply: Reply, calls: Mapping[int, Any]) -> OpenRound:
    now = OpenRound(number, reply, read=True)
    for position, call in calls.items():
        plain = call.result or {}
        now.journal[position] = Journaled(
            call.status, plain.get("result"), plain.get("seconds", 0.0), bool(plain.get("ran")), _decision(call)
        )
        if call.status == "done":
            now.records[position] = _record(number, reply.calls[position], plain)
    return now


def _decision(call: Any) -> dict[str, Any] | None:
    """A decision, bound to the ticket that it answers."""
    return {"ticket": call.ticket, **call.decision} if call.decision is not None else None


def _record(number: int, call: ToolCall, plain: Mapping[str, Any]) -> CallRecord:
    return CallRecord(number, call, plain.get("result") or {}, plain.get("seconds", 0.0), bool(plain.get("ran")))


def transcript(stored: StoredTurn) -> list[dict[str, Any]]:
    """The messages of a turn as far as its rounds are over, the person's first."""
    messages = list(stored.row.facts["opening"])
    for one in stored.rounds:
        messages += (one.outcome or {}).get("messages", ())
    return messages


def partial_answer(stored: StoredTurn) -> tuple[str, str]:
    """What a person has seen of a turn so far: the visible text of its last reply that had any, and all thoughts."""
    texts = [str((one.outcome or one.reply).get("text") or "").strip() for one in stored.rounds]
    thoughts = [str(one.reply.get("thoughts") or "") for one in stored.rounds]
    text, thought = stored.row.state.get("cut") or ("", "")
    texts, thoughts = [*texts, text.strip()], [*thoughts, thought]
    return next((text for text in reversed(texts) if text), ""), "\n\n".join(filter(None, thoughts))


def checkpoint(stored: StoredTurn) -> dict[str, Any]:
    """A turn's checkpoint in the documented form.

    Returns:
        `{"round_count", "turn_status", "virtual_history", "tool_calls", "workspace_changes", "timestamp"}`; each of the tool
        calls is `{round, name, parameters, status, result}`.

    Source: developer guide "Checkpoint Data Structure", CONTRACT A13.
    """
    row = stored.row
    calls = [
        {
            "round": call.round,
            "name": call.name,
            "parameters": call.payload.get("ran", call.payload["arguments"]),
            "status": call.status,
            "result": (call.result or {}).get("result"),
        }
        for call in stored.calls
    ]
    return {
        "round_count": row.rounds,
        "turn_status": row.status,
        "virtual_history": transcript(stored),
        "tool_calls": calls,
        "workspace_changes": row.state.get("changes", []),
        "timestamp": row.updated_at,
    }
