"""database_ops: questions to the SQLite databases and CSV files of the workspace, in SQL.

Source: tool guide §3, §6, §10; CONTRACT A9, A17.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

from lollms_client._paths import Workspace
from lollms_client.errors import LollmsError, ToolError
from lollms_client.tools_bindings.lcp.default_tools._support import (
    ConfirmHandler,
    Host,
    answers,
    as_bool,
    as_text,
    file_names,
    shown,
    suggest,
)
from lollms_client.tools_bindings.lcp.default_tools.database_ops._csv import Table, load_csv
from lollms_client.tools_bindings.lcp.default_tools.database_ops._describe import describe
from lollms_client.tools_bindings.lcp.default_tools.database_ops._sqlite import (
    Guard,
    Rows,
    in_memory,
    open_database,
    quoted,
    run,
    table_columns,
)

TOOL_LIBRARY_NAME = "Database Operations"
TOOL_LIBRARY_DESC = "Answers questions about the SQLite databases and CSV files of the workspace with SQL."
TOOL_LIBRARY_ICON = "🗄️"

# Reading is all that they do, unless the host sets read_only to False: then tool_execute_query asks about what it destroys.
TOOL_EFFECTS = {"tool_execute_query": ["read"], "tool_describe_database": ["read"]}
# Takes .db, .db3, .sqlite, .sqlite3, .csv and .tsv, and leaves out the -wal, -shm and -journal files beside databases.
TOOL_WORKSPACE_PATHS = {
    "tool_execute_query": {"database_name": "*.[cdst]*[be3v]"},
    "tool_describe_database": {"database_name": "*.[cdst]*[be3v]"},
}

_DATABASES = (".db", ".sqlite", ".sqlite3", ".db3")
_TABLES = (".csv", ".tsv")
_TEXTS = (".txt", ".md")
_ROWS = 50
_SAMPLED_TABLES = 10
_NO_TABLE = re.compile(r"no such table: (\w+)")
_PROMPT_FILES = 12
_PROMPT_CSV_BYTES = 5_000_000
_PROMPT_SECONDS = 0.3
_KEPT_PROMPTS = 64

_HOST = Host()
_described: dict[tuple[str, int, int, int, int, int], str] = {}


def init_tools_library(config: dict[str, Any] | None = None) -> None:
    """Take the host's configuration: `read_only` (True unless given), `root_path`, `autonomy_level`, `confirm_handler`."""
    _HOST.configure(config)


def set_confirm_handler(handler: ConfirmHandler | None) -> None:
    """Ask this handler from now on."""
    _HOST.confirm_handler = handler


def tool_database_ops_prompt() -> str:
    """What there is to ask about: databases with tables, columns and values, CSV files with columns."""
    with _HOST.workspace() as workspace:
        databases = [_described_once(workspace, name) for name in file_names(workspace, _DATABASES)[:_PROMPT_FILES]]
        tables = [_described_once(workspace, name) for name in file_names(workspace, _TABLES)[:_PROMPT_FILES]]
    return "\n".join([*databases, *tables])


@answers
def tool_execute_query(database_name: str, query: str) -> dict[str, Any]:
    """Runs one SQL SELECT query on a SQLite database or a CSV file of the workspace. The table of a CSV file is named data.
    Returns columns, rows (at most 50) and total_rows.

    Args:
        database_name (str): The file, for example "shop.db" or "sales.csv".
        query (str): One SQLite query, for example "SELECT region, SUM(units) FROM orders GROUP BY region".
    """
    query = _statement(query)
    with _HOST.workspace() as workspace:
        path = _find(workspace, database_name)
        try:
            return _query_csv(workspace, path, query) if _is_csv(path) else _query_database(workspace, path, database_name, query)
        except ToolError as error:
            raise ToolError(f"{error}{_elsewhere(workspace, path, str(error))}") from error


