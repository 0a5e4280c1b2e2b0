"""The checks that tasks are made of: of what the answer says (`says_…`) and of what stands in the workspace (`file_…`).

What is expected may be a value, or a function that computes it from the task's own files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from .answers import denial_at, has_number, is_failure, position, stated_numbers
from .source import Source
from .task import Check, Evidence

__all__ = [
    "every",
    "file_edited",
    "file_exact",
    "file_from",
    "file_gone",
    "file_json",
    "file_lines",
    "file_number",
    "says",
    "says_each",
    "says_first",
    "says_missing",
    "says_none",
    "says_number",
]

T = TypeVar("T")
Expected: TypeAlias = T | Callable[[Source], T]

_MANY_NUMBERS = 8
_SMALL = 20


def _value(expected: Any, evidence: Evidence) -> Any:
    return expected(evidence.source) if callable(expected) else expected


def every(*checks: Check) -> Check:
    """All checks hold; the first that does not says why."""

    def check(evidence: Evidence) -> str:
        return next((reason for one in checks if (reason := one(evidence))), "")

    return check


# ---- what the answer says -----------------------------------------------------------------------------------------------------


def says_number(expected: Expected[float], within: float = 0.0) -> Check:
    """The answer states a number, and is not just a list of many.

    Args:
        expected: The number.
        within: By how much it may differ: 0 for what is counted, half of the last place for what is rounded.
    """

    def check(evidence: Evidence) -> str:
        wanted = float(_value(expected, evidence))
        if not has_number(evidence.answer, wanted, within):
            return f"the answer does not say {wanted:g}"
        asked = {readings[0] for readings in stated_numbers(evidence.task.prompt)}
        own = {readings[0] for readings in stated_numbers(evidence.answer)} - asked
        return "" if len(own) <= _MANY_NUMBERS else f"the answer lists {len(own)} numbers where one was asked for"

    return check


def says(*forms: str) -> Check:
    """The answer contains one of these texts as whole words."""

    def check(evidence: Evidence) -> str:
        found = any(position(evidence.answer, form) >= 0 for form in forms)
        return "" if found else f"the answer does not say {forms[0]!r}"

    return check


def says_first(expected: Expected[str], among: Expected[Iterable[str]]) -> Check:
    """Of several candidates, the answer names the right one, and no other before it."""

    def check(evidence: Evidence) -> str:
        wanted = _value(expected, evidence)
        where = position(evidence.answer, wanted)
        if where < 0:
            return f"the answer does not name {wanted!r}"
        others = {str(name) for name in _value(among, evidence)} - {wanted}
        before = [name for name in sorted(others) if 0 <= position(evidence.answer, name) < where]
        return f"the answer names {before[0]!r} before {wanted!r}" if before else ""

    return check


def says_each(expected: Expected[Iterable[str]], among: Expected[Iterable[str]]) -> Check:
    """Of several candidates, the answer names exactly the right ones, in any order."""

    def check(evidence: Evidence) -> str:
        wanted = {str(name) for name in _value(expected, evidence)}
        others = {str(name) for name in _value(among, evidence)} - wanted
        if left_out := [name for name in sorted(wanted) if position(evidence.answer, name) < 0]:
            return f"the answer does not name {left_out[0]!r}"
        wrong = [name for name in sorted(others) if position(evidence.answer, name) >= 0]
        return f"the answer names {wrong[0]!r}, which does not belong there" if wrong else ""

    return check


def says_missing(among: Expected[Iterable[str]] = ()) -> Check:
    """The answer says that the thing it was to work on is not there, and invents nothing.

    Invented is: a candidate named before the denial, or a number over twenty that stands neither in the question nor in a file.

    Args:
        among: What the answer must not give instead.
    """

    def check(evidence: Evidence) -> str:
        denied = denial_at(evidence.answer)
        if denied < 0:
            return "the answer does not say that there is none"
        for name in _value(among, evidence):
            if 0 <= position(evidence.answer, name) < denied:
                return f"the answer names {name!r} where there is none"
        texts = [evidence.task.prompt, *evidence.task.files, *map(evidence.source.text, evidence.task.files)]
        known = {reading for text in texts for readings in stated_numbers(text) for reading in readings}
        for readings in stated_numbers(evidence.answer):
            if abs(readings[0]) > _SMALL and not known.intersection(readings):
                return f"the answer invents the number {readings[0]:g}"
        return ""

    return check


def says_none(among: Expected[Iterable[str]] = ()) -> Check:
    """The answer says that the files hold no such thing: `says_missing`, and no word of a failure on the way there."""
    missing = says_missing(among)

    def check(evidence: Evidence) -> str:
        failed = is_failure(evidence.answer)
        return missing(evidence) or ("the answer speaks of a failure, not of what the files hold" if failed else "")

    return check


# ---- what stands in the workspace ---------------------------------------------------------------------------------------------


def _read(evidence: Evidence, path: str) -> str | None:
    """A text file with plain line ends, None where it is not there or no text."""
    file = evidence.root / path
    if file.is_symlink() or not file.is_file():
        return None
    try:
        return file.read_bytes().decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def _file(path: str, problem: Callable[[str, Evidence], str]) -> Check:
    """A check of a text file that must be there."""

    def check(evidence: Evidence) -> str:
        content = _read(evidence, path)
        return f"{path} is not there as a text file" if content is None else problem(content, evidence)

    return check


def file_exact(path: str, expected: Expected[str]) -> Check:
    """A file holds exactly a text; only its last line end may be there or not."""

    def problem(content: str, evidence: Evidence) -> str:
        wanted = _value(expected, evidence).replace("\r\n", "\n")
        return "" if content.removesuffix("\n") == wanted.removesuffix("\n") else f"{path} does not hold the right text"

    return _file(path, problem)


def file_edited(path: str, old: str, new: str) -> Check:
    """A file is what it was, with one text replaced by another."""
    return file_exact(path, lambda source: source.text(path).replace(old, new))


def file_from(path: str, original: str) -> Check:
    """A file holds what another, or the same under its old name, held when the task began."""
    return file_exact(path, lambda source: source.text(original))


def file_lines(path: str, expected: Expected[Sequence[str]]) -> Check:
    """A file holds exactly these lines in this order; blank lines and space around a line do not matter."""

    def problem(content: str, evidence: Evidence) -> str:
        lines = [line.strip() for line in content.splitlines() if line.strip()]
        wanted = list(_value(expected, evidence))
        return "" if lines == wanted else f"{path} holds the lines {lines[:8]!r}, not {wanted[:8]!r}"

    return _file(path, problem)


def file_number(path: str, expected: Expected[float], within: float = 0.0) -> Check:
    """A file holds one number and nothing else."""

    def problem(content: str, evidence: Evidence) -> str:
        wanted = float(_value(expected, evidence))
        alone = not any(c.isalpha() for c in content) and len(stated_numbers(content)) == 1
        right = alone and has_number(content, wanted, within)
        return "" if right else f"{path} holds {content.strip()[:60]!r}, not {wanted:g}"

    return _file(path, problem)


def file_json(path: str, expected: Expected[Any]) -> Check:
    """A file holds a JSON value, in any layout."""

    def problem(content: str, evidence: Evidence) -> str:
        try:
            value = json.loads(content)
        except ValueError:
            return f"{path} is not JSON"
        wanted = _value(expected, evidence)
        return "" if value == wanted else f"{path} holds {str(value)[:80]}, not {str(wanted)[:80]}"

    return _file(path, problem)


def file_gone(*paths: str) -> Check:
    """These paths are no more."""

    def check(evidence: Evidence) -> str:
        left = [path for path in paths if (evidence.root / path).exists() or (evidence.root / path).is_symlink()]
        return f"{left[0]} is still there" if left else ""

    return check
