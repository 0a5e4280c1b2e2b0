"""JSON as models write it: read what is valid untouched, mend what is broken, and say what was mended.

The repair makes one pass with a stack of its own, so neither length nor depth can hang or crash it. What it cannot know it names:
a repair is `certain` only where nothing but the notation was wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..errors import StreamError

__all__ = ["JsonResult", "repair_json"]

_DEPTH_LIMIT = 500
_CERTAIN = frozenset(
    {
        "code fence", "comment", "extra closing bracket", "line break in a string", "missing closing bracket", "Python literal",
        "single quotes", "trailing comma", "unquoted key",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JsonResult:
    """What was read.

    Attributes:
        value: The value.
        changes: What had to be mended, in the order met; empty for valid JSON.
    """

    value: Any
    changes: tuple[str, ...] = ()

    @property
    def repaired(self) -> bool:
        """The text was not valid JSON."""
        return bool(self.changes)

    @property
    def certain(self) -> bool:
        """Only the notation was mended: no content is missing and none was guessed."""
        return _CERTAIN.issuperset(self.changes)


def repair_json(text: str) -> JsonResult:
    """Read JSON, mending it where it is broken.

    Valid JSON is never altered. Mended are: a code fence or prose around it, trailing and missing commas, single quotes,
    comments, unquoted keys and words, Python's literals, line breaks and stray quotes in strings, missing or superfluous closing
    brackets, and a string that was cut off (closed, with its text kept).

    Args:
        text: The text.

    Returns:
        The value and what was mended.

    Raises:
        StreamError: There is no JSON in the text, or it is nested more than 500 deep.
    """
    import json

    try:
        return JsonResult(json.loads(text))
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        pass
    try:
        return JsonResult(json.loads(text, strict=False), ("line break in a string",))
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        return _Repair(text).run()


def _too_deep() -> StreamError:
    return StreamError(f"The JSON is nested too deeply (at most {_DEPTH_LIMIT} levels are read); write it flatter.")


_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[^\n`{\[]*\n?")
_BLANK = re.compile(r"[\s\ufeff]*")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_WORD = r"""(?:[^\s,:{}\[\]"]|:(?=//))+"""
_WORDS = re.compile(rf"{_WORD}(?:[ \t]+{_WORD})*")
_WORDS_END = re.compile(r"\s+(?://|/\*|#)")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_PLAIN = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_BEHIND_STRING = re.compile(r"""\s*(?:[,:}\]\\]|//|/\*|\Z)|\s+["']""")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_LITERALS: dict[str, tuple[Any, str]] = {
    "true": (True, ""), "false": (False, ""), "null": (None, ""), "NaN": (float("nan"), ""), "Infinity": (float("inf"), ""),
    "-Infinity": (float("-inf"), ""), "True": (True, "Python literal"), "False": (False, "Python literal"),
    "None": (None, "Python literal"), "undefined": (None, "unquoted text"),
}  # fmt: skip

_KEY, _COLON, _VALUE, _AFTER = range(4)  # what an object or array waits for; arrays know only _VALUE and _AFTER


class _Frame:
    """An object or array that has not ended."""

    __slots__ = ("is_list", "items", "key", "state", "waits")

    def __init__(self, items: Any) -> None:
        self.items = items
        self.is_list = isinstance(items, list)
        self.state = _VALUE if self.is_list else _KEY
        self.key = ""
        self.waits = False  # a comma was read, and nothing behind it yet


class _Repair:
    """One pass over one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._changes: dict[str, None] = {}
        self._stack: list[_Frame] = []
        self._lists = 0  # how many of the stack are arrays
        self._halves = False  # an escape gave half of a surrogate pair

    def run(self) -> JsonResult:
        self._find_start()
        root = self._read_value()
        while self._stack:
            self._skip_blank()
            if self._pos >= len(self._text):
                self._close_all()
            else:
                self._step(self._text[self._pos])
        self._read_rest()
        return JsonResult(root, tuple(self._changes))

    def _note(self, change: str) -> None:
        self._changes[change] = None

    # ---- around the value --------------------------------------------------------------------------------------------------

    def _find_start(self) -> None:
        fence = _FENCE.match(self._text)
        if fence:
            self._pos = fence.end()
            self._note("code fence")
        self._skip_blank()
        text, pos = self._text, self._pos
        if pos < len(text) and (text[pos] in "{[\"'" or _NUMBER.match(text, pos) or text[pos:].strip() in _LITERALS):
            return
        starts = [at for at in (text.find("{", pos), text.find("[", pos)) if at >= 0]
        if not starts:
            raise StreamError("There is no JSON in the text: it has neither an object {…} nor an array […].")
        self._note("code fence" if text[pos : min(starts)].lstrip().startswith(("```", "~~~")) else "text before")
        self._pos = min(starts)

    def _read_rest(self) -> None:
        self._skip_blank()
        rest = self._text[self._pos :].strip()
        if rest.endswith(("```", "~~~")):
            self._note("code fence")
            rest = rest.rstrip("`~").rstrip()
        if rest:
            self._note("text behind" if rest.strip("]} \t\r\n") else "extra closing bracket")

    def _skip_blank(self) -> None:
        while True:
            blank = _BLANK.match(self._text, self._pos)
            self._pos = blank.end() if blank else self._pos
            comment = _COMMENT.match(self._text, self._pos)
            if comment is None:
                return
            self._note("comment")
            self._pos = comment.end()

    def _close_all(self) -> None:
        if self._stack[-1].state in (_COLON, _VALUE) and not self._stack[-1].is_list:
            self._note("missing value")
        self._note("missing closing bracket")
        self._stack.clear()

    # ---- inside objects and arrays -----------------------------------------------------------------------------------------

    def _step(self, char: str) -> None:
        top = self._stack[-1]
        if char in "]}":
            self._close(top, char)
        elif char == ",":
            self._take_comma(top)
        elif char in ":\\":
            self._take_colon(top, char)
        elif top.state == _KEY:
            self._read_key(top, char)
        elif top.state == _AFTER:
            self._note("missing comma")
            top.state = _VALUE if top.is_list else _KEY
        else:
            if top.state == _COLON:
                self._note("missing colon")
            self._put(top, self._read_value())

    def _close(self, top: _Frame, char: str) -> None:
        if (char == "]") == top.is_list:
            if top.waits:
                self._note("trailing comma")
            elif top.state in (_COLON, _VALUE) and not top.is_list:
                self._note("missing value")
                top.items[top.key] = None
            self._pop()
            self._pos += 1
        elif self._lists if char == "]" else len(self._stack) - self._lists:
            self._note("wrong closing bracket")
            self._pop()
        else:
            self._note("wrong closing bracket")
            self._pos += 1

    def _pop(self) -> None:
        self._lists -= self._stack.pop().is_list

    def _take_comma(self, top: _Frame) -> None:
        self._pos += 1
        if top.state in (_COLON, _VALUE) and not top.is_list:
            self._note("missing value")
            top.items[top.key] = None
        elif top.state != _AFTER:
            self._note("extra comma")
        top.state = _VALUE if top.is_list else _KEY
        top.waits = True

    def _take_colon(self, top: _Frame, char: str) -> None:
        self._pos += 1
        if char == ":" and top.state == _COLON:
            top.state = _VALUE
        else:
            self._note("stray character")

    def _read_key(self, top: _Frame, char: str) -> None:
        if char in _PLAIN:
            top.key = self._read_string(char)
        else:
            words = _WORDS.match(self._text, self._pos)
            if words is None:
                self._note("stray character")
                self._pos += 1
                return
            self._note("unquoted key")
            top.key = words[0]
            self._pos = words.end()
        top.state, top.waits = _COLON, False

    def _put(self, top: _Frame, value: Any) -> None:
        if top.is_list:
            top.items.append(value)
        else:
            top.items[top.key] = value
        top.state, top.waits = _AFTER, False

    # ---- values ------------------------------------------------------------------------------------------------------------

    def _read_value(self) -> Any:
        char = self._text[self._pos]
        if char in "{[":
            if len(self._stack) >= _DEPTH_LIMIT:
                raise _too_deep()
            self._pos += 1
            items: Any = [] if char == "[" else {}
            self._stack.append(_Frame(items))
            self._lists += char == "["
            return items
        return self._read_string(char) if char in _PLAIN else self._read_words()

    def _read_words(self) -> Any:
        words = _WORDS.match(self._text, self._pos)
        if words is None:
            raise StreamError(f"The JSON cannot be read at character {self._pos}.")
        cut = _WORDS_END.search(words[0])
        text = words[0][: cut.start()] if cut else words[0]
        self._pos += len(text)
        if text in _LITERALS:
            value, change = _LITERALS[text]
            if change:
                self._note(change)
            return value
        if _NUMBER.fullmatch(text) and len(text) < 4000:
            if text[0] in "+." or text.endswith(".") or text.lstrip("-").startswith("0"):
                self._note("number")
            return float(text) if set(text) & set(".eE") else int(text)
        self._note("unquoted text")
        return text

    def _read_string(self, quote: str) -> str:
        if quote == "'":
            self._note("single quotes")
        parts: list[str] = []
        self._pos += 1
        while True:
            plain = _PLAIN[quote].match(self._text, self._pos)
            if plain:
                parts.append(plain[0])
                self._pos = plain.end()
                if "\n" in plain[0]:
                    self._note("line break in a string")
            if self._pos >= len(self._text):
                self._note("truncated string")
                break
            if self._text[self._pos] == "\\":
                parts.append(self._read_escape())
                continue
            self._pos += 1
            if _BEHIND_STRING.match(self._text, self._pos):
                break
            self._note("quote in a string")
            parts.append(quote)
        text = "".join(parts)
        if self._halves:
            self._halves = False
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def _read_escape(self) -> str:
        char = self._text[self._pos + 1 : self._pos + 2]
        self._pos += 2
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char == "u" and (code := _HEX.match(self._text, self._pos)):
            self._pos = code.end()
            self._halves = self._halves or code[0][0] in "dD"
            return chr(int(code[0], 16))
        if char == "'":
            self._note("single quotes")
            return "'"
        if char:
            self._note("unknown escape")
        return f"\\{char}" if char else ""
