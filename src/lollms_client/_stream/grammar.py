"""The table of tags, compiled for one set of options; compiled once and shared."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from ..errors import ConfigurationError, UnknownNameError
from .call_body import CallMarks
from .lexer import INDENT_LIMIT
from .tags import BLANKS, TAGS, Marks, Tag, beginning_finder, read_attributes

__all__ = ["TAG_LIMIT", "ControlTag", "Grammar", "grammar_for", "read_opening", "skip_space"]

TAG_LIMIT = 8192
"""Length of the longest opening tag with attributes; what is longer is text."""

_CONTROL_LIMIT = 512  # length of the longest line of control tags
_FLAGS = re.IGNORECASE | re.ASCII
_SPACE = re.compile(r"\s*", re.ASCII)

ControlTag = tuple[str, dict[str, str], str]
"""Name, attributes, body of a tag on a line of its own."""

Opener = tuple[Tag, Marks | None]
"""A tag and, for a thought, what ends it."""

_THINK = next(tag for tag in TAGS if tag.body == "thought")


class Grammar:
    """What to look for.

    Args:
        tags: Names of the tags that are on.
        thinking_tags: Further pairs of markers that enclose thoughts, taken as they are.

    Attributes:
        openers: What opens a tag in the text.
        thought_closers: Opening marker of a further pair -> what ends that thought; "" for the tags of the table.
        any_thought_closer: What ends a thought whose opening nobody saw.
        pairs: The first two characters (or one) of all that opens a tag.
        beginnings: Every beginning of the name of a tag at the head of a line.
        may_begin: Finds where in a piece a tag may begin.
    """

    def __init__(self, tags: frozenset[str], thinking_tags: tuple[tuple[str, str], ...]) -> None:
        rows = [tag for tag in TAGS if tag.name in tags]
        blocks = [tag for tag in rows if not tag.own_line]
        if "think" not in tags:
            thinking_tags = ()
        self._by_spelling = {f"<{s}": tag for tag in blocks for s in tag.spellings}
        attributed = [f"<{s}" for tag in blocks if tag.attributes for s in tag.spellings]
        self.openers = Marks(
            tags=[f"<{s}" for tag in blocks if not tag.attributes for s in tag.spellings],
            literals=[opener for opener, _ in thinking_tags],
            names=attributed,
        )
        closers = {tag.body: [f"</{s}" for s in tag.spellings] for tag in TAGS}
        self.thought_closers = {opener.lower(): Marks(literals=[closer]) for opener, closer in thinking_tags}
        self.thought_closers[""] = Marks(tags=closers["thought"])
        self.any_thought_closer = Marks(tags=closers["thought"], literals=[closer for _, closer in thinking_tags])
        self.artefact_closer = Marks(tags=closers["artefact"])
        self.worker_closer = Marks(tags=closers["worker"])
        self.call_marks = CallMarks(closers["call"], [f"<{s}" for tag in TAGS if tag.body == "call" for s in tag.spellings])
        self.control = _Control([s for tag in rows if tag.own_line for s in tag.spellings])
        self.firsts = self.openers.firsts | ({"<"} if self.control.heads else frozenset())
        self.pairs = self.openers.pairs | {f"<{head}" for head in self.control.heads}
        self.beginnings = self.openers.prefixes | self.control.beginnings
        self.may_begin = beginning_finder([m for m in (*self._by_spelling, *self.thought_closers, *self.control.marks) if m])
        self._amid = Marks(names=attributed).match, Marks(names=[*attributed, *self.control.marks]).match
        self._entries: dict[str, Opener] = {}
        for spelled in (*(f"{s}>" for s in self._by_spelling), *self._by_spelling, *self.thought_closers):
            if spelled:
                self._entries[spelled] = self._classify(spelled)
        self._leads = {tag.name: Marks(tags=[f"<{s}" for s in tag.leads]) for tag in blocks if tag.leads}

    def opener(self, spelled: str) -> Opener:
        """What an opening marker opens.

        Args:
            spelled: As `openers` matched it.

        Returns:
            The tag, and for a thought what ends it.
        """
        return self._entries.get(spelled) or self._classify(spelled)

    def is_amid(self, held: str, at_head: bool) -> bool:
        """Whether the name of a tag with attributes is complete; at the head of a line that of a control tag counts too."""
        return self._amid[at_head](held, 0) is not None

    def _classify(self, spelled: str) -> Opener:
        spelled = spelled.lower()
        if spelled in self.thought_closers:
            return _THINK, self.thought_closers[spelled]
        tag = self._by_spelling[spelled.rstrip("> \t\n\r\f\v")]
        return tag, self.thought_closers[""] if tag.body == "thought" else None

    def leads(self, tag: Tag, data: str, pos: int) -> bool | None:
        """Whether the body that begins at `pos` is one of this tag; None where `data` ends too early to say."""
        marks = self._leads.get(tag.name)
        if marks is None:
            return True
        head = skip_space(data, pos)
        if head - pos > INDENT_LIMIT:
            return False
        if head == len(data) or marks.viable(data, head):
            return None
        return marks.match(data, head) is not None


def read_opening(tag: Tag, inner: str) -> tuple[dict[str, str], bool] | None:
    """Read an opening tag.

    Args:
        tag: Which it is.
        inner: What stands between its name and its `>`.

    Returns:
        Its attributes and whether it closes itself; None where it is text after all.
    """
    closes = inner.endswith("/")
    attributes = read_attributes(inner[:-1] if closes else inner)
    if attributes is None or (tag.needs and not any(attributes.get(name) for name in tag.needs)):
        return None
    return attributes, closes


def skip_space(data: str, pos: int) -> int:
    """Where white space that begins at `pos` ends."""
    space = _SPACE.match(data, pos)
    return space.end() if space else pos


class _Control:
    """The tags that stand on a line of their own.

    Args:
        names: Their names.

    Attributes:
        heads: What may stand behind the `<` of such a tag; "" where nothing does yet.
        marks: `<name` of each.
        beginnings: Every beginning of these.
    """

    def __init__(self, names: list[str]) -> None:
        self.heads = frozenset(c for n in names for c in ("", n[0], n[0].upper()))
        self.marks = tuple(f"<{n}" for n in names)
        self.beginnings = frozenset(mark[:size] for mark in self.marks for size in range(1, len(mark) + 1))
        either = "|".join(names) or "(?!)"
        blank = f"[{BLANKS}]*"
        inner = r"[^<>|\n]*"
        self._tag = re.compile(rf"{blank}<({either})((?:\s{inner}?)?)(?:/>|>({inner})</\1\s*>){blank}", _FLAGS)
        endless = (
            rf"{_beginning(n)}|{n}(?:[{BLANKS}/]{inner})?|{n}(?:[{BLANKS}]{inner})?>{inner}(?:</?(?:{_beginning(n)}|{n}{blank}))?"
            for n in names
        )
        self._partial = re.compile(rf"{blank}(?:<(?:{'|'.join(endless) or '(?!)'}))?", _FLAGS)

    def read(self, data: str, line: int, at: int, final: bool) -> tuple[list[ControlTag], int] | Literal[False] | None:
        """Read a line of control tags.

        Args:
            data: The piece.
            line: Where the line begins.
            at: Where its first tag begins.
            final: Nothing follows `data`.

        Returns:
            The tags and the place behind the line break; None where `data` ends too early to say; False where it is no such line.
        """
        stop = data.find("\n", at)
        end = stop if stop >= 0 else len(data)
        if end - line > _CONTROL_LIMIT + INDENT_LIMIT:
            return False
        text = data[line:end]
        tags: list[ControlTag] = []
        pos = 0
        while one := self._tag.match(text, pos):
            attributes = read_attributes(one[2])
            if attributes is None:
                return False
            tags.append((one[1].lower(), attributes, one[3] or ""))
            pos = one.end()
        whole = stop >= 0 or final
        if tags and pos == len(text) and "|" not in text:
            return (tags, end + (stop >= 0)) if whole else None
        return False if whole or "|" in text or not self._partial.fullmatch(text, pos) else None


def _beginning(word: str) -> str:
    """A pattern for every beginning of a word, the empty one and the whole included."""
    pattern = ""
    for char in reversed(word):
        pattern = f"(?:{char}{pattern})?"
    return pattern


@lru_cache(maxsize=64)
def grammar_for(tags: frozenset[str], thinking_tags: tuple[tuple[str, str], ...]) -> Grammar:
    """The grammar for these options.

    Raises:
        ConfigurationError: A tag is not in the table, or a marker cannot be found in a stream.
    """
    known = {tag.name for tag in TAGS}
    if not tags <= known:
        raise UnknownNameError("tag", ", ".join(sorted(tags - known)), known)
    for marker in (m for pair in thinking_tags for m in pair):
        if len(marker) < 2 or marker[0].isspace() or marker[0] in "`~\\":
            raise ConfigurationError(
                f"{marker!r} cannot mark a thought: a marker has two characters or more, and begins neither with white space "
                "nor with a backtick, a tilde or a backslash."
            )
    return Grammar(tags, thinking_tags)
