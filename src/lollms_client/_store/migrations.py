"""The ledger of migrations: how a database of an earlier version becomes one of today's.

A migration that was ever released never changes; a new one is added at the end. Each runs in a transaction of its own, which
takes the write lock first and looks at the ledger again, so that processes that start at once apply it once.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import StoreVersionError
from . import schema
from .statements import DIALECTS, Statement

if TYPE_CHECKING:
    from .db import Tx

__all__ = ["MIGRATIONS", "Migration", "migrate"]

_LEDGER = "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at FLOAT NOT NULL)"
_APPLIED = Statement("SELECT version FROM migrations ORDER BY version")
_NOTE = Statement("INSERT INTO migrations (version, name, applied_at) VALUES (:version, :name, :applied_at)")
_LOCK_NUMBER = 0x6C6F6C6C6D73  # "lollms": the advisory lock of ours in a PostgreSQL database


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema.

    Attributes:
        version: Its place, from 1.
        name: For people.
        apply: Carries it out.
    """

    version: int
    name: str
    apply: Callable[[Tx], None]


def _first_tables(tx: Tx) -> None:
    from sqlalchemy.schema import CreateIndex, CreateTable

    dialect = DIALECTS[tx.dialect]
    for table in schema.metadata.sorted_tables:
        tx.run(Statement(str(CreateTable(table).compile(dialect=dialect))))
        for index in sorted(table.indexes, key=lambda i: str(i.name)):
            tx.run(Statement(str(CreateIndex(index).compile(dialect=dialect))))


def _full_text(tx: Tx) -> None:
    """An index beside the messages, brought up to date by whoever searches (see `search`): writing pays nothing for it."""
    if tx.dialect == "sqlite":
        tx.run(Statement("CREATE VIRTUAL TABLE messages_text USING fts5(words, tokenize='ascii')"))
        return
    tx.run(
        Statement(
            "CREATE TABLE messages_text"
            " (seq BIGINT PRIMARY KEY REFERENCES messages (seq) ON DELETE CASCADE, words TSVECTOR NOT NULL)"
        )
    )
    tx.run(Statement("CREATE INDEX ix_messages_text ON messages_text USING gin (words)"))


MIGRATIONS: tuple[Migration, ...] = (
    Migration(1, "messages, turns, calls, artefacts", _first_tables),
    Migration(2, "full-text search", _full_text),
)


def migrate(tx: Tx, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Brings a database up to date.

    Args:
        tx: A connection outside any transaction.
        migrations: The ledger.

    Raises:
        StoreVersionError: The database was written by a newer version of this library.
    """
    known = migrations[-1].version
    if _has_ledger(tx):
        applied = {int(version) for (version,) in tx.rows(_APPLIED)}
        if max(applied, default=0) > known:
            raise StoreVersionError(max(applied), known)
        if len(applied) == known:
            return
    for migration in migrations:
        _apply(tx, migration)


def _has_ledger(tx: Tx) -> bool:
    if tx.dialect == "sqlite":
        return tx.row(Statement("SELECT 1 FROM sqlite_master WHERE name = 'migrations'")) is not None
    return bool((tx.row(Statement("SELECT to_regclass('migrations') IS NOT NULL")) or (False,))[0])


def _apply(tx: Tx, migration: Migration) -> None:
    sqlite = tx.dialect == "sqlite"
    tx.run(Statement("BEGIN IMMEDIATE" if sqlite else "BEGIN"))
    try:
        if not sqlite:
            tx.run(Statement(f"SELECT pg_advisory_xact_lock({_LOCK_NUMBER})"))
        tx.run(Statement(_LEDGER))
        if (migration.version,) not in tx.rows(_APPLIED):
            migration.apply(tx)
            tx.run(_NOTE, {"version": migration.version, "name": migration.name, "applied_at": time.time()})
        tx.run(Statement("COMMIT"))
    except BaseException:
        with contextlib.suppress(Exception):  # what went wrong first is what people are told; the connection is closed anyway
            tx.run(Statement("ROLLBACK"))
        raise
