"""Messages: rows that never change, each with the message that it answers as its parent. A branch is a leaf and all above it.

What a person changes about a message, its label and which of its pictures are sent, stands beside it as a mark.
Source: CONTRACT G.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, bindparam, select

from ..errors import ConfigurationError, StoreError
from . import schema
from .deletion import delete_messages
from .ids import new_id
from .statements import Statement, insert

if TYPE_CHECKING:
    from .cipher import Cipher
    from .db import Tx

__all__ = [
    "LollmsMessage",
    "branch",
    "children",
    "delete_messages",
    "insert_message",
    "insert_messages",
    "labels",
    "leaves",
    "message",
    "messages",
    "set_active_images",
    "set_label",
]


@dataclass(slots=True)
class LollmsMessage:
    """One message of a discussion.

    Attributes:
        id: Its own; "" for one that it is given when it is stored.
        parent_id: The message that it follows, None for a first one.
        sender: Who it is from, for people.
        sender_type: "user", "assistant" or "system".
        content: Its text.
        thoughts: What the model thought before it.
        tokens: How many tokens `content` has, None where that was not counted. What is added to a discussion is counted where its
            client's binding does so locally (`counts_locally`; an estimate where it has no tokenizer), else only answers are.
        binding_name: Through which binding it was generated.
        model_name: By which model.
        generation_speed: Tokens a second.
        images: Its pictures, each as the JSON value that it was given as.
        active_images: For each picture whether it is sent to a model; where there are fewer than pictures, the others are.
        metadata: JSON values of whoever wrote it.
        created_at: Seconds since 1970 (UTC); 0.0 for the time at which it is stored.
        discussion_id: The discussion that it is in.

    Source: CONTRACT G.
    """

    id: str
    parent_id: str | None
    sender: str
    sender_type: str
    content: str
    thoughts: str = ""
    tokens: int | None = None
    binding_name: str | None = None
    model_name: str | None = None
    generation_speed: float | None = None
    images: list[Any] = field(default_factory=list)
    active_images: list[bool] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    created_at: float = 0.0
    discussion_id: str = ""


def _upwards() -> Select[tuple[int]]:
    """The numbers of a message and of all above it."""
    m = schema.messages.alias("m").c
    up = select(m.seq, m.parent_id).where(m.id == bindparam("id")).cte("up", recursive=True)
    # UNION, not UNION ALL: rows that name each other as parents end the walk
    return select(up.union(select(m.seq, m.parent_id).where(m.id == up.c.parent_id)).c.seq)


_m = schema.messages.c
_COLUMNS = (
    _m.id,
    _m.parent_id,
    _m.sender,
    _m.sender_type,
    _m.content,
    _m.thoughts,
    _m.tokens,
    _m.binding_name,
    _m.model_name,
    _m.generation_speed,
    _m.images,
    _m.metadata,
    _m.created_at,
    _m.discussion_id,
)
_INSERT = insert(schema.messages, [c.name for c in schema.messages.columns if c.name != "seq"])
_IN_DISCUSSION = _m.discussion_id == bindparam("discussion_id")
_ONE = Statement(select(*_COLUMNS).where(_m.id == bindparam("id")))
_NUMBERS = schema.messages.alias("numbers").c
_ALL = (
    Statement(  # the numbers are sorted, and then the rows read in their order: sorting whole rows would carry their texts along
        select(*_COLUMNS)
        .where(_m.seq.in_(select(_NUMBERS.seq).where(_NUMBERS.discussion_id == bindparam("discussion_id"))))
        .order_by(_m.seq)
    )
)
_ROOTS = Statement(select(*_COLUMNS).where(_IN_DISCUSSION, _m.parent_id.is_(None)).order_by(_m.seq))
_CHILDREN = Statement(select(*_COLUMNS).where(_IN_DISCUSSION, _m.parent_id == bindparam("parent_id")).order_by(_m.seq))
_BRANCH = Statement(select(*_COLUMNS).where(_m.seq.in_(_upwards())))
_LEAVES = Statement(
    "SELECT m.id, k.label, m.created_at FROM messages m LEFT JOIN message_marks k ON k.message_id = m.id"
    " WHERE m.discussion_id = :discussion_id AND NOT EXISTS"
    " (SELECT 1 FROM messages c WHERE c.discussion_id = m.discussion_id AND c.parent_id = m.id) ORDER BY m.seq"
)
_FLAGS = Statement("SELECT message_id, active_images FROM message_marks WHERE message_id = :id AND active_images IS NOT NULL")
_FLAGS_OF_ALL = Statement(
    "SELECT message_id, active_images FROM message_marks WHERE discussion_id = :discussion_id AND active_images IS NOT NULL"
)
_LABELS = Statement("SELECT message_id, label FROM message_marks WHERE discussion_id = :discussion_id AND label IS NOT NULL")


_MARK_IMAGES = Statement(
    "INSERT INTO message_marks (message_id, discussion_id, active_images)"
    " SELECT id, discussion_id, :value FROM messages WHERE id = :id"
    " ON CONFLICT (message_id) DO UPDATE SET active_images = excluded.active_images"
)
_MARK_LABEL = Statement(
    "INSERT INTO message_marks (message_id, discussion_id, label)"
    " SELECT id, discussion_id, :value FROM messages WHERE id = :id"
    " ON CONFLICT (message_id) DO UPDATE SET label = excluded.label"
)


def insert_message(tx: Tx, message: LollmsMessage) -> None:
    """Writes a message; what it lacks (`id`, `created_at`, flags for its pictures) is filled in on the object.

    Raises:
        ConfigurationError: Its pictures or its metadata hold something that JSON cannot, or it names itself as its parent.
        StoreError: Its id is taken.
    """
    tx.run(_INSERT, _values(tx.cipher, message))
    if message.images and not all(message.active_images):
        tx.run(_MARK_IMAGES, {"id": message.id, "value": json.dumps(message.active_images)})


def insert_messages(tx: Tx, messages: Iterable[LollmsMessage]) -> None:
    """Writes messages, parents before their children; otherwise as `insert_message`."""
    given = list(messages)
    tx.run_many(_INSERT, [_values(tx.cipher, m) for m in given])
    marked = [m for m in given if m.images and not all(m.active_images)]
    tx.run_many(_MARK_IMAGES, [{"id": m.id, "value": json.dumps(m.active_images)} for m in marked])


def message(tx: Tx, message_id: str) -> LollmsMessage | None:
    """The message of an id, None where there is none."""
    row = tx.row(_ONE, {"id": message_id})
    if row is None:
        return None
    (found,) = _read(tx.cipher, [row])
    if found.images:
        _flag([found], tx.rows(_FLAGS, {"id": message_id}))
    return found


def messages(tx: Tx, discussion_id: str) -> list[LollmsMessage]:
    """All messages of a discussion, in the order in which they were written."""
    where = {"discussion_id": discussion_id}
    return _flag(list(_read(tx.cipher, tx.rows(_ALL, where))), tx.rows(_FLAGS_OF_ALL, where))


def branch(tx: Tx, leaf_id: str) -> list[LollmsMessage]:
    """A message and all above it, the first message first; empty where there is no such message."""
    found = {m.id: m for m in _read(tx.cipher, tx.rows(_BRANCH, {"id": leaf_id}))}
    upwards: list[LollmsMessage] = []
    here = found.pop(leaf_id, None)
    while here is not None:
        upwards.append(here)
        here = found.pop(here.parent_id, None) if here.parent_id is not None else None
    return _flagged(tx, upwards[::-1])


def children(tx: Tx, discussion_id: str, parent_id: str | None) -> list[LollmsMessage]:
    """The messages that follow one, or with None those that begin the discussion, in the order in which they were written."""
    statement = _ROOTS if parent_id is None else _CHILDREN
    found = tx.rows(statement, {"discussion_id": discussion_id, "parent_id": parent_id})
    return _flagged(tx, list(_read(tx.cipher, found)))


def leaves(tx: Tx, discussion_id: str) -> list[tuple[str, str | None, float]]:
    """The messages that nothing follows, one for each branch: id, label, time; in the order in which they were written."""
    opened = tx.cipher.open
    found = tx.rows(_LEAVES, {"discussion_id": discussion_id})
    return [(leaf, None if label is None else opened(label), created_at) for leaf, label, created_at in found]


def set_active_images(tx: Tx, message_id: str, flags: Sequence[bool]) -> None:
    """Sets for each picture of a message whether it is sent to a model; those that no flag is given for are.

    Raises:
        StoreError: There is no such message.
    """
    _set(tx, _MARK_IMAGES, message_id, json.dumps([bool(f) for f in flags]))


def set_label(tx: Tx, message_id: str, label: str | None) -> None:
    """Names the branch that ends at a message; None takes the name away.

    Raises:
        StoreError: There is no such message.
    """
    _set(tx, _MARK_LABEL, message_id, None if label is None else tx.cipher.seal(label))


def labels(tx: Tx, discussion_id: str) -> dict[str, str]:
    """The labels of a discussion by message."""
    return {name: tx.cipher.open(label) for name, label in tx.rows(_LABELS, {"discussion_id": discussion_id})}


def _set(tx: Tx, statement: Statement, message_id: str, value: str | None) -> None:
    if not tx.run(statement, {"id": message_id, "value": value}):
        raise StoreError(f"There is no message {message_id!r} in this store.")


def _values(cipher: Cipher, message: LollmsMessage) -> dict[str, Any]:
    """A message as the columns of its row."""
    m, seal = message, cipher.seal
    m.id = m.id or new_id()
    m.created_at = m.created_at or time.time()
    if m.images or m.active_images:
        m.active_images = _aligned(m.active_images, len(m.images))
    if m.parent_id == m.id:
        raise ConfigurationError(f"The message {m.id!r} names itself as its parent.")
    return {
        "id": m.id,
        "discussion_id": m.discussion_id,
        "parent_id": m.parent_id,
        "sender": seal(m.sender),
        "sender_type": m.sender_type,
        "content": seal(m.content),
        "thoughts": seal(m.thoughts) if m.thoughts else None,
        "tokens": m.tokens,
        "binding_name": m.binding_name,
        "model_name": m.model_name,
        "generation_speed": m.generation_speed,
        "images": seal(_json(m, "images")) if m.images else None,
        "metadata": seal(_json(m, "metadata")) if m.metadata else None,
        "created_at": m.created_at,
    }


def _json(message: LollmsMessage, name: str) -> str:
    try:
        return json.dumps(getattr(message, name))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"The {name} of the message {message.id!r} cannot be stored as JSON: {error}.") from error


def _read(cipher: Cipher, rows: Iterable[tuple[Any, ...]]) -> Iterator[LollmsMessage]:
    """Rows of `_COLUMNS` as messages, with every picture active."""
    opened = cipher.open
    for row in rows:
        images, metadata = row[10], row[11]
        pictures = json.loads(opened(images)) if images else []
        yield LollmsMessage(
            row[0],
            row[1],
            opened(row[2]),
            row[3],
            opened(row[4]),
            opened(row[5]) if row[5] else "",
            row[6],
            row[7],
            row[8],
            row[9],
            pictures,
            [True] * len(pictures),
            json.loads(opened(metadata)) if metadata else {},
            row[12],
            row[13],
        )


def _flagged(tx: Tx, found: list[LollmsMessage]) -> list[LollmsMessage]:
    """Messages of one discussion with the flags of their pictures."""
    if not any(m.images for m in found):
        return found
    return _flag(found, tx.rows(_FLAGS_OF_ALL, {"discussion_id": found[0].discussion_id}))


def _flag(found: list[LollmsMessage], marks: Iterable[tuple[Any, ...]]) -> list[LollmsMessage]:
    flags = dict(marks)
    if flags:
        for m in found:
            if m.id in flags:
                m.active_images = _aligned(json.loads(flags[m.id]), len(m.images))
    return found


def _aligned(flags: Sequence[bool], count: int) -> list[bool]:
    return [bool(f) for f in flags[:count]] + [True] * (count - len(flags))
