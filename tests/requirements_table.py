"""Ties the documented behaviours to tests: writes the column `tests` of requirements.tsv from the marks in the tests.

`python -m tests.requirements_table` rewrites the column; `tests/architecture/test_requirements.py` fails when it is not what the marks say.
"""

from __future__ import annotations

import ast
import csv
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE / "requirements.tsv"
NOT_BUILT = "not built"


def rows() -> list[dict[str, str]]:
    """The table, a dict a row."""
    with TABLE.open(encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def _marks(decorators: list[ast.expr]) -> list[str]:
    return [
        arg.value
        for d in decorators
        if isinstance(d, ast.Call) and isinstance(d.func, ast.Attribute) and d.func.attr == "req"
        for arg in d.args
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    ]


def marked_tests() -> dict[str, list[str]]:
    """Requirement id -> the tests that are marked with it, as `path::name` below tests/."""
    out: dict[str, list[str]] = {}
    for path in sorted(HERE.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            scope = node.body if isinstance(node, ast.ClassDef) else [node]
            outer = _marks(node.decorator_list) if isinstance(node, ast.ClassDef) else []
            for item in scope:
                if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and item.name.startswith("test"):
                    name = f"{node.name}::{item.name}" if isinstance(node, ast.ClassDef) else item.name
                    for req in dict.fromkeys([*outer, *_marks(item.decorator_list)]):
                        out.setdefault(req, []).append(f"{path.relative_to(HERE).as_posix()}::{name}")
    return out


def column(req: str, marked: dict[str, list[str]]) -> str:
    """What the column `tests` says of a row."""
    return " ".join(marked.get(req, [])) or NOT_BUILT


def write() -> None:
    """Rewrites the column from the marks."""
    marked, table = marked_tests(), rows()
    with TABLE.open("w", encoding="utf-8", newline="") as f:
        names = ["id", "doc", "section", "requirement", "contract", "tests"]
        f.write("\t".join(names) + "\n")
        for row in table:
            row["tests"] = column(row["id"], marked)
            f.write("\t".join(row.get(n) or "" for n in names) + "\n")
    built = sum(row["tests"] != NOT_BUILT for row in table)
    print(f"{built} of {len(table)} documented behaviours have tests.")


if __name__ == "__main__":
    write()
