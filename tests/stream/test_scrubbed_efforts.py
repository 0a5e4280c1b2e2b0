"""A reply without the tags by which it set its effort: the parser says which those are, and nothing else goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._stream.options import ParserOptions
from lollms_client._stream.parser import StreamParser
from lollms_client._stream.scrub import without_efforts
from lollms_client.events import EffortChange, TextDelta

PLAIN = ParserOptions()
TAG = '<effort level="high"/>'
PIECES = [
    TAG, "<effort/>", "<EFFORT value='low'>deep</Effort >", "<done/>", "<think>", "</think>", "```\n", "`", "|", "\n", " ", "  ",
    "a", "word", "<tool>", '{"name": "t", "parameters": {}}', "</tool>", '<artifact name="a.md">', "</artifact>", "<effort",
    "</effort>", "<effort level=", ">", "/>", "~~~\n", "- ",
]  # fmt: skip


def read(text: str, options: ParserOptions = PLAIN) -> tuple[str, int]:
    """What is shown of a text, and how many efforts it sets."""
    parser = StreamParser(options)
    events = [*parser.feed(text), *parser.close()]
    shown = "".join(e.text for e in events if isinstance(e, TextDelta))
    return shown, sum(isinstance(e, EffortChange) for e in events)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"a\n{TAG}\nb", "a\nb"),
        (f"a\n  {TAG}  \r\nb", "a\nb"),
        (f"a\n{TAG}", "a\n"),
        (TAG, ""),
        (f"{TAG}\n{TAG}\nb\n{TAG}\n", "b\n"),
        (f"{TAG} <done/>\n", " <done/>\n"),
        ("a\n<Effort value='low'>think</EFFORT >\nb", "a\nb"),
        (f"<think>t</think>{TAG}\nb", "<think>t</think>\nb"),
        (f'<tool>{{"name": "t"}}</tool>\n{TAG}\n', '<tool>{"name": "t"}</tool>\n'),
    ],
)
def test_a_tag_goes_with_the_line_of_which_nothing_is_left(text, left):
    assert without_efforts(text, PLAIN) == left


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{TAG}\n```\n",
        f"`{TAG}`\n",
        f"| {TAG} |\n",
        f"say {TAG}\n",
        f"<think>\n{TAG}\n</think>",
        f'<artifact name="a.md">\n{TAG}\n</artifact>',
        f'<tool>{{"name": "t", "parameters": {{"text": "\n{TAG}\n"}}}}</tool>',
        "<effort level=high",
        "no tag at all",
    ],
)
def test_what_is_not_obeyed_stays_as_it_is(text):
    assert without_efforts(text, PLAIN) == text


def test_a_tag_that_is_obeyed_goes_where_the_same_line_stands_in_code_before_it():
    code = f"```\n{TAG}\n```\n"
    assert without_efforts(f"{code}{TAG}\n{code}", PLAIN) == code + code


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.booleans())
def test_what_is_shown_stays_and_no_effort_is_left(text, implicit):
    options = ParserOptions(implicit_think=implicit)
    shown, efforts = read(text, options)
    scrubbed = without_efforts(text, options)
    assert (scrubbed == text) == (efforts == 0)
    if "</think>" not in text:  # the end of a thought that stands in a fence depends on all that follows
        assert read(scrubbed, options) == (shown, 0)
