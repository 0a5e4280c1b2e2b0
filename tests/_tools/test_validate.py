"""Arguments against schemas: what passes, what is coerced, what is refused and how it is said."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._tools.validate import Mismatch, compile_schema

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


def refused(schema, value) -> str:
    with pytest.raises(Mismatch) as wrong:
        compile_schema(schema)(value)
    return f"{wrong.value.where('x')}: {wrong.value.problem}"


@given(st.text())
def test_a_string_parameter_keeps_exactly_the_text_it_got(text):
    assert compile_schema({"type": "string"})(text) is text


@pytest.mark.parametrize("text", ["12345", '{"a":1}', "true", "1e234567", "null", "[1]", " 7 ", ""])
def test_a_text_that_looks_like_json_stays_text(text):
    assert compile_schema({"type": "string"})(text) == text


@given(JSON)
def test_whatever_json_fits_a_schema_without_a_type_is_left_as_it_is(value):
    assert compile_schema({})(value) == value
    assert compile_schema({"description": "anything"})(value) == value


@given(st.lists(JSON), st.dictionaries(st.text(), JSON), st.booleans(), st.integers())
def test_values_of_the_right_type_pass_unchanged(array, obj, boolean, integer):
    assert compile_schema({"type": "array"})(array) == array
    assert compile_schema({"type": "object"})(obj) == obj
    assert compile_schema({"type": "boolean"})(boolean) is boolean
    assert compile_schema({"type": "integer"})(integer) == integer


@pytest.mark.parametrize(
    ("schema", "given_value", "wanted"),
    [
        ({"type": "integer"}, "2000", 2000),
        ({"type": "integer"}, " -7 ", -7),
        ({"type": "integer"}, 7.0, 7),
        ({"type": "integer"}, "7.0", 7),
        ({"type": "number"}, "0.5", 0.5),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "number"}, 2, 2.0),
        ({"type": "number"}, "2", 2.0),
        ({"type": "boolean"}, "false", False),
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, 0, False),
        ({"type": "string"}, 12345, "12345"),
        ({"type": "string"}, 1.5, "1.5"),
        ({"type": "array", "items": {"type": "integer"}}, '["1", 2]', [1, 2]),
        ({"type": "array"}, (1, 2), [1, 2]),
        ({"type": "object"}, '{"a": "1"}', {"a": "1"}),
        ({"type": "object", "additionalProperties": {"type": "number"}}, {"a": "1"}, {"a": 1.0}),
        ({"enum": [1, 2]}, "2", 2),
        ({"enum": ["1", "2"]}, 2, "2"),
        ({"type": ["integer", "null"]}, "3", 3),
        ({"type": ["integer", "null"]}, None, None),
        ({"type": "integer", "nullable": True}, None, None),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "7", "7"),
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "7", 7),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, 7.0, 7.0),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, ["1", "1"], [1, "1"]),
    ],
)
def test_what_models_send_is_coerced_where_it_can_mean_one_thing_only(schema, given_value, wanted):
    found = compile_schema(schema)(given_value)
    assert found == wanted
    assert json.dumps(found) == json.dumps(wanted), "1, 1.0 and true are different values"


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "integer"}, "many", 'x: expected an integer, got "many" (text)'),
        ({"type": "integer"}, 1.5, "x: expected an integer, got 1.5 (a number)"),
        ({"type": "integer"}, True, "x: expected an integer, got true"),
        ({"type": "integer"}, "1_000", 'x: expected an integer, got "1_000" (text)'),
        ({"type": "integer"}, "٣x", 'x: expected an integer, got "٣x" (text)'),
        ({"type": "number"}, "nan", 'x: expected a number, got "nan" (text)'),
        ({"type": "number"}, "1e9999", 'x: expected a number, got "1e9999" (text)'),
        ({"type": "boolean"}, "no", 'x: expected true or false, got "no" (text)'),
        ({"type": "boolean"}, 2, "x: expected true or false, got 2 (a number)"),
        ({"type": "boolean"}, [], "x: expected true or false, got [] (a list)"),
        ({"type": "string"}, True, "x: expected text (a string), got true"),
        ({"type": "string"}, {"a": 1}, 'x: expected text (a string), got {"a": 1} (an object)'),
        ({"type": "array"}, "a", 'x: expected a list, got "a" (text)'),
        ({"type": "array"}, '{"a": 1}', 'x: expected a list, got "{\\"a\\": 1}" (text)'),
        ({"type": "object"}, "[1]", 'x: expected an object, got "[1]" (text)'),
        ({"type": "array", "items": {"type": "integer"}}, [1, "b"], 'x[1]: expected an integer, got "b" (text)'),
        (
            {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}},
            {"a": [1, 2, None]},
            "x.a[2]: expected an integer, got null",
        ),
        ({"type": "object", "required": ["a"]}, {}, "x: 'a' is missing"),
        (
            {"type": "object", "properties": {"color": {}}, "additionalProperties": False},
            {"colour": 1},
            "x: 'colour' is not known here; did you mean 'color'?",
        ),
        ({"enum": ["fast", "slow"]}, "fst", 'x: expected one of "fast", "slow", got "fst" (text); did you mean \'fast\'?'),
        ({"enum": [1]}, True, "x: expected one of 1, got true"),
        ({"const": "a"}, "b", 'x: expected one of "a", got "b" (text)'),
        ({"type": "integer", "minimum": 1}, 0, "x: expected at least 1, got 0 (a number)"),
        ({"type": "number", "exclusiveMaximum": 1}, 1, "x: expected less than 1, got 1.0 (a number)"),
        ({"type": "string", "minLength": 2}, "a", 'x: expected at least 2 characters, got "a" (text)'),
        ({"type": "string", "pattern": "^a+$"}, "ab", "x: expected text that matches '^a+$', got \"ab\" (text)"),
        ({"type": "array", "maxItems": 1}, [1, 2], "x: expected at most 1 items, got [1, 2] (a list)"),
        ({"type": "array", "uniqueItems": True}, [1, 1], "x[1]: 1 (a number) stands twice"),
        ({"anyOf": [{"type": "integer"}, {"type": "array"}]}, "x", 'x: expected an integer or a list, got "x" (text)'),
        ({"$ref": "#/$defs/missing"}, 1, "x: the tool's schema refers to '#/$defs/missing', which it does not define"),
        (False, 1, "x: expected nothing, got 1 (a number)"),
    ],
)
def test_what_does_not_fit_is_refused_by_path_with_what_was_expected_and_given(schema, value, said):
    assert refused(schema, value) == said


@pytest.mark.parametrize("value", ["a", 1, 1.5, True, {"a": 1}])
def test_one_value_is_never_wrapped_into_a_list(value):
    assert "expected a list" in refused({"type": "array", "items": {}}, value)


def test_a_recursive_schema_checks_every_level():
    node = {
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"n": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                "required": ["n"],
            }
        },
        "$ref": "#/$defs/Node",
    }
    assert compile_schema(node)({"n": "1", "kids": [{"n": 2.0}]}) == {"n": 1, "kids": [{"n": 2}]}
    assert refused(node, {"n": 1, "kids": [{"n": 2, "kids": [{}]}]}) == "x.kids[0].kids[0]: 'n' is missing"


def test_a_reference_is_resolved_in_the_document_it_stands_in():
    root = {"$defs": {"a/b": {"type": "integer"}}, "properties": {"x": {"$ref": "#/$defs/a~1b"}}}
    assert compile_schema(root["properties"]["x"], root)("5") == 5


def test_defaults_inside_objects_are_filled_afresh():
    check = compile_schema({"type": "object", "properties": {"tags": {"type": "array", "default": []}}})
    first = check({})
    first["tags"].append(1)
    assert check({}) == {"tags": []}


def test_a_union_takes_an_exact_fit_before_it_coerces():
    check = compile_schema({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]})
    assert check("[1]") == "[1]"
    assert check(["1"]) == [1]


def test_a_union_of_objects_says_what_is_wrong_in_the_branch_that_came_furthest():
    schema = {
        "anyOf": [
            {"type": "null"},
            {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "integer"}}}}},
        ]
    }
    assert refused(schema, {"a": {"b": "x"}}) == 'x.a.b: expected an integer, got "x" (text)'


def test_a_pattern_of_another_dialect_is_not_checked():
    assert compile_schema({"type": "string", "pattern": "\\p{L}+["})("x") == "x"


@given(JSON, JSON)
def test_any_value_is_accepted_as_itself_or_refused_by_name(allowed, value):
    schema = {"type": "object", "properties": {"a": {"enum": [allowed]}, "b": {"type": "array", "items": {"type": "number"}}}}
    problem, found = None, {}
    try:
        found = compile_schema(schema)({"a": value, "b": [1]})
    except Mismatch as wrong:
        problem = wrong
    if problem is None:
        assert found["a"] == allowed or json.dumps(allowed) == str(value).strip()
    else:
        assert problem.where("x").startswith("x.a")
