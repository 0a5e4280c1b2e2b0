"""A database: connections, transactions, and what happens when several processes want it at once.

SQLite: write-ahead log, so that a reader never blocks a writer; each write transaction takes the write lock at its beginning, so
that it can wait for it and never has to give up half-way; one writing connection a process, behind a lock, because SQLite writes
one at a time anyway. PostgreSQL: the same transactions over psycopg.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..errors import ConfigurationError, MissingDependencyError, StoreBusyError, StoreError
from .cipher import Cipher, open_cipher
from .statements import Statement

__all__ = ["Database", "Durability", "Tx", "database_url"]

Durability = Literal["normal", "full"]
"""What a commit survives: "normal" the death of this process, "full" a power cut as well."""

T = TypeVar("T")
_NOTHING: Mapping[str, Any] = {}
_MOST_READERS = 4


def database_url(where: str | os.PathLike[str]) -> str:
    """A SQLAlchemy URL; a plain path is a SQLite file, ":memory:" and "" a database in memory.

    Raises:
        ConfigurationError: A kind of database that this store does not speak to.
    """
    text = os.fspath(where)
    if "://" not in text:
        return "sqlite://" if text in ("", ":memory:") else f"sqlite:///{Path(text).expanduser().absolute()}"
    kind = text.partition("://")[0].partition("+")[0]
    if kind == "postgres":
        text, kind = "postgresql" + text[len("postgres") :], "postgresql"
    if kind == "postgresql":
        return "postgresql+psycopg://" + text.partition("://")[2]
    if kind != "sqlite":
        raise ConfigurationError(
            f"There is no store over {kind!r}. There is: 'sqlite:///path/of/file.db', 'postgresql://…', or a path."
        )
    return text


class Tx:
    """A transaction: statements in, rows out. Rows are tuples in the order of the statement's columns."""

    __slots__ = ("_cursor", "cipher", "dialect")

    def __init__(self, cursor: Any, dialect: str, cipher: Cipher) -> None:
        self._cursor, self.dialect, self.cipher = cursor, dialect, cipher

    def run(self, statement: Statement, values: Mapping[str, Any] = _NOTHING) -> int:
        """Carries a statement out; the number of rows that it touched."""
        self._cursor.execute(statement.sql(self.dialect), values)
        return int(self._cursor.rowcount)

    def run_many(self, statement: Statement, values: Sequence[Mapping[str, Any]]) -> int:
        """Carries a statement out for each set of values; the number of rows that it touched in all."""
        if not values:
            return 0
        self._cursor.executemany(statement.sql(self.dialect), values)
        return int(self._cursor.rowcount)

    def rows(self, statement: Statement, values: Mapping[str, Any] = _NOTHING) -> list[tuple[Any, ...]]:
        """All its rows."""
        self._cursor.execute(statement.sql(self.dialect), values)
        found: list[tuple[Any, ...]] = self._cursor.fetchall()
        return found

    def row(self, statement: Statement, values: Mapping[str, Any] = _NOTHING) -> tuple[Any, ...] | None:
        """Its first row, None where there is none."""
        self._cursor.execute(statement.sql(self.dialect), values)
        found: tuple[Any, ...] | None = self._cursor.fetchone()
        return found


class _Connection:
    """A driver's connection with its cursor."""

    __slots__ = ("cursor", "driver", "tx")

    def __init__(self, driver: Any, dialect: str, cipher: Cipher) -> None:
        self.driver = driver
        self.cursor = driver.cursor()
        self.tx = Tx(self.cursor, dialect, cipher)

    def close(self) -> None:
        self.driver.close()


