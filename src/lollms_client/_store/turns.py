"""Stored turns: what one began with, what each of its rounds brought, and the journal of its calls.

A round is written in steps, each a transaction: the reply before anything is done about it, each call before it runs and when it
came to a result, the round's outcome with the turn's state at its end. So at whatever moment a process ends, what is there tells
what was done, what was not, and what nobody knows. Payloads are what the turn loop gives, as JSON, sealed where the store is
encrypted. Source: developer guide "Turn Checkpointing and Resumption", CONTRACT A13.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, Text, bindparam, exists, literal_column, select, text, update

from ..errors import LeaseLostError, NotResumableError, StoreVersionError, TurnBusyError
from . import schema
from .certainty import written
from .db import Database, Tx
from .leases import KEEPER, LEASE_SECONDS, is_gone, my_name
from .statements import Statement, insert

__all__ = ["SCHEMA_VERSION", "Lease", "StoredCall", "StoredRound", "StoredTurn", "TurnRow", "TurnStore", "Waiting", "close"]

SCHEMA_VERSION = 1
"""Of what a turn's payloads hold; a turn of a newer one is refused, an older one is read."""

OPEN = ("in_progress", "waiting_approval", "waiting_user", "cancelled", "failed")
"""The statuses of a turn that can be gone on with (CONTRACT A13)."""

_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode  # ASCII: every text of Python's fits into every database

Also = Callable[[Tx], None]
"""What a host writes in the same transaction."""


@dataclass(slots=True)
class TurnRow:
    """A turn, without its rounds.

    Attributes:
        id: Its id.
        discussion_id: The discussion that it is a part of, None for none.
        owner: Whose turn it is where it is in no discussion.
        parent_turn: The turn that it works for, None for none.
        parent_call: The call of that turn which asked for it.
        user_message_id: The message that it answers.
        ai_message_id: The message that it will become.
        status: "in_progress", "waiting_approval", "waiting_user", "cancelled", "failed" or "completed".
        facts: What it began with.
        state: Where it stands, as of the last round's end.
        rounds: Rounds completed.
        created_at: When it began, in seconds since the epoch.
        updated_at: When something of it was written last.
    """

    id: str
    ai_message_id: str
    discussion_id: str | None = None
    owner: str = ""
    parent_turn: str | None = None
    parent_call: str | None = None
    user_message_id: str | None = None
    status: str = "in_progress"
    facts: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    rounds: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0


@dataclass(slots=True)
class StoredRound:
    """A round: what the model said, and what the round brought, None while it is not over."""

    number: int
    reply: dict[str, Any]
    outcome: dict[str, Any] | None


@dataclass(slots=True)
class StoredCall:
    """A call: its place, its tool, how far it came.

    Attributes:
        round: The round that asked for it.
        position: Its place in the reply.
        name: The tool.
        status: "planned", "started", "done" or "waiting".
        payload: `{"arguments"}` as asked for, with `"ran"` (the arguments that it ran with) once it started.
        result: What came of it, where it is done; what it waits for, where it waits: `{"result", "seconds", "ran"}`.
        ticket: Names the question that it waits for.
        decision: What a person decided.
    """

    round: int
    position: int
    name: str
    status: str
    payload: dict[str, Any]
    result: dict[str, Any] | None = None
    ticket: str | None = None
    decision: dict[str, Any] | None = None


@dataclass(slots=True)
class StoredTurn:
    """A turn with all that is stored of it."""

    row: TurnRow
    rounds: list[StoredRound]
    calls: list[StoredCall]


@dataclass(slots=True)
class Waiting:
    """A call that waits for a person, with its turn."""

    turn: TurnRow
    call: StoredCall


def _of_call(status: str, *columns: str) -> Statement:
    """Writes how far a call came, for whoever holds the turn's lease; it comes to the same when it is carried out twice."""
    calls = schema.calls
    values: dict[str, Any] = {name: bindparam(name) for name in (*columns, "now")}
    place = [calls.c[name] == bindparam(name) for name in ("turn_id", "round", "position")]
    changed = {"status": literal_column(f"'{status}'"), "updated_at": values.pop("now"), **values}
    return Statement(update(calls).values(changed).where(*place, exists(_held())))


