"""Tool calls that a model writes as tags, or as nothing but an object: read, or told back to the model as a problem."""

from __future__ import annotations

from itertools import count

import pytest

from lollms_client._stream.parser import ParserOptions, StreamParser
from lollms_client.events import Event, TextDelta, ThoughtDelta, ToolCall

CALL = '{"name": "tool_x", "parameters": {"a": 1}}'


def parse(text: str, size: int = 5, **options: object) -> list[Event]:
    ids = count(1)
    parser = StreamParser(ParserOptions(mint_id=lambda: f"c{next(ids)}", **options))  # type: ignore[arg-type]
    out: list[Event] = []
    for event in [*(e for i in range(0, len(text), size) for e in parser.feed(text[i : i + size])), *parser.close()]:
        if isinstance(event, TextDelta) and out and isinstance(out[-1], TextDelta):
            out[-1].text += event.text
        else:
            out.append(event)
    return out


def calls(text: str, **options: object) -> list[ToolCall]:
    return [event for event in parse(text, **options) if isinstance(event, ToolCall)]


def one(body: str) -> ToolCall:
    [call] = calls(f"<tool>{body}</tool>")
    assert call.raw == body
    return call


# ---- read ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["tool", "tool_call", "TOOL"])
@pytest.mark.parametrize("key", ["parameters", "arguments"])
def test_a_call_is_read(tag, key):
    body = f'\n{{"name": "tool_x", "{key}": {{"a": [1, "b"]}}}}\n'
    assert parse(f"so <{tag}>{body}</{tag}> then") == [
        TextDelta("so "),
        ToolCall("tool_x", {"a": [1, "b"]}, "c1", body),
        TextDelta(" then"),
    ]


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ('{"name": "tool_x"}', {}),
        ('{"name": "tool_x", "parameters": null}', {}),
        ('{"name": "tool_x", "arguments": "{\\"a\\": 1}"}', {"a": 1}),
        ('{"name": "tool_x", "parameters": {"a": "</tool> and <tool>"}}', {"a": "</tool> and <tool>"}),
        ('{"name": "tool_x", "parameters": {"a": "say \\"</tool>\\""}}', {"a": 'say "</tool>"'}),
        ('{"name": "tool_x", "parameters": {"a": "two\nlines"}}', {"a": "two\nlines"}),
        ("{'name': 'tool_x', 'parameters': {'a': True, 'b': None,},}", {"a": True, "b": None}),
        ('```json\n{"name": "tool_x", "parameters": {"a": 1}}\n```', {"a": 1}),
        ('{name: "tool_x", parameters: {a: 1}} // now', {"a": 1}),
        ('{"name": "tool_x", "parameters": {"a": 1}', {"a": 1}),
        ('{"name": "tool_x", "parameters": {"a": 1}}}', {"a": 1}),
    ],
)
def test_only_its_notation_may_be_wrong(body, arguments):
    call = one(body)
    assert (call.name, call.arguments, call.problem) == ("tool_x", arguments, "")


def test_several_calls_in_one_element_are_several():
    assert [(c.name, c.arguments, c.id) for c in calls(f'<tool>[{CALL}, {{"name": "tool_y"}}]</tool>')] == [
        ("tool_x", {"a": 1}, "c1"),
        ("tool_y", {}, "c2"),
    ]
    assert [c.name for c in calls(f'<tool>{CALL}\n{{"name": "tool_y"}}</tool>')] == ["tool_x", "tool_y"]


def test_a_forgotten_closing_tag_does_not_swallow_the_next_call():
    assert [c.name for c in calls(f'<tool>{CALL}\n<tool>{{"name": "tool_y"}}</tool>')] == ["tool_x", "tool_y"]


@pytest.mark.parametrize("end", ["", "\n", "\n```", "}"])
def test_complete_json_without_closing_tag_is_the_call(end):
    [call] = parse(f"<tool>{CALL}{end}")
    assert (call.name, call.arguments, call.problem) == ("tool_x", {"a": 1}, "")


def test_text_behind_a_call_that_was_not_closed_is_text():
    assert parse(f"<tool>{CALL}\nLet me see.")[1] == TextDelta("\nLet me see.")


