"""CSV files as people have them, asked in SQL."""

from __future__ import annotations

import contextlib
import csv
import io
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._paths import Workspace
from lollms_client.errors import LollmsError, ToolError
from lollms_client.tools_bindings.lcp.default_tools.database_ops import _csv


@pytest.fixture
def tools(load):
    return load("database_ops")


@pytest.fixture
def ask(tools, ws, done):
    """`ask(content, query="SELECT * FROM data")`: the output for a file of that content."""

    def output(content, query="SELECT * FROM data"):
        (ws / "f.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        return done(tools.tool_execute_query("f.csv", query))

    return output


SALES = "region,units,price\nNorth,10,2.5\nSouth,soon,3\nNorth,5,\n"


def test_a_csv_is_the_table_data(ask):
    out = ask(SALES, "SELECT region, SUM(units) AS n FROM data WHERE typeof(units) <> 'text' GROUP BY region")
    assert out["columns"] == ["region", "n"]
    assert out["rows"] == [["North", 15]]
    assert out["total_rows"] == 1


def test_numbers_are_told_value_by_value_and_odd_ones_are_noted(ask):
    out = ask(SALES)
    assert out["rows"] == [["North", 10, 2.5], ["South", "soon", 3], ["North", 5, None]]
    assert out["notes"] == [
        "units: 1 of 3 values are text, not numbers ('soon'); leave them out with WHERE typeof(units) <> 'text'."
    ]
    assert "notes" not in ask(SALES, "SELECT region FROM data")


def test_what_people_write_for_no_value_among_numbers_is_null_and_noted(ask):
    out = ask("day,mm\n1,3.5\n2,n/a\n3,12\n4,-\n5,N/A \n6,7\n7,1\n8,2\n", "SELECT day FROM data ORDER BY mm DESC")
    assert out["rows"][0] == [3]
    out = ask("day,mm\n1,3.5\n2,n/a\n3,12\n", "SELECT mm FROM data")
    assert out["rows"] == [[3.5], [None], [12]]
    assert out["notes"] == ["mm: 1 value ('n/a') read as NULL."]
    assert ask("name,note\na,none\nb,n/a\n", "SELECT note FROM data")["rows"] == [["none"], ["n/a"]], "texts stay texts"


@pytest.mark.parametrize("table", ["data", "f", '"f.csv"', "'f.csv'", "DATA"])
def test_the_table_also_answers_to_the_files_name(ask, table):
    assert ask(SALES, f"SELECT count(*) FROM {table}")["rows"] == [[3]]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("a;b\n1;2\n", [[1, 2]]),
        ("a\tb\n1\tx y\n", [[1, "x y"]]),
        ("a|b\n1|2,5\n", [[1, "2,5"]]),
        ("sep=;\na;b\n1;2\n", [[1, 2]]),
        ("a;b\n1,5;2\n1.234,5;x\n", [[1.5, 2], [1234.5, "x"]]),
        ('a,b\n"1,234",x\n"-12,345,678.5",y\n', [[1234, "x"], [-12345678.5, "y"]]),
        ("\ufeffa,b\n1,2\n", [[1, 2]]),
        ("a,b\r\n1,2\r\n", [[1, 2]]),
        ("a,b\r1,2\r", [[1, 2]]),
        ('a,b\n"x\ny","say ""hi"""\n', [["x\ny", 'say "hi"']]),
        ("\n\na,b\n\n1,2\n,\n\n", [[1, 2]]),
        ("name\nx\ny\n", [["x"], ["y"]]),
        ("a,b\n1,2", [[1, 2]]),
        ("a,b\n007,+5\n1e5,-0\n12345678901234567890,1.5e-3\n0x10,1_000\n.5,5.\n\u0661,nan\n", [["007", 5], ["1e5", 0], ["12345678901234567890", 0.0015], ["0x10", "1_000"], [0.5, "5."], ["\u0661", "nan"]]),
        ("a,b\n1.5e999,inf\n", [["1.5e999", "inf"]]),
    ],
)  # fmt: skip
def test_files_as_they_come(ask, content, rows):
    assert ask(content)["rows"] == rows


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(ask, encoding):
    assert ask("größe,b\nÄ,1\n".encode(encoding), "SELECT größe FROM data")["rows"] == [["Ä"]]


def test_rows_that_are_too_short_or_too_long_are_kept_and_counted(ask):
    out = ask("a,b,c\n1,2\n1,2,3,4,5\n1,2,3\n1\n")
    assert out["rows"] == [[1, 2, None], [1, 2, "3,4,5"], [1, 2, 3], [1, None, None]]
    assert "2 rows with fewer cells than columns; the missing ones are NULL." in out["notes"]
    assert "1 row with more cells than columns; the last column holds what was too much." in out["notes"]


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("Unit Price (€),2nd,order,a,A,,group by", ["Unit_Price", "c_2nd", "order_", "a", "A_2", "c6", "group_by"]),
        (' x ,"a""b",a.b,a_b', ["x", "a_b", "a_b_2", "a_b_3"]),
        ("1,2,3.5", ["c1", "c2", "c3"]),
    ],
)
def test_column_names_need_no_quotes(ask, header, columns):
    out = ask(f"{header}\n" + ",".join("x" * len(columns)) + "\n")
    assert out["columns"] == columns
    ask(f"{header}\n" + ",".join("x" * len(columns)) + "\n", f"SELECT {', '.join(columns)} FROM data")