_COLUMNS = (
    "id", "discussion_id", "owner", "parent_turn", "parent_call", "user_message_id", "ai_message_id", "status", "schema_version",
    "rounds", "state", "created_at", "updated_at",
)  # fmt: skip
_INSERT_TURN, _INSERT_FACTS = insert(schema.turns), insert(schema.turn_facts)
_T, _F = schema.turns, schema.turn_facts
_SELECT = (
    select(*(_T.c[name] for name in _COLUMNS), _F.c.facts).join(_F, _F.c.turn_id == _T.c.id).order_by(_T.c.created_at, _T.c.id)
)
_TURN = Statement(_SELECT.where(_T.c.id == bindparam("turn_id")))
_LEASE = Statement("SELECT status, lease_owner, lease_expires, fence FROM turns WHERE id = :id")
_LEASE_TO_TAKE = Statement(  # a server that is about to commit the last words of somebody who was killed is waited for
    select(_T.c.status, _T.c.lease_owner, _T.c.lease_expires, _T.c.fence).where(_T.c.id == bindparam("id")).with_for_update()
)
_CLAIM = Statement(
    "UPDATE turns SET lease_owner = :owner, lease_expires = :expires, fence = fence + 1, status = 'in_progress',"
    " updated_at = :now WHERE id = :id AND fence = :fence"
)
_TOUCH = Statement("UPDATE turns SET lease_expires = :expires, updated_at = :now WHERE id = :id AND fence = :fence")


def _held(*columns: ColumnElement[Any]) -> Select[Any]:
    """A row where the lease is this one's, which then stays so until the statement is through; else none."""
    mine = (_T.c.id == bindparam("turn_id"), _T.c.fence == bindparam("fence"))
    return select(_T.c.id, *columns).where(*mine).with_for_update(key_share=True)


_RENEW = Statement("UPDATE turns SET lease_expires = :expires WHERE id = :id AND fence = :fence AND lease_owner IS NOT NULL")
_ROUND_ENDED = Statement(
    "UPDATE turns SET lease_expires = :expires, updated_at = :now, state = :state, rounds = :rounds"
    " WHERE id = :id AND fence = :fence"
)
_ENDED = Statement(
    "UPDATE turns SET lease_owner = NULL, lease_expires = NULL, updated_at = :now, status = :status, state = :state,"
    " rounds = :rounds WHERE id = :id AND fence = :fence"
)
_CLOSE = Statement(
    "UPDATE turns SET lease_owner = NULL, lease_expires = NULL, fence = fence + 1, updated_at = :now, status = 'completed',"
    " state = :state WHERE id = :id"
)
_below = select(_T.c.id).where(_T.c.parent_turn == bindparam("turn_id")).cte("below", recursive=True)
_below = _below.union(select(_T.c.id).where(_T.c.parent_turn == _below.c.id))
_OPEN_WORKERS = Statement(
    select(_T.c.id, _T.c.lease_owner, _T.c.lease_expires).where(
        _T.c.id.in_(select(_below.c.id)), text("turns.status <> 'completed'")
    )
)
_FACTS = Statement("UPDATE turn_facts SET facts = :facts WHERE turn_id = :id")
_INSERT_ROUND = Statement(
    "INSERT INTO rounds (turn_id, round, reply, outcome) VALUES (:turn_id, :round, :reply, :outcome)"
    " ON CONFLICT (turn_id, round) DO UPDATE SET reply = excluded.reply, outcome = excluded.outcome"
)
_OUTCOME = Statement("UPDATE rounds SET outcome = :outcome WHERE turn_id = :turn_id AND round = :round")
_ROUNDS = Statement("SELECT round, reply, outcome FROM rounds WHERE turn_id = :id ORDER BY round")
_INSERT_CALL = Statement(
    "INSERT INTO calls (turn_id, round, position, name, status, payload, updated_at)"
    " VALUES (:turn_id, :round, :position, :name, 'planned', :payload, :now) ON CONFLICT (turn_id, round, position) DO NOTHING"
)
_INSERT_REPLY = Statement(
    schema.rounds.insert().from_select(
        ["turn_id", "round", "reply"], _held(bindparam("round", type_=Integer), bindparam("reply", type_=Text))
    )
)
_CALL_STARTED, _CALL_STARTED_WITH = _of_call("started"), _of_call("started", "payload")
_CALL_ENDED = _of_call("done", "result")
_CALL_WAITS = _of_call("waiting", "result", "ticket", "decision")
_CALLS = Statement(
    "SELECT round, position, name, status, payload, result, ticket, decision FROM calls"
    " WHERE turn_id = :id ORDER BY round, position"
)
_DECIDE = Statement(
    "UPDATE calls SET decision = :decision, updated_at = :now"
    " WHERE turn_id = :turn_id AND ticket = :ticket AND status = 'waiting' AND decision IS NULL"
)


