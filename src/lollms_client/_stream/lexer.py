"""Where in a Markdown text a tag may stand: the state of lines, code spans and code fences.

Fences follow CommonMark: three or more backticks or tildes after at most three spaces open one (the words behind a backtick fence
hold no backtick), a line with at least as many of the same and nothing else closes it. A code span opens with a run of backticks
and ends with the next run of the same length, or with its line (CONTRACT J): on the line of a stray backtick nothing is obeyed.
A backslash takes the meaning from a backtick outside spans, as CommonMark has it.

The lexer gives no text out and holds none back: it only says where the next tag may begin.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from .tags import BLANKS

__all__ = ["CALM_CODE", "CALM_HEAD", "CALM_TEXT", "FENCE_CLOSE", "INDENT_LIMIT", "Lexer"]

INDENT_LIMIT = 256
"""White space that may stand before a tag on a line of its own; more makes it a line of text."""

FENCE_CLOSE = re.compile(r" {0,3}(`+|~+)[ \t\r]*")
"""A line that closes a fence, where its run is of the fence's character and long enough."""

CALM_TEXT, CALM_CODE, CALM_HEAD = 1, 2, 3

_ANGLE = frozenset("<")
_FENCE_LINE_LIMIT = 512
_FENCE_BLANKS = " \t\r"
_FENCE_HEAD = re.compile(r" {0,3}(?:`+|~+)?[ \t\r]*")
_BLANK = re.compile(f"[{BLANKS}]*")
_IN_SPAN = re.compile(r"[`\n]").search
_RUNS = {"`": re.compile("`*"), "~": re.compile("~*")}


@lru_cache(maxsize=256)
def _special(firsts: frozenset[str]) -> Callable[[str, int], re.Match[str] | None]:
    """Finds what is not plain in a line of text; a line break together with the white space behind it."""
    return re.compile(f"[{re.escape(''.join(sorted(firsts)))}`\\\\]|\n[{BLANKS}]*").search


@lru_cache(maxsize=256)
def _either(firsts: frozenset[str]) -> Callable[[str, int], re.Match[str] | None]:
    return re.compile(f"[{re.escape(''.join(sorted(firsts)))}]").search


