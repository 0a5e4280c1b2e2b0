"""Deleting: with a message or a discussion goes everything that hangs on it.

That is its marks, its summary, its words in the index, the artefacts that belong to its branch, and the turn that it began or
that would have written it, with the turns of that turn's workers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqlalchemy import BindParameter, ColumnElement, Table, bindparam, or_, select

from . import schema
from .statements import Statement

if TYPE_CHECKING:
    from .db import Tx

__all__ = ["delete_discussion", "delete_messages"]

_BESIDE = (schema.artefacts, schema.message_marks, schema.summaries)
"""Tables whose rows name a message and its discussion."""


def delete_messages(tx: Tx, ids: Iterable[str]) -> int:
    """Deletes messages. What follows them stays where it is: whoever deletes a branch names all of it.

    Returns:
        How many there were.
    """
    values = [{"which": message_id} for message_id in ids]
    for statement in _OF_MESSAGE:
        tx.run_many(statement, values)
    if tx.dialect == "sqlite":
        tx.run_many(_WORDS_OF_MESSAGE, values)
    return tx.run_many(_MESSAGE, values)


def delete_discussion(tx: Tx, discussion_id: str) -> bool:
    """Deletes a discussion and everything in it; whether there was such a discussion."""
    values = {"which": discussion_id}
    if tx.dialect == "sqlite":
        tx.run(_WORDS_OF_DISCUSSION, values)
    for statement in _OF_DISCUSSION:
        tx.run(statement, values)
    return tx.run(_DISCUSSION, values) > 0


def _delete(table: Table, condition: ColumnElement[bool]) -> Statement:
    return Statement(table.delete().where(condition))


def _delete_turns(which: ColumnElement[bool]) -> list[Statement]:
    """Deletes turns, those of their workers, and what belongs to either."""
    t = schema.turns
    gone = select(t.c.id).where(which).cte("gone", recursive=True)
    gone = gone.union(select(t.c.id).where(t.c.parent_turn == gone.c.id))
    beside = (schema.turn_facts, schema.rounds, schema.calls, schema.artefacts)
    parts = [_delete(table, table.c.turn_id.in_(select(gone.c.id))) for table in beside]
    return [*parts, _delete(t, t.c.id.in_(select(gone.c.id)))]


_which: BindParameter[str] = bindparam("which")
_its_discussion = select(schema.messages.c.discussion_id).where(schema.messages.c.id == _which).scalar_subquery()
_its_turns = (schema.turns.c.discussion_id == _its_discussion) & or_(
    schema.turns.c.user_message_id == _which, schema.turns.c.ai_message_id == _which
)
_OF_MESSAGE = [*_delete_turns(_its_turns), *(_delete(table, table.c.message_id == _which) for table in _BESIDE)]
_OF_DISCUSSION = [
    *_delete_turns(schema.turns.c.discussion_id == _which),
    *(_delete(table, table.c.discussion_id == _which) for table in (*_BESIDE, schema.messages)),
]
_MESSAGE = _delete(schema.messages, schema.messages.c.id == _which)
_DISCUSSION = _delete(schema.discussions, schema.discussions.c.id == _which)

# Words in the index. PostgreSQL deletes them with their message by itself.
_WORDS_OF_MESSAGE = Statement("DELETE FROM messages_text WHERE rowid IN (SELECT seq FROM messages WHERE id = :which)")
_WORDS_OF_DISCUSSION = Statement(
    "DELETE FROM messages_text WHERE rowid IN (SELECT seq FROM messages WHERE discussion_id = :which)"
)