class Lease:
    """The right to go on with a turn, and the only way to write about it; it belongs to one thread of work.

    Every method raises LeaseLostError where another process took the turn over, and StoreError where the store failed; nothing of
    that write is stored then.

    Attributes:
        turn_id: The turn.
        facts: What it began with.
    """

    def __init__(self, db: Database, turn_id: str, fence: int, facts: dict[str, Any]) -> None:
        self._db, self.turn_id, self._fence, self.facts = db, turn_id, fence, facts
        KEEPER.keep(turn_id, self.renew)

    def _guard(self, tx: Tx, statement: Statement, now: float, **values: Any) -> None:
        values.update(id=self.turn_id, fence=self._fence, now=now)
        if not tx.run(statement, values):
            raise self._lost()

    def _lost(self) -> LeaseLostError:
        KEEPER.let_go(self.turn_id)
        return LeaseLostError("Another process took this turn over; what this one did since then is not recorded.")

    def _at(self, round_number: int, position: int, now: float, **more: Any) -> dict[str, Any]:
        return {"turn_id": self.turn_id, "fence": self._fence, "round": round_number, "position": position, "now": now, **more}

    def reply_read(self, number: int, reply: Mapping[str, Any], calls: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Writes what the model said, before anything is done about it.

        Args:
            number: The round.
            reply: All of it.
            calls: Name and arguments of each call that it asks for.
        """
        now = time.time()
        with self._db.write() as tx:
            sealed = tx.cipher.seal(_encode(reply))
            if not tx.run(_INSERT_REPLY, {"turn_id": self.turn_id, "fence": self._fence, "round": number, "reply": sealed}):
                raise self._lost()
            for position, (name, arguments) in enumerate(calls):
                payload = tx.cipher.seal(_encode({"arguments": arguments}))
                tx.run(_INSERT_CALL, self._at(number, position, now, name=name, payload=payload))

    def _write_reply(self, tx: Tx, number: int, reply: Mapping[str, Any], outcome: str | None) -> None:
        sealed = tx.cipher.seal(_encode(reply))
        tx.run(_INSERT_ROUND, {"turn_id": self.turn_id, "round": number, "reply": sealed, "outcome": outcome})

    def hold(self) -> None:
        """Renews the lease, and raises where it is lost."""
        now = time.time()
        with self._db.write() as tx:
            self._guard(tx, _TOUCH, now, expires=now + LEASE_SECONDS)

    def call_started(self, number: int, position: int, asked: Mapping[str, Any], ran: Mapping[str, Any]) -> None:
        """Writes that a call is about to run.

        Args:
            number: The round.
            position: The call's place in it.
            asked: The arguments that the model sent.
            ran: The arguments that it runs with.
        """
        statement, values = _CALL_STARTED, self._at(number, position, time.time())
        if ran != asked:
            statement = _CALL_STARTED_WITH
            values["payload"] = self._db.cipher.seal(_encode({"arguments": asked, "ran": ran}))
        if not self._db.write_one(statement, values):
            raise self._lost()

    def call_ended(self, number: int, position: int, result: Mapping[str, Any], ticket: str | None = None) -> None:
        """Writes what came of a call.

        Args:
            number: The round.
            position: The call's place in it.
            result: `{"result", "seconds", "ran"}`.
            ticket: Names the question that it waits for, None for a call that is done.
        """
        if not self._db.write_one(*self._result(number, position, result, ticket, time.time())):
            raise self._lost()

    def _result(
        self, number: int, position: int, result: Mapping[str, Any], ticket: str | None, now: float
    ) -> tuple[Statement, dict[str, Any]]:
        values = self._at(number, position, now, result=self._db.cipher.seal(_encode(result)))
        return (_CALL_ENDED, values) if ticket is None else (_CALL_WAITS, {**values, "ticket": ticket, "decision": None})

    def round_ended(
        self,
        number: int,
        outcome: Mapping[str, Any],
        state: Mapping[str, Any],
        results: Mapping[int, tuple[Mapping[str, Any], str | None]],
        *,
        reply: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes a round's end and where the turn stands now, at once.

        Args:
            number: The round.
            outcome: What it brought.
            state: Where the turn stands.
            results: Results that were not written yet, with their tickets, by position.
            reply: What the model said, where that was not written yet.
        """
        now = time.time()
        with self._db.write() as tx:
            self._guard(tx, _ROUND_ENDED, now, expires=now + LEASE_SECONDS, state=tx.cipher.seal(_encode(state)), rounds=number)
            self._write_round(tx, number, outcome, results, reply, now)

    def _write_round(
        self,
        tx: Tx,
        number: int,
        outcome: Mapping[str, Any] | None,
        results: Mapping[int, tuple[Mapping[str, Any], str | None]],
        reply: Mapping[str, Any] | None,
        now: float,
    ) -> None:
        sealed = tx.cipher.seal(_encode(outcome)) if outcome is not None else None
        if reply is not None:
            self._write_reply(tx, number, reply, sealed)
        elif sealed is not None:
            tx.run(_OUTCOME, {"turn_id": self.turn_id, "round": number, "outcome": sealed})
        for position, (result, ticket) in results.items():
            tx.run(*self._result(number, position, result, ticket, now))

    def turn_ended(
        self,
        status: str,
        state: Mapping[str, Any],
        rounds: int,
        *,
        last: tuple[int, Mapping[str, Any] | None, Mapping[int, tuple[Mapping[str, Any], str | None]], Mapping[str, Any] | None]
        | None = None,
        also: Also | None = None,
    ) -> None:
        """Writes the turn's end and gives the lease back, in one transaction with whatever the host writes.

        With a turn that is completed its workers are over too: those that failed cannot be gone on with any more.

        Args:
            status: How it ended.
            state: Where it stands.
            rounds: Rounds completed.
            last: Number, outcome (None where it is not over), results and reply of a last round, as far as they were not
                written yet.
            also: What the host writes besides.
        """
        now = time.time()
        with self._db.write() as tx:
            self._guard(tx, _ENDED, now, status=status, state=tx.cipher.seal(_encode(state)), rounds=rounds)
            if status == "completed" and self.facts.pop("before", None):  # nobody will go on from there
                tx.run(_FACTS, {"id": self.turn_id, "facts": tx.cipher.seal(_encode(self.facts))})
            if last is not None:
                number, outcome, results, reply = last
                self._write_round(tx, number, outcome, results, reply, now)
            if status == "completed":
                _close_workers(tx, self.turn_id, now)
            if also is not None:
                also(tx)
        KEEPER.let_go(self.turn_id)

    def renew(self) -> None:
        """Says that the owner is still there."""
        with self._db.write() as tx:
            tx.run(_RENEW, {"id": self.turn_id, "fence": self._fence, "expires": time.time() + LEASE_SECONDS})

    def abandon(self) -> None:
        """Renews the lease no more, without a word to the store."""
        KEEPER.let_go(self.turn_id)


class TurnStore:
    """The turns of a database."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def begin(self, row: TurnRow, also: Also | None = None) -> Lease:
        """Stores a new turn and takes its lease.

        Args:
            row: The turn.
            also: What the host writes in the same transaction: the message that the turn answers.
        """
        now = time.time()
        row.created_at = row.updated_at = now
        with written(self.db, lambda tx: tx.row(_LEASE, {"id": row.id}) is not None) as tx:
            if also is not None:
                also(tx)
            tx.run(
                _INSERT_TURN,
                {
                    **{c: getattr(row, c) for c in _COLUMNS if c not in ("state", "schema_version")},
                    "schema_version": SCHEMA_VERSION,
                    "state": tx.cipher.seal(_encode(row.state)),
                    "lease_owner": my_name(),
                    "lease_expires": now + LEASE_SECONDS,
                    "fence": 1,
                },
            )
            tx.run(_INSERT_FACTS, {"turn_id": row.id, "facts": tx.cipher.seal(_encode(row.facts))})
        return Lease(self.db, row.id, 1, row.facts)

    def claim(self, turn_id: str) -> tuple[Lease, StoredTurn]:
        """Takes the lease of a turn to go on with it.

        Returns:
            The lease, and the turn as it stands.

        Raises:
            NotResumableError: There is no such turn, or it is completed.
            TurnBusyError: Somebody is playing it.
            StoreVersionError: A newer version of this library wrote it.
        """
        now = time.time()
        with self.db.write() as tx:
            fence = _free(tx, turn_id, now)
            turn = _load(tx, turn_id)  # before anything is changed: what cannot be read is left as it is
            values = {"id": turn_id, "fence": fence, "owner": my_name(), "expires": now + LEASE_SECONDS, "now": now}
            if not tx.run(_CLAIM, values):
                raise TurnBusyError(f"The turn {turn_id} was just taken by another process.")
        return Lease(self.db, turn_id, fence + 1, turn.row.facts), turn

    def load(self, turn_id: str) -> StoredTurn | None:
        """A turn as it stands, None where there is none."""
        with self.db.read() as tx:
            return _load(tx, turn_id) if tx.row(_LEASE, {"id": turn_id}) is not None else None

    def is_held(self, turn_id: str) -> bool:
        """Whether somebody is playing a turn right now."""
        with self.db.read() as tx:
            found = tx.row(_LEASE, {"id": turn_id})
        return found is not None and _is_held(turn_id, found[1], found[2], time.time())

    def turns(
        self,
        *,
        discussion_id: str | None = None,
        owner: str | None = None,
        parent: tuple[str, str] | None = None,
        only_open: bool = False,
    ) -> list[TurnRow]:
        """The turns of a discussion, of an owner, of a call that asked for a worker, or all, oldest first."""
        given = {"discussion_id": discussion_id, "owner": owner, "only_open": only_open or None}
        if parent is not None:
            given.update(parent_turn=parent[0], parent_call=parent[1])
        values = {name: value for name, value in given.items() if value is not None}
        with self.db.read() as tx:
            found = tx.rows(_turns_where(tuple(values)), {k: v for k, v in values.items() if k != "only_open"})
            return [_row(tx, one) for one in found]

    def waiting(self, *, discussion_id: str | None = None) -> list[Waiting]:
        """Every call that waits for a person and was not decided about, oldest turn first."""
        out: list[Waiting] = []
        for row in self.turns(discussion_id=discussion_id, only_open=True):
            with self.db.read() as tx:
                calls = _calls(tx, row.id)
            out += [Waiting(row, call) for call in calls if call.status == "waiting" and call.decision is None and _asks(call)]
        return out

    def decide(self, turn_id: str, ticket: str, decision: Mapping[str, Any]) -> None:
        """Stores what a person decided about a waiting call; whoever goes on with the turn acts on it.

        Raises:
            NotResumableError: No call of the turn waits under that ticket.
        """
        with self.db.write() as tx:
            values = {"turn_id": turn_id, "ticket": ticket, "decision": tx.cipher.seal(_encode(decision)), "now": time.time()}
            if not tx.run(_DECIDE, values):
                raise NotResumableError(f"No call of the turn {turn_id} waits under the ticket {ticket!r}.")


def close(tx: Tx, turn_id: str, reason: str) -> None:
    """Completes a turn that nobody will go on with, and its workers: the conversation went on without it. What is stored stays.

    Args:
        tx: The transaction, in which its message is written too.
        turn_id: The turn.
        reason: Why, in words.

    Raises:
        NotResumableError: There is no such turn, or it is completed.
        TurnBusyError: Somebody is playing it.
        StoreVersionError: A newer version of this library wrote it.
    """
    now = time.time()
    _free(tx, turn_id, now)
    _close(tx, turn_id, reason, now)
    _close_workers(tx, turn_id, now)


def _close(tx: Tx, turn_id: str, reason: str, now: float) -> None:
    state = {**_load(tx, turn_id).row.state, "reason": reason, "closed": True}
    tx.run(_CLOSE, {"id": turn_id, "state": tx.cipher.seal(_encode(state)), "now": now})


def _close_workers(tx: Tx, turn_id: str, now: float) -> None:
    """Closes what a turn that is over leaves behind: nobody waits for its workers, or for theirs, any more."""
    for worker, owner, expires in tx.rows(_OPEN_WORKERS, {"turn_id": turn_id}):
        if not _is_held(worker, owner, expires, now):
            _close(tx, worker, "The turn that it worked for is over.", now)


def _free(tx: Tx, turn_id: str, now: float) -> int:
    """The number under which the lease of a turn was given last, where the turn is open and nobody plays it."""
    found = tx.row(_LEASE_TO_TAKE, {"id": turn_id})
    if found is None or found[0] not in OPEN:
        raise NotResumableError(
            f"The turn {turn_id} is {'not there' if found is None else found[0]}: there is nothing to resume."
        )
    _, owner, expires, fence = found
    if _is_held(turn_id, owner, expires, now):
        raise TurnBusyError(f"The turn {turn_id} is being played right now, by another process or another thread.")
    return int(fence)


def _asks(call: StoredCall) -> bool:
    """A call that waits for its worker asks nothing of its own: the worker's call does."""
    result = (call.result or {}).get("result") or {}
    return bool(result.get("kind") != "worker")


@cache
def _turns_where(given: tuple[str, ...]) -> Statement:
    query = _SELECT
    for name in given:
        query = query.where(text("status <> 'completed'") if name == "only_open" else _T.c[name] == bindparam(name))
    return Statement(query)


def _is_held(turn_id: str, owner: str | None, expires: float | None, now: float) -> bool:
    if owner is None or expires is None or expires < now:
        return False
    return KEEPER.holds(turn_id) if owner == my_name() else not is_gone(owner)


def _load(tx: Tx, turn_id: str) -> StoredTurn:
    found = tx.row(_TURN, {"turn_id": turn_id})
    assert found is not None
    row = _row(tx, found)
    opened = tx.cipher.open
    rounds = [
        StoredRound(number, json.loads(opened(reply)), json.loads(opened(outcome)) if outcome is not None else None)
        for number, reply, outcome in tx.rows(_ROUNDS, {"id": turn_id})
    ]
    return StoredTurn(row, rounds, _calls(tx, turn_id))


def _row(tx: Tx, found: tuple[Any, ...]) -> TurnRow:
    values = dict(zip((*_COLUMNS, "facts"), found, strict=True))
    version = values.pop("schema_version")
    if version > SCHEMA_VERSION:
        raise StoreVersionError(version, SCHEMA_VERSION, f"The turn {values['id']}")
    for name in ("facts", "state"):
        values[name] = json.loads(tx.cipher.open(values[name]))
    return TurnRow(**values)


def _calls(tx: Tx, turn_id: str) -> list[StoredCall]:
    def read(sealed: str | None) -> Any:
        return json.loads(tx.cipher.open(sealed)) if sealed is not None else None

    return [
        StoredCall(number, position, name, status, read(payload), read(result), ticket, read(decision))
        for number, position, name, status, payload, result, ticket, decision in tx.rows(_CALLS, {"id": turn_id})
    ]
