"""Thoughts taken out of texts, by the stream's own rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._stream.parser import ParserOptions, StreamParser
from lollms_client._text.thinking import extract_thinking_blocks, remove_thinking_blocks, split_thoughts
from lollms_client.events import TextDelta, ThoughtDelta

CASES = [
    ("<think>plan</think>Hello", ["plan"], "Hello"),
    ("<think>\nplan\n</think>\n\nHello\n", ["plan"], "Hello\n"),
    ("<THINKING>a</THINKING>b<think>c</think>", ["a", "c"], "b"),
    ("<think>a</think><think>b</think>c", ["a", "b"], "c"),
    ("one <think>x</think> two", ["x"], "one two"),
    ("one<think>x</think> two", ["x"], "one two"),
    ("one\n\n<think>x</think>\n\ntwo", ["x"], "one\n\ntwo"),
    ("a<think>never closed", ["never closed"], "a"),
    ("plan\n</think>\n\nHello", ["plan"], "Hello"),
    ("</think>Hello", [], "Hello"),
    ("<think></think>Hello", [], "Hello"),
    ("Hello </think> there <think>x</think>", ["Hello", "x"], "there "),
    ("Write `<think>` and `</think>`.", [], "Write `<think>` and `</think>`."),
    ("```\n<think>x</think>\n```", [], "```\n<think>x</think>\n```"),
    ("```\n<think>x</think>\n", [], "```\n<think>x</think>\n"),
    ("  as it was \n", [], "  as it was \n"),
    ("", [], ""),
]


@pytest.mark.req("CT-D.6", "DG-tasks.9", "DG-tasks.10")
@pytest.mark.parametrize(("text", "thoughts", "rest"), CASES)
def test_thoughts_are_extracted_and_removed(text, thoughts, rest):
    assert extract_thinking_blocks(text) == thoughts
    assert remove_thinking_blocks(text) == rest


def test_markers_of_a_model_can_be_given():
    tags = (("[THINK]", "[/THINK]"),)
    assert extract_thinking_blocks("[THINK]a[/THINK]b<think>c</think>", tags) == ["a", "c"]
    assert remove_thinking_blocks("a[/THINK] b", tags) == "b"
    assert remove_thinking_blocks("[THINK]a[/THINK]b") == "[THINK]a[/THINK]b"


PIECES = ["<think>", "</think>", "<thinking>", "`", "```\n", "\n", " ", "word", "<b>", "~~~\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=15).map("".join))
def test_a_text_is_split_as_its_stream_is(text):
    pieces = split_thoughts(text)
    for implicit in (False, True):
        parser = StreamParser(ParserOptions(tags=frozenset({"think"}), implicit_think=implicit))
        events = [*parser.feed(text), *parser.close()]
        streamed = ["".join(e.text for e in events if isinstance(e, kind)) for kind in (TextDelta, ThoughtDelta)]
        if streamed == ["".join(piece for is_thought, piece in pieces if is_thought == kind) for kind in (False, True)]:
            return
    raise AssertionError("neither reading of the stream gives this split")
