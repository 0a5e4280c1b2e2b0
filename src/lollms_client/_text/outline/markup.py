"""Headings of markup, line by line."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Protocol

from .lexis import Lexer, Lexis
from .units import Kind

__all__ = ["HtmlScanner", "LatexScanner", "MarkdownScanner", "RestScanner", "Scanner"]

Found = list[tuple[Kind, str, int]]
"""Kind, name, and how many lines ago it was."""


class Scanner(Protocol):
    """Goes through the lines of a text."""

    def scan(self, text: str, *, begins: bool, ends: bool) -> Found:
        """The units of a line.

        Args:
            text: The line without its end; of a very long line, its next part.
            begins: It is the beginning of a line.
            ends: It is the end of a line.
        """
        ...


class _LineScanner(ABC):
    """Looks at the beginning of each line, and at it alone."""

    _found: Found

    def scan(self, text: str, *, begins: bool, ends: bool) -> Found:
        if begins:
            self._found = self._line(text)
        return self._found if ends else []

    @abstractmethod
    def _line(self, line: str) -> Found:
        """The units that a line begins."""


_FENCE = re.compile(r"(?P<before>[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,3})(?P<fence>`{3,}|~{3,})(?P<info>.*)")
_ATX = re.compile(r" {0,3}#{1,6}(?:[ \t]+(?P<name>.*))?")
_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(?:={2,}|-{2,})[ \t]*")
_NO_PARAGRAPH = re.compile(
    r"\s*$|    |\t| {0,3}(?:#{1,6}(?:\s|$)|[-*+](?:\s|$)|\d{1,9}[.)](?:\s|$)|[>|<]|\[[^\]]*\]:|(?:[-*_=][ \t]*){3,}$)|.*\|"
)
_RULER = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})")
_HTML_LINE = re.compile(r" {0,3}<h[1-6]\b[^<>]*>(?P<name>.*?)</h[1-6]\s*>", re.IGNORECASE)
_RAW = re.compile(r" {0,3}<(?:(?P<comment>!--)|(?P<tag>pre|script|style|textarea)\b)", re.IGNORECASE)
_FRONT = re.compile(r"[\w\"'.-]+[ \t]*[:=]|[ \t]|-[ \t]")
_ATTRIBUTES = re.compile(r"[ \t]*\{[#.:][^{}]*\}[ \t]*$")
_INLINE = (
    (re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])"), r"\1"),
    (re.compile(r"<[^<>]*>"), ""),
    (re.compile(r"`+"), ""),
    (re.compile(r"\*+|~~|(?<!\w)_+|_+(?!\w)"), ""),
    (re.compile(r"\\(?=[!-/:-@\[-`{-~])"), ""),
)
_LOOKED_AT = 400


def _plain_markdown(text: str) -> str:
    said = _ATTRIBUTES.sub("", text[:_LOOKED_AT])
    for pattern, instead in _INLINE:
        said = pattern.sub(instead, said)
    return said


class MarkdownScanner(_LineScanner):
    """Headings of Markdown, underlined ones too; none in fences, raw HTML and front matter."""

    def __init__(self) -> None:
        self._number = 0
        self._front = ""
        self._fence: tuple[str, bool] | None = None  # the run of characters, and whether it is indented as code would be
        self._raw = ""
        self._paragraph = 0  # lines of the paragraph so far
        self._before = ""

    def _line(self, line: str) -> Found:
        self._number += 1
        if self._in_front(line) or self._in_raw(line):
            return []
        paragraph, self._paragraph = self._paragraph, 0
        fence = _FENCE.match(line)
        if self._fence is not None:
            if fence and self._closes(fence, *self._fence):
                self._fence = None
            return []
        if fence and not (fence["fence"][0] == "`" and "`" in fence["info"]):
            self._fence = (fence["fence"], len(fence["before"].expandtabs()) > 3)
            return []
        if paragraph == 1 and _UNDERLINE.fullmatch(line):
            return [("section", _plain_markdown(self._before), 1)]
        if html := _HTML_LINE.match(line):
            return [("section", _plain_markdown(html["name"]), 0)]
        if heading := _ATX.fullmatch(line):
            return [("section", _plain_markdown(_CLOSING.sub("", (heading["name"] or "")[:_LOOKED_AT])), 0)]
        if not _NO_PARAGRAPH.match(line):
            self._paragraph, self._before = paragraph + 1, line[:_LOOKED_AT]
        elif line.strip() and not _RULER.fullmatch(line):
            self._paragraph = 2  # a list, a quotation, a table: the next line may belong to it, and is no title
        return []

    def _in_front(self, line: str) -> bool:
        """Whether it is a line of the front matter; a first line of dashes with something else below it is a rule."""
        mark = line.rstrip()
        if self._number == 1 and mark in ("---", "+++"):
            self._front = mark
            return True
        if self._front and self._number == 2 and not _FRONT.match(line) and mark != self._front:
            self._front = ""
        if self._front and mark in (self._front, "..."):
            self._front = ""
            return True
        return bool(self._front)

    def _in_raw(self, line: str) -> bool:
        """Whether it is a line of raw HTML whose content is text, or of a comment."""
        began = False
        if not self._raw and self._fence is None and (opening := _RAW.match(line)):
            self._raw = "-->" if opening["comment"] else f"</{opening['tag'].lower()}>"
            line = line[opening.end() :]
            began = True
        if self._raw and self._raw in line.lower():
            self._raw = ""
            return True
        return began or bool(self._raw)

    def _closes(self, found: re.Match[str], fence: str, indented: bool) -> bool:
        before = found["before"]
        run = found["fence"]
        near = not before.strip() and (indented or len(before.expandtabs()) <= 3)
        return near and run[0] == fence[0] and len(run) >= len(fence) and not found["info"].strip()


_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*")
_ROLE = re.compile(r":[\w:.+-]{1,40}:(?=`)|<[^<>]*>(?=`)|[`*|]+|`?_+(?!\w)")


class RestScanner(_LineScanner):
    """Titles of reStructuredText: underlined, or between two lines."""

    def __init__(self) -> None:
        self._lines: tuple[str, str] = ("", "")

    def _line(self, line: str) -> Found:
        over, title = self._lines
        self._lines = (title, line.rstrip()[:_LOOKED_AT])
        if not _ADORNMENT.fullmatch(line) or not title.strip() or _ADORNMENT.fullmatch(title):
            return []
        size, wanted = len(line.rstrip()), len(title.strip())
        overlined = bool(_ADORNMENT.fullmatch(over)) and over[0] == line[0]
        if size < wanted or title.startswith(".. ") or (title[0].isspace() and not overlined) or (over.strip() and not overlined):
            return []
        self._lines = ("", "")
        return [("section", _ROLE.sub("", title), 1)]


_LATEX = Lexis(
    spans=((r"\\begin\{(verbatim\*?|Verbatim|lstlisting|minted|comment|filecontents\*?)\}", r".*?\\end\{{tag}\}"),),
    wholes=(),
    comments=("%",),
)
_SECTION = re.compile(r"\s*\\(?:part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?\s*(?:\[[^\]]*\]\s*)?\{")
_COMMANDS = re.compile(r"\\(?:label|index|footnote|thanks)\{[^{}]*\}|\\[A-Za-z]+\*?\s?|[{}$]|\\(?=\W)")


class LatexScanner:
    """Sections of LaTeX."""

    def __init__(self) -> None:
        self._lexer = Lexer(_LATEX)
        self._found: Found = []

    def scan(self, text: str, *, begins: bool, ends: bool) -> Found:
        """The units of a line; see `Scanner`."""
        code = self._lexer.code(text, begins=begins, ends=ends)
        if begins:
            opening = _SECTION.match(code)
            self._found = [("section", _latex_title(code[opening.end() :][:_LOOKED_AT]), 0)] if opening else []
        return self._found if ends else []


def _latex_title(text: str) -> str:
    depth = 1
    for brace in re.finditer(r"\\.|[{}]", text):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            text = text[: brace.start()]
            break
    return _COMMANDS.sub("", text.replace("~", " "))


_HTML = Lexis(
    spans=((r"<!--", r".*?-->"), (r"(?i:<(script|style|textarea|template)\b)", r"(?i:.*?</{tag}\s*>)")),
    wholes=(),
)
_HEADING = re.compile(r"<h[1-6]\b[^<>]*>", re.IGNORECASE)
_HEADING_END = re.compile(r"</h[1-6]\s*>|<h[1-6]\b|</?(?:body|div|p|table|section|article|main)\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>?")


class HtmlScanner:
    """Headings of HTML; none in comments, scripts and styles."""

    def __init__(self) -> None:
        self._lexer = Lexer(_HTML)
        self._title: list[str] | None = None
        self._since = 0
        self._found: Found = []

    def scan(self, text: str, *, begins: bool, ends: bool) -> Found:
        """The units of a line; see `Scanner`."""
        code = self._lexer.code(text, begins=begins, ends=ends)
        if begins:
            self._found = []
            self._since += 1
        at = 0
        while at < len(code):
            at = self._inside(code, at, self._title) if self._title is not None else self._outside(code, at)
        return self._found if ends else []

    def _outside(self, code: str, at: int) -> int:
        opening = _HEADING.search(code, at)
        if opening is None:
            return len(code)
        self._title, self._since = [], 0
        return opening.end()

    def _inside(self, code: str, at: int, title: list[str]) -> int:
        from html import unescape

        closing = _HEADING_END.search(code, at)
        end = closing.start() if closing else len(code)
        if sum(map(len, title)) < _LOOKED_AT:
            title.append(code[at : min(end, at + _LOOKED_AT)])
        if closing is None:
            title.append(" ")
            return end
        if closing[0].startswith(("</h", "</H")):
            self._found.append(("section", unescape(_TAG.sub(" ", "".join(title))), self._since))
            end = closing.end()
        self._title = None
        return end
