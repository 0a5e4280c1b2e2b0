"""Statements compiled once for each dialect, and run on the driver's own connection.

SQLAlchemy Core draws the tables and knows both dialects; running a statement through its execution layer costs several times
what SQLite takes to carry it out, and a turn writes four times a round. So a statement is compiled by Core, and executed by the
driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import Table, bindparam
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.sql import text
from sqlalchemy.sql.elements import ClauseElement

__all__ = ["DIALECTS", "Statement", "insert"]

DIALECTS: Mapping[str, Dialect] = {
    "sqlite": SQLiteDialect_pysqlite(paramstyle="named"),
    "postgresql": PGDialect_psycopg(paramstyle="pyformat"),  # type: ignore[no-untyped-call]
}
"""Both take parameters by name, so that one mapping serves both."""


class Statement:
    """A statement with named parameters.

    Args:
        clause: A Core construct, or SQL text that both dialects understand, with parameters as `:name`.
    """

    __slots__ = ("_clause", "_texts")

    def __init__(self, clause: ClauseElement | str) -> None:
        self._clause = text(clause) if isinstance(clause, str) else clause
        self._texts: dict[str, str] = {}

    def sql(self, dialect: str) -> str:
        """The text for a dialect's driver."""
        found = self._texts.get(dialect)
        if found is None:
            found = self._texts[dialect] = str(self._clause.compile(dialect=DIALECTS[dialect]))
        return found


def insert(table: Table, columns: Iterable[str] | None = None) -> Statement:
    """An INSERT with a parameter for each column.

    Args:
        table: The table.
        columns: Their names, None for all.
    """
    names = list(columns) if columns is not None else [c.name for c in table.columns]
    return Statement(table.insert().values({name: bindparam(name) for name in names}))
