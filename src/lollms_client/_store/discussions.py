"""Discussions: what a tree of messages is called, where it stands, and the summaries of its branches."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam

from ..errors import ConfigurationError
from . import schema
from .deletion import delete_discussion
from .ids import new_id
from .statements import Statement, insert

if TYPE_CHECKING:
    from .db import Tx

__all__ = [
    "DiscussionRow",
    "delete_discussion",
    "discussion",
    "discussions",
    "insert_discussion",
    "move_to",
    "put_summary",
    "summaries",
    "update_discussion",
]


@dataclass(slots=True)
class DiscussionRow:
    """A discussion without its messages.

    Attributes:
        id: Its own; "" for one that it is given when it is stored.
        title: For people.
        created_at: Seconds since 1970 (UTC); 0.0 for the time at which it is stored.
        updated_at: When something was last written to it; likewise.
        active_leaf: The last message of the branch that is open, None for none.
        workspace_path: The folder that its tools work in, None for none.
        metadata: JSON values of whoever wrote it.
    """

    id: str = ""
    title: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    active_leaf: str | None = None
    workspace_path: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class _Unset(Enum):
    UNSET = 0


_UNSET: Final = _Unset.UNSET
_INSERT = insert(schema.discussions)
_ONE = Statement(
    "SELECT id, title, created_at, updated_at, active_leaf, workspace_path, metadata FROM discussions WHERE id = :id"
)
_NEWEST = Statement(
    "SELECT id, title, created_at, updated_at, active_leaf, workspace_path, metadata FROM discussions"
    " ORDER BY updated_at DESC, id DESC LIMIT :limit OFFSET :offset"
)
_ALL_OF_THEM = 2**62
_MOVE = Statement("UPDATE discussions SET active_leaf = :active_leaf, updated_at = :now WHERE id = :id")
_PUT_SUMMARY = Statement(
    "INSERT INTO summaries (message_id, discussion_id, text, tokens, created_at)"
    " VALUES (:message_id, :discussion_id, :text, :tokens, :created_at)"
    " ON CONFLICT (message_id) DO UPDATE SET text = excluded.text, tokens = excluded.tokens, created_at = excluded.created_at"
)
_SUMMARIES = Statement("SELECT message_id, text, tokens FROM summaries WHERE discussion_id = :discussion_id")


def insert_discussion(tx: Tx, row: DiscussionRow) -> None:
    """Writes a new discussion; what it lacks (`id`, times) is filled in on the object.

    Raises:
        ConfigurationError: Its metadata holds something that JSON cannot.
        StoreError: Its id is taken.
    """
    row.id = row.id or new_id()
    row.created_at = row.created_at or time.time()
    row.updated_at = row.updated_at or row.created_at
    values = {"id": row.id, "created_at": row.created_at, "updated_at": row.updated_at}
    given = {"title": row.title, "active_leaf": row.active_leaf, "workspace_path": row.workspace_path, "metadata": row.metadata}
    tx.run(_INSERT, {**values, **_sealed(tx, given)})


def discussion(tx: Tx, discussion_id: str) -> DiscussionRow | None:
    """The discussion of an id, None where there is none."""
    row = tx.row(_ONE, {"id": discussion_id})
    return None if row is None else _read(tx, row)


def discussions(tx: Tx, limit: int | None = None, offset: int = 0) -> list[DiscussionRow]:
    """Discussions, the one that was last written to first.

    Args:
        tx: The transaction.
        limit: How many at most, None for all.
        offset: How many to leave out first.
    """
    found = tx.rows(_NEWEST, {"limit": _ALL_OF_THEM if limit is None else limit, "offset": offset})
    return [_read(tx, row) for row in found]


def update_discussion(
    tx: Tx,
    discussion_id: str,
    *,
    title: str | _Unset = _UNSET,
    active_leaf: str | _Unset | None = _UNSET,
    metadata: dict[str, Any] | _Unset = _UNSET,
    workspace_path: str | _Unset | None = _UNSET,
) -> bool:
    """Changes what is given and nothing else, and notes the time; whether there is such a discussion.

    Raises:
        ConfigurationError: The metadata holds something that JSON cannot.
    """
    named = {"title": title, "active_leaf": active_leaf, "metadata": metadata, "workspace_path": workspace_path}
    values = _sealed(tx, {name: value for name, value in named.items() if value is not _UNSET})
    values |= {"which": discussion_id, "updated_at": time.time()}
    return tx.run(_update(tuple(name for name in values if name != "which")), values) > 0


def move_to(tx: Tx, discussion_id: str, active_leaf: str | None) -> None:
    """Notes which branch is open and the time, as `update_discussion` does; it comes with every message, so it is a short way."""
    tx.run(_MOVE, {"id": discussion_id, "active_leaf": active_leaf, "now": time.time()})


def put_summary(tx: Tx, discussion_id: str, message_id: str, text: str, tokens: int | None) -> None:
    """Writes the summary of all up to a message, in place of an earlier one."""
    values = {"discussion_id": discussion_id, "message_id": message_id, "text": tx.cipher.seal(text), "tokens": tokens}
    tx.run(_PUT_SUMMARY, {**values, "created_at": time.time()})


def summaries(tx: Tx, discussion_id: str) -> dict[str, tuple[str, int | None]]:
    """The summaries of a discussion: text and tokens, by the last message that each stands for."""
    found = tx.rows(_SUMMARIES, {"discussion_id": discussion_id})
    return {message_id: (tx.cipher.open(text), tokens) for message_id, text, tokens in found}


@cache
def _update(names: tuple[str, ...]) -> Statement:
    which = schema.discussions.c.id == bindparam("which")
    return Statement(schema.discussions.update().where(which).values({name: bindparam(name) for name in names}))


def _sealed(tx: Tx, given: dict[str, Any]) -> dict[str, Any]:
    """Columns of a discussion as they are stored."""
    values = dict(given)
    for name in ("title", "workspace_path"):
        if values.get(name) is not None:
            values[name] = tx.cipher.seal(values[name])
    if "metadata" in values:
        try:
            values["metadata"] = tx.cipher.seal(json.dumps(values["metadata"])) if values["metadata"] else None
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigurationError(f"The metadata of a discussion cannot be stored as JSON: {error}.") from error
    return values


def _read(tx: Tx, row: tuple[Any, ...]) -> DiscussionRow:
    id_, title, created_at, updated_at, active_leaf, workspace_path, metadata = row
    opened = tx.cipher.open
    return DiscussionRow(
        id_,
        opened(title),
        created_at,
        updated_at,
        active_leaf,
        None if workspace_path is None else opened(workspace_path),
        json.loads(opened(metadata)) if metadata else {},
    )
