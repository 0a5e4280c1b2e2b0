"""What a header may say: names only, in three forms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

__all__ = ["Kind", "Unit", "name_of"]

Kind = Literal["section", "function", "class"]

_FORMS: dict[Kind, str] = {"section": "Section: {}", "function": "def {}()", "class": "class {}"}
_NAME_LIMIT, _LOOKED_AT = 80, 400
_ARGUMENTS = re.compile(r"\([^()]*\)")
_CONTENT = re.compile(r"[|=]|[;{}]$|^[-+*/_.:#~<>'\"`\s]*$")


@dataclass(frozen=True, slots=True)
class Unit:
    """A structural unit of a text.

    Attributes:
        kind: "section", "function" or "class".
        name: Its name: one printable line of at most 80 characters.
        line: Its line in the text, from 1.
    """

    kind: Kind
    name: str
    line: int

    @property
    def header(self) -> str:
        """`Section: <name>`, `def <name>()` or `class <Name>`. Source: developer guide, "Collapsible Artifact UI Protocol"."""
        return _FORMS[self.kind].format(self.name)


def name_of(kind: Kind, text: str) -> str:
    """The name that a header may carry.

    Args:
        kind: What it is the name of.
        text: The name as it was found.

    Returns:
        The name; "" where there is none, or where a heading reads like content: a row of a table, an assignment, a statement.
    """
    printable = "".join(char if char.isprintable() else " " for char in text[:_LOOKED_AT])
    name = " ".join(printable.split())
    if kind == "section" and "=" in name:
        name = _ARGUMENTS.sub("()", name)  # the heading of a call's documentation
    if not name or (kind == "section" and _CONTENT.search(name)):
        return ""
    return name if len(name) <= _NAME_LIMIT else name[: _NAME_LIMIT - 1].rstrip() + "…"
