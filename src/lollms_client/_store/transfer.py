"""A whole discussion as plain data, and plain data as a discussion: messages, marks, summaries, artefacts, turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Table, bindparam, select

from ..errors import ConfigurationError, StoreVersionError
from . import schema
from .discussions import DiscussionRow, discussion, insert_discussion, put_summary, summaries
from .ids import new_id
from .messages import LollmsMessage, insert_messages, labels, messages, set_label
from .overview import home_of
from .statements import Statement, insert

if TYPE_CHECKING:
    from .db import Tx

__all__ = ["export_discussion", "import_discussion"]

FORMAT, VERSION = "lollms-discussion", 1

Row = dict[str, Any]

_JSON = {
    "turns": ("state",),
    "turn_facts": ("facts",),
    "rounds": ("reply", "outcome"),
    "calls": ("payload", "result", "decision"),
}
"""Columns that hold sealed JSON; it stands opened in an export."""

_LEASE = {"lease_owner": None, "lease_expires": None, "fence": 1}
"""What no export holds: who plays a turn is the business of the store that it is in."""

_turns = schema.turns.c
_tree = select(_turns.id).where(_turns.discussion_id == bindparam("id")).cte("tree", recursive=True)
_tree = _tree.union(select(_turns.id).where(_turns.parent_turn == _tree.c.id))
_TURNS = Statement(select(schema.turns).where(_turns.id.in_(select(_tree.c.id))).order_by(_turns.created_at, _turns.id))
_ARTEFACTS = Statement(select(schema.artefacts).where(schema.artefacts.c.discussion_id == bindparam("id")))
_TURN_THERE = Statement("SELECT 1 FROM turns WHERE id = :id")


def export_discussion(tx: Tx, discussion_id: str) -> Row | None:
    """A discussion with all that is stored of it, None where there is none.

    Returns:
        JSON values: `{"format", "version", "discussion", "messages", "labels", "summaries", "artefacts", "turns"}`; a message has
        the fields of `LollmsMessage`; a turn is its row, without who plays it, and the rows of its other tables as "tables".
    """
    row = discussion(tx, discussion_id)
    if row is None:
        return None
    where = {"id": discussion_id}
    return {
        "format": FORMAT,
        "version": VERSION,
        "discussion": asdict(row),
        "messages": [_without(asdict(m), "discussion_id") for m in messages(tx, discussion_id)],
        "labels": labels(tx, discussion_id),
        "summaries": [{"message_id": k, "text": t, "tokens": n} for k, (t, n) in summaries(tx, discussion_id).items()],
        "artefacts": [_artefact(tx, found) for found in tx.rows(_ARTEFACTS, where)],
        "turns": [_turn(tx, _read(tx, schema.turns, found)) for found in tx.rows(_TURNS, where)],
    }


def _without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def _artefact(tx: Tx, found: tuple[Any, ...]) -> Row:
    row = _without(_read(tx, schema.artefacts, found), "discussion_id")
    return {**row, "content": tx.cipher.open(row["content"])}


def _turn(tx: Tx, row: Row) -> Row:
    parts = {
        table.name: [_read(tx, table, found) for found in tx.rows(_of_turn(table), {"id": row["id"]})]
        for table in (schema.turn_facts, schema.rounds, schema.calls)
    }
    return {**_without(row, *_LEASE), "tables": parts}


@cache
def _of_turn(table: Table) -> Statement:
    return Statement(select(table).where(table.c.turn_id == bindparam("id")).order_by(*table.primary_key.columns))


def _read(tx: Tx, table: Table, found: tuple[Any, ...]) -> Row:
    row = dict(zip((c.name for c in table.columns), found, strict=True))
    for name in _JSON.get(table.name, ()):
        row[name] = json.loads(tx.cipher.open(row[name])) if row[name] is not None else None
    return row


# ---- and back ---------------------------------------------------------------------------------------------------------------


def import_discussion(tx: Tx, data: Mapping[str, Any]) -> str:
    """Stores what was exported, under ids of its own where one of them is taken.

    Returns:
        The discussion's id.

    Raises:
        ConfigurationError: That is no export.
        StoreVersionError: A newer version of this library made it.
    """
    if data.get("format") != FORMAT:
        raise ConfigurationError(f"This is no exported discussion: its 'format' is {data.get('format')!r}, not {FORMAT!r}.")
    version = data.get("version", 0)
    if not isinstance(version, int):
        raise ConfigurationError(f"This is no exported discussion: its 'version' is {version!r}.")
    if version > VERSION:
        raise StoreVersionError(version, VERSION, "This export")
    try:
        return _stored(tx, data, _renamer(tx, data))
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(f"This export is not whole: {type(error).__name__} {error}.") from error


Renamed = Callable[[Any], Any]


def _renamer(tx: Tx, data: Mapping[str, Any]) -> Renamed:
    """What puts new ids in the place of the old ones, wherever one stands in a value; where they are free, it changes nothing."""
    own, said, turns = data["discussion"]["id"], [m["id"] for m in data["messages"]], [t["id"] for t in data["turns"]]
    taken = (
        discussion(tx, own) is not None
        or any(home_of(tx, one) is not None for one in said)
        or any(tx.row(_TURN_THERE, {"id": one}) is not None for one in turns)
    )
    if not taken:
        return lambda value: value
    names = {old: new_id() for old in (own, *said, *turns, *(t["ai_message_id"] for t in data["turns"]))}
    return lambda value: _rename(value, names)


def _rename(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        head, colon, tail = value.partition(":")  # what names a call begins with its turn
        return f"{names.get(head, head)}{colon}{tail}"
    if isinstance(value, list):
        return [_rename(one, names) for one in value]
    return {key: _rename(one, names) for key, one in value.items()} if isinstance(value, dict) else value


def _stored(tx: Tx, data: Mapping[str, Any], renamed: Renamed) -> str:
    row = DiscussionRow(**data["discussion"])
    row.id, row.active_leaf = renamed(row.id), renamed(row.active_leaf)
    insert_discussion(tx, row)
    insert_messages(tx, (_message(one, row.id, renamed) for one in data["messages"]))
    for message_id, label in data["labels"].items():
        set_label(tx, renamed(message_id), label)
    for summary in data["summaries"]:
        put_summary(tx, row.id, renamed(summary["message_id"]), summary["text"], summary["tokens"])
    for artefact in data["artefacts"]:
        whose = {name: renamed(artefact[name]) for name in ("turn_id", "message_id")}
        _write(
            tx, schema.artefacts, {**artefact, **whose, "discussion_id": row.id, "content": tx.cipher.seal(artefact["content"])}
        )
    for turn in data["turns"]:
        _write_turn(tx, turn, renamed)
    return row.id


def _message(given: Row, discussion_id: str, renamed: Renamed) -> LollmsMessage:
    known = {f.name for f in fields(LollmsMessage)}
    changed = {name: renamed(given.get(name)) for name in ("id", "parent_id", "metadata")}
    return LollmsMessage(**{**{k: v for k, v in given.items() if k in known}, **changed, "discussion_id": discussion_id})


def _write_turn(tx: Tx, turn: Row, renamed: Renamed) -> None:
    _write(tx, schema.turns, {**renamed(_without(turn, "tables")), **_LEASE})
    for table in (schema.turn_facts, schema.rounds, schema.calls):
        for row in turn["tables"][table.name]:
            # what was said stays as it was; only what a call waits for can name another turn
            changed = renamed(row) if table is schema.calls else {**row, "turn_id": renamed(row["turn_id"])}
            _write(tx, table, changed)


def _write(tx: Tx, table: Table, row: Row) -> None:
    values = dict(row)
    for name in _JSON.get(table.name, ()):
        values[name] = tx.cipher.seal(json.dumps(values[name])) if values[name] is not None else None
    tx.run(_insert(table), values)


@cache
def _insert(table: Table) -> Statement:
    return insert(table)
