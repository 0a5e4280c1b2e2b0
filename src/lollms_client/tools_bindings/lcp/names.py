"""What a name in an annotation stands for, as far as one file's text can tell.

Nothing is imported: `t.List`, `List` and `L` after `from typing import List as L` are all "typing.List" because the file's
own import statements say so.

Source: CONTRACT A2 ("read by `ast` alone").
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Names", "call_keywords", "is_type_alias", "last", "literal", "unquote"]

_TYPING = ("typing.", "typing_extensions.", "collections.abc.", "collections.", "builtins.", "types.")


def last(dotted: str) -> str:
    """The part after the last dot."""
    return dotted.rpartition(".")[2]


def literal(node: ast.AST | None) -> tuple[bool, Any]:
    """The value of a literal.

    Returns:
        `(True, value)`, or `(False, None)` where the node is not a literal.
    """
    if isinstance(node, ast.Constant):
        return True, node.value
    if node is None:
        return False, None
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None


def unquote(text: str) -> ast.expr | None:
    """The expression that a string annotation holds, None where it holds none."""
    try:
        return ast.parse(f"({text.strip()}\n)", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def is_type_alias(node: ast.AST) -> bool:
    """Whether a node is a `type X = ...` statement, which interpreters know from 3.12 on."""
    return type(node).__name__ == "TypeAlias"


def call_keywords(call: ast.Call) -> dict[str, ast.expr]:
    """The keywords of a call by name; `**spread` is left out."""
    return {word.arg: word.value for word in call.keywords if word.arg}


class Names:
    """The names that one module binds at its top.

    Args:
        table: Name -> the dotted name that it was imported from, or the node that defines it (class, function, assignment,
            `type` statement).
    """

    def __init__(self, table: Mapping[str, str | ast.AST]) -> None:
        self.table = table

    def dotted(self, node: ast.AST) -> str:
        """The dotted name of a `Name` or `Attribute` with imports followed, "" for any other node."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        origin = self.table.get(node.id)
        parts.append(origin if isinstance(origin, str) else node.id)
        return ".".join(reversed(parts))

    def typing_name(self, node: ast.AST) -> str:
        """The name of a construct of `typing`, `collections` or the builtins, "" where the name comes from elsewhere."""
        dotted = self.dotted(node)
        for prefix in _TYPING:
            if dotted.startswith(prefix):
                return last(dotted)
        return "" if "." in dotted or self.local(node) is not None else dotted

    def local(self, node: ast.AST) -> ast.AST | None:
        """The definition of a name in this file, None where it has none (imported, built in, or nowhere)."""
        if isinstance(node, ast.Name):
            found = self.table.get(node.id)
            return None if isinstance(found, str) else found
        if isinstance(node, ast.Attribute):
            outer = self.local(node.value)
            if isinstance(outer, ast.ClassDef):
                return next((inner for inner in outer.body if _binds(inner, node.attr)), None)
        return None

    def known(self, node: ast.AST) -> bool:
        """Whether the first part of a dotted name is bound in this file."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.table

    def bases(self, cls: ast.ClassDef) -> Iterator[tuple[str, ast.AST | None]]:
        """Each base class: its dotted name and its definition in this file, where there is one."""
        for base in cls.bases:
            node = base.value if isinstance(base, ast.Subscript) else base
            yield self.dotted(node), self.local(node)


def _binds(node: ast.stmt, name: str) -> bool:
    if isinstance(node, ast.ClassDef):
        return node.name == name
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    return False
