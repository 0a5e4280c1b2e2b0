"""A database: connections, transactions, and what happens when several processes want it at once.

SQLite: write-ahead log, so that a reader never blocks a writer; each write transaction takes the write lock at its beginning, so
that it can wait for it and never has to give up half-way; one writing connection a process, behind a lock, because SQLite writes
one at a time anyway. PostgreSQL: the same transactions over psycopg; there, writers of different processes wait for each other
only where they change the same rows.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ..errors import ConfigurationError, StoreBusyError, StoreError, StoreUnsureError
from .cipher import Cipher, open_cipher
from .drivers import Driver, Durability, database_url
from .forks import watch
from .statements import Statement

__all__ = ["Database", "Durability", "Tx", "database_url"]

T = TypeVar("T")
_NOTHING: Mapping[str, Any] = {}
_MOST_READERS = 4
_FORK_WAITS = 2.0  # seconds
_LEFT_OPEN: list[Any] = []
_BEGIN_WRITE = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "BEGIN"}
_BEGIN_READ = {"sqlite": "BEGIN", "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}


class Tx:
    """A transaction: statements in, rows out. Rows are tuples in the order of the statement's columns."""

    __slots__ = ("_cursor", "cipher", "dialect")

    def __init__(self, cursor: Any, dialect: str, cipher: Cipher) -> None:
        self._cursor, self.dialect, self.cipher = cursor, dialect, cipher

    def run(self, statement: Statement, values: Mapping[str, Any] = _NOTHING) -> int:
        """Carries a statement out; the number of rows that it touched."""
        self._execute(statement, values)
        return max(0, int(self._cursor.rowcount))  # -1 where a driver does not count: sqlite3 where a statement begins with WITH

    def run_many(self, statement: Statement, values: Sequence[Mapping[str, Any]]) -> int:
        """Carries a statement out for each set of values; the number of rows that it touched in all."""
        if not values:
            return 0
        try:
            self._cursor.executemany(statement.sql(self.dialect), values)
        except (UnicodeEncodeError, OverflowError) as error:
            raise StoreError(_UNSTORABLE.format(error)) from error
        return int(self._cursor.rowcount)

    def rows(self, statement: Statement, values: Mapping[str, Any] = _NOTHING) -> list[tuple[Any, ...]]:
        """All its rows."""
        self._execute(statement, values)
        found: list[tuple[Any, ...]] = self._cursor.fetchall()
        return found

    def row(self, statement: Statement, values: Mapping[str, Any] = _NOTHING) -> tuple[Any, ...] | None:
        """Its first row, None where there is none."""
        self._execute(statement, values)
        found: tuple[Any, ...] | None = self._cursor.fetchone()
        return found

    def _execute(self, statement: Statement, values: Mapping[str, Any]) -> None:
        try:
            self._cursor.execute(statement.sql(self.dialect), values)
        except (UnicodeEncodeError, OverflowError) as error:
            raise StoreError(_UNSTORABLE.format(error)) from error


_NESTED = "A transaction that writes was begun inside another one."
_UNSTORABLE = "A database cannot hold this value: {}."


class _Connection:
    """A driver's connection with its cursor."""

    __slots__ = ("_driver", "cursor", "tx")

    def __init__(self, driver: Any, dialect: str, cipher: Cipher) -> None:
        self._driver = driver
        self.cursor = driver.cursor()
        self.tx = Tx(self.cursor, dialect, cipher)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        if self.tx.dialect == "sqlite":
            return bool(self._driver.in_transaction)
        return bool(self._driver.info.transaction_status)

    @property
    def lost(self) -> bool:
        """Whether the server hung up."""
        return self.tx.dialect == "postgresql" and bool(self._driver.closed)

    def close(self) -> None:
        self._driver.close()