@answers
def tool_describe_database(database_name: str) -> str:
    """Shows the tables of a SQLite database, or a CSV file as a table: columns with types and values, number of rows, first rows.

    Args:
        database_name (str): The file, for example "shop.db" or "sales.csv".
    """
    with _HOST.workspace() as workspace:
        path = _find(workspace, database_name)
        if _is_csv(path):
            return _describe_csv(workspace, path)
        with _opened(workspace, path, Guard()) as connection:
            lines = describe(connection)
            samples = [_sample(connection, name) for name in list(table_columns(connection))[:_SAMPLED_TABLES]]
    return "\n".join([*lines, *filter(None, samples)]) or f"'{shown(path)}' is a database without tables."


# -- helpers -------------------------------------------------------------------------------------------------------------------


def _is_csv(path: str) -> bool:
    return path.lower().endswith(_TABLES)


def _query_database(workspace: Workspace, path: str, given: str, query: str) -> dict[str, Any]:
    guard = Guard(writable=not as_bool(_HOST.config.get("read_only"), default=True))
    with _opened(workspace, path, guard) as connection:
        if guard.writable:
            query = _approved(connection, guard, given, query)
        return _answer(run(connection, guard, query, _ROWS))


def _query_csv(workspace: Workspace, path: str, query: str) -> dict[str, Any]:
    table, guard = load_csv(workspace, path), Guard()
    with contextlib.closing(_connection(table, path, guard)) as connection:
        result = _answer(run(connection, guard, query, _ROWS))
    wanted = query.lower()
    notes = [text for column, text in table.notes if not column or "*" in wanted or column.lower() in wanted]
    return {**result, "notes": notes} if notes else result


def _describe_csv(workspace: Workspace, path: str) -> str:
    table = load_csv(workspace, path)
    with contextlib.closing(_connection(table, path, Guard())) as connection:
        return "\n".join([describe(connection)[0], _sample(connection, "data"), *(text for _, text in table.notes)])


def _elsewhere(workspace: Workspace, path: str, said: str) -> str:
    """Where a table stands that a query looked for in the wrong file."""
    missing = _NO_TABLE.search(said)
    if missing is None:
        return ""
    for other in file_names(workspace, _DATABASES)[:_PROMPT_FILES]:
        if other != path:
            with contextlib.suppress(OSError, LollmsError), _opened(workspace, other, Guard()) as connection:
                if missing[1].lower() in {name.lower() for name in table_columns(connection)}:
                    return f" The table {missing[1]} is in the database '{shown(other)}': give that as database_name."
    for other in file_names(workspace, _TABLES):
        if other != path and _stem(other) == missing[1].lower():
            return f" '{shown(other)}' is a file of its own: give that as database_name; its table is named data."
    texts = [name for name in file_names(workspace, _TEXTS) if _stem(name) == missing[1].lower()]
    return f" '{shown(texts[0])}' is a text file: read it with tool_read_file." if texts else ""


def _stem(path: str) -> str:
    """A file's name without its folder and ending, in lower case."""
    return path.rpartition("/")[2].rpartition(".")[0].lower()


def _find(workspace: Workspace, given: object) -> str:
    """The file that is meant: by its path, without its ending, or in another case. Says what is there otherwise."""
    name = as_text(given, "database_name").strip()
    if workspace.kind(name) == "file":
        return name
    endings = (*_DATABASES, *_TABLES)
    there = file_names(workspace, endings)
    meant = [path for path in there if path.lower() in (name.lower(), *(name.lower() + ending for ending in endings))]
    if len(meant) == 1:
        return meant[0]
    near = suggest(name, there) or there[:10]
    hint = f" There is: {', '.join(map(shown, near))}." if near else " The workspace has no database and no CSV file."
    raise ToolError(f"{'File' if _is_csv(name) else 'Database'} '{shown(name)}' not found.{hint}")