class Lexer:
    """Follows one text, piece by piece.

    Args:
        firsts: The characters that a tag may begin with.
        watch_code: Stop at them inside fences too.

    Attributes:
        blank: Nothing but white space stands on this line so far.
        line: While `blank`: where in the last piece that white space begins.
        only_angles: All tags begin with `<`.
    """

    __slots__ = (
        "_candidates", "_fence", "_fence_line", "_fence_size", "_heads", "_opens", "_pass", "_run", "_run_char",
        "_run_heads", "_search", "_span", "_watched", "blank", "line", "only_angles",
    )  # fmt: skip

    def __init__(self, firsts: frozenset[str], watch_code: bool = False) -> None:
        self._candidates = firsts
        self._heads = firsts | frozenset("`~\n")
        self._search = _special(firsts)
        self._watched = _either(firsts) if watch_code else None
        self.only_angles = firsts <= _ANGLE
        self.blank = True
        self.line = 0
        self._pass: Callable[[str, int], int] | None = None  # passes what we are in, where that is not plain text
        self._run = 0  # length so far of a run of backticks or tildes
        self._run_char = ""
        self._run_heads = False  # it stands at the head of its line
        self._span = 0  # length of the run that opened the code span we are in
        self._opens = False  # that run opens a fence, if no other backtick follows on its line
        self._fence = ""  # the character of the fence we are in
        self._fence_size = 0
        self._fence_line: str | None = None  # what stands on this line of the fence, while it may still close it

    def calm(self) -> int:
        """What the next piece may be without changing anything.

        Returns:
            `CALM_TEXT`: anything without line break, `<`, backtick and backslash; `CALM_HEAD` (at a line's head): the same
            without tilde, but white space is to be held; `CALM_CODE`: what `pass_calm_code` takes; 0: nothing.
        """
        if self._pass is None:
            return (CALM_HEAD if self.blank else CALM_TEXT) if self.only_angles else 0
        plain = not (self._fence_line and self._fence_line.strip(_FENCE_BLANKS))
        return CALM_CODE if self._fence and plain and (self.only_angles or not self._watched) else 0

    @property
    def in_code(self) -> bool:
        """We are inside a fence."""
        return self._fence != ""

    def pass_calm_code(self, data: str) -> bool:
        """Pass a piece of fenced code in which no line can end the fence; False, and nothing is done, where one might."""
        if self._watched and "<" in data:
            return False
        if self._fence_line is None and "\n" not in data:
            return True
        if self._fence in data:
            return False
        at = data.rfind("\n") + 1
        line = data[at:] if at else (self._fence_line or "") + data
        alive = len(line) <= _FENCE_LINE_LIMIT and not line.strip(_FENCE_BLANKS)
        self._fence_line = line if alive else None
        return True

    def find(self, data: str, pos: int) -> int:
        """Go on from `pos` to the next character that may begin a tag.

        Args:
            data: The piece.
            pos: Where to go on. If the last call stopped at a character that began no tag, the character after it.

        Returns:
            Its place, or `len(data)` where there is none.
        """
        end = len(data)
        search = self._search
        while pos < end:
            if self._pass is not None:
                was_code = self._fence
                pos = self._pass(data, pos)
                if was_code and self._fence and pos < end:
                    return pos  # a candidate inside code that is watched
            elif self.blank:
                pos = self._pass_blank(data, pos)
                if self.blank:
                    return pos
            else:
                hit = search(data, pos)
                if hit is None:
                    return end
                char = data[hit.start()]
                if char == "\n":
                    pos = self._start_line(data, hit)
                elif char in self._candidates:
                    return hit.start()
                else:
                    pos = hit.end()
                    if char == "`":
                        self._start_run("`", heads=False)
                    else:
                        self._pass = self._pass_escaped
        if self.blank:
            self.line = end
        return end

    def reject(self) -> None:
        """The character that `find` stopped at begins no tag: it is one of the line's characters."""
        self.blank = False
        self._fence_line = None

    # ---- lines -------------------------------------------------------------------------------------------------------------

    def _start_line(self, data: str, hit: re.Match[str]) -> int:
        """Behind a line break; `hit` holds the white space after it."""
        head = hit.end()
        if head < len(data) and data[head] not in self._heads:
            return head
        self.blank = True
        return hit.start() + 1

    def _pass_blank(self, data: str, pos: int) -> int:
        """Pass the white space at a line's head; `blank` stays set only at a candidate and at the end of the piece."""
        while True:
            passed = _BLANK.match(data, pos)
            head = passed.end() if passed else pos
            if head - pos > INDENT_LIMIT:
                self.blank = False
                return head
            self.line = pos
            if head == len(data) or data[head] in self._candidates:
                return head
            if data[head] != "\n":
                break
            pos = head + 1
        self.blank = False
        char = data[head]
        if char in _RUNS:
            self._start_run(char, heads=head - pos <= 3 and data.count(" ", pos, head) == head - pos)
            return head + 1
        return head

    def _pass_escaped(self, data: str, pos: int) -> int:
        self._pass = None
        return pos + (data[pos] in "\\`")

    # ---- spans -------------------------------------------------------------------------------------------------------------

    def _start_run(self, char: str, *, heads: bool) -> None:
        self._run, self._run_char, self._run_heads = 1, char, heads
        self._pass = self._pass_run

    def _pass_run(self, data: str, pos: int) -> int:
        more = _RUNS[self._run_char].match(data, pos)
        stop = more.end() if more else pos
        self._run += stop - pos
        if stop < len(data):
            self._end_run()
        return stop

    def _end_run(self) -> None:
        size, char = self._run, self._run_char
        fence = self._run_heads and size >= 3
        self._run = 0
        self._pass = None
        if char == "~":
            if fence:
                self._open_fence("~", size, None)
        elif not self._span:
            self._span, self._opens = size, fence
            self._pass = self._pass_span
        else:
            self._opens = False
            if size == self._span:
                self._span = 0
            else:
                self._pass = self._pass_span

    def _pass_span(self, data: str, pos: int) -> int:
        hit = _IN_SPAN(data, pos)
        if hit is None:
            return len(data)
        if hit[0] == "`":
            self._start_run("`", heads=False)
            return hit.end()
        size, self._span = self._span, 0
        self._pass = None
        if self._opens:
            self._opens = False
            self._open_fence("`", size, "")
            return hit.end()
        self.blank = True
        self.line = hit.end()
        return hit.end()

    # ---- fences ------------------------------------------------------------------------------------------------------------

    def _open_fence(self, char: str, size: int, line: str | None) -> None:
        self._fence, self._fence_size, self._fence_line = char, size, line
        self._pass = self._pass_code

    def _pass_code(self, data: str, pos: int) -> int:
        hit = self._watched(data, pos) if self._watched else None
        end = hit.start() if hit else len(data)
        while True:
            stop = data.find("\n", pos, end)
            line = self._fence_line
            if stop < 0:
                if line is not None:
                    line += data[pos:end]
                    alive = len(line) <= _FENCE_LINE_LIMIT and _FENCE_HEAD.fullmatch(line)
                    self._fence_line = line if alive else None
                return end
            if line is not None and self.closes(line + data[pos:stop]):
                self.leave_code()
                return stop + 1
            self._fence_line = ""
            pos = stop + 1

    def leave_code(self) -> None:
        """The fence has ended, with its line."""
        self._fence = ""
        self._pass = None
        self.blank = True

    def closes(self, line: str | None = None) -> bool:
        """Whether a line, or what was read of the present one, ends the fence that we are in."""
        line = self._fence_line if line is None else line
        if line is None:
            return False
        if len(line) > _FENCE_LINE_LIMIT:
            return False
        run = FENCE_CLOSE.fullmatch(line)
        return run is not None and run[1][0] == self._fence and len(run[1]) >= self._fence_size
