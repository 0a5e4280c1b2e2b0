"""Tools that are defined inside other functions.

Such a function can be offered only when it can be made without running the function around it. That is decided by the
names it needs: its body, defaults, decorators and evaluated annotations may use globals, builtins and its own name, but
no local of an enclosing function. The interpreter's own symbol tables answer that, so comprehensions, class scopes,
`nonlocal` and walrus targets count as Python counts them.

Source: tool guide §1.4, CONTRACT A4.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator
from copy import copy
from types import CodeType

from lollms_client._tools.spec import ToolSpec

__all__ = ["Chain", "Function", "blocks", "captured", "lazy_annotations", "nested_code", "nested_functions", "qualified"]

Function = ast.FunctionDef | ast.AsyncFunctionDef
Chain = tuple[Function | ast.ClassDef, ...]
_FACTORY = "__lollms_nested__"


def blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statement lists of a compound statement that is neither a function nor a class."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def nested_functions(tree: ast.Module) -> Iterator[tuple[Function, Chain]]:
    """Each `tool_*` function inside another function, with what encloses it from the outside in; methods are left out."""
    stack: list[tuple[ast.stmt, Chain]] = [(node, ()) for node in reversed(tree.body)]
    while stack:
        node, chain = stack.pop()
        inside = chain
        if isinstance(node, Function):
            if chain and isinstance(chain[-1], Function) and node.name.startswith("tool_"):
                yield node, chain
            inside = (*chain, node)
        elif isinstance(node, ast.ClassDef):
            inside = (*chain, node)
        inner = [statement for block in blocks(node) for statement in block]
        stack.extend((statement, inside) for statement in reversed(inner))


def qualified(chain: Chain) -> str:
    """The dotted path of what encloses a function."""
    return ".".join(part.name for part in chain)


def captured(node: Function, chain: Chain, lazy: bool) -> list[str]:
    """The local names of enclosing functions that a nested function needs.

    Args:
        node: The function.
        chain: What encloses it.
        lazy: Whether the file has `from __future__ import annotations`.

    Returns:
        The names, sorted; empty where the function can be compiled alone.
    """
    try:
        needed = _needed(node, lazy)
    except SyntaxError:  # `nonlocal` has nothing to refer to once the function stands alone
        return sorted({name for part in ast.walk(node) if isinstance(part, ast.Nonlocal) for name in part.names})
    around: set[str] = {"super", "__class__"} if any(isinstance(part, ast.ClassDef) for part in chain) else set()
    for part in chain:
        if isinstance(part, Function):
            around |= _locals(part)
    return sorted((needed & around) - {node.name})


def nested_code(source: str, filename: str, spec: ToolSpec) -> CodeType | None:
    """Compiles a nested tool alone.

    Args:
        source: The text of its file.
        filename: The file's path, for tracebacks; lines stay those of the file.
        spec: The tool, with `nested_in` and `line`.

    Returns:
        Code for `exec(code, module_globals, scope)`, which leaves the function as `scope[spec.name]` with the module's
        globals as its own; None where the source no longer holds that tool.
    """
    tree = ast.parse(source.lstrip("\ufeff"), filename)
    for node, _ in nested_functions(tree):
        if node.name == spec.name and node.lineno == spec.line:
            return compile(_factory(node, lazy_annotations(tree)), filename, "exec", dont_inherit=True)
    return None


def _factory(node: Function, lazy: bool) -> ast.Module:
    """`def make(): <the function>; return it`: the function's own name becomes a cell, so that it can call itself."""
    text = f"def {_FACTORY}():\n    return {node.name}\n{node.name} = {_FACTORY}()\n"
    module = ast.parse("from __future__ import annotations\n" * lazy + text)
    make = next(part for part in module.body if isinstance(part, ast.FunctionDef))
    make.body.insert(0, node)
    return module


def lazy_annotations(tree: ast.Module) -> bool:
    """Whether the file has `from __future__ import annotations`."""
    return any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" and any(a.name == "annotations" for a in node.names)
        for node in tree.body[:20]
    )


def _needed(node: Function, lazy: bool) -> set[str]:
    """The names that a function takes from outside, those of its defaults, decorators and annotations included."""
    table = symtable.symtable(ast.unparse(_unannotated(node) if lazy else node), "<nested tool>", "exec")
    needed = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    stack = table.get_children()
    while stack:
        child = stack.pop()
        stack.extend(child.get_children())
        for symbol in child.get_symbols():
            if symbol.is_global() and not symbol.is_declared_global():
                needed.add(symbol.get_name())
    return needed


def _unannotated(node: Function) -> Function:
    out = copy(node)
    out.returns, out.args = None, copy(node.args)
    for name in ("posonlyargs", "args", "kwonlyargs"):
        setattr(out.args, name, [ast.arg(arg.arg) for arg in getattr(node.args, name)])
    for name in ("vararg", "kwarg"):
        arg = getattr(node.args, name)
        setattr(out.args, name, ast.arg(arg.arg) if arg else None)
    return out


def _locals(node: Function) -> set[str]:
    """The names that a function binds for the functions inside it, its type parameters included."""
    tables = symtable.symtable(ast.unparse(node), "<enclosing function>", "exec").get_children()
    found: set[str] = set()
    while tables:
        table = next((one for one in tables if one.get_name() == node.name), tables[0])
        found |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_local()}
        if isinstance(table, symtable.Function) and table.get_type() == "function":
            break
        tables = table.get_children()
    return found
