"""The drivers: how a connection of either kind is opened, and what its errors mean for people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import URL, NullPool, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from .._kept import keep_records
from ..errors import ConfigurationError, MissingDependencyError, StoreError

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["Driver", "Durability", "database_url"]

Durability = Literal["normal", "full"]
"""What a commit survives: "normal" the death of this process, "full" a power cut as well."""

_BUSY = {"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"}
_BUSY_STATES = {"40001", "40P01", "53300", "55P03", "57P03"}
"""Serialization failure, deadlock, too many connections, lock not available, cannot connect now."""


def database_url(where: str | os.PathLike[str]) -> str:
    """A SQLAlchemy URL; a plain path is a SQLite file, ":memory:" and "" a database in memory.

    Raises:
        ConfigurationError: A kind of database that this store does not speak to, or no URL at all.
    """
    text = os.fspath(where)
    if "://" not in text:
        path = None if text in ("", ":memory:") else str(Path(text).expanduser().absolute())
        return URL.create("sqlite", database=path).render_as_string()
    kind, _, rest = text.partition("://")
    kind = kind.partition("+")[0]
    if kind in ("postgres", "postgresql"):
        text = f"postgresql+psycopg://{rest}"
    elif kind == "sqlite":
        text = f"sqlite://{rest}"
    else:
        raise ConfigurationError(
            f"There is no store over {kind!r}. There is: 'sqlite:///path/of/file.db', 'postgresql://…', or a path."
        )
    try:
        make_url(text)
    except (ArgumentError, ValueError) as error:
        raise ConfigurationError(f"What was given as a store is no database URL: {error}. Its form: {kind}://…") from error
    return text


class Driver:
    """Opens connections to one database, which are then in nobody's hands but the caller's.

    Args:
        url: As `database_url` gives it.
        durability: What a commit survives.
        timeout: Seconds to wait for a lock, and for a server to answer.
    """

    def __init__(self, url: str, durability: Durability, timeout: float) -> None:
        self._url = make_url(url)
        self._durability, self._timeout = durability, timeout
        self._engine: Engine | None = None
        self.dialect = self._url.get_backend_name()
        path = self._url.database or ":memory:"
        self._path = path if self.dialect == "sqlite" and not path.startswith("file:") else None
        self.in_memory = self.dialect == "sqlite" and (":memory:" in path or self._url.query.get("mode") == "memory")
        if self._path is not None and not self.in_memory:
            keep_records(*(f"{self._path}{ending}" for ending in ("", "-wal", "-shm", "-journal")))

    def connect(self, *, reading: bool = False) -> Any:
        """A new connection, outside any transaction; transactions are begun and ended in words.

        Args:
            reading: It is to refuse to write.

        Raises:
            MissingDependencyError: The driver is not installed.
            StoreError: The folder of the file cannot be made.
        """
        if self._engine is None:
            self._engine = self._make_engine()
        proxy = self._engine.raw_connection()
        connection: Any = proxy.driver_connection
        proxy.detach()  # ours from here on
        if self.dialect == "postgresql":
            self._set_up_postgresql(connection)
        else:
            self._set_up_sqlite(connection, reading)
        return connection

    def _make_engine(self) -> Engine:
        arguments: dict[str, Any] = {"connect_timeout": max(2, int(self._timeout)), "client_encoding": "utf8"}
        if self.dialect == "sqlite":
            arguments = {"check_same_thread": False, "timeout": self._timeout}
            self._make_folder()
        try:
            return create_engine(self._url, poolclass=NullPool, connect_args=arguments)
        except ImportError as error:
            raise MissingDependencyError("psycopg", "postgres", "A store in PostgreSQL") from error

    def _make_folder(self) -> None:
        if self._path is None or self.in_memory:
            return
        folder = Path(self._path).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"The store {self.shown} failed: its folder cannot be made: {error.strerror}.") from error

    def _set_up_postgresql(self, connection: Any) -> None:
        connection.autocommit = True
        connection.execute(f"SET lock_timeout = {int(self._timeout * 1000)}")
        if self._durability == "full":
            connection.execute("SET synchronous_commit = on")

    def _set_up_sqlite(self, connection: Any, reading: bool) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(self._timeout * 1000)}")
        if reading:
            connection.execute("PRAGMA query_only = ON")
            return
        if not self.in_memory:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'full' else 'NORMAL'}")

    # ---- what its errors mean -------------------------------------------------------------------------------------------------

    def is_error(self, error: BaseException) -> bool:
        """Whether an error is the driver's own."""
        if self._engine is None:
            return False
        return isinstance(error, (self._engine.dialect.loaded_dbapi.Error, DBAPIError))

    def is_busy(self, error: BaseException) -> bool:
        """Whether others are in the way, so that the same may succeed later."""
        cause = _cause(error)
        if not self.is_error(error):
            return False
        if self.dialect == "postgresql":
            return getattr(cause, "sqlstate", None) in _BUSY_STATES or "the database system is starting up" in str(cause)
        return "_".join(getattr(cause, "sqlite_errorname", "").split("_")[:2]) in _BUSY

    def explain(self, error: BaseException) -> str:
        """What an error of the driver means, as a sentence."""
        cause = _cause(error)
        said = " ".join(str(cause).split()).rstrip(".")
        return f"The store {self.shown} failed: {_HINTS.get(self._kind(cause), said)}."

    def _kind(self, cause: BaseException) -> str:
        name = "_".join(getattr(cause, "sqlite_errorname", "").split("_")[:2])
        if name == "SQLITE_CANTOPEN" and self._path is not None:
            return "FOLDER" if Path(self._path).is_dir() else name
        return name

    @property
    def shown(self) -> str:
        """The database as people may see it: without a password."""
        return self._path or self._url.set(query={}).render_as_string(hide_password=True)


_HINTS = {
    "FOLDER": "this is a folder, and a store is a file. Name a file in it",
    "SQLITE_CANTOPEN": "the file cannot be opened. Look whether this user may read and write it and its folder",
    "SQLITE_READONLY": "this user may read the file or its folder, but not write it",
    "SQLITE_NOTADB": "the file is no SQLite database. Give the store another name, or put this file elsewhere",
    "SQLITE_CORRUPT": "the file is damaged. Put a copy in its place, or rescue what is in it with SQLite's `.recover`",
    "SQLITE_FULL": "the disk is full. What was being written is not in it; what was there before is",
}


def _cause(error: BaseException) -> BaseException:
    """The driver's own error, where SQLAlchemy wrapped it."""
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
