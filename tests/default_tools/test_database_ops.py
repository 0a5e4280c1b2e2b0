"""The database tools: right answers, errors that help, and no way to write."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest

from lollms_client._paths import Workspace
from lollms_client.errors import OutsideWorkspaceError
from lollms_client.tools_bindings.lcp.default_tools.database_ops import _sqlite


@pytest.fixture
def tools(load):
    return load("database_ops")


def make(path: Path, script: str = "CREATE TABLE t(a); INSERT INTO t VALUES (1);") -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


@pytest.fixture
def shop(ws):
    """A database as people have them: types that are not kept, missing values, a view, a relation."""
    make(
        ws / "shop.db",
        """
        CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE "order lines"(id INTEGER PRIMARY KEY, region TEXT, units INTEGER, day TEXT, picture BLOB, customer INT REFERENCES customers(id));
        CREATE VIEW north AS SELECT * FROM "order lines" WHERE region = 'North';
        """
        + "".join(
            f"""INSERT INTO "order lines" VALUES ({n}, '{"North" if n % 2 else "South"}', {"'n/a'" if n == 7 else n}, '2024-01-{n % 28 + 1:02}', {"x'0102'" if n % 3 else "NULL"}, 1);"""
            for n in range(120)
        ),
    )
    return ws / "shop.db"


def test_a_query_returns_columns_at_most_50_rows_and_how_many_there_are(tools, shop, done):
    out = done(tools.tool_execute_query("shop.db", 'SELECT id, region FROM "order lines" ORDER BY id'))
    assert out == {
        "columns": ["id", "region"],
        "rows": [[n, "North" if n % 2 else "South"] for n in range(50)],
        "total_rows": 120,
    }
    out = done(tools.tool_execute_query("shop.db", "SELECT region, COUNT(*) n FROM north GROUP BY region"))
    assert out == {"columns": ["region", "n"], "rows": [["North", 60]], "total_rows": 1}


def test_values_are_what_json_can_hold(tools, shop, done):
    (row,) = done(
        tools.tool_execute_query(
            "shop.db", "SELECT 1, 2.5, NULL, 'é', x'0102', 9e999, -9e999, 9223372036854775807, CAST(x'ff61' AS TEXT)"
        )
    )["rows"]
    assert row == [1, 2.5, None, "é", "[2 bytes]", "Infinity", "-Infinity", 9223372036854775807, "\ufffda"]
    json.dumps(row, allow_nan=False)
    (row,) = done(tools.tool_execute_query("shop.db", "SELECT replace(hex(zeroblob(1000)), '0', 'x')"))["rows"]
    assert row == ["x" * 1000 + "… [1,000 more characters]"]


def test_queries_may_be_fenced_commented_and_ended(tools, shop, done):
    for query in (
        "SELECT 1;",
        "```sql\nSELECT 1\n```",
        "```SELECT 1```",
        "```sqlite\nSELECT 1;\n```",
        "-- one\nSELECT 1; -- done",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "VALUES (1)",
    ):
        assert done(tools.tool_execute_query("shop.db", query))["rows"] == [[1]], query


def test_a_query_without_rows_says_how_to_go_on(tools, shop, done):
    out = done(tools.tool_execute_query("shop.db", "SELECT * FROM north WHERE region = 'north'"))
    assert out["total_rows"] == 0
    assert "SELECT DISTINCT" in out["note"]


def test_a_missing_database_is_named_with_those_there_are(tools, ws, failed):
    assert (
        failed(tools.tool_execute_query("x.db", "SELECT 1"))
        == "Database 'x.db' not found. The workspace has no database and no CSV file."
    )
    make(ws / "shop.db")
    assert failed(tools.tool_execute_query("x.db", "SELECT 1")) == "Database 'x.db' not found. There is: shop.db."
    assert not (ws / "x.db").exists()


def test_a_database_may_be_named_without_its_ending_or_in_another_case(tools, ws, done):
    (ws / "d").mkdir()
    make(ws / "d" / "Shop.sqlite3")
    for name in ("d/Shop", "d/shop.sqlite3", "d/Shop.sqlite3", " d/Shop.sqlite3 "):
        assert done(tools.tool_execute_query(name, "SELECT a FROM t"))["rows"] == [[1]]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "SELECT unit FROM north",
            ["no such column: unit. Did you mean units?", "order lines(id, region, units, day, picture, customer)"],
        ),
        (
            "SELECT c.region FROM customers c",
            ["no such column: c.region. region is a column of order lines and of north: name that table in FROM"],
        ),
        ("SELECT * FROM orders", ["no such table: orders. Did you mean order lines?", "customers(id, name)"]),
        ("SELECT id FROM north, customers", ["ambiguous column name: id", "north(id, region"]),
        ("SELECT YEAR(day) FROM north", ["no such function: YEAR. SQLite writes it as strftime('%Y', column)"]),
        ("SELEC 1", ['near "SELEC": syntax error']),
        ("SELECT 1; SELECT 2", ["several statements"]),
        ("-- nothing", ["the query is empty"]),
        ("", ["the query is empty"]),
        ("SELECT randomblob(200000000)", ["too big"]),
    ],
)
def test_an_error_says_what_helps_to_mend_the_query(tools, shop, failed, query, said):
    error = failed(tools.tool_execute_query("shop.db", query))
    assert error.startswith("SQL Error: ")
    for part in said:
        assert part in error


WRITES = [
    "INSERT INTO customers VALUES (1, 'x')",
    "UPDATE customers SET name = ''",
    "DELETE FROM customers",
    "REPLACE INTO customers VALUES (1, 'x')",
    "DROP TABLE customers",
    "DROP VIEW north",
    "ALTER TABLE customers ADD COLUMN x",
    "CREATE TABLE x(a)",
    "CREATE TEMP TABLE x(a)",
    "CREATE VIRTUAL TABLE x USING fts5(a)",
    "CREATE INDEX i ON customers(name)",
    "WITH a AS (SELECT 1) INSERT INTO customers SELECT 1, 'x'",
    "ATTACH 'other.db' AS o",
    "ATTACH ':memory:' AS o",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO 'copy.db'",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "SAVEPOINT s",
    "PRAGMA journal_mode = WAL",
    "PRAGMA journal_mode",
    "PRAGMA user_version = 3",
    "PRAGMA writable_schema = ON",
    "PRAGMA query_only = OFF",
    "PRAGMA wal_checkpoint",
    "PRAGMA optimize",
    "UPDATE sqlite_master SET sql = ''",
    "SELECT load_extension('x')",
    "SELECT fts3_tokenizer('x', x'00')",
    "EXPLAIN DELETE FROM customers",
]


@pytest.mark.parametrize("query", WRITES)
def test_nothing_that_writes_is_run(tools, shop, ws, failed, query):
    before = shop.read_bytes(), sorted(os.listdir(ws))  # noqa: PTH208
    assert failed(tools.tool_execute_query("shop.db", query)).startswith("SQL Error: ")
    assert (shop.read_bytes(), sorted(os.listdir(ws))) == before  # noqa: PTH208


def test_the_schema_may_be_asked_for_in_sqlites_own_ways(tools, shop, done):
    for query in (
        "PRAGMA table_info(customers)",
        "SELECT * FROM pragma_table_info('customers')",
        "PRAGMA index_list('customers')",
        "SELECT name FROM sqlite_master",
        "EXPLAIN QUERY PLAN SELECT * FROM north",
    ):
        done(tools.tool_execute_query("shop.db", query))


@pytest.mark.timeout(30)
def test_a_query_that_never_ends_is_stopped(tools, shop, failed, done, monkeypatch):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"
    monkeypatch.setattr(_sqlite.run, "__defaults__", (50, 0.3))
    assert "took longer than" in failed(tools.tool_execute_query("shop.db", endless.format("sum(i)")))
    out = done(tools.tool_execute_query("shop.db", endless.format("i")))
    assert out["rows"] == [[n] for n in range(1, 51)]
    assert out["total_rows"] > 50
    assert out["note"] == f"The query was stopped; there are at least {out['total_rows']} rows."


def test_many_rows_are_counted_and_not_kept(tools, shop, done, monkeypatch):
    import tracemalloc

    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT i, hex(i) FROM n"
    tracemalloc.start()
    try:
        assert done(tools.tool_execute_query("shop.db", query))["total_rows"] == 200_000
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
    monkeypatch.setattr(_sqlite, "_COUNTED_ROWS", 1000)
    assert done(tools.tool_execute_query("shop.db", query))["note"] == "The query was stopped; there are at least 1000 rows."


@pytest.mark.parametrize("content", [b"hello world " * 100, b"SQLite format 3\0" + b"\xff" * 2000, b"\0" * 100])
def test_a_file_that_is_no_database_is_said_to_be_none(tools, ws, failed, content):
    (ws / "x.db").write_bytes(content)
    for result in (tools.tool_execute_query("x.db", "SELECT 1 FROM t"), tools.tool_describe_database("x.db")):
        assert "'x.db' is not a SQLite database" in failed(result) or "cannot be read" in failed(result)
    assert (ws / "x.db").read_bytes() == content
    assert "x.db" in tools.tool_database_ops_prompt()


def test_folders_and_pipes_named_like_databases_are_refused_without_waiting(tools, ws, failed):
    (ws / "d.db").mkdir()
    os.mkfifo(ws / "p.db")
    for name in ("d.db", "p.db"):
        failed(tools.tool_execute_query(name, "SELECT 1"))
        failed(tools.tool_describe_database(name))


# -- states in which a writer leaves a database


def listing(folder: Path) -> list[tuple[str, bytes]]:
    return sorted((p.name, b"" if p.name.endswith("-shm") else p.read_bytes()) for p in folder.iterdir())


def wal_database(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1);")
    return connection


def killed_while_writing(path: Path, journal_mode: str, python: str) -> None:
    """A database whose writer died in the middle: with a log, or with a journal that has to be played back."""
    code = f"""