class Database:
    """One database, for all threads of a process; safe to hold across a fork.

    Args:
        where: A SQLAlchemy URL, or the path of a SQLite file (see `database_url`). Nothing is opened before the first use.
        durability: What a commit survives.
        key: Seals the content of messages and turns with this key; None for no encryption.
        timeout: Seconds to wait for other writers, and for a database that is being opened or migrated by others.

    Raises:
        ConfigurationError: A URL or a durability that cannot be.
        MissingDependencyError: The driver of this kind of database, or of encryption, is not installed.
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
        self.dialect = "sqlite" if self.url.startswith("sqlite") else "postgresql"
        self.in_memory = self.dialect == "sqlite" and self.url.partition("://")[2].strip("/") in ("", ":memory:")
        self._key = key
        self._lock = threading.RLock()
        self._forget()

    @property
    def encrypted(self) -> bool:
        """Whether contents are sealed."""
        return self._key is not None

    def _forget(self) -> None:
        """Starts without connections: at first, and in a forked child, which must not touch its parent's."""
        self._pid = os.getpid()
        self._writer: _Connection | None = None
        self._readers: list[_Connection] = []
        self._driver: Any = None
        self._engine: Any = None
        self._cipher: Cipher | None = None

    # ---- transactions ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """A transaction that may write: all of it or nothing. Others that want to write wait.

        Raises:
            StoreBusyError: Other processes held the database for longer than the timeout.
            StoreError: The database failed; nothing of the transaction is in it.
        """
        with self._lock, self._translated():
            connection = self._ready()
            self._begin(connection)
            try:
                yield connection.tx
            except BaseException:
                self._rollback(connection)
                raise
            self._commit(connection)

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A transaction that only reads: one state of the database, whatever is written meanwhile."""
        if self.in_memory:
            with self.write() as tx:
                yield tx
            return
        with self._translated():
            connection = self._reader()
            try:
                connection.cursor.execute("BEGIN")
                yield connection.tx
                connection.cursor.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            with self._lock:
                if len(self._readers) < _MOST_READERS and self._pid == os.getpid():
                    self._readers.append(connection)
                    return
            connection.close()

    def _begin(self, connection: _Connection) -> None:
        connection.cursor.execute("BEGIN IMMEDIATE" if self.dialect == "sqlite" else "BEGIN")

    def _commit(self, connection: _Connection) -> None:
        connection.cursor.execute("COMMIT")

    def _rollback(self, connection: _Connection) -> None:
        try:
            connection.cursor.execute("ROLLBACK")
        except self._driver_error():
            connection.close()  # a connection that cannot even do that is gone; the next transaction opens another
            self._writer = None

    # ---- connections ----------------------------------------------------------------------------------------------------------

    def _ready(self) -> _Connection:
        """The writing connection; the first one of a process opens, migrates and, where that is wanted, unlocks the database."""
        if self._pid != os.getpid():
            self._forget()
        if self._writer is None:
            self._writer = self._patiently(self._open)
        elif self.dialect == "postgresql" and self._writer.driver.closed:
            self._writer = self._patiently(self._open)
        return self._writer

    def _open(self) -> _Connection:
        from .migrations import migrate

        connection = _Connection(self._connect(), self.dialect, Cipher())
        try:
            migrate(connection.tx)
            if self._cipher is None:
                self._cipher = open_cipher(connection.tx, self._key)
            connection.tx.cipher = self._cipher
        except BaseException:
            connection.close()
            raise
        return connection

    def _reader(self) -> _Connection:
        with self._lock:
            self._ready()
            if self._readers:
                return self._readers.pop()
            assert self._cipher is not None
            cipher = self._cipher
        return _Connection(self._patiently(self._connect), self.dialect, cipher)

    def _connect(self) -> Any:
        if self._engine is None:
            self._engine = _engine(self.url, self.timeout)
            self._driver = self._engine.dialect.loaded_dbapi
        proxy = self._engine.raw_connection()
        driver = proxy.driver_connection
        proxy.detach()  # ours from here on
        if self.dialect == "postgresql":
            driver.autocommit = True  # transactions are begun and ended in words, as in SQLite
            if self.durability == "full":
                driver.execute("SET synchronous_commit = on")
            return driver
        driver.isolation_level = None
        driver.execute(f"PRAGMA busy_timeout = {int(self.timeout * 1000)}")
        if not self.in_memory:
            driver.execute("PRAGMA journal_mode = WAL")
        driver.execute(f"PRAGMA synchronous = {'FULL' if self.durability == 'full' else 'NORMAL'}")
        return driver

    def _patiently(self, act: Callable[[], T]) -> T:
        """Tries again for as long as others are in the way: switching to the write-ahead log is refused at once, and is not waited for."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return act()
            except Exception as error:  # noqa: BLE001 - only the driver's own "busy" is waited for; all others go on
                if not self._is_busy(error) or time.monotonic() > deadline:
                    raise
            threading.Event().wait(random.uniform(0.002, 0.03))  # noqa: S311 - spreads those that wait, guards nothing

    # ---- errors ---------------------------------------------------------------------------------------------------------------

    def _driver_error(self) -> type[Exception]:
        found: type[Exception] = self._driver.Error if self._driver is not None else StoreError
        return found

    def _is_busy(self, error: Exception) -> bool:
        text = str(error).lower()
        return "locked" in text or "busy" in text or "starting up" in text

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """The seam where a driver's errors become ours."""
        try:
            yield
        except Exception as error:
            from sqlalchemy.exc import SQLAlchemyError

            if not isinstance(error, (self._driver_error(), SQLAlchemyError)) or isinstance(error, StoreError):
                raise
            if self._is_busy(error):
                raise StoreBusyError(
                    f"The store {self.shown} was held by others for longer than {self.timeout:g} seconds."
                ) from error
            raise StoreError(f"The store {self.shown} failed: {str(error).strip().splitlines()[0]}") from error

    @property
    def shown(self) -> str:
        """The database as people may see it: without a password."""
        from sqlalchemy import make_url

        return make_url(self.url).render_as_string(hide_password=True)

    def close(self) -> None:
        """Closes every connection; a later use opens the database anew."""
        with self._lock:
            if self._pid == os.getpid():
                for connection in [*self._readers, *([self._writer] if self._writer is not None else [])]:
                    connection.close()
            self._forget()


def _engine(url: str, timeout: float) -> Any:
    from sqlalchemy import NullPool, create_engine, make_url
    from sqlalchemy.exc import ArgumentError

    options: dict[str, Any] = {"poolclass": NullPool}
    if url.startswith("sqlite"):
        options["connect_args"] = {"check_same_thread": False, "timeout": timeout}
        path = make_url(url).database
        if path and path != ":memory:" and not path.startswith("file:"):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
    try:
        return create_engine(url, **options)
    except ArgumentError as error:
        raise ConfigurationError(f"{url!r} is no database URL: {error}") from error
    except ImportError as error:
        raise MissingDependencyError("psycopg", "postgres", "a store in PostgreSQL") from error
