"""JSON as models write it."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._text.json_repair import repair_json
from lollms_client.errors import StreamError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values, st.sampled_from([None, 1]))
def test_valid_json_is_never_altered(value, indent):
    result = repair_json(json.dumps(value, indent=indent))
    assert result.value == value
    assert not result.repaired
    assert result.certain


@pytest.mark.parametrize("text", ['"/"', '"// no comment"', "12", "null", '{"a": "```"}', '{"a": "True, None,}"}', '" \\u0041 "'])
def test_valid_json_that_looks_odd_is_not_altered_either(text):
    assert repair_json(text).value == json.loads(text)
    assert not repair_json(text).repaired


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("~~~\n[1]\n~~~", [1]),
        ('{"a": 1,}', {"a": 1}),
        ("[1, 2, ]", [1, 2]),
        ("{'a': 'b'}", {"a": "b"}),
        ("{'it': 'don\\'t'}", {"it": "don't"}),
        ('{"a": 1 /* one */, // two\n "b": 2 # three\n}', {"a": 1, "b": 2}),
        ("{a: 1, b_c: 2}", {"a": 1, "b_c": 2}),
        ('{"a": True, "b": False, "c": None}', {"a": True, "b": False, "c": None}),
        ('{"a": {"b": [1, 2]', {"a": {"b": [1, 2]}}),
        ('{"a": 1}}]', {"a": 1}),
        ('{"a": "two\nlines\tand"}', {"a": "two\nlines\tand"}),
        ("{'a': 'two\nlines'}", {"a": "two\nlines"}),
        ('{"a": "\\ud83d\\ude00",}', {"a": "😀"}),
    ],
)
def test_notation_is_mended_with_certainty(text, value):
    result = repair_json(text)
    assert result.value == value
    assert result.repaired
    assert result.certain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"', {}),
        ("{foo: [}", {"foo": []}),
        ('["y"\\, "z"]', ["y", "z"]),
        ('{"t":"Here is a poem :', {"t": "Here is a poem :"}),
        ('{"a":"Hello B,I hop', {"a": "Hello B,I hop"}),
        ('{"a": 1, "b": "x\\', {"a": 1, "b": "x"}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('["a" "b"]', ["a", "b"]),
        ('{"a" "b"}', {"a": "b"}),
        ('{"a":}', {"a": None}),
        ('{"a": he said}', {"a": "he said"}),
        ('{"a": "he said "hi" twice"}', {"a": 'he said "hi" twice'}),
        ('Here it is: {"a": 1} Good?', {"a": 1}),
        ('{"a": 01}', {"a": 1}),
        ('{"a": .5, "b": +1}', {"a": 0.5, "b": 1}),
        ('{"re": "\\d+"}', {"re": "\\d+"}),
        ("{at: 2024-01-01, see: http://x/y}", {"at": "2024-01-01", "see": "http://x/y"}),
    ],
)
def test_a_guess_says_that_it_is_one(text, value):
    result = repair_json(text)
    assert result.value == value
    assert result.repaired
    assert not result.certain


@pytest.mark.parametrize("text", ["", "   ", "no json here", "True story", "}", "// only a comment"])
def test_a_text_without_json_is_an_error(text):
    with pytest.raises(StreamError, match="no JSON"):
        repair_json(text)


@pytest.mark.parametrize("unit", ["[", '{"a":', "{a:["])
def test_deep_nesting_is_an_error_and_no_crash(unit):
    with pytest.raises(StreamError, match="nested too deeply"):
        repair_json(unit * 100_000)


def test_a_number_that_no_machine_reads_stays_text():
    assert repair_json(f'{{"a": {"9" * 5000},}}').value == {"a": "9" * 5000}


@pytest.mark.parametrize(
    "text",
    [
        '{"":["":"""":}}}s"":',
        '"' * 100_000,
        "{'" * 50_000,
        "[}" * 50_000,
        "{]" * 50_000,
        "[" * 400 + "}" * 100_000,
        '{"a" ' + " " * 100_000,
        "{" + '"a" "b" ' * 20_000,
        "/*" * 50_000,
        "{" + "//\n" * 40_000,
        '{"' + "\\" * 100_000,
        '{"a":"' + '" x' * 40_000,
        '{"a":"' + '" \n' * 40_000,
        "{" + "a " * 50_000,
        "{" + '"\\ud83d",' * 20_000,
        "{" + ":" * 100_000,
        "[" + "," * 100_000,
        "[]" * 50_000,
        "```" * 30_000 + "{",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_hostile_texts_are_done_with_in_a_second(text):
    begun = time.process_time()
    with contextlib.suppress(StreamError):
        repair_json(text)
    assert time.process_time() - begun < 1


@given(st.text(alphabet="{}[]\"':,\\ntrue1. /*#`-_eE\n ", max_size=80))
def test_any_text_comes_to_a_value_or_to_our_error(text):
    try:
        result = repair_json(text)
    except StreamError:
        return
    json.dumps(result.value)