import os, sqlite3
c = sqlite3.connect({str(path)!r}, isolation_level=None)
c.execute("PRAGMA journal_mode = {journal_mode}")
c.execute("PRAGMA cache_size = 1"); c.execute("PRAGMA cache_spill = 1"); c.execute("PRAGMA synchronous = FULL")
c.execute("CREATE TABLE t(a, b)")
c.execute("INSERT INTO t VALUES (1, 'committed')")
if {journal_mode!r} == "DELETE":
    c.execute("BEGIN")
    for n in range(2000):
        c.execute("INSERT INTO t VALUES (?, ?)", (n, "x" * 500))
os._exit(9)
"""
    assert subprocess.run([python, "-c", code], check=False, timeout=30).returncode == 9


def test_reading_a_database_in_wal_mode_leaves_nothing_behind(tools, ws, done):
    wal_database(ws / "w.db").close()
    before = listing(ws)
    assert [name for name, _ in before] == ["w.db"]
    assert done(tools.tool_execute_query("w.db", "SELECT a FROM t"))["rows"] == [[1]]
    assert listing(ws) == before


def test_a_database_in_wal_mode_that_somebody_writes_to_is_read_up_to_date(tools, ws, done):
    with contextlib.closing(wal_database(ws / "w.db")) as writer:
        for n in (2, 3):
            writer.execute("INSERT INTO t VALUES (?)", (n,))
            writer.commit()
            before = listing(ws)
            assert done(tools.tool_execute_query("w.db", "SELECT max(a) FROM t"))["rows"] == [[n]]
            assert listing(ws) == before
            assert f"{n} rows" in tools.tool_database_ops_prompt()
        writer.execute("INSERT INTO t VALUES (9)")
        assert done(tools.tool_execute_query("w.db", "SELECT max(a) FROM t"))["rows"] == [[3]]
        writer.commit()


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
@pytest.mark.parametrize("index", ["kept", "lost"])
def test_a_database_whose_writer_died_is_read_as_it_was_committed_and_stays_as_it_is(tools, ws, done, python, mode, index):
    killed_while_writing(ws / "k.db", mode, python)
    if index == "lost":
        (ws / "k.db-shm").unlink(missing_ok=True)
    before = listing(ws)
    assert len(before) > 1
    assert done(tools.tool_execute_query("k.db", "SELECT * FROM t"))["rows"] == [[1, "committed"]]
    assert listing(ws) == before
    assert "1 row" in tools.tool_database_ops_prompt()


def test_a_file_that_cannot_be_written_is_read(tools, ws, done):
    make(ws / "r.db")
    (ws / "r.db").chmod(0o444)
    assert done(tools.tool_execute_query("r.db", "SELECT a FROM t"))["rows"] == [[1]]


def test_many_threads_ask_one_database_at_once(tools, shop):
    results = []

    def ask() -> None:
        for _ in range(20):
            results.append(tools.tool_execute_query("shop.db", "SELECT count(*) FROM north")["output"]["rows"])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [[[60]]] * 160


@pytest.mark.timeout(60)
def test_no_race_shows_a_database_from_outside(tools, ws, tmp_path):
    (tmp_path / "outside").mkdir()
    (ws / "d").mkdir()
    make(tmp_path / "outside" / "x.db", "CREATE TABLE t(a); INSERT INTO t VALUES ('secret');")
    make(ws / "d" / "x.db", "CREATE TABLE t(a); INSERT INTO t VALUES ('mine');")
    (ws / "bad").symlink_to(tmp_path / "outside")
    stop = threading.Event()

    def turn() -> None:
        exchange = ctypes.CDLL(None).renameat2
        while not stop.is_set():
            exchange(-100, os.fsencode(ws / "d"), -100, os.fsencode(ws / "bad"), 2)

    thread = threading.Thread(target=turn)
    thread.start()
    seen, refused = set(), 0
    try:
        for _ in range(1500):
            result = tools.tool_execute_query("d/x.db", "SELECT a FROM t")
            if result["success"]:
                seen.add(result["output"]["rows"][0][0])
            else:
                refused += 1
    finally:
        stop.set()
        thread.join(20)
    assert refused > 0
    assert seen == {"mine"}


@pytest.mark.parametrize("back", [False, True])
def test_a_database_that_is_exchanged_while_it_is_opened_is_refused(ws, tmp_path, monkeypatch, back):
    (tmp_path / "outside").mkdir()
    (ws / "d").mkdir()
    make(tmp_path / "outside" / "x.db")
    make(ws / "d" / "x.db")
    connect = sqlite3.connect

    def exchanged(*args, **kwargs):
        (ws / "d").rename(ws / "was")
        (ws / "d").symlink_to(tmp_path / "outside")
        connection = connect(*args, **kwargs)
        if back:
            (ws / "d").unlink()
            (ws / "was").rename(ws / "d")
        return connection

    monkeypatch.setattr(_sqlite.sqlite3, "connect", exchanged)
    with (
        Workspace(ws) as workspace,
        pytest.raises(OutsideWorkspaceError),
        _sqlite.open_database(workspace, "d/x.db", _sqlite.Guard()),
    ):
        pass


# -- writing, where the host allows it


def test_a_host_that_allows_it_lets_statements_write(load, ws, done, failed):
    make(ws / "x.db")
    tools = load("database_ops", read_only=False, autonomy_level="full_access")
    assert done(tools.tool_execute_query("x.db", "INSERT INTO t VALUES (2), (3)")) == {
        "columns": [],
        "rows": [],
        "total_rows": 0,
        "changed_rows": 2,
    }
    assert done(tools.tool_execute_query("x.db", "UPDATE t SET a = a + 1"))["changed_rows"] == 3
    done(tools.tool_execute_query("x.db", "CREATE TABLE u(b)"))
    done(tools.tool_execute_query("x.db", "DROP TABLE u"))
    assert done(tools.tool_execute_query("x.db", "SELECT sum(a) FROM t"))["rows"] == [[9]]
    for query in (
        "ATTACH 'y.db' AS y",
        "VACUUM INTO 'y.db'",
        "PRAGMA journal_mode = WAL",
        "BEGIN",
        "SELECT load_extension('x')",
        "DELETE FROM t; DELETE FROM t",
    ):
        failed(tools.tool_execute_query("x.db", query))
    assert [p.name for p in ws.iterdir()] == ["x.db"]


@pytest.mark.parametrize(
    ("value", "writes"),
    [(True, False), ("true", False), (None, False), ("perhaps", False), (False, True), ("false", True), (0, True)],
)
def test_only_a_clear_no_to_read_only_opens_for_writing(load, ws, value, writes):
    make(ws / "x.db")
    tools = load("database_ops", read_only=value)
    assert tools.tool_execute_query("x.db", "INSERT INTO t VALUES (2)")["success"] is writes


def test_safe_asks_about_what_destroys_and_not_about_what_adds(load, ws, done, failed):
    make(ws / "x.db")
    asked = []
    tools = load(
        "database_ops",
        read_only=False,
        confirm_handler=lambda source, label: asked.append(json.loads(source)["query"]) or ("reject", "no"),
    )
    done(tools.tool_execute_query("x.db", "INSERT INTO t VALUES (2)"))
    done(tools.tool_execute_query("x.db", "SELECT * FROM t"))
    destroying = [
        "DELETE FROM t",
        "UPDATE t SET a = 0",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN b",
        "INSERT OR REPLACE INTO t VALUES (1)",
    ]
    for query in destroying:
        assert failed(tools.tool_execute_query("x.db", query)) == "no"
    assert asked == destroying
    assert done(tools.tool_execute_query("x.db", "SELECT * FROM t"))["rows"] == [[1], [2]]


# -- describing


def test_a_database_is_described_in_few_words(tools, shop, done):
    assert done(tools.tool_describe_database("shop")).splitlines() == [
        "customers(id INTEGER, name TEXT), 0 rows",
        "\"order lines\"(id INTEGER, region TEXT: 'South'|'North', units INTEGER: 1 not numbers, e.g. 'n/a', day TEXT: e.g. '2024-01-01', picture BLOB: 40 NULL, customer INT: is customers.id), 120 rows",
        "north(id INTEGER, region TEXT: 'North', units INTEGER: 1 not numbers, e.g. 'n/a', day TEXT: e.g. '2024-01-02', picture BLOB: 20 NULL, customer INT), 60 rows",
        "First rows of order lines:",
        "0 | South | 0 | 2024-01-01 | NULL | 1",
        "1 | North | 1 | 2024-01-02 | [2 bytes] | 1",
        "2 | South | 2 | 2024-01-03 | [2 bytes] | 1",
        "First rows of north:",
        "1 | North | 1 | 2024-01-02 | [2 bytes] | 1",
        "3 | North | 3 | 2024-01-04 | NULL | 1",
        "5 | North | 5 | 2024-01-06 | [2 bytes] | 1",
    ]


def test_broken_views_odd_names_and_empty_databases_are_described(tools, ws, done):
    make(
        ws / "x.db",
        """CREATE TABLE "a ""b" ("select" TEXT, "c d" INT); CREATE VIEW v AS SELECT gone FROM nowhere; CREATE TABLE e(x);""",
    )
    out = done(tools.tool_describe_database("x.db"))
    assert '"a ""b"(' in out
    assert "e(x), 0 rows" in out
    make(ws / "n.db", "")
    assert done(tools.tool_describe_database("n.db")) == "'n.db' is a database without tables."


def test_the_prompt_tells_what_there_is_to_ask_about(tools, ws, shop):
    (ws / "sub").mkdir()
    (ws / "sub" / "targets.csv").write_text("region,target\nNorth,10\nSouth,soon\nEast,12\n")
    assert tools.tool_database_ops_prompt().splitlines() == [
        "Database shop.db: customers(id INTEGER, name TEXT), 0 rows; \"order lines\"(id INTEGER, region TEXT: 'South'|'North', units INTEGER: 1 not numbers, e.g. 'n/a', day TEXT: e.g. '2024-01-01', picture BLOB: 40 NULL, customer INT: is customers.id), 120 rows; north(id INTEGER, region TEXT: 'North', units INTEGER: 1 not numbers, e.g. 'n/a', day TEXT: e.g. '2024-01-02', picture BLOB: 20 NULL, customer INT), 60 rows",
        "CSV file sub/targets.csv: data(region TEXT: 'North'|'South'|'East', target INTEGER: 1 not numbers, e.g. 'soon'), 3 rows",
    ]


def test_the_prompt_follows_the_files_and_bears_with_broken_ones(tools, ws, tmp_path):
    assert tools.tool_database_ops_prompt() == ""
    (ws / "a.csv").write_text("x\n1\n")
    assert "x INTEGER), 1 row" in tools.tool_database_ops_prompt()
    (ws / "a.csv").write_text("y\n1\n2\n")
    assert "y INTEGER), 2 rows" in tools.tool_database_ops_prompt()
    (ws / "b.csv").write_bytes(b"\0\1")
    (ws / "out.db").symlink_to(tmp_path / "elsewhere.db")
    make(tmp_path / "elsewhere.db")
    os.mkfifo(ws / "p.csv")
    prompt = tools.tool_database_ops_prompt()
    assert "b.csv: cannot be read ('b.csv' is not text but binary data (2 bytes).)" in prompt
    assert "out.db" not in prompt
    assert "p.csv" not in prompt
