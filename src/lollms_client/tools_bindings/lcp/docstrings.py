"""What a docstring says about a function and about each of its parameters.

Google, NumPy and Sphinx forms are read, and the documented line patterns `name (type): text`, `name: text` and
`name - text` wherever they stand. What stands under Returns, Raises, Notes or Examples never becomes a parameter.
The text is dedented here, so that interpreters that strip docstrings themselves (3.13) and those that do not agree.

Source: tool guide §4.1-§4.2.
"""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["NO_DESCRIPTION", "describe", "first_paragraph", "parameter_texts"]

NO_DESCRIPTION = "No description provided."

_Line = tuple[int, str]
_PARAMETER_SECTIONS = frozenset(
    {
        "arg", "args", "argument", "arguments", "param", "params", "parameter", "parameters", "keyword args",
        "keyword arguments", "keyword parameters", "other parameters", "other args", "input", "inputs", "attributes",
    }
)  # fmt: skip
_OTHER_SECTIONS = frozenset(
    {
        "return", "returns", "yield", "yields", "receives", "raise", "raises", "except", "exceptions", "warn", "warns",
        "warning", "warnings", "note", "notes", "example", "examples", "reference", "references", "see also", "todo",
        "output", "outputs", "result", "results", "usage", "methods", "side effects", "important", "tip", "hint",
    }
)  # fmt: skip
# The quantifiers are possessive: a line of a hundred thousand blanks is still read once.
_ITEM = re.compile(
    r"(?:[-*+•]\s++)?[`*]*+(\w++)[`*]*+\s*+(?:\((?:[^()]|\([^()]*\))*\)\s*+)?(?::(?!:)|(?<=\s)[-–—]++(?=\s|$))\s*+(.*)"
)
_SPHINX_PARAMETER = re.compile(r"[:@](?:param|parameter|arg|argument|key|keyword)\s++(?:[^:]*[\s*])?(\w+)\s*:\s*(.*)")
_SPHINX_FIELD = re.compile(r"[:@]\w+[^:]*:(?!\S*`)")
_NUMPY_NAMES = re.compile(r"\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*(?=\s*(?::|$))")


def describe(docstring: str | None, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """Reads a function's docstring.

    Args:
        docstring: The docstring as it stands in the source, None where there is none.
        names: Names of the parameters whose texts are wanted.

    Returns:
        The first paragraph, or "No description provided.", and the text of each parameter that has one.
    """
    if not docstring or docstring.isspace():
        return NO_DESCRIPTION, {}
    lines = _lines(docstring)
    return _paragraph(lines) or NO_DESCRIPTION, _texts(lines, names) if names and len(lines) > 1 else {}


def first_paragraph(docstring: str | None) -> str:
    """The text before the first blank line or section, "" where there is none."""
    return _paragraph(_lines(docstring)) if docstring else ""


def parameter_texts(docstring: str | None, names: Collection[str]) -> dict[str, str]:
    """The text of each of `names` that the docstring describes."""
    return _texts(_lines(docstring), names) if docstring and names else {}


def _lines(docstring: str) -> list[_Line]:
    """Each line's indent, counted from the margin that the lines after the first share, and its text."""
    first, *rest = docstring.expandtabs().split("\n")
    lines = [(len(line) - len(bare), bare.rstrip()) for line in rest for bare in (line.lstrip(),)]
    margin = min([indent for indent, text in lines if text], default=0)
    return [(0, first.strip()), *((indent - margin, text) for indent, text in lines)]


def _paragraph(lines: list[_Line]) -> str:
    kept: list[str] = []
    for index, (indent, text) in enumerate(lines):
        if not text:
            if kept:
                break
            continue
        if _section(lines, index) or (text[0] in ":@" and _SPHINX_FIELD.match(text)):
            break
        kept.append(" " * indent + text)
    return "\n".join(kept).strip()


def _section(lines: list[_Line], index: int) -> str:
    """What kind of section starts at a line: "items", "numpy", "other", "numpy other", or "" for none."""
    title = lines[index][1]
    following = lines[index + 1][1] if index + 1 < len(lines) else ""
    underlined = following[:3] in ("---", "===") and not following.strip("-=")
    if not (underlined or title[-1] == ":"):
        return ""
    word = title.rstrip(":").rstrip().lower()
    kind = "items" if word in _PARAMETER_SECTIONS else "other" if word in _OTHER_SECTIONS else ""
    if not kind or not underlined:
        return kind
    return "numpy" if kind == "items" else "numpy other"


class _Reader:
    """One pass over the lines; `item` collects the text that a following deeper line continues."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names
        self.stated: dict[str, list[str]] = {}  # under a section or a Sphinx field
        self.loose: dict[str, list[str]] = {}  # a documented line pattern outside any section
        self.section, self.section_indent = "", 0
        self.item: list[str] | None = None
        self.item_indent = 0

    def open(self, name: str, text: str, indent: int, into: dict[str, list[str]]) -> None:
        self.item, self.item_indent = [text] if text else [], indent
        if name in self.names:
            into.setdefault(name, self.item)

    def line(self, text: str, indent: int) -> None:
        field = _SPHINX_PARAMETER.match(text) if text[0] in ":@" else None
        if field:
            self.open(field[1], field[2], indent, self.stated)
        elif self.item is not None and indent > self.item_indent:
            self.item.append(text)
        elif text[0] in ":@" and _SPHINX_FIELD.match(text):
            self.open("", "", indent, self.stated)
        elif self.section == "numpy":
            self.numpy(text, indent)
        elif self.section != "numpy other" and not (self.section == "other" and indent > self.section_indent):
            self.pattern(text, indent)

    def numpy(self, text: str, indent: int) -> None:
        names = _NUMPY_NAMES.match(text)
        self.open("", "", indent, self.stated)
        for name in names[0].split(",") if names and self.item is not None else ():
            if (bare := name.strip(" *")) in self.names and self.item is not None:
                self.stated.setdefault(bare, self.item)

    def pattern(self, text: str, indent: int) -> None:
        inside = self.section == "items" and indent > self.section_indent
        item = _ITEM.match(text)
        if item and (inside or item[1] in self.names):
            self.open(item[1], item[2], indent, self.stated if self.section == "items" else self.loose)
        elif inside and self.item is not None:
            self.item.append(text)
        else:
            self.item = None
            if indent <= self.section_indent:
                self.section = ""


def _texts(lines: list[_Line], names: Collection[str]) -> dict[str, str]:
    reader = _Reader(names)
    underline = False
    for index, (indent, text) in enumerate(lines):
        if not text:
            if not reader.section:
                reader.item = None
        elif underline:
            underline = False
        elif section := _section(lines, index):
            reader.section, reader.section_indent, reader.item = section, indent, None
            underline = section.startswith("numpy")
        else:
            reader.line(text, indent)
    found = {**reader.loose, **reader.stated}
    return {name: " ".join(parts) for name, parts in found.items() if parts}