def test_a_renamed_column_is_noted(ask):
    assert "The column 'Unit Price' is called Unit_Price." in ask("Unit Price,b\n1,2\n")["notes"]
    assert "no line of column names" in ask("1,2\n3,4\n")["notes"][0]
    assert ask("1,2\n3,4\n")["rows"] == [[1, 2], [3, 4]]


def test_spaces_around_values_and_unclosed_quotes_are_noted(ask):
    out = ask("a,b\n North,1\nNorth, 2 \n")
    assert out["rows"] == [[" North", 1], ["North", 2]]
    assert out["notes"] == ["a: 1 value has spaces around; compare TRIM(a)."]
    assert any("never closed" in note for note in ask('a,b\n"x,1\ny,2\n')["notes"])


def test_errors_name_the_columns(tools, ws, failed):
    (ws / "f.csv").write_text(SALES)
    error = failed(tools.tool_execute_query("f.csv", "SELECT unit FROM data"))
    assert error == "SQL Error: no such column: unit. Did you mean units? The tables are: data(region, units, price)."
    assert failed(tools.tool_execute_query("g.csv", "SELECT 1")) == "File 'g.csv' not found. There is: f.csv."
    for query in ("DELETE FROM data", "DROP TABLE data", "CREATE TABLE x(a)", "ATTACH 'x' AS y"):
        assert failed(tools.tool_execute_query("f.csv", query)).startswith("SQL Error: ")
    assert [p.name for p in ws.iterdir()] == ["f.csv"]


def test_a_table_that_is_in_another_file_is_found_for_the_model(tools, ws, failed):
    (ws / "f.csv").write_text(SALES)
    with contextlib.closing(sqlite3.connect(ws / "shop.db")) as db:
        db.execute("CREATE TABLE Orders (id)")
        db.commit()
    said = failed(tools.tool_execute_query("f.csv", "SELECT * FROM orders"))
    assert said.endswith("The table orders is in the database 'shop.db': give that as database_name.")
    (ws / "prices.txt").write_text("4 euros")
    assert failed(tools.tool_execute_query("f.csv", "SELECT * FROM prices")).endswith(
        "'prices.txt' is a text file: read it with tool_read_file."
    )
    assert "is in the database" not in failed(tools.tool_execute_query("f.csv", "SELECT * FROM nowhere"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no rows"),
        (b"\n\n,,\n", "holds no rows"),
        (b"\0\1", "not text"),
        (b'a,b\n"' + b"x" * 200_000, "no CSV that can be read"),
    ],
)
def test_what_is_no_csv_is_refused(tools, ws, failed, content, said):
    (ws / "f.csv").write_bytes(content)
    assert said in failed(tools.tool_execute_query("f.csv", "SELECT 1"))


def test_limits_are_stated(tools, ws, failed, monkeypatch):
    (ws / "f.csv").write_text("a\n" + "1\n" * 100)
    monkeypatch.setattr(_csv, "_MAX_ROWS", 99)
    assert "more than 99 rows" in failed(tools.tool_execute_query("f.csv", "SELECT 1"))
    (ws / "f.csv").write_text(",".join(f"c{n}" for n in range(1500)) + "\n")
    assert "1,500 columns" in failed(tools.tool_execute_query("f.csv", "SELECT 1"))
    with Workspace(ws) as workspace, pytest.raises(LollmsError, match="more than 100 bytes"):
        _csv.load_csv(workspace, "f.csv", 100)


def test_a_csv_is_described(tools, ws, done):
    (ws / "f.csv").write_text(SALES)
    assert done(tools.tool_describe_database("f")).splitlines() == [
        "data(region TEXT: 'North'|'South', units INTEGER: 1 not numbers, e.g. 'soon', price REAL: 1 NULL), 3 rows",
        "First rows of data:",
        "North | 10 | 2.5",
        "South | soon | 3",
        "North | 5 | NULL",
        "units: 1 of 3 values are text, not numbers ('soon'); leave them out with WHERE typeof(units) <> 'text'.",
    ]


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=8)


@given(rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=6))
def test_what_a_csv_writer_wrote_is_read_back(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("csv")
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["one", "two", "three"], *rows])
    (folder / "f.csv").write_bytes(b"\xef\xbb\xbf" + text.getvalue().encode())
    try:
        with Workspace(folder) as workspace:
            table = _csv.load_csv(workspace, "f.csv")
    except ToolError:  # so many control characters that it is no text
        assert sum(ord(c) < 32 for row in rows for cell in row for c in cell) > 2
        return
    kept = [row for row in rows if any(cell.strip() for cell in row)]
    assert len(table.rows) == len(kept)
    for got, wrote in zip(table.rows, kept, strict=True):
        for value, cell in zip(got, wrote, strict=True):
            if value is None:
                assert cell.strip().lower() in {"", *_csv._MISSING}
            elif isinstance(value, str):
                assert value == cell
            else:
                assert value == float(cell.strip().replace(",", ""))
