"""SQLite files opened for reading alone, and statements that end.

Three things hold at once: the file is opened read-only, the connection refuses to write, and an authorizer refuses every
action but reading when a statement is compiled. SQLite opens files by path, so after it has opened one we look whether the file
that it holds is the one that the workspace showed us. (A journal is opened by path too: where the host allows writing, keep
folders in place while statements run.)

Source: tool guide §3, §10; sqlite.org: uri.html, wal.html, c3ref/c_alter_table.html, howtocorrupt.html.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from lollms_client._paths import Workspace
from lollms_client.errors import LimitError, OutsideWorkspaceError, ToolError
from lollms_client.tools_bindings.lcp.default_tools._support import shown

__all__ = ["Guard", "Rows", "in_memory", "open_database", "quoted", "run", "table_columns"]

_SECONDS = 10.0
_COUNTED_ROWS = 5_000_000
_CELL = 1_000  # characters of a value that are shown
_STEPS = 5_000  # steps of SQLite's machine between two looks at the clock
_VALUE_BYTES = 100_000_000
_COPY_BYTES = 1_000_000_000

_WRITING = {
    sqlite3.SQLITE_INSERT: "INSERT",
    sqlite3.SQLITE_UPDATE: "UPDATE",
    sqlite3.SQLITE_DELETE: "DELETE",
    sqlite3.SQLITE_ALTER_TABLE: "ALTER",
    sqlite3.SQLITE_CREATE_TABLE: "CREATE",
    sqlite3.SQLITE_CREATE_INDEX: "CREATE",
    sqlite3.SQLITE_CREATE_VIEW: "CREATE",
    sqlite3.SQLITE_CREATE_TRIGGER: "CREATE",
    sqlite3.SQLITE_CREATE_TEMP_TABLE: "CREATE",
    sqlite3.SQLITE_CREATE_TEMP_INDEX: "CREATE",
    sqlite3.SQLITE_CREATE_TEMP_VIEW: "CREATE",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: "CREATE",
    sqlite3.SQLITE_CREATE_VTABLE: "CREATE",
    sqlite3.SQLITE_DROP_TABLE: "DROP",
    sqlite3.SQLITE_DROP_INDEX: "DROP",
    sqlite3.SQLITE_DROP_VIEW: "DROP",
    sqlite3.SQLITE_DROP_TRIGGER: "DROP",
    sqlite3.SQLITE_DROP_TEMP_TABLE: "DROP",
    sqlite3.SQLITE_DROP_TEMP_INDEX: "DROP",
    sqlite3.SQLITE_DROP_TEMP_VIEW: "DROP",
    sqlite3.SQLITE_DROP_TEMP_TRIGGER: "DROP",
    sqlite3.SQLITE_DROP_VTABLE: "DROP",
    sqlite3.SQLITE_REINDEX: "REINDEX",
    sqlite3.SQLITE_ANALYZE: "ANALYZE",
}
_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_FORBIDDEN = {
    sqlite3.SQLITE_ATTACH: "ATTACH",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_TRANSACTION: "a transaction",
    sqlite3.SQLITE_SAVEPOINT: "a savepoint",
}
_DESTROYING = frozenset({"UPDATE", "DELETE", "ALTER", "DROP"})
_SCHEMA_PRAGMAS = frozenset(
    {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list"}
)
_BAD_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"})
_OTHER_DIALECTS = {
    "year": "strftime('%Y', column)",
    "month": "strftime('%m', column)",
    "day": "strftime('%d', column)",
    "quarter": "(CAST(strftime('%m', column) AS INTEGER) + 2) / 3",
    "date_format": "strftime('%Y-%m', column)",
    "to_char": "strftime('%Y-%m', column)",
    "concat": "a || b",
    "now": "datetime('now')",
    "left": "substr(column, 1, n)",
    "right": "substr(column, -n)",
    "if": "CASE WHEN condition THEN a ELSE b END",
    "isnull": "column IS NULL",
}

_opening = threading.Lock()


class Rows(NamedTuple):
    """What a statement returned.

    Attributes:
        columns: Names of the columns.
        rows: The first rows, values safe for JSON.
        total: How many rows there are, as far as they were counted.
        complete: They were counted to the end.
        changed: Rows that a writing statement changed, -1 for a reading one.
    """

    columns: list[str]
    rows: list[list[Any]]
    total: int
    complete: bool
    changed: int = -1


class Guard:
    """The authorizer of a connection: allows reading, or writing too, and remembers what it refused and what it saw.

    Attributes:
        writable: Statements may write.
        refused: What was refused, in words.
        writes: The kinds of writing that a statement would do: "INSERT", "DROP", …
    """

    def __init__(self, *, writable: bool = False) -> None:
        self.writable = writable
        self.refused: list[str] = []
        self.writes: set[str] = set()

    @property
    def destroys(self) -> bool:
        """The statement changes or removes what is there."""
        return bool(self.writes & _DESTROYING)

    def __call__(self, action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
        if action in _READING or self._harmless(action, first, second):
            return sqlite3.SQLITE_OK
        # SQLite enters every table that it makes, and the virtual ones that it reads, in its own schema table.
        if action in (sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_DELETE) and _is_schema(first):
            return sqlite3.SQLITE_OK
        kind = _WRITING.get(action)
        if kind:
            self.writes.add(kind)
            if self.writable:
                return sqlite3.SQLITE_OK
        self.refused.append(kind or _FORBIDDEN.get(action) or f"{first or second or 'this'}")
        return sqlite3.SQLITE_DENY

    @staticmethod
    def _harmless(action: int, first: str | None, second: str | None) -> bool:
        if action == sqlite3.SQLITE_FUNCTION:
            return (second or "").lower() not in _BAD_FUNCTIONS
        return action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _SCHEMA_PRAGMAS


def _is_schema(table: str | None) -> bool:
    return table in ("sqlite_master", "sqlite_temp_master", "sqlite_schema", "sqlite_sequence")


@contextlib.contextmanager
def open_database(workspace: Workspace, path: str, guard: Guard) -> Iterator[sqlite3.Connection]:
    """A connection to a database of the workspace, closed at the end.

    Args:
        workspace: Where the file is.
        path: The file.
        guard: Says whether it may write, and watches every statement.

    Raises:
        ToolError: It is no SQLite database, or cannot be opened.
        OutsideWorkspaceError: The path leads outside, or began to while it was being opened.
    """
    with contextlib.ExitStack() as stack:
        connection = _connect(workspace, path, "mode=rw") if guard.writable else _connect_reading(workspace, path, stack)
        stack.callback(_close, connection)
        _restrict(connection, guard)
        yield connection


def in_memory(guard: Guard, table: str, columns: list[str], rows: list[list[Any]], names: list[str]) -> sqlite3.Connection:
    """A connection to a table in memory, which can then only be read.

    Args:
        guard: Watches every statement from then on.
        table: The table's name.
        columns: Names of its columns; they have no types, so that every value keeps its own.
        rows: The values.
        names: Other names by which the table can be read; they are not listed among the tables.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        create = f"CREATE TABLE {quoted(table)} ({', '.join(map(quoted, columns))})"
        insert = f"INSERT INTO {quoted(table)} VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - the name is quoted
        connection.execute(create)
        connection.execute("BEGIN")
        connection.executemany(insert, rows)
        connection.execute("COMMIT")
        for name in names:
            if name.lower() != table.lower() and not name.lower().startswith("sqlite_"):
                view = f"CREATE TEMP VIEW IF NOT EXISTS {quoted(name)} AS SELECT * FROM {quoted(table)}"  # noqa: S608 - quoted
                connection.execute(view)
        _restrict(connection, guard)
    except BaseException:
        connection.close()
        raise
    return connection


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def run(connection: sqlite3.Connection, guard: Guard, query: str, keep: int = 50, seconds: float = _SECONDS) -> Rows:
    """Run one statement, keep its first rows and count the others.

    Args:
        connection: Of `open_database` or `in_memory`.
        guard: The connection's guard.
        query: One statement.
        keep: How many rows are kept.
        seconds: How long it may take; what was read until then is returned when rows had come.

    Raises:
        ToolError: "SQL Error: …", with what helps to mend the statement.
    """
    until = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    guard.refused.clear()
    rows: list[list[Any]] = []
    columns: list[str] = []
    total, complete = 0, True
    try:
        cursor = connection.execute(query)
        columns = [about[0] for about in cursor.description or ()]
        for row in cursor:
            total += 1
            if total <= keep:
                rows.append([_shown_value(value) for value in row])
            elif total >= _COUNTED_ROWS:
                complete = False
                break
        changed = cursor.rowcount if cursor.rowcount >= 0 and not cursor.description else -1
    except (sqlite3.Error, sqlite3.Warning) as error:
        if not (rows and total > keep and "interrupted" in str(error)):
            raise _query_error(connection, guard, error, seconds) from error
        complete, changed = False, -1
    finally:
        connection.set_progress_handler(None, 0)
    if not columns and changed < 0 and not guard.writes:
        raise ToolError("SQL Error: the query is empty. Write one SELECT statement.")
    return Rows(columns, rows, total, complete, changed)