@contextlib.contextmanager
def _opened(workspace: Workspace, path: str, guard: Guard) -> Iterator[sqlite3.Connection]:
    """A database; what SQLite says while it opens one becomes ours."""
    try:
        with open_database(workspace, path, guard) as connection:
            yield connection
    except sqlite3.Error as error:
        raise ToolError(f"SQL Error: '{shown(path)}' cannot be read: {error}.") from error


def _connection(table: Table, path: str, guard: Guard) -> sqlite3.Connection:
    """A CSV file as the table data, which also answers to the file's name."""
    name = path.rpartition("/")[2]
    return in_memory(guard, "data", table.columns, table.rows, [name, name.rpartition(".")[0]])


def _statement(query: object) -> str:
    """A query without the fence of a code block that models put around it."""
    text = as_text(query, "query").strip()
    if text.startswith("```"):
        text = text.strip("`").strip()
        text = text[6:] if text.lower().startswith("sqlite") else text[3:] if text.lower().startswith("sql") else text
    if not text.strip():
        raise ToolError("SQL Error: the query is empty. Write one SELECT statement.")
    return text.strip()


def _answer(result: Rows) -> dict[str, Any]:
    """The documented form, with notes where something has to be known to read it."""
    output: dict[str, Any] = {"columns": result.columns, "rows": result.rows, "total_rows": result.total}
    if result.changed >= 0:
        output["changed_rows"] = result.changed
    elif not result.complete:
        output["note"] = f"The query was stopped; there are at least {result.total} rows."
    elif not result.total:
        output["note"] = "No row matches. Text is compared exactly; see the values that occur with SELECT DISTINCT."
    return output


def _approved(connection: sqlite3.Connection, guard: Guard, database_name: str, query: str) -> str:
    """Ask about a statement that writes, after compiling it to see what it would do."""
    explained = query if query[:7].lower() == "explain" else f"EXPLAIN {query}"
    run(connection, guard, explained, keep=0)
    if not guard.writes:
        return query
    asked = {"database_name": database_name, "query": query}
    # That REPLACE deletes what it replaces is not seen when a statement is compiled.
    effects = ["destructive"] if guard.destroys or "replace" in query.lower() else ["write"]
    return str(_HOST.approve("tool_execute_query", asked, effects)["query"])


def _sample(connection: sqlite3.Connection, table: str) -> str:
    """The first rows of a table, one a line."""
    query = f"SELECT * FROM {quoted(table)} LIMIT 3"  # noqa: S608 - the name is quoted
    try:
        rows = run(connection, Guard(), query, keep=3).rows
    except LollmsError:
        return ""
    lines = [" | ".join("NULL" if value is None else str(value)[:60].replace("\n", " ") for value in row) for row in rows]
    return "\n".join([f"First rows of {table}:", *lines]) if lines else ""


def _described_once(workspace: Workspace, path: str) -> str:
    """A file for the prompt, looked at again only when it has changed."""
    try:
        about = workspace.stat(path)
        log = workspace.stat(f"{path}-wal").st_mtime_ns if workspace.kind(f"{path}-wal") else 0
        key = (path, about.st_dev, about.st_ino, about.st_mtime_ns, log, about.st_size)
        if key not in _described:
            if len(_described) >= _KEPT_PROMPTS:
                _described.clear()
            _described[key] = _described_now(workspace, path, about.st_size)
        return _described[key]
    except (OSError, LollmsError) as error:
        return f"{shown(path)}: cannot be read ({error})"


def _described_now(workspace: Workspace, path: str, size: int) -> str:
    if path.lower().endswith(_DATABASES):
        with _opened(workspace, path, Guard()) as connection:
            lines = describe(connection, _PROMPT_SECONDS)
        return f"Database {shown(path)}: " + ("; ".join(lines) or "no tables")
    if size > _PROMPT_CSV_BYTES:
        return f"CSV file {shown(path)}: a large file; see its columns with tool_describe_database"
    table = load_csv(workspace, path)
    with contextlib.closing(_connection(table, path, Guard())) as connection:
        return f"CSV file {shown(path)}: {describe(connection, _PROMPT_SECONDS)[0]}"