def test_ids_of_a_stream_differ():
    ids = [c.id for n in range(2) for c in _minted(f"<tool>{CALL}</tool>" * 3)]
    assert len(set(ids)) == 6
    assert all(ids)


def _minted(text: str) -> list[ToolCall]:
    parser = StreamParser()
    return [e for e in [*parser.feed(text), *parser.close()] if isinstance(e, ToolCall)]


# ---- told back ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "no JSON"),
        ("c", "no JSON"),
        ("{}", 'no "name"'),
        ('{"tool": "x"}', "'tool'"),
        ('{"name": ""}', 'no "name"'),
        ('{"name": "tool_x", "path": "a.txt"}', "'path'"),
        ('{"name": "tool_x", "parameters": [1]}', "not an array"),
        ('{"name": "tool_x", "parameters": "now"}', "not a string"),
        ('["tool_x"]', "not a string"),
        ('{"name": "tool_x", "parameters": {"a": "cut', "cut off"),
        ('{"name": "tool_x", "parameters": {"a": "he said "no" to me"}}', "quote in a string"),
        ('{"name": "tool_x" "parameters": {"a": 1}}', "missing comma"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_call_that_cannot_be_read_says_why(body, said):
    call = one(body)
    assert said in call.problem
    assert call.arguments == {}


def test_a_string_left_open_ends_with_its_line():
    events = parse('<tool>{"name": "tool_x", "parameters": {"a": "oops}}</tool>\nAnd <think>so</think>')
    assert events[0].problem
    assert events[0].name == "tool_x"
    assert events[1] == TextDelta("\nAnd ")
    assert "".join(e.text for e in events[2:] if isinstance(e, ThoughtDelta)) == "so"


@pytest.mark.parametrize(
    "body",
    ['{"name": "tool_x", "parameters": {"a": 1', '{"name": "tool_x", "parameters": {"path": "a", "content": "half', "", "{"],
)
def test_a_call_that_the_stream_cut_off_is_not_carried_out(body):
    [call] = parse(f"<tool>{body}")
    assert call.problem
    assert call.arguments == {}
    assert call.raw == body


# ---- nothing but an object ----------------------------------------------------------------------------------------------------

NAMES = frozenset({"tool_x"})


@pytest.mark.parametrize(
    "around",
    ["{}", "\n {} \n", "```json\n{}\n```", "```\n{}\n```\n", "~~~tool_call\n{}\n~~~", "```json\n{}", "<think>so</think>\n{}"],
)
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_reply_that_is_nothing_but_a_call_is_one(around, size):
    events = [e for e in parse(around.replace("{}", CALL), size, bare_json_calls=NAMES) if not isinstance(e, ThoughtDelta)]
    calls_found = [e for e in events if isinstance(e, ToolCall)]
    assert [(c.name, c.arguments, c.dialect) for c in calls_found] == [("tool_x", {"a": 1}, "bare_json")]
    assert not [e for e in events if isinstance(e, TextDelta) and e.text.strip()]


@pytest.mark.parametrize(
    "text",
    [
        f"{CALL} is the call",
        f"I call {CALL}",
        f"```json\n{CALL}\n```\nThat was it.",
        f"{CALL}\n{CALL}",
        '{"name": "tool_unknown", "parameters": {}}',
        '{"name": "tool_x"}',
        '{"city": "Rome"}',
        '{"name": "tool_x", "parameters": {"a": 1',
        "```python\nprint({1: 2})\n```",
        "{",
        "```",
        "[1, 2]",
        " " * 300 + CALL,
    ],
)
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_reply_that_is_something_else_is_text(text, size):
    assert parse(text, size, bare_json_calls=NAMES) == [TextDelta(text)]


def test_an_object_is_only_a_call_where_the_profile_says_so():
    assert parse(CALL) == [TextDelta(CALL)]


def test_text_that_cannot_be_a_bare_call_is_not_held_back():
    parser = StreamParser(ParserOptions(bare_json_calls=NAMES))
    assert parser.feed("Hello") == [TextDelta("Hello")]
    parser = StreamParser(ParserOptions(bare_json_calls=NAMES))
    assert parser.feed("```python\npri") == [TextDelta("```python\npri")]
    parser = StreamParser(ParserOptions(bare_json_calls=NAMES))
    assert parser.feed('{"city": ') == [TextDelta('{"city": ')]
