"""The parser's work grows with the stream and no faster, whatever stands in it."""

from __future__ import annotations

import sys

import pytest

from lollms_client._stream.parser import ParserOptions, StreamParser

SHAPES = {
    "angles": ("", "<"),
    "closing angles": ("", "</"),
    "beginnings of tags": ("", "<thi"),
    "backticks": ("", "`"),
    "backtick runs": ("", "`` ` ```"),
    "tildes": ("", "~"),
    "backslashes": ("", "\\"),
    "white space": ("", " "),
    "line breaks": ("", "\n"),
    "indented lines": ("", "   \n"),
    "open fence": ("```\n", "``\n"),
    "open fence, long line": ("```\n", "`"),
    "open thought": ("<think>", "a</thi"),
    "open thoughts": ("", "<think>"),
    "open fences in thoughts": ("", "<think>\n~~~\n</think>\n"),
    "rising fences in a thought": ("<think>\n```\n</think>\n", "````x\n</think><think>\n````\n</think>\n"),
    "suspected end of a thought": ("<think>\n```\n</think>", "x\n"),
    "open call": ("<tool>", '{"a": "'),
    "open calls": ("", "<tool>"),
    "quotes in calls": ("", '<tool>{"</tool>"'),
    "escaped quotes in calls": ("", '<tool>{"</tool>\\"'),
    "ends in strings": ('<tool>{"', "</tool>"),
    "ends in strings, line by line": ("", '<tool>{"</tool>\n'),
    "brackets in a call": ("<tool>", "{["),
    "complete call without end": ("<tool>{}", ' "<tool'),
    "large call": ('<tool>{"name": "x", "parameters": {"a": "', "line <b> \\n"),
    "open attribute": ('<artifact name="', "a>b"),
    "attributes": ("<artifact ", "a='b' "),
    "openings": ("", "<artifact a='"),
    "openings of workers": ("", "<agent> "),
    "open artefact": ('<artifact name="a">', "</artif"),
    "open worker": ('<agent name="a"><task>', "</agen"),
    "lines of effort": ("", "<effort/> "),
    "open effort": ("<effort ", "a "),
    "done and more": ("", "<done/>\t"),
}


def steps(text: str, size: int, **options: object) -> int:
    """How many events of the interpreter it takes to parse a text: calls, and lines executed, in our own code."""
    taken = 0

    def trace(frame, event, arg):
        nonlocal taken
        taken += 1
        return trace

    parser = StreamParser(ParserOptions(**options))  # type: ignore[arg-type]
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    former = sys.gettrace()
    sys.settrace(trace)
    try:
        for piece in pieces:
            parser.feed(piece)
        parser.close()
    finally:
        sys.settrace(former)
    return taken


@pytest.mark.parametrize("size", [4, 1_000_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_text_takes_twice_the_steps(shape, size):
    head, unit = SHAPES[shape]
    short = steps(head + unit * (6_000 // len(unit)), size)
    long = steps(head + unit * (24_000 // len(unit)), size)
    assert long < 4.6 * short + 400