class Database:
    """One database, for all threads of a process; safe to hold across a fork.

    Args:
        where: A SQLAlchemy URL, or the path of a SQLite file (see `database_url`). Nothing is opened before the first use.
        durability: What a commit survives.
        key: Seals the content of messages and turns with this key; None for no encryption.
        timeout: Seconds to wait for other writers, and for a database that is being opened or migrated by others.

    Raises:
        ConfigurationError: A URL or a durability that cannot be.
    """

    def __init__(
        self,
        where: str | os.PathLike[str],
        *,
        durability: Durability = "normal",
        key: str | bytes | None = None,
        timeout: float = 30.0,
    ) -> None:
        if durability not in ("normal", "full"):
            raise ConfigurationError(f"durability={durability!r} is unknown. It is 'normal' or 'full'.")
        self.url = database_url(where)
        self.durability, self.timeout = durability, timeout
        self._driver = Driver(self.url, durability, timeout)
        self.dialect, self.in_memory = self._driver.dialect, self._driver.in_memory
        self._key = key
        self._cipher: Cipher | None = None  # there once the database was opened
        self._writer: _Connection | None = None
        self._readers: list[_Connection] = []
        self._inside = False  # whether a transaction writes
        self._new_locks()
        watch(self)

    @property
    def encrypted(self) -> bool:
        """Whether contents are sealed."""
        return self._key is not None

    @property
    def shown(self) -> str:
        """The database as people may see it: without a password."""
        return self._driver.shown

    # ---- transactions ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """A transaction that may write: all of it or nothing. Others that want to write wait.

        Raises:
            StoreBusyError: Other processes held the database for longer than the timeout.
            StoreKeyError: The database is encrypted and the key does not fit, or it is not and there is one.
            StoreVersionError: The database was written by a newer version of this library.
            StoreUnsureError: The server hung up while it committed; all of the transaction is in the database, or nothing of it.
            StoreError: The database failed; nothing of the transaction is in it.
            MissingDependencyError: The driver of this kind of database, or of encryption, is not installed.
        """
        self._check_process()
        with self._writing, self._translated():
            if self._inside:
                raise StoreError(_NESTED)
            connection = self._ready()
            self._inside = True
            try:
                connection = self._writer = self._begun(connection, _BEGIN_WRITE[self.dialect], self._open)
                yield connection.tx
                self._commit(connection)
            except BaseException:
                self._undo(connection)
                raise
            finally:
                self._inside = False

    def _commit(self, connection: _Connection) -> None:
        try:
            connection.cursor.execute("COMMIT")
        except Exception as error:
            if connection.lost:
                raise self._unsure(error) from error
            raise

    def _unsure(self, error: Exception) -> StoreUnsureError:
        return StoreUnsureError(
            f"{self._driver.explain(error)} Nobody knows whether what was being written is in it: look before you do it again."
        )

    def write_one(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """Carries one statement out as a transaction of its own, without the words around it: three ways to a server less.

        Args:
            statement: It comes to the same when it is carried out twice; it is, where a server hung up and may have had it.
            values: Its parameters.

        Returns:
            The number of rows that it touched.

        Raises:
            StoreUnsureError: The server hung up and could not be asked again; it may have carried the statement out.
            StoreError: As for `write`.
        """
        self._check_process()
        with self._writing, self._translated():
            if self._inside:
                raise StoreError(_NESTED)
            connection = self._ready()
            try:
                return connection.tx.run(statement, values)
            except Exception:
                if not connection.lost:
                    raise
                connection.close()
                self._writer = None
                return self._once_more(statement, values)

    def _once_more(self, statement: Statement, values: Mapping[str, Any]) -> int:
        try:
            return self._ready().tx.run(statement, values)
        except Exception as error:
            if self._driver.is_error(error):
                raise self._unsure(error) from error
            raise

    @property
    def cipher(self) -> Cipher:
        """What seals the contents of this database, which is open."""
        assert self._cipher is not None, "the cipher is known once the database was opened"
        return self._cipher

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A transaction that only reads: one state of the database, whatever is written meanwhile.

        Raises:
            StoreError: As for `write`.
        """
        if self.in_memory:
            with self._writing, self._same_or_own() as tx:
                yield tx
            return
        self._check_process()
        with self._translated():
            connection = self._borrow()
            try:
                connection = self._begun(connection, _BEGIN_READ[self.dialect], self._new_reader)
                yield connection.tx
                connection.cursor.execute("COMMIT")
            except BaseException:
                connection.close()
                self._give_back(None)
                raise
            self._give_back(connection)

    @contextmanager
    def _same_or_own(self) -> Iterator[Tx]:
        """In memory there is one connection, so whoever reads while writing reads through it."""
        if self._inside and self._writer is not None:
            yield self._writer.tx
        else:
            with self.write() as tx:
                yield tx

    def _begun(self, connection: _Connection, words: str, fresh: Callable[[], _Connection]) -> _Connection:
        """A transaction on a connection, or on a fresh one where the server hung up since its last use."""
        try:
            connection.cursor.execute(words)
        except Exception:
            if not connection.lost:
                raise
            connection.close()
            connection = self._patiently(fresh)
            connection.cursor.execute(words)
        return connection

    def _undo(self, connection: _Connection) -> None:
        try:
            if connection.in_transaction:
                connection.cursor.execute("ROLLBACK")
        except Exception as error:
            if not self._driver.is_error(error):
                raise
            connection.close()  # a connection that cannot even do that is gone; the next transaction opens another
            self._writer = None

    # ---- connections ----------------------------------------------------------------------------------------------------------

    def _ready(self) -> _Connection:
        """The writing connection; the first one of a process opens, migrates and, where that is wanted, unlocks the database."""
        if self._writer is None:
            self._writer = self._patiently(self._open)
        return self._writer

    def _open(self) -> _Connection:
        from .migrations import migrate

        connection = _Connection(self._driver.connect(), self.dialect, Cipher())
        try:
            migrate(connection.tx)
            if self._cipher is None:
                self._cipher = open_cipher(connection.tx, self._key)
            connection.tx.cipher = self._cipher
        except BaseException:
            connection.close()
            raise
        return connection

    def _borrow(self) -> _Connection:
        """A connection for reading. Once the database is open, it waits for nobody."""
        if self._cipher is None:
            with self._writing:
                self._ready()
        with self._pool:
            self._lent += 1
            if self._readers:
                return self._readers.pop()
        try:
            return self._patiently(self._new_reader)
        except BaseException:
            self._give_back(None)
            raise

    def _new_reader(self) -> _Connection:
        return _Connection(self._driver.connect(reading=True), self.dialect, self._cipher or Cipher())

    def _give_back(self, connection: _Connection | None) -> None:
        with self._pool:
            self._lent -= 1
            if connection is not None and len(self._readers) < _MOST_READERS:
                self._readers.append(connection)
                connection = None
            self._pool.notify_all()
        if connection is not None:
            connection.close()

    def _patiently(self, act: Callable[[], T]) -> T:
        """Tries for as long as others are in the way: switching to the write-ahead log is refused at once, without waiting."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return act()
            except Exception as error:
                if not self._driver.is_busy(error) or time.monotonic() > deadline:
                    raise
            threading.Event().wait(random.uniform(0.002, 0.03))  # noqa: S311 - spreads those that wait, guards nothing

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """The seam where a driver's errors become ours."""
        try:
            yield
        except Exception as error:
            if not self._driver.is_error(error):
                raise
            if self._driver.is_busy(error):
                raise StoreBusyError(
                    f"The store {self.shown} was held by others for longer than {self.timeout:g} seconds."
                ) from error
            raise StoreError(self._driver.explain(error)) from error

    def close(self) -> None:
        """Closes the connections that are not in use; a later use opens others. A database in memory is gone."""
        self._check_process()
        with self._writing, self._pool:
            self._release()

    def _release(self) -> None:
        """Closes the connections that are not in use. Both locks are held."""
        idle, self._readers = self._readers, []
        if self._writer is not None and not self._inside:
            idle.append(self._writer)
            self._writer = None
        for connection in idle:
            connection.close()

    # ---- forks ----------------------------------------------------------------------------------------------------------------

    def _new_locks(self) -> None:
        self._pid = os.getpid()
        self._writing = threading.RLock()  # held for as long as a transaction writes
        self._inside = False
        self._pool = threading.Condition()  # guards the connections for reading
        self._lent = 0  # how many of them are in use
        self._torn = self._held = False  # whether a fork cut a transaction; whether the thread that forks holds `_writing`

    def _check_process(self) -> None:
        if self._pid != os.getpid():  # forked by something that told nobody
            self._torn = self._torn or bool(self._writer or self._readers)
            self.after_fork_in_child()
        if self._torn:
            raise StoreError(
                f"This process was forked while a transaction on the store {self.shown} was open, so it cannot use it. "
                "Fork between transactions, or start processes anew (the start method 'spawn' of multiprocessing)."
            )

    def before_fork(self) -> None:
        """Waits a while for the transactions of other threads, and closes what is open."""
        self._held = self._writing.acquire(timeout=_FORK_WAITS)
        self._pool.acquire()
        quiet = self._pool.wait_for(lambda: self._lent == 0, _FORK_WAITS)
        self._torn = self._inside or not self._held or not quiet
        if not self._torn and not self.in_memory:
            self._release()

    def after_fork_in_parent(self) -> None:
        """Goes on as before."""
        self._torn = False
        self._pool.release()
        if self._held:
            self._held = False
            self._writing.release()

    def after_fork_in_child(self) -> None:
        """Starts with locks of its own; what its parent left open it never touches, not even to close it."""
        torn = self._torn
        self._new_locks()
        if torn:
            _LEFT_OPEN.extend([*self._readers, *([self._writer] if self._writer else [])])
            self._writer, self._readers = None, []
            self._torn = self.dialect == "sqlite"  # a server keeps its locks itself
