"""Code blocks of a text: Markdown fences by the rules of CommonMark, or HTML.

Source: CONTRACT D; CommonMark, "Fenced code blocks".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._stream.lexer import FENCE_CLOSE
from ..errors import ConfigurationError
from .thinking import split_thoughts

__all__ = ["extract_code_blocks"]

_OPEN = re.compile(r"(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})(?P<info>[^\r\n]*)\r?\n?")
_FILE_KEY = re.compile(r"""(?:title|file_name|filename|file|name|path)\s*[=:]\s*("[^"]*"|'[^']*'|[^\s"'{},]+)""", re.IGNORECASE)
_FILE_NAME = re.compile(r"(?:[\w.@+-]+/)*[\w.@+-]*\w\.[A-Za-z]\w{0,9}|(?:[\w.@+-]+/)*(?:Makefile|Dockerfile)", re.ASCII)
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_BEFORE_NAME = re.compile(r"(?:\d+[.)]\s+)?(?:(?:file|file ?name|path|title)\s*:)?[\s`*\"']*", re.IGNORECASE)
_LANGUAGE = re.compile(r"\{?\.?([^\s{}:=,]+)(?::(\S+))?(?=[\s},]|\Z)")
_HTML_TAG = re.compile(r"<(pre|code)\b", re.IGNORECASE)
_HTML_TAG_LIMIT = 1000
_HTML_END = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("pre", "code")}
_HTML_CLASS = re.compile(r"""\bclass\s*=\s*["']?(?:[^"'>]*\s)?(?:language-|lang-)?([\w+#-]+)""", re.IGNORECASE)


@dataclass(slots=True)
class _Fence:
    """A fence that is open."""

    char: str
    size: int
    indent: int
    info: str
    line_before: str

    def closes(self, line: str) -> bool:
        run = FENCE_CLOSE.fullmatch(line.rstrip("\r\n"))
        return run is not None and run[1][0] == self.char and len(run[1]) >= self.size


def extract_code_blocks(text: str, format: str = "markdown") -> list[dict[str, Any]]:  # noqa: A002 - the documented name
    r"""The code blocks of a text, those of its thoughts excepted.

    Args:
        text: A model's answer.
        format: "markdown" (fences of backticks or tildes) or "html" (`<pre>`, and `<code>` with a class).

    Returns:
        `{"index", "file_name", "content", "type", "is_complete"}` each, in order. `content` is exact, without the line break
        before the closing fence (as CommonMark has it, the indentation of the opening fence is taken off each line); `type` is
        the language as written; `file_name` comes from the words behind the fence (`title="x.py"`, `file=x.py`, `x.py`) or from
        a line directly before it that is nothing but a file's name, "" where none is given; `is_complete` is False for a block
        that was not closed.

    Raises:
        ConfigurationError: Another format.
    """
    said = "".join(piece for is_thought, piece in split_thoughts(text) if not is_thought)
    if format == "markdown":
        blocks = _markdown_blocks(said)
    elif format == "html":
        blocks = _html_blocks(said)
    else:
        raise ConfigurationError(f'Code blocks can be taken from "markdown" and "html", not from {format!r}.')
    return [
        {"index": index, "file_name": name, "content": content, "type": kind, "is_complete": complete}
        for index, (name, kind, content, complete) in enumerate(blocks)
    ]


_Block = tuple[str, str, str, bool]
"""File name, type, content, whether it was closed."""


def _markdown_blocks(text: str) -> Iterator[_Block]:
    fence: _Fence | None = None
    body: list[str] = []
    line_before = ""
    for line in _LINES.findall(text):
        if fence is None:
            fence = _open(line, line_before)
            body = []
            line_before = line if line.strip() else line_before
        elif fence.closes(line):
            yield _finish(fence, body, complete=True)
            fence, line_before = None, ""
        else:
            body.append(_unindent(line, fence.indent))
    if fence is not None:
        yield _finish(fence, body, complete=False)


def _open(line: str, line_before: str) -> _Fence | None:
    opening = _OPEN.fullmatch(line)
    if opening is None or (opening["fence"][0] == "`" and "`" in opening["info"]):
        return None
    return _Fence(opening["fence"][0], len(opening["fence"]), len(opening["indent"]), opening["info"].strip(), line_before)


def _unindent(line: str, indent: int) -> str:
    spaces = len(line) - len(line.lstrip(" "))
    return line[min(spaces, indent) :]


def _finish(fence: _Fence, body: list[str], *, complete: bool) -> _Block:
    content = "".join(body)
    if complete:
        content = content.removesuffix("\n").removesuffix("\r")
    language, name = _read_info(fence.info)
    return name or _name_in_line(fence.line_before), language, content, complete


def _read_info(info: str) -> tuple[str, str]:
    """The language and the file name that stand behind a fence."""
    key = _FILE_KEY.search(info)
    name = key[1].strip("\"'") if key else ""
    first = _LANGUAGE.match(info)
    if first is None:
        return "", name
    language, suffix = first[1], first[2] or ""
    if _FILE_NAME.fullmatch(language):
        return "", name or language
    words = (suffix, *info[first.end() :].split())
    return language, name or next((word for word in words if _FILE_NAME.fullmatch(word)), "")


def _name_in_line(line: str) -> str:
    """The file name that is all a line says, whatever it is dressed in (`### **File: app.py**`)."""
    said = line.strip().lstrip("#>*+- \t`\"'")
    dress = _BEFORE_NAME.match(said)
    said = said[dress.end() :] if dress else said
    said = said.rstrip(" \t:*`\"'")
    return said if len(said) <= 255 and _FILE_NAME.fullmatch(said) else ""


def _html_blocks(text: str) -> Iterator[_Block]:
    from html import unescape

    pos = 0
    while (tag := _HTML_TAG.search(text, pos)) is not None:
        pos = tag.end()
        begin = text.find(">", pos, pos + _HTML_TAG_LIMIT) + 1
        name, attributes = tag[1].lower(), text[pos:begin]
        if not begin or (name == "code" and not _HTML_CLASS.search(attributes)):
            continue
        inner = _HTML_TAG.match(text, begin + len(text[begin : begin + 80]) - len(text[begin : begin + 80].lstrip()))
        if name == "pre" and inner and inner[1].lower() == "code":
            name, behind = "code", text.find(">", inner.end(), inner.end() + _HTML_TAG_LIMIT) + 1
            attributes += text[inner.end() : behind]
            begin = behind or begin
        end = _HTML_END[name].search(text, begin)
        kind, key = _HTML_CLASS.search(attributes), _FILE_KEY.search(attributes)
        content = unescape(text[begin : end.start() if end else len(text)])
        yield key[1].strip("\"'") if key else "", kind[1] if kind else "", content, end is not None
        if end is None:
            return
        pos = end.end()
