"""A model's reply without the tags by which it set its effort: they concern the next round alone, and are kept nowhere.

Source: developer guide §5 ("Interception and State Machine").
"""

from __future__ import annotations

import re
from itertools import count

from ..events import Event
from .grammar import ControlTag
from .options import ParserOptions
from .parser import StreamParser
from .tags import BLANKS

__all__ = ["without_efforts"]

_OPENING = re.compile(r"<effort(?=[\s/>])", re.IGNORECASE | re.ASCII)
_TAG = re.compile(r"<effort(?:\s[^<>|\n]*)?(?:/>|>[^<>|\n]*</effort\s*>)", re.IGNORECASE | re.ASCII)
_MARK = "at_"


def without_efforts(text: str, options: ParserOptions) -> str:
    """Takes the `<effort …/>` tags that are obeyed out of a text, and with each the line of which nothing is left.

    Which of them are obeyed is the parser's to say: each gets an attribute of its own, and the parser tells which it saw.

    Args:
        text: The reply as the model wrote it.
        options: How it is read.
    """
    places = [found.start() for found in _OPENING.finditer(text)]
    if not places:
        return text
    numbers = count()
    parser = _Watching(options)
    parser.feed(_OPENING.sub(lambda found: f"{found[0]} {_MARK}{next(numbers)}", text))
    parser.close()
    for place in sorted((places[number] for number in parser.obeyed), reverse=True):
        text = _without(text, place)
    return text


def _without(text: str, place: int) -> str:
    """The text without the tag at a place."""
    tag = _TAG.match(text, place)
    if tag is None:
        return text
    line = text.rfind("\n", 0, place) + 1
    end = text.find("\n", tag.end())
    stop = len(text) if end < 0 else end
    if (text[line:place] + text[tag.end() : stop]).strip(BLANKS):
        return text[:place] + text[tag.end() :]
    return text[:line] + text[stop + 1 :]


class _Watching(StreamParser):
    """The stream parser, which also notes which of the marked tags it obeyed."""

    __slots__ = ("obeyed",)

    def __init__(self, options: ParserOptions) -> None:
        super().__init__(options)
        self.obeyed: list[int] = []

    def _obey_controls(self, tags: list[ControlTag], out: list[Event]) -> None:
        for name, attributes, _ in tags:
            marks = [a for a in attributes if a.startswith(_MARK)] if name == "effort" else []
            self.obeyed += [int(marks[0].removeprefix(_MARK))] if marks else []
        super()._obey_controls(tags, out)
