"""SEARCH/REPLACE patches: reading them, and applying all of one or nothing.

A patch is made of blocks: a line `<<<<<<< SEARCH`, the lines as they are, a line `=======`, the lines as they should be, a line
`>>>>>>> REPLACE`. What stands between blocks (prose, blank lines, the fence around a block) counts for nothing. Each hunk applies
to what the hunks before it made. A search is looked for as it is written, then without regard to white space at the ends of
lines, then with another indentation throughout, then without its blank first and last lines; it has to be in one place.

Source: CONTRACT J.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import LollmsError
from .nearest import Nearest
from .patched_lines import PatchedLines, reindent, split_lines

__all__ = ["Hunk", "HunkFailure", "HunkResult", "PatchError", "Patched", "apply_patch", "is_patch", "read_patch"]

_SEARCH = re.compile(r"<{5,9}[ \t]*SEARCH[ \t]*\r?")
_MARKER = re.compile(
    r"(?P<SEARCH><{5,9})[ \t]*SEARCH[ \t]*\r?|(?P<DIVIDER>={5,9})[ \t]*\r?|(?P<REPLACE>>{5,9})[ \t]*REPLACE[ \t]*\r?"
)
_FIRST_LINES = re.compile(r"(?:[^\S\n]*\n)*(?:(?:```|~~~)[^\n]*\n(?:[^\S\n]*\n)*)?(?P<line>[^\n]*)")
_NOT_FOUND = "its search is not in the file"
_FAILURES_SHOWN, _SHOWN_LIMIT = 6, 200


@dataclass(frozen=True, slots=True)
class Hunk:
    r"""One block of a patch.

    Attributes:
        search: The lines to find, each ended by "\n"; "" for none.
        replace: The lines to put there.
        line: The block's first line in the patch, from 1.
    """

    search: str
    replace: str
    line: int = 1


@dataclass(frozen=True, slots=True)
class HunkResult:
    """How a hunk was applied.

    Attributes:
        hunk: The hunk.
        how: "exact"; "trailing" (white space at the ends of lines differs); "indented" (the indentation does, the replacement was
            moved with it); "edges" (blank first or last lines of the search were not there); "whole" (it is the content of a file
            that was empty).
        line: The line of the original where it was found, from 1; 0 where it begins in lines that an earlier hunk wrote.
    """

    hunk: Hunk
    how: Literal["exact", "trailing", "indented", "edges", "whole"]
    line: int


@dataclass(frozen=True, slots=True)
class HunkFailure:
    """Why a hunk could not be applied.

    Attributes:
        hunk_index: Its place in the patch, from 0.
        reason: One sentence or two.
        nearest: The lines of the original that are most like the search, at most 12: of a long search those where it begins to
            differ; "" where nothing is like it.
        nearest_line: The number of the first of them, from 1; 0 for none.
    """

    hunk_index: int
    reason: str
    nearest: str = ""
    nearest_line: int = 0


@dataclass(frozen=True, slots=True)
class Patched:
    """What a patch made: the new text, and how each hunk was applied, in order."""

    text: str
    hunks: list[HunkResult]


class PatchError(LollmsError, ValueError):
    """A patch cannot be read, or not be applied; nothing of it was.

    Args:
        message: For the model that wrote it.
        failures: The hunks that could not be applied; none where the patch could not be read.
    """

    status_code = 400

    def __init__(self, message: str, failures: Sequence[HunkFailure] = ()) -> None:
        super().__init__(message)
        self.failures = list(failures)


def is_patch(text: str) -> bool:
    """Whether a text is a patch: its first line that is not blank, behind an opening fence where there is one, opens a block."""
    first = _FIRST_LINES.match(text)
    return first is not None and _SEARCH.fullmatch(first["line"]) is not None


def read_patch(text: str) -> list[Hunk]:
    """The blocks of a patch.

    A marker has 5 to 9 characters. Where lines of the content look like markers, those of the block are told from them by having
    all the same length; elsewhere the length does not matter.

    Args:
        text: The patch.

    Returns:
        Its hunks, in order; line ends are LF whatever they were.

    Raises:
        PatchError: A block is not complete, could be read in several ways, or there is none.
    """
    lines = text.split("\n")
    marks = [
        (number, found.lastgroup or "", len(found[found.lastgroup or 0]))
        for number, line in enumerate(lines)
        if line[:1] in ("<", "=", ">") and (found := _MARKER.fullmatch(line))
    ]
    hunks: list[Hunk] = []
    at = 0
    while at < len(marks):
        number, kind, _ = marks[at]
        if kind == "REPLACE":
            raise PatchError(f"Line {number + 1} of the patch closes a block, but no `<<<<<<< SEARCH` line opens one before it.")
        if kind == "DIVIDER":
            at += 1  # a line of prose
            continue
        divider, closer = _parts(marks, at)
        middle, end = marks[divider][0], marks[closer][0]
        hunks.append(Hunk(_body(lines[number + 1 : middle]), _body(lines[middle + 1 : end]), number + 1))
        at = closer + 1
    if not hunks:
        raise PatchError("There is no block in the patch: a line `<<<<<<< SEARCH` opens one.")
    return hunks


_Mark = tuple[int, str, int]
"""The line from 0, which marker it is, how many characters."""


def _parts(marks: list[_Mark], opener: int) -> tuple[int, int]:
    """Where the divider and the end of a block are among the marks."""
    line, _, size = marks[opener]
    closer, stop = _closer(marks, opener)
    dividers = [at for at in range(opener + 1, stop) if marks[at][1] == "DIVIDER"]
    if closer is None or not dividers:
        missing = "`>>>>>>> REPLACE`" if dividers else "`=======`"
        raise PatchError(f"The block that begins in line {line + 1} of the patch has no line {missing} where one has to be.")
    same = [at for at in dividers if marks[at][2] == size]
    if len(dividers) > 1 and len(same) != 1:
        where = ", ".join(str(marks[at][0] + 1) for at in dividers[:10])
        raise PatchError(
            f"The block that begins in line {line + 1} of the patch has {len(dividers)} lines that could divide it ({where}). "
            "Write its three markers with a number of characters, 5 to 9, that no other such line has."
        )
    return (same if len(same) == 1 else dividers)[0], closer


def _closer(marks: list[_Mark], opener: int) -> tuple[int | None, int]:
    """Where the line that closes a block is among the marks, if it is there; and where the search for it ended."""
    size = marks[opener][2]
    closer: int | None = None
    nested = False
    for at in range(opener + 1, len(marks)):
        _, kind, length = marks[at]
        if kind == "REPLACE" and length == size:
            return at, at
        if kind == "SEARCH":
            if length == size or closer is not None:
                return closer, closer or at
            nested = True  # a block of markers of another length is content, if ours is closed by one of its own
        elif kind == "REPLACE" and closer is None and not nested:
            closer = at
    return closer, closer or len(marks)


def _body(lines: list[str]) -> str:
    return "".join(f"{line.removesuffix(chr(13))}\n" for line in lines)


def apply_patch(original: str, patch: str | Iterable[Hunk]) -> Patched:
    """The text that a patch makes of another.

    Lines outside of the hunks, and lines that a hunk does not change, stay byte for byte; new lines get the line ends of the
    place where they come. A file that ends without a line end still does.

    Args:
        original: The text as it is; "" for a file that is not there.
        patch: The patch, or its hunks.

    Returns:
        The new text, and how each hunk was applied.

    Raises:
        PatchError: The patch cannot be read, or a hunk cannot be applied; nothing is applied then.
    """
    hunks = read_patch(patch) if isinstance(patch, str) else list(patch)
    lines = PatchedLines(original)
    results: list[HunkResult] = []
    failures: list[HunkFailure] = []
    nearest = Nearest(original)
    for index, hunk in enumerate(hunks):
        outcome = _apply(lines, hunk)
        if isinstance(outcome, HunkResult):
            results.append(outcome)
        else:
            like = nearest.to(hunk.search) if outcome.startswith(_NOT_FOUND) and len(failures) < _FAILURES_SHOWN else None
            failures.append(
                HunkFailure(index, outcome + (like.difference if like else ""), *((like.text, like.line) if like else ()))
            )
    if failures:
        raise PatchError(_message(hunks, failures, len(nearest.lines)), failures)
    return Patched(lines.text(), results)


def _apply(lines: PatchedLines, hunk: Hunk) -> HunkResult | str:
    """Applies a hunk, or says why it cannot be."""
    search, replace = split_lines(hunk.search), split_lines(hunk.replace)
    if not any(line.strip() for line in search) and lines.is_blank(exactly=bool(search)):
        lines.fill(replace)
        return HunkResult(hunk, "whole", 1)
    if not search:
        return "its search is empty, which is for a new file only; this file has content. Search for the lines to change"
    how: Literal["edges"] | None = None
    found = lines.find(search)
    if found == []:
        trimmed, kept = _without_blank_edges(search, replace)
        if trimmed and len(trimmed) < len(search):
            found = lines.find(trimmed)
            search, replace, how = trimmed, kept, "edges"
    if found is None:
        return "its lines are alike and occur too often to tell where they belong. Search for fewer lines, and rarer ones"
    if not found:
        done = lines.find(replace) if replace else None
        return _NOT_FOUND + ("; its replacement is there already" if done else "")
    if len(found) > 1:
        return _ambiguous([lines.number(place.first) for place in found])
    moved = reindent(replace, found[0].shift)
    if moved is None:
        return "its search is there, but less indented, and its replacement has lines that cannot be moved as far to the left"
    line = lines.number(found[0].first)
    before, behind = _unchanged(search, replace)
    lines.put(found[0].first, len(search), (before, behind), moved[before : len(moved) - behind])
    return HunkResult(hunk, how or found[0].how, line)


def _unchanged(search: list[str], replace: list[str]) -> tuple[int, int]:
    """How many lines at the beginning and at the end stay as they are in the text."""
    most = min(len(search), len(replace))
    before = next((at for at in range(most) if search[at] != replace[at]), most)
    behind = next((at for at in range(most - before) if search[-1 - at] != replace[-1 - at]), most - before)
    return before, behind


def _without_blank_edges(search: list[str], replace: list[str]) -> tuple[list[str], list[str]]:
    """Both without the blank lines around the search; the replacement loses no more of them than it has."""
    first, last = 0, len(search)
    while first < last and not search[first].strip():
        first += 1
    while last > first and not search[last - 1].strip():
        last -= 1
    begin, end = 0, len(replace)
    while begin < min(first, end) and not replace[begin].strip():
        begin += 1
    while end > max(begin, len(replace) - (len(search) - last)) and not replace[end - 1].strip():
        end -= 1
    return search[first:last], replace[begin:end]


def _ambiguous(numbers: list[int]) -> str:
    shown = [str(number) if number else "one that an earlier hunk wrote" for number in numbers[:10]]
    count = f"{len(numbers)}" if len(numbers) < PatchedLines.MOST else f"{len(numbers)} or more"
    return f"its search is in {count} places (from lines {', '.join(shown)}). Add lines around it until it is in one place only"


def _message(hunks: list[Hunk], failures: list[HunkFailure], size: int) -> str:
    said = [f"The patch was not applied: {len(failures)} of its {len(hunks)} hunks failed, so nothing was changed."]
    for failure in failures[:_FAILURES_SHOWN]:
        said.append(f"Hunk {failure.hunk_index + 1} (line {hunks[failure.hunk_index].line} of the patch): {failure.reason}.")
        if failure.nearest:
            said.append("The nearest lines of the file (number, then the line):")
            numbered = enumerate(failure.nearest.removesuffix("\n").split("\n"), failure.nearest_line)
            said += [f"{number:>6} | {_cut(line)}" for number, line in numbered]
        elif failure.reason.startswith(_NOT_FOUND):
            said.append(f"Nothing in the file is like them; it has {size} lines." if size else "The file is empty.")
    if len(failures) > _FAILURES_SHOWN:
        rest = ", ".join(str(failure.hunk_index + 1) for failure in failures[_FAILURES_SHOWN:][:50])
        said.append(f"Further hunks that failed: {rest}{', …' if len(failures) > _FAILURES_SHOWN + 50 else ''}.")
    said.append("Write the whole patch again, with the lines copied exactly from the file.")
    return "\n".join(said)


def _cut(line: str) -> str:
    return line if len(line) <= _SHOWN_LIMIT else line[:_SHOWN_LIMIT] + " … (cut)"
