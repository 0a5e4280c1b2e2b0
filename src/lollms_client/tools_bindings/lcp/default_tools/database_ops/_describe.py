"""Databases and tables in few words, so that a small model writes the right query at once."""

from __future__ import annotations

import sqlite3
import time
from typing import NamedTuple

from lollms_client.tools_bindings.lcp.default_tools.database_ops._sqlite import quoted, table_columns

__all__ = ["describe", "one_line"]

_VALUES = 6  # a column with so few different texts has them listed
_VALUE_LENGTH = 24
_COLUMNS = 40
_TABLES = 30


class _Column(NamedTuple):
    name: str
    type: str
    note: str


class _TableFacts(NamedTuple):
    name: str
    rows: int | None
    columns: list[_Column]


def describe(connection: sqlite3.Connection, seconds: float = 5.0) -> list[str]:
    """One line for each table and view: its name, columns with type and values, number of rows.

    Args:
        connection: An open database.
        seconds: How long to look at values; columns that the time does not suffice for are given by name and type.

    Returns:
        Lines such as `orders(id INTEGER, region TEXT: 'North'|'South', day TEXT: e.g. '2024-01-15'), 120 rows`.
    """
    until = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > until, 5_000)
    try:
        return [
            one_line(_table(connection, name)) for name, columns in list(table_columns(connection).items())[:_TABLES] if columns
        ]
    finally:
        connection.set_progress_handler(None, 0)


def one_line(table: _TableFacts) -> str:
    """A table's facts as text."""
    columns = [f"{c.name} {c.type}".rstrip() + (f": {c.note}" if c.note else "") for c in table.columns[:_COLUMNS]]
    if len(table.columns) > _COLUMNS:
        columns.append(f"… {len(table.columns) - _COLUMNS} more")
    rows = "" if table.rows is None else f", {table.rows} {'row' if table.rows == 1 else 'rows'}"
    return f"{_identifier(table.name)}({', '.join(columns)}){rows}"


def _identifier(name: str) -> str:
    """A name as it has to be written in SQL."""
    return name if name.isidentifier() else quoted(name)


def _table(connection: sqlite3.Connection, name: str) -> _TableFacts:
    about = connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
    links = {
        row[3]: f"is {row[2]}.{row[4] or _key(connection, row[2])}"
        for row in connection.execute(f"PRAGMA foreign_key_list({quoted(name)})").fetchall()
    }
    plain = [_Column(_identifier(row[1]), row[2], links.get(row[1], "")) for row in about]
    try:
        rows, kinds = _count(connection, name, [row[1] for row in about[:_COLUMNS]])
        noted = [
            _with_values(connection, name, row[1], column, kinds[n])
            for n, (row, column) in enumerate(zip(about, plain, strict=True))
            if n < _COLUMNS
        ]
    except sqlite3.Error:
        return _TableFacts(name, None, plain)  # a view that is broken, or no time left
    return _TableFacts(name, rows, noted + plain[_COLUMNS:])


def _key(connection: sqlite3.Connection, table: str) -> str:
    """A table's primary key, which a reference without a column means; `rowid` where it has none of one column."""
    keys = [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(table)})") if row[5]]
    return keys[0] if len(keys) == 1 else "rowid"


def _count(connection: sqlite3.Connection, table: str, columns: list[str]) -> tuple[int, list[dict[str, int]]]:
    """The number of rows, and for each column how many values are of which kind."""
    names = ("integer", "real", "text", "null")
    sums = [f"coalesce(sum(typeof({quoted(column)}) = '{kind}'), 0)" for column in columns for kind in names]
    query = f"SELECT count(*), {', '.join(sums)} FROM {quoted(table)}"  # noqa: S608 - all names are quoted
    rows, *counts = connection.execute(query).fetchone()
    return rows, [dict(zip(names, counts[n : n + 4], strict=True)) for n in range(0, len(counts), 4)]


def _with_values(connection: sqlite3.Connection, table: str, name: str, column: _Column, kinds: dict[str, int]) -> _Column:
    """A column with its values where they are few texts, an example where they are many, and what is odd."""
    numbers = kinds["integer"] + kinds["real"]
    guessed = ("REAL" if kinds["real"] else "INTEGER") if numbers > kinds["text"] else ("TEXT" if kinds["text"] else "")
    notes = [column.note] if column.note else []
    if kinds["text"] > numbers:
        notes += _text_values(connection, table, name)
    elif kinds["text"]:
        odd = _texts(connection, table, name, 1)
        notes.append(f"{kinds['text']} not numbers, e.g. {_literal(odd[0])}")
    if kinds["null"]:
        notes.append(f"{kinds['null']} NULL")
    return _Column(column.name, column.type or guessed, "; ".join(notes))


def _texts(connection: sqlite3.Connection, table: str, name: str, most: int) -> list[str]:
    """Different texts of a column, the first that come."""
    column = quoted(name)
    query = f"SELECT DISTINCT {column} FROM {quoted(table)} WHERE typeof({column}) = 'text' LIMIT ?"  # noqa: S608 - quoted
    return [value for (value,) in connection.execute(query, (most,))]


def _text_values(connection: sqlite3.Connection, table: str, name: str) -> list[str]:
    values = _texts(connection, table, name, _VALUES + 1)
    if len(values) <= _VALUES and all(len(value) <= _VALUE_LENGTH for value in values):
        return ["|".join(map(_literal, values))]
    return [f"e.g. {_literal(values[0])}"]


def _literal(value: str) -> str:
    short = value if len(value) <= _VALUE_LENGTH else value[:_VALUE_LENGTH] + "…"
    return "'" + "".join(c if c.isprintable() else " " for c in short).replace("'", "''") + "'"
