"""What discussions look like from outside: how their messages hang together, how many there are, what is unfinished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .statements import Statement

if TYPE_CHECKING:
    from .db import Tx

__all__ = ["count_messages", "home_of", "is_unfinished", "skeleton"]

_SKELETON = Statement("SELECT id, parent_id FROM messages WHERE discussion_id = :id ORDER BY seq")
_COUNT = Statement("SELECT count(*) FROM messages WHERE discussion_id = :id")
_HOME = Statement("SELECT discussion_id FROM messages WHERE id = :id")
_UNFINISHED = Statement("SELECT 1 FROM turns WHERE discussion_id = :id AND parent_turn IS NULL AND status <> 'completed' LIMIT 1")


def skeleton(tx: Tx, discussion_id: str) -> list[tuple[str, str | None]]:
    """The messages of a discussion without what they say: id and parent, in the order in which they were written."""
    return [(message_id, parent_id) for message_id, parent_id in tx.rows(_SKELETON, {"id": discussion_id})]


def count_messages(tx: Tx, discussion_id: str) -> int:
    """How many messages a discussion has."""
    return int(tx.rows(_COUNT, {"id": discussion_id})[0][0])


def home_of(tx: Tx, message_id: str) -> str | None:
    """The discussion that a message is in, None where there is no such message."""
    found = tx.row(_HOME, {"id": message_id})
    return None if found is None else str(found[0])


def is_unfinished(tx: Tx, discussion_id: str) -> bool:
    """Whether a turn of a discussion can be gone on with."""
    return tx.row(_UNFINISHED, {"id": discussion_id}) is not None
