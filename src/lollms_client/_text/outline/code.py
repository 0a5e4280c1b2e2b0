"""Functions and classes of code, line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .lexis import Lexer, Lexis
from .units import Kind

__all__ = ["Bare", "CodeScanner", "Language", "Rule"]

_BRACKETS = re.compile(r"[{}()\[\];]")
_MOST_OPEN, _LOOKED_AT = 1000, 500
_NO_NAME = frozenset(
    (
        "if",
        "for",
        "foreach",
        "while",
        "switch",
        "catch",
        "return",
        "sizeof",
        "defined",
        "decltype",
        "alignas",
        "alignof",
        "noexcept",
    )
)
_NO_TYPE = frozenset(("return", "new", "throw", "else", "do", "case", "goto", "delete", "typedef", "using", "await", "yield"))
_TYPE_LINE = re.compile(r"[^\W\d][\w<>,*&\s]*(?:::[\w<>,*&\s]+)*")
_WORD = re.compile(r"[\w<@]")
_QUOTES = re.compile(r'["`\[\]]')


@dataclass(frozen=True, slots=True)
class Rule:
    """A line that begins a unit.

    Attributes:
        kind: The unit; "" for what only holds others (a namespace).
        pattern: Matched at the first character of a line that is not blank; its group `name` is the unit's.
        where: "top" for lines outside of all brackets, "type" for those directly inside of a class.
    """

    kind: Kind | Literal[""]
    pattern: re.Pattern[str]
    where: Literal["any", "top", "type"] = "any"


@dataclass(frozen=True, slots=True)
class Bare:
    """Functions that no word introduces: `type name(`.

    Attributes:
        head: What may stand before the first parenthesis, with the group `name`, and `before` for what comes before it.
        skip: What may come first: annotations, attributes.
        at_top: They may stand outside of classes, and their type on a line of its own before.
        prototypes: A line that ends with a semicolon counts.
    """

    head: re.Pattern[str]
    skip: re.Pattern[str]
    at_top: bool
    prototypes: bool


@dataclass(frozen=True, slots=True)
class Language:
    """The rows of a language."""

    lexis: Lexis
    rules: tuple[Rule, ...]
    bare: Bare | None = None
    brackets: bool = False
    """Whether the rules ask where they are."""


class CodeScanner:
    """Finds the units of code.

    Args:
        language: Its rows.
    """

    def __init__(self, language: Language) -> None:
        self._language = language
        self._lexer = Lexer(language.lexis)
        self._found: tuple[Kind, str] | None = None
        self._open: list[str | None] = []  # "(" for a parenthesis; None for a brace, or the class whose brace it is after a ":"
        self._too_deep = 0
        self._line_before = ""
        self._expected: tuple[int, str] | None = None  # a class whose brace is to come: how deep, and its name

    def scan(self, text: str, *, begins: bool, ends: bool) -> list[tuple[Kind, str, int]]:
        """The units of a line: kind, name, and how many lines ago it was.

        Args:
            text: The line without its end; of a very long line, its next part.
            begins: It is the beginning of a line.
            ends: It is the end of a line.
        """
        code = self._lexer.code(text, begins=begins, ends=ends)
        if begins:
            line = code[:_LOOKED_AT].strip()
            self._found = self._look(line)
            self._line_before = line
        if self._language.brackets:
            for bracket in _BRACKETS.findall(code):
                self._bracket(bracket)
        return [(*self._found, 0)] if ends and self._found is not None else []

    def _look(self, code: str) -> tuple[Kind, str] | None:
        where = self._where() if self._language.brackets else "any"
        for rule in self._language.rules:
            if rule.where in ("any", where) and (found := rule.pattern.match(code)):
                name = _QUOTES.sub("", found["name"]) if rule.kind else ""
                if rule.kind in ("class", ""):
                    self._expected = (len(self._open), name)
                return (rule.kind, name) if rule.kind else None
        bare = self._language.bare
        if bare is None or (where != "type" and not (bare.at_top and where == "top")):
            return None
        return _bare_function(bare, code, self._class(), self._line_before)

    def _where(self) -> str:
        if not self._open:
            return "top"
        return "type" if self._class() is not None else "inside"

    def _class(self) -> str | None:
        """The class whose body is open, and no other bracket in it."""
        last = self._open[-1] if self._open and not self._too_deep else None
        return last[1:] if last is not None and last[0] == ":" else None

    def _bracket(self, bracket: str) -> None:
        depth = len(self._open)
        if bracket in "{([":
            if depth >= _MOST_OPEN:
                self._too_deep += 1
            elif bracket == "{" and self._expected is not None and self._expected[0] == depth:
                self._open.append(f":{self._expected[1]}")
                self._expected = None
            else:
                self._open.append(None if bracket == "{" else "(")
        elif bracket == ";":
            if self._expected is not None and self._expected[0] >= depth:
                self._expected = None
        elif self._too_deep:
            self._too_deep -= 1
        elif bracket == "}":
            while self._open and self._open.pop() == "(":
                pass
        elif self._open and self._open[-1] == "(":
            self._open.pop()


def _bare_function(bare: Bare, code: str, inside: str | None, line_before: str) -> tuple[Kind, str] | None:
    skipped = bare.skip.match(code)
    code = code[skipped.end() :] if skipped else code
    end = code.find("(")
    head = bare.head.fullmatch(code, 0, end) if end > 0 else None
    if head is None or (not bare.prototypes and code.rstrip().endswith(";")):
        return None
    name, before = head["name"], head["before"].split()
    if not before and bare.at_top and _TYPE_LINE.fullmatch(line_before):
        before = line_before.split()
    if not before and "::" not in name and name.lstrip("~") != inside:
        return None  # a call, or a macro
    if before and not _WORD.match(before[0]):
        return None  # an initialiser
    return None if name in _NO_NAME or not _NO_TYPE.isdisjoint(before) else ("function", name)
