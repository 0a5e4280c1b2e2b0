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
    sections = _sections(lines)
    texts = _texts(lines, sections, names) if names and len(lines) > 1 else {}
    return _paragraph(lines, sections) or NO_DESCRIPTION, texts


def first_paragraph(docstring: str | None) -> str:
    """The text before the first blank line or section, "" where there is none."""
    if not docstring:
        return ""
    lines = _lines(docstring)
    return _paragraph(lines, _sections(lines))


def parameter_texts(docstring: str | None, names: Collection[str]) -> dict[str, str]:
    """The text of each of `names` that the docstring describes."""
    return describe(docstring, names)[1]


def _lines(docstring: str) -> list[_Line]:
    """Each line's indent and text; the first line is given the margin that the others share."""
    if "\t" in docstring:
        docstring = docstring.expandtabs()
    lines = [(len(line) - len(text), text.rstrip()) for line in docstring.split("\n") for text in (line.lstrip(),)]
    lines[0] = (min([indent for indent, text in lines[1:] if text], default=0), lines[0][1])
    return lines


def _sections(lines: list[_Line]) -> dict[int, str]:
    """The lines that open a section, and of what kind each is: "items", "numpy", "other" or "numpy other"."""
    found = {}
    for index, (_, text) in enumerate(lines):
        if not text:
            continue
        title = index
        if text[-1] == ":":
            numpy = ""
        elif index and text[:3] in ("---", "===") and not text.strip("-="):
            numpy, title = "numpy", index - 1
        else:
            continue
        word = lines[title][1].rstrip(": ").lower()
        if word in _PARAMETER_SECTIONS:
            found[title] = numpy or "items"
        elif word in _OTHER_SECTIONS:
            found[title] = f"{numpy} other".lstrip()
    return found


def _paragraph(lines: list[_Line], sections: dict[int, str]) -> str:
    kept: list[str] = []
    for index, (indent, text) in enumerate(lines):
        if not text:
            if kept:
                break
            continue
        if index in sections or (text[0] in ":@" and _SPHINX_FIELD.match(text)):
            break
        kept.append(" " * (indent - lines[0][0]) + text)
    return "\n".join(kept).strip()


class _Reader:
    """One pass over the lines; `item` collects the text that a following deeper line continues."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names
        self.stated: dict[str, list[str]] = {}  # under a section or a Sphinx field
        self.loose: dict[str, list[str]] = {}  # a documented line pattern outside any section
        self.section, self.section_indent = "", 0
        self.item: list[str] | None = None
        self.item_indent = 0

    def line(self, text: str, indent: int) -> None:
        """Reads one line that is neither blank nor the title of a section."""
        if text[0] in ":@" and self.field(text, indent):
            return
        if self.item is not None and indent > self.item_indent:
            self.item.append(text)
        elif self.section == "numpy":
            self.numpy(text, indent)
        elif self.section != "numpy other":
            self.pattern(text, indent)

    def open(self, name: str, text: str, indent: int, into: dict[str, list[str]]) -> None:
        """Begins a text, which is kept where `name` is wanted."""
        self.item, self.item_indent = [text] if text else [], indent
        if name in self.names:
            into.setdefault(name, self.item)

    def field(self, text: str, indent: int) -> bool:
        """`:param name: text`, and the other fields, whose text is nobody's."""
        field = _SPHINX_PARAMETER.match(text)
        if field:
            self.open(field[1], field[2], indent, self.stated)
        elif (self.item is None or indent <= self.item_indent) and _SPHINX_FIELD.match(text):
            self.open("", "", indent, self.stated)
        else:
            return False
        return True

    def numpy(self, text: str, indent: int) -> None:
        """`name : type` or `name, name : type`; the text stands deeper below."""
        names = _NUMPY_NAMES.match(text)
        item = self.item = []
        self.item_indent = indent
        for name in names[0].split(",") if names else ():
            if (bare := name.strip(" *")) in self.names:
                self.stated.setdefault(bare, item)

    def pattern(self, text: str, indent: int) -> None:
        """The documented line patterns; in a section any name begins a text, elsewhere the wanted ones alone."""
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


def _texts(lines: list[_Line], sections: dict[int, str], names: Collection[str]) -> dict[str, str]:
    reader = _Reader(names)
    underline = False
    for index, (indent, text) in enumerate(lines):
        if not text:
            if not reader.section:
                reader.item = None
        elif underline:
            underline = False
        elif index in sections:
            reader.section, reader.section_indent, reader.item = sections[index], indent, None
            underline = reader.section.startswith("numpy")
        elif reader.section != "other" or indent <= reader.section_indent or text[0] in ":@":
            reader.line(text, indent)
    found = {**reader.loose, **reader.stated}
    return {name: " ".join(parts) for name, parts in found.items() if parts}
