"""Native tool calls put together from the fragments of backends with habits of their own."""

from __future__ import annotations

from itertools import count

import pytest

from lollms_client._stream.deltas import FinishDelta, ToolCallDelta
from lollms_client._stream.parser import ParserOptions, StreamParser
from lollms_client.events import TextDelta, ToolCall

D = ToolCallDelta


def assemble(*deltas: object) -> list[ToolCall]:
    ids = count(1)
    parser = StreamParser(ParserOptions(mint_id=lambda: f"m{next(ids)}"))
    events = [e for delta in deltas for e in parser.feed(delta)]  # type: ignore[arg-type]
    assert not events, "a call is given out when it is whole"
    events = parser.close()
    assert all(isinstance(e, ToolCall) and e.dialect == "native" for e in events)
    return events  # type: ignore[return-value]


def short(calls: list[ToolCall]) -> list[tuple[str, dict, str]]:
    assert not [c.problem for c in calls if c.problem]
    return [(c.name, c.arguments, c.id) for c in calls]


@pytest.mark.parametrize(
    "deltas",
    [
        # as documented: positions, the id and the name with the first fragment
        [D(0, "a", "f", ""), D(0, "", "", '{"x"'), D(0, "", "", ": 1}"), D(1, "b", "g", '{"y": 2}')],
        # interleaved
        [D(0, "a", "f", '{"x"'), D(1, "b", "g", '{"y"'), D(0, "", "", ": 1}"), D(1, "", "", ": 2}")],
        # position 0 for every call
        [D(0, "a", "f", '{"x": 1}'), D(0, "b", "g", '{"y": 2}')],
        [D(0, "a", "f", ""), D(0, "", "", '{"x": 1}'), D(0, "b", "g", ""), D(0, "", "", '{"y": 2}')],
        # no position at all
        [D(None, "a", "f", '{"x": 1}'), D(None, "b", "g", '{"y": 2}')],
        [D(None, "a", "f", '{"x"'), D(None, "", "", ": 1}"), D(None, "b", "g", '{"y": 2}')],
        # the id repeated with each fragment, the name too
        [D(0, "a", "f", '{"x"'), D(0, "a", "f", ": 1}"), D(1, "b", "g", '{"y": 2}')],
        [D(None, "a", "f", '{"x"'), D(None, "b", "g", '{"y"'), D(None, "a", "", ": 1}"), D(None, "b", "", ": 2}")],
        # a position only from the second fragment on
        [D(None, "a", "f", ""), D(0, "", "", '{"x": 1}'), D(1, "b", "g", '{"y": 2}')],
    ],
)
def test_two_calls_are_two_calls(deltas):
    assert short(assemble(*deltas)) == [("f", {"x": 1}, "a"), ("g", {"y": 2}, "b")]


@pytest.mark.parametrize(
    "deltas",
    [
        [D(0, "", "f", '{"x": 1}'), D(0, "", "g", '{"y": 2}')],
        [D(None, "", "f", '{"x": 1}'), D(None, "", "g", '{"y": 2}')],
        [D(0, "", "f", '{"x"'), D(1, "", "g", '{"y"'), D(0, "", "", ": 1}"), D(1, "", "", ": 2}")],
    ],
)
def test_missing_ids_are_minted(deltas):
    assert short(assemble(*deltas)) == [("f", {"x": 1}, "m1"), ("g", {"y": 2}, "m2")]


def test_the_same_tool_called_twice_is_two_calls():
    assert short(assemble(D(0, "", "f", '{"x": 1}'), D(0, "", "f", '{"x": 2}'))) == [("f", {"x": 1}, "m1"), ("f", {"x": 2}, "m2")]
    assert [c.arguments for c in assemble(D(0, "a", "f", '{"x": 1}'), D(0, "b", "f", '{"x": 1}'))] == [{"x": 1}] * 2


def test_an_id_that_two_calls_share_is_given_once():
    assert short(assemble(D(0, "call_0", "f", "{}"), D(1, "call_0", "g", "{}"))) == [("f", {}, "call_0"), ("g", {}, "m1")]


def test_a_name_repeated_with_each_fragment_begins_no_new_call():
    assert short(assemble(D(0, "", "f", ""), D(0, "", "f", '{"x"'), D(0, "", "f", ": 1}"), D(0, "", "f", ""))) == [
        ("f", {"x": 1}, "m1")
    ]


@pytest.mark.parametrize("deltas", [[D(0, "a", "f", '{"a":1}{"a":2}')], [D(0, "a", "f", '{"a":1}'), D(0, "", "", '{"a":2}')]])
def test_glued_arguments_are_refused(deltas):
    [call] = assemble(*deltas)
    assert call.arguments == {}
    assert "2 argument objects" in call.problem


@pytest.mark.parametrize(
    ("text", "arguments"), [("", {}), (" ", {}), ("null", {}), ("{}", {}), ('"{\\"x\\": 1}"', {"x": 1}), ("{'x': 1,}", {"x": 1})]
)
def test_arguments_are_read(text, arguments):
    assert short(assemble(D(0, "a", "f", text))) == [("f", arguments, "a")]


@pytest.mark.parametrize(
    ("text", "said"), [("[1]", "not an array"), ("7", "not a number"), ("now", "could not be read"), ('{"x": "cut', "cut off")]
)
def test_arguments_that_cannot_be_read_say_why(text, said):
    [call] = assemble(D(0, "a", "f", text))
    assert (call.arguments, call.raw) == ({}, text)
    assert said in call.problem


def test_a_call_that_the_length_limit_cut_is_not_carried_out():
    [call] = assemble(D(0, "a", "f", '{"x": 1'), FinishDelta("length"))
    assert "cut off" in call.problem


def test_a_call_without_a_name_says_so():
    [call] = assemble(D(0, "a", "", "{}"))
    assert "names no tool" in call.problem


def test_calls_come_behind_the_text():
    parser = StreamParser()
    assert parser.feed("I look") == [TextDelta("I look")]
    assert parser.feed(D(0, "a", "f", "{}")) == []
    assert parser.feed(FinishDelta("tool_calls")) == []
    assert parser.close() == [ToolCall("f", {}, "a", "{}", "", "native")]


@pytest.mark.parametrize("repeat_name", [True, False])
def test_a_long_argument_string_is_put_together_in_linear_time(repeat_name):
    parser = StreamParser()
    piece = "x" * 10
    parser.feed(D(0, "a", "f", '{"x": "'))
    for _ in range(50_000):
        parser.feed(D(0, "", "f" if repeat_name else "", piece))
    parser.feed(D(0, "", "", '"}'))
    [call] = parser.close()
    assert call.arguments == {"x": piece * 50_000}
