"""Imports go down only, kits keep to themselves, bindings do not know their siblings, nothing goes in circles."""

from __future__ import annotations

import ast

import pytest
from house import FLOORS, KITS_MAY_IMPORT, SRC, imports, module_name, modules, room

ALL = [i for path in modules() for i in imports(path)]


def where(i) -> str:
    return f"{i.file.relative_to(SRC)}:{i.line} imports {i.imported or 'lollms_client'}"


def test_every_room_has_a_floor():
    rooms = {room(module_name(p)) for p in modules()} - {"", "__main__"}
    assert rooms - FLOORS.keys() == set(), "add the room to FLOORS and to docs/architecture.md"
    assert FLOORS.keys() - rooms == set(), "FLOORS names a room that is not there"


def test_imports_go_down_only():
    wrong = []
    for i in ALL:
        here, there = room(i.importer), room(i.imported)
        if not here or here == there or not there or here == "__main__":
            continue
        a, b = FLOORS[here], FLOORS[there]
        if b > a or (a == 4 and b == 3) or (a == 5 and b == 3):
            wrong.append(where(i))
    assert wrong == []


def test_a_kit_imports_another_only_where_the_house_draws_it():
    wrong = [
        where(i)
        for i in ALL
        if (here := room(i.importer)) in KITS_MAY_IMPORT
        and (there := room(i.imported)) != here
        and FLOORS.get(there) == 2
        and there not in KITS_MAY_IMPORT[here]
    ]
    assert wrong == []


def test_a_binding_never_imports_a_sibling_binding():
    wrong = []
    for i in ALL:
        a, b = i.importer.split("."), i.imported.split(".")
        both = all(name.endswith("_bindings") and not name.startswith("_") for name in (a[0], b[0]))
        if both and (len(b) < 2 or a[:2] != b[:2]):
            wrong.append(where(i))
    assert wrong == []


def test_applications_use_public_names_only():
    wrong = [
        where(i)
        for i in ALL
        if FLOORS.get(room(i.importer)) == 6
        and room(i.imported) != room(i.importer)
        and any(part.startswith("_") for part in i.imported.split("."))
    ]
    assert wrong == []


def for_types(node: ast.AST) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`, which never runs."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_no_module_takes_part_in_an_import_cycle():
    graph: dict[str, set[str]] = {}
    for path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        later = (ast.FunctionDef, ast.AsyncFunctionDef)
        lazy = {n for f in ast.walk(tree) if isinstance(f, later) or for_types(f) for n in ast.walk(f)}
        lines = {n.lineno for n in lazy if isinstance(n, (ast.Import, ast.ImportFrom))}
        name = module_name(path)
        graph[name] = {i.imported for i in imports(path) if i.line not in lines and i.imported not in ("", name)}
    state: dict[str, int] = {}

    def visit(node: str, trail: list[str]) -> None:
        if state.get(node) == 1:
            pytest.fail("import cycle: " + " -> ".join([*trail[trail.index(node) :], node]))
        if state.get(node):
            return
        state[node] = 1
        for target in graph.get(node, ()):
            visit(target, [*trail, node])
        state[node] = 2

    graph.pop("", None)
    for node in graph:
        visit(node, [])


@pytest.mark.parametrize("folder", sorted({p.parent.relative_to(SRC).as_posix() for p in modules()}))
def test_no_room_is_empty(folder):
    files = [p for p in (SRC / folder).glob("*.py") if p.read_text(encoding="utf-8").strip()]
    below = [p for p in (SRC / folder).iterdir() if p.is_dir() and any(p.rglob("*.py"))]
    assert files or below
