"""The files of a task as data, so that a check computes what is right instead of having it typed in."""

from __future__ import annotations

import contextlib
import csv
import io
import sqlite3
from collections.abc import Mapping
from typing import Any

__all__ = ["DATABASE", "Source", "number", "numbers"]

DATABASE = ".db"
"""The ending of a file that is given as a SQL script and made as a SQLite database."""


def number(cell: str) -> float | None:
    """The number in a cell, None where the cell is empty or holds something else ("n/a")."""
    try:
        return float(cell)
    except ValueError:
        return None


def numbers(rows: list[dict[str, str]], column: str) -> list[float]:
    """All numbers of a column, in order; cells without one are left out."""
    return [value for row in rows if (value := number(row[column])) is not None]


class Source:
    """A task's files as they are when it begins.

    Args:
        files: Path -> content, as `Task.files` holds it.
    """

    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        self.files = files

    def text(self, path: str) -> str:
        """A text file, or the script of a database."""
        content = self.files[path]
        return content.decode() if isinstance(content, bytes) else content

    def lines(self, path: str) -> list[str]:
        """The lines of a text file that are not blank."""
        return [line for line in self.text(path).splitlines() if line.strip()]

    def rows(self, path: str) -> list[dict[str, str]]:
        """The rows of a CSV file, cells as they stand there."""
        return list(csv.DictReader(io.StringIO(self.text(path))))

    def table(self, path: str, name: str) -> list[dict[str, Any]]:
        """The rows of a database's table, in the order they were put in."""
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(self.text(path))
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(f'SELECT * FROM "{name}" ORDER BY rowid')]  # noqa: S608 - our own data
