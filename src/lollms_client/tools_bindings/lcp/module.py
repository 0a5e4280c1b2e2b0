"""What one module binds at its top: its names, its `tool_*` functions and the facts that it states as constants.

One pass over the statements of the module, into `if`, `try` and the like, never into a function or a class.

Source: tool guide §3 (optional module-level hooks), CONTRACT A2-A4.
"""

from __future__ import annotations

import ast
from typing import Any

from lollms_client._tools.spec import Diagnostic

from .names import is_type_alias, literal
from .nested import Function, blocks

__all__ = ["Module"]

_FACTS: dict[str, type | tuple[type, ...]] = {
    "TOOL_LIBRARY_NAME": str, "TOOL_LIBRARY_DESC": str, "TOOL_LIBRARY_ICON": str, "TOOL_THREAD": str,
    "TOOL_ISOLATION": str,
    "TOOL_EFFECTS": (dict, list, tuple, set, str), "TOOL_WORKSPACE_PATHS": dict,
}  # fmt: skip


class Module:
    """One parsed file.

    Args:
        tree: Its syntax tree.
        filename: Its path, for messages.

    Attributes:
        names: Name -> where it was imported from (dotted), or the node that defines it.
        functions: The `tool_*` functions that exist once the module is loaded, in order; the last definition counts.
        facts: The documented constants that are literals.
        defined: How many `def tool_*` stand at the top, dead and replaced ones included.
        diagnostics: What is to be said about the file.
    """

    def __init__(self, tree: ast.Module, filename: str) -> None:
        self.tree, self.filename = tree, filename
        self.names: dict[str, str | ast.AST] = {}
        self.functions: dict[str, Function] = {}
        self.facts: dict[str, Any] = {}
        self.defined = 0
        self.diagnostics: list[Diagnostic] = []
        self._scan(tree.body)

    def note(self, kind: str, message: str, line: int) -> None:
        """Adds a diagnostic."""
        where = f"{self.filename}, line {line}" if line else self.filename
        self.diagnostics.append(Diagnostic(kind, f"{where}: {message}", self.filename, line))

    def _scan(self, body: list[ast.stmt], weak: bool = False, live: bool = True) -> None:
        """Collects what statements bind.

        Args:
            body: The statements.
            weak: They are the other branch (`else`, `except`): what the first branch bound stays.
            live: They run when the module is loaded (not below `if TYPE_CHECKING:` or `if __name__ == "__main__":`).
        """
        for node in body:
            if isinstance(node, Function):
                self._function(node, weak, live)
            elif isinstance(node, ast.ClassDef):
                self._bind(node.name, node, weak)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    self._bind(alias.asname or alias.name.partition(".")[0], _imported(alias), weak)
            elif isinstance(node, ast.ImportFrom):
                origin = "." * node.level + (node.module or "")
                for alias in node.names:
                    self._bind(alias.asname or alias.name, f"{origin}.{alias.name}", weak)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                self._assignment(node, weak, live)
            elif is_type_alias(node):
                self._bind(node.name.id, node, weak)  # type: ignore[attr-defined]
            elif not isinstance(node, ast.Expr):
                self._compound(node, weak, live)

    def _bind(self, name: str, what: str | ast.AST, weak: bool) -> None:
        if weak:
            self.names.setdefault(name, what)
        else:
            self.names[name] = what

    def _function(self, node: Function, weak: bool, live: bool) -> None:
        self._bind(node.name, node, weak)
        if not node.name.startswith("tool_"):
            return
        self.defined += 1
        earlier = self.functions.get(node.name)
        if not live or (earlier and weak):
            return
        if earlier:
            self.note("redefined", f"{node.name} replaces the one of line {earlier.lineno}.", node.lineno)
            del self.functions[node.name]
        self.functions[node.name] = node

    def _assignment(self, node: ast.Assign | ast.AnnAssign, weak: bool, live: bool) -> None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if not isinstance(target, ast.Name):
                continue
            self._bind(target.id, node, weak)
            if target.id in _FACTS and live and node.value is not None:
                self._fact(target.id, node.value)

    def _fact(self, name: str, node: ast.expr) -> None:
        is_literal, value = literal(node)
        if is_literal and isinstance(value, _FACTS[name]):
            self.facts[name] = value
        else:
            self.note("metadata", f"{name} is not read: it must be a literal of the documented form.", node.lineno)

    def _compound(self, node: ast.stmt, weak: bool, live: bool) -> None:
        if isinstance(node, ast.If):
            runs = _runs_on_load(node.test)
            self._scan(node.body, weak, live and runs)
            self._scan(node.orelse, weak or runs, live)
            return
        handlers = [part.body for part in getattr(node, "handlers", ())]
        for block in blocks(node):
            if block:
                self._scan(block, weak or block in handlers, live)


def _imported(alias: ast.alias) -> str:
    return alias.name if alias.asname else alias.name.partition(".")[0]


def _runs_on_load(test: ast.expr) -> bool:
    """Whether the body of an `if` may run when the module is loaded as a library."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, (ast.Name, ast.Attribute)):
        return (test.id if isinstance(test, ast.Name) else test.attr) != "TYPE_CHECKING"
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__":
        return not isinstance(test.ops[0], ast.Eq)
    return True
