"""The requirements table and the tests name each other, and nothing that is not there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("requirements_table", Path(__file__).resolve().parents[1] / "requirements_table.py")
assert spec
assert spec.loader
table = importlib.util.module_from_spec(spec)
spec.loader.exec_module(table)


def test_every_row_has_an_id_of_its_own_and_a_text():
    rows = table.rows()
    assert len({r["id"] for r in rows}) == len(rows) == 481
    assert all(r["requirement"] and r["section"] and r["doc"] in ("TG", "DG", "CONTRACT") for r in rows)


def test_no_test_names_a_row_that_is_not_there():
    assert set(table.marked_tests()) - {r["id"] for r in table.rows()} == set()


def test_no_row_names_a_test_that_is_not_there():
    marked = table.marked_tests()
    wrong = [r["id"] for r in table.rows() if r["tests"] != table.column(r["id"], marked)]
    assert wrong == [], "run `make requirements`"
