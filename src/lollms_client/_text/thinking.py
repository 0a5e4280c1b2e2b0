"""Thoughts in a text that is all there: found by the rules of the stream, since the same parser finds them.

Source: CONTRACT D, developer guide §4 ("Thought Stream Handling").
"""

from __future__ import annotations

from .._stream.grammar import grammar_for
from .._stream.options import ParserOptions
from .._stream.parser import StreamParser
from ..events import Event, ThoughtDelta

__all__ = ["extract_thinking_blocks", "remove_thinking_blocks", "split_thoughts"]

_THINK = frozenset({"think"})
_NO_EXTRA: tuple[tuple[str, str], ...] = ()


def extract_thinking_blocks(text: str, thinking_tags: tuple[tuple[str, str], ...] = _NO_EXTRA) -> list[str]:
    """The thoughts of a text.

    Args:
        text: A model's answer.
        thinking_tags: Further pairs of markers that enclose thoughts.

    Returns:
        Each thought without the white space around it; empty ones are left out.

    Source: CONTRACT D.
    """
    return [said for is_thought, piece in split_thoughts(text, thinking_tags) if is_thought and (said := piece.strip())]


def remove_thinking_blocks(text: str, thinking_tags: tuple[tuple[str, str], ...] = _NO_EXTRA) -> str:
    """The text without its thoughts.

    Args:
        text: A model's answer.
        thinking_tags: Further pairs of markers that enclose thoughts.

    Returns:
        What was said, as it was said. The white space behind a thought goes with it where the thought stood at the beginning or
        had white space before it too.

    Source: CONTRACT D.
    """
    kept = ""
    behind_thought = False
    parts: list[str] = []
    for is_thought, piece in split_thoughts(text, thinking_tags):
        if is_thought:
            behind_thought = True
            continue
        blank_before = not kept or kept[-1].isspace()
        said = piece.lstrip() if behind_thought and blank_before else piece
        behind_thought = False
        if said:
            kept = said
            parts.append(said)
    return "".join(parts)


def split_thoughts(text: str, thinking_tags: tuple[tuple[str, str], ...] = _NO_EXTRA) -> list[tuple[bool, str]]:
    """Split a model's answer into what it thinks and what it says.

    Args:
        text: The answer. Where its first thinking tag closes a thought (some servers keep the opening tag to themselves), it
            begins inside one.
        thinking_tags: Further pairs of markers that enclose thoughts.

    Returns:
        `(is_thought, piece)` each, in order and exact: only the tags are missing.
    """
    plain = _Splitter(ParserOptions(tags=_THINK, thinking_tags=thinking_tags)).split(text)
    if not grammar_for(_THINK, thinking_tags).any_thought_closer.search(text):
        return plain
    splitter = _Splitter(ParserOptions(tags=_THINK, thinking_tags=thinking_tags, implicit_think=True))
    implicit = splitter.split(text)
    thought_first = implicit[0][1] if implicit and implicit[0][0] else ""
    said_first = plain[0][1] if plain and not plain[0][0] else ""
    return implicit if splitter.closed and said_first.startswith(thought_first) else plain  # no thought opens before that end


class _ThoughtEnd(Event):
    """Tells one thought from the next."""


class _Splitter(StreamParser):
    """The stream parser, which also says where a thought ends."""

    __slots__ = ("closed",)

    def split(self, text: str) -> list[tuple[bool, str]]:
        self.closed: bool | None = None  # the first thought was closed, and not inside a fence
        pieces: list[tuple[bool, list[str]]] = []
        for event in (*self.feed(text), *self.close()):
            if isinstance(event, _ThoughtEnd):
                pieces.append((False, []))
                continue
            is_thought = isinstance(event, ThoughtDelta)
            if not pieces or pieces[-1][0] != is_thought:
                pieces.append((is_thought, []))
            pieces[-1][1].append(event.text)  # type: ignore[attr-defined]
        return [(is_thought, "".join(parts)) for is_thought, parts in pieces if parts]

    def _close_thought(self, what: None, out: list[Event]) -> None:
        if self.closed is None:
            self.closed = not self._lexer.in_code or self._lexer.closes()
        out.append(_ThoughtEnd())
        super()._close_thought(what, out)
