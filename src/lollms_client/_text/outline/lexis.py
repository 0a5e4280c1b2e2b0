"""Code without what is not code: strings, comments and other text inside of it, taken out line by line.

A lexis is a few rows of regular expressions for a language. A lexer holds what is open from line to line: nothing else, whatever
comes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["DOUBLE", "Lexer", "Lexis", "until"]

DOUBLE, _SINGLE = r'"(?:[^"\\]++|\\.)*+"', r"'(?:[^'\\]++|\\.)*+'"
"""A string that ends on its line."""

_TEMPLATE = re.compile(r"(?:[^\\`$]++|\\.|\$(?!\{))*+(?P<end>`|\$\{)")
_MOST_NESTED = 100


def until(quotes: str) -> str:
    """The rest of a string with escapes, up to the quotes that close it: one kind of character."""
    first, others = quotes[0], quotes[1:]
    fewer = f"|{first}(?!{others})" if others else ""
    return rf"(?:[^{first}\\]++|\\.{fewer})*+{quotes}"


@dataclass(frozen=True, slots=True)
class Lexis:
    r"""What is not code in a language; all are regular expressions.

    Attributes:
        spans: Pairs of what opens and what closes a text that may go on over lines. The closer is matched from the opener's end;
            `{tag}` in it stands for the opener's own group.
        wholes: Texts that end on their line.
        comments: What opens a comment that lasts to the end of the line.
        continued: Whether a comment goes on after a line that ends with a backslash.
        heredoc: What says that the next lines are text; its group is the line that ends it.
        slashes: Whether `/…/` is a regular expression where a value may begin (JavaScript).
        templates: Whether backticks hold text with code in `${}` (JavaScript).
    """

    spans: tuple[tuple[str, str], ...] = ()
    wholes: tuple[str, ...] = (DOUBLE, _SINGLE)
    comments: tuple[str, ...] = ()
    continued: bool = False
    heredoc: str = ""
    slashes: bool = False
    templates: bool = False
    opener: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = [f"(?P<span{number}>{opener})" for number, (opener, _) in enumerate(self.spans)]
        rows += [f"(?P<comment>{'|'.join(self.comments)})"] if self.comments else []
        rows += [f"(?P<heredoc>{self.heredoc})"] if self.heredoc else []
        rows += [f"(?P<whole>{'|'.join(self.wholes)})"] if self.wholes else []
        rows += (
            [r"(?P<slashes>(?:^|[=(,:\[!&|?;]|=>|\breturn\b)[ \t]*/(?![/*])(?:[^/\\\[]|\\.|\[[^\]\\]{0,80}\]){1,200}/)"]
            if self.slashes
            else []
        )
        rows += [r"(?P<template>`)|(?P<brace>[{}])"] if self.templates else []
        object.__setattr__(self, "opener", re.compile("|".join([*rows, r"\\."])))


class Lexer:
    """Goes through the lines of a text.

    Args:
        lexis: The rows of its language.
    """

    __slots__ = ("_closer", "_comment", "_heredoc", "_lexis", "_running", "_templates")

    def __init__(self, lexis: Lexis) -> None:
        self._lexis = lexis
        self._closer: re.Pattern[str] | None = None
        self._comment = False
        self._heredoc = self._running = ""
        self._templates: list[int] = []  # for each `${` that is open: the braces that are open in it

    def code(self, text: str, *, begins: bool, ends: bool) -> str:
        """The code of a line, or of a part of one; a blank stands for each text that was taken out.

        Args:
            text: The line without its end; of a very long line, its next part.
            begins: It is the beginning of a line.
            ends: It is the end of a line.
        """
        if self._running:
            if begins and ends and text.strip().rstrip(";,)") == self._running:
                self._running = ""
            return ""
        out: list[str] = []
        at = 0
        while at < len(text):
            at = self._step(text, at, out)
        if ends:
            self._comment = self._comment and self._lexis.continued and text.endswith("\\")
            self._running, self._heredoc = self._heredoc, ""
        return "".join(out)

    def _step(self, text: str, at: int, out: list[str]) -> int:
        """Takes what is next, a piece of code with what ends it or the rest of what is open; returns where it ends."""
        if self._comment:
            return len(text)
        if self._closer is not None:
            return self._close(self._closer, text, at)
        found = self._lexis.opener.search(text, at)
        if found is None:
            out.append(text[at:])
            return len(text)
        out.append(text[at : found.start()])
        kind = found.lastgroup
        if kind is None:
            out.append(found[0])  # an escape outside of strings
        elif kind == "brace":
            out.append(self._brace(found[0]))
        elif kind == "slashes":
            out.append(found[0][: found[0].index("/")])
        else:
            out.append(" ")
            self._open(kind, found)
        return found.end()

    def _open(self, kind: str, found: re.Match[str]) -> None:
        if kind == "comment":
            self._comment = True
        elif kind == "heredoc":
            self._heredoc = next(group for group in found.groups()[found.re.groupindex["heredoc"] :] if group)
        elif kind == "template":
            self._closer = _TEMPLATE
        elif kind != "whole":
            _, closer = self._lexis.spans[int(kind.removeprefix("span"))]
            if "{tag}" in closer:
                closer = closer.replace("{tag}", re.escape(found[found.re.groupindex[kind] + 1]))
            self._closer = re.compile(closer)

    def _close(self, closer: re.Pattern[str], text: str, at: int) -> int:
        found = closer.match(text, at)
        if found is None:
            return len(text)
        self._closer = None
        if closer is _TEMPLATE and found["end"] == "${" and len(self._templates) < _MOST_NESTED:
            self._templates.append(0)
        return found.end()

    def _brace(self, brace: str) -> str:
        if not self._templates:
            return brace
        if brace == "{":
            self._templates[-1] += 1
        elif self._templates[-1]:
            self._templates[-1] -= 1
        else:
            self._templates.pop()
            self._closer = _TEMPLATE
            return " "
        return brace