def table_columns(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """The tables and views of a database with the names of their columns."""
    listing = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY rowid"
    found: dict[str, list[str]] = {}
    with contextlib.suppress(sqlite3.Error):
        for (name,) in connection.execute(listing).fetchall():
            found[name] = []
            with contextlib.suppress(sqlite3.Error):  # a view of what is no longer there
                found[name] = [column[1] for column in connection.execute(f"PRAGMA table_info({quoted(name)})")]
    return found


# -- opening -------------------------------------------------------------------------------------------------------------------


def _connect_reading(workspace: Workspace, path: str, stack: contextlib.ExitStack) -> sqlite3.Connection:
    """Open for reading so that nothing is left behind, whatever state the last writer left the file in.

    In WAL mode SQLite makes two files beside the database even to read it. Where they are missing nobody has it open, and it is
    read as a file that does not change; where only the log is there its writer died, as it did where a rollback journal must be
    played back: then a copy is read, and the file stays as it is.
    """
    log, index, journal = (_side_size(workspace, path, end) for end in ("-wal", "-shm", "-journal"))
    if log is not None and index is not None:
        return _connect(workspace, path, "mode=ro")
    if log:
        return _connect_copy(workspace, path, "-wal", stack)
    if log == 0 or (journal is None and _in_wal_mode(workspace, path)):
        return _connect(workspace, path, "mode=ro&immutable=1")
    try:
        return _connect(workspace, path, "mode=ro")
    except sqlite3.OperationalError:
        if not journal:
            raise
        return _connect_copy(workspace, path, "-journal", stack)


def _side_size(workspace: Workspace, path: str, ending: str) -> int | None:
    """The size of a file that SQLite keeps beside a database, None where it is not there."""
    try:
        return workspace.stat(path + ending).st_size
    except OSError:
        return None


def _in_wal_mode(workspace: Workspace, path: str) -> bool:
    """Asked only when nobody writes: closing a file that SQLite holds in this process gives up SQLite's locks on it."""
    with workspace.open(path, "rb") as file:
        return bool(file.read(20)[18:19] == b"\2")


def _connect(workspace: Workspace, path: str, options: str) -> sqlite3.Connection:
    """Connect, read once, and make sure that the file opened is the one in the workspace."""
    about = workspace.stat(path)
    real = workspace.resolve(path)
    if workspace.kind(path) != "file":
        raise ToolError(f"'{shown(path)}' is not a SQLite database: it is no file.")
    with _opening:
        before = _descriptors()
        connection = sqlite3.connect(f"{real.as_uri()}?{options}", uri=True, isolation_level=None, timeout=5.0)
        try:
            if not _holds(before, (about.st_dev, about.st_ino), real):
                raise OutsideWorkspaceError(f"Access outside the workspace is forbidden: {path}")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            connection.close()
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise ToolError(f"'{shown(path)}' is not a SQLite database, or is damaged: {error}.") from error
        except BaseException:
            connection.close()
            raise
    return connection


def _close(connection: sqlite3.Connection) -> None:
    """Close in turn with the openings, which watch what descriptors come and go."""
    with _opening:
        connection.close()


def _descriptors() -> dict[int, tuple[int, int]]:
    """The open descriptors of this process and the files that they belong to; empty where the system does not list them."""
    found = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                about = os.fstat(int(entry.name))
                found[int(entry.name)] = (about.st_dev, about.st_ino)
    return found


def _holds(before: dict[int, tuple[int, int]], wanted: tuple[int, int], real: Path) -> bool:
    """Whether a descriptor that was opened since `before` belongs to the file that was wanted.

    SQLite may take up again a descriptor of that file which it kept for a lock. Then, and where descriptors are not listed, the
    path has to lead to that file still.
    """
    if any(file == wanted and before.get(number) != wanted for number, file in _descriptors().items()):
        return True
    if before and wanted not in before.values():
        return False
    about = real.lstat()
    return (about.st_dev, about.st_ino) == wanted


def _connect_copy(workspace: Workspace, path: str, side: str, stack: contextlib.ExitStack) -> sqlite3.Connection:
    """Copy a database and the file beside it to a place of our own, and let SQLite recover the copy."""
    if workspace.stat(path).st_size > _COPY_BYTES:
        raise LimitError(f"'{shown(path)}' was not closed by its last writer and is too big to recover a copy of it.")
    import shutil

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lollms-")))
    for ending in ("", side):
        with workspace.open(path + ending, "rb") as source, (folder / f"copy{ending}").open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
    with Workspace(folder) as copy:
        return _connect(copy, "copy", "mode=rw")


def _restrict(connection: sqlite3.Connection, guard: Guard) -> None:
    """Take everything from a connection that a statement has no need of."""
    connection.text_factory = _as_text
    connection.execute("PRAGMA trusted_schema = OFF")
    if not guard.writable:
        connection.execute("PRAGMA query_only = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES)
    connection.set_authorizer(guard)


def _as_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# -- results and errors --------------------------------------------------------------------------------------------------------


def _shown_value(value: Any) -> Any:
    """A value as JSON has it: numbers stay numbers, bytes are their size, long text is cut."""
    if isinstance(value, bytes):
        return f"[{len(value):,} bytes]"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, str) and len(value) > _CELL:
        return f"{value[:_CELL]}… [{len(value) - _CELL:,} more characters]"
    return value


def _query_error(connection: sqlite3.Connection, guard: Guard, error: Exception, seconds: float) -> ToolError:
    """What went wrong, with what helps a model to write it right."""
    said = str(error)
    if "interrupted" in said:
        return ToolError(
            f"SQL Error: the query took longer than {seconds:.0f} seconds and was stopped. "
            "Join on matching columns, filter with WHERE or use LIMIT."
        )
    if guard.refused:
        what = guard.refused[0]
        if what in _WRITING.values():
            return ToolError(f"SQL Error: {what} is refused, the data is opened read-only. Only SELECT works.")
        return ToolError(f"SQL Error: {what} is refused. Write one SELECT statement.")
    if "readonly" in said or "query_only" in said:
        return ToolError("SQL Error: the data is opened read-only. Only SELECT works.")
    if "one statement" in said:
        return ToolError("SQL Error: the query holds several statements. Send them one at a time.")
    return ToolError(f"SQL Error: {said}.{_hint(connection, said)}")


def _hint(connection: sqlite3.Connection, said: str) -> str:
    function = re.match(r"no such function: (\w+)", said)
    if function:
        instead = _OTHER_DIALECTS.get(function[1].lower())
        return f" SQLite writes it as {instead}." if instead else " Use the functions of SQLite."
    missing = re.match(r"(?:no such (?:column|table)|ambiguous column name): (.+)", said)
    tables = table_columns(connection)
    if not missing or not tables:
        return ""
    wanted = missing[1].rpartition(".")[2].lower()
    known = {name.lower(): name for table, columns in tables.items() for name in (table, *columns)}
    owners = [table for table, columns in tables.items() if wanted in (name.lower() for name in columns)]
    near = [] if owners else [known[name] for name in get_close_matches(wanted, known, n=3, cutoff=0.6)]
    there = "; ".join(f"{table}({', '.join(columns[:40])})" for table, columns in list(tables.items())[:20])
    meant = f" Did you mean {' or '.join(near)}?" if near and "no such" in said else ""
    if owners and "no such column" in said:
        home = " and of ".join(owners)
        meant = f" {known[wanted]} is a column of {home}: name that table in FROM, joined where others are needed."
    return f"{meant} The tables are: {there}."
