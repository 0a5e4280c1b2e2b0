"""The tables, as SQLAlchemy Core draws them: one schema for SQLite and PostgreSQL.

Whole values that only we read (lists of messages, options, results) are JSON text, which a cipher may seal; what is searched or
compared has a column of its own. Messages are immutable: what a person changes about one (its label, which pictures are active)
stands beside it in `message_marks`.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, Table, Text

__all__ = [
    "artefacts",
    "calls",
    "discussions",
    "message_marks",
    "messages",
    "metadata",
    "rounds",
    "store_facts",
    "summaries",
    "turn_facts",
    "turns",
]

metadata = MetaData()

_SEQUENCE = BigInteger().with_variant(Integer, "sqlite")

discussions = Table(
    "discussions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("title", Text, nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("updated_at", Float(53), nullable=False),
    Column("active_leaf", Text),
    Column("workspace_path", Text),
    Column("metadata", Text),
    Index("ix_discussions_updated", "updated_at"),
)

messages = Table(
    "messages",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True, autoincrement=True),  # the order in which they were written
    Column("id", Text, nullable=False, unique=True),
    Column("discussion_id", Text, nullable=False),
    Column("parent_id", Text),
    Column("sender", Text, nullable=False),
    Column("sender_type", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("thoughts", Text),
    Column("tokens", Integer),
    Column("binding_name", Text),
    Column("model_name", Text),
    Column("generation_speed", Float(53)),
    Column("images", Text),
    Column("metadata", Text),
    Column("created_at", Float(53), nullable=False),
    Index("ix_messages_thread", "discussion_id", "parent_id"),
)

message_marks = Table(
    "message_marks",
    metadata,
    Column("message_id", Text, primary_key=True),
    Column("discussion_id", Text, nullable=False),
    Column("active_images", Text),
    Column("label", Text),
    Index("ix_message_marks_discussion", "discussion_id"),
)

summaries = Table(
    "summaries",
    metadata,
    Column("message_id", Text, primary_key=True),  # the last message that it stands for, on every branch that holds it
    Column("discussion_id", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("tokens", Integer),
    Column("created_at", Float(53), nullable=False),
    Index("ix_summaries_discussion", "discussion_id"),
)

turns = Table(
    "turns",
    metadata,
    Column("id", Text, primary_key=True),
    Column("discussion_id", Text),
    Column("owner", Text, nullable=False),  # whose turn it is where it is in no discussion
    Column("parent_turn", Text),  # for a worker's turn: the turn and the call that it works for
    Column("parent_call", Text),
    Column("user_message_id", Text),
    Column("ai_message_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("schema_version", Integer, nullable=False),
    Column("rounds", Integer, nullable=False),
    Column("state", Text, nullable=False),  # where it stands, as of the last round's end
    Column("lease_owner", Text),
    Column("lease_expires", Float(53)),
    Column("fence", Integer, nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("updated_at", Float(53), nullable=False),
    Index("ix_turns_discussion", "discussion_id"),
    Index("ix_turns_owner", "owner"),
    Index("ix_turns_parent", "parent_turn"),
)

turn_facts = Table(
    "turn_facts",
    metadata,
    Column("turn_id", Text, primary_key=True),
    Column("facts", Text, nullable=False),  # what it began with; apart, because a turn's row is written at every step
)

rounds = Table(
    "rounds",
    metadata,
    Column("turn_id", Text, primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("reply", Text, nullable=False),  # what the model said, written before anything is done about it
    Column("outcome", Text),  # what the round added to the turn, written at its end
)

calls = Table(
    "calls",
    metadata,
    Column("turn_id", Text, primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("status", Text, nullable=False),  # planned, started, done, waiting
    Column("ticket", Text),
    Column("payload", Text, nullable=False),  # the arguments as asked for; the arguments that run; what a person is asked
    Column("result", Text),
    Column("decision", Text),  # what a person decided while it waited
    Column("updated_at", Float(53), nullable=False),
)

artefacts = Table(
    "artefacts",
    metadata,
    Column("turn_id", Text, primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("discussion_id", Text),
    Column("message_id", Text, nullable=False),  # the message whose branch the version belongs to
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("language", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("written", Integer, nullable=False),  # whether its file stands in the workspace
    Column("created_at", Float(53), nullable=False),
    Index("ix_artefacts_discussion", "discussion_id", "name"),
)

store_facts = Table(
    "store_facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
