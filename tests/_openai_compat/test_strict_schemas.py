"""Schemas in strict mode: what becomes strict, what cannot, and what the model's nulls mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._bindings.request import ChatRequest
from lollms_client._openai_compat.strict import NotStrictError, inline_refs, strict_schema, without_nulls
from lollms_client._openai_compat.vendor import Wire
from lollms_client._openai_compat.wire import ModelFacts, chat_body
from lollms_client._stream.deltas import FinishDelta, ToolCallDelta
from lollms_client._tools.coerce import Mismatch
from lollms_client._tools.validate import compile_schema
from lollms_client.errors import ConfigurationError

STRICT = Wire(strict=True)


def _object(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


def _walk(node: Any):
    yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _walk(child)


def _obeys_the_rules(schema: Any) -> bool:
    for node in _walk(schema):
        if not isinstance(node, dict):
            continue
        kinds = node.get("type") if isinstance(node.get("type"), list) else [node.get("type")]
        if "object" in kinds and not (node["additionalProperties"] is False and node["required"] == list(node["properties"])):
            return False
        if "default" in node and "type" in node:
            return False
    return True


def test_what_is_optional_becomes_nullable_and_required_and_loses_its_default():
    schema = _object(
        ["q"], q={"type": "string"}, name={"type": "string", "default": ""},
        major={"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}, mode={"type": "string", "enum": ["a", "b"]},
    )  # fmt: skip
    before = json.dumps(schema)
    strict = strict_schema(schema)
    assert strict["required"] == ["q", "name", "major", "mode"]
    assert strict["additionalProperties"] is False
    assert strict["properties"] == {
        "q": {"type": "string"},
        "name": {"type": ["string", "null"]},
        "major": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "mode": {"type": ["string", "null"], "enum": ["a", "b", None]},
    }
    assert json.dumps(schema) == before


def test_nested_objects_and_lists_and_definitions_are_made_strict_too_and_references_stay():
    city = _object(["name"], name={"type": "string"}, zip={"type": "string"})
    node = _object(["kids"], kids={"type": "array", "items": {"$ref": "#/$defs/Node"}})
    schema = {
        **_object(["city", "tree"], city={"$ref": "#/$defs/City"}, tree={"$ref": "#/$defs/Node"}),
        "$defs": {"City": city, "Node": node},
    }
    strict = strict_schema(schema)
    assert _obeys_the_rules(strict)
    assert strict["properties"]["tree"] == {"$ref": "#/$defs/Node"}
    assert strict["$defs"]["City"]["properties"]["zip"] == {"type": ["string", "null"]}


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"type": "object", "additionalProperties": {"type": "number"}}, "/properties/p"),
        ({"type": "object"}, "/properties/p"),
        ({**_object(a={"type": "string"}), "additionalProperties": True}, "/properties/p"),
        ({}, "/properties/p"),
        ({"description": "anything"}, "/properties/p"),
        ({"type": "array"}, "/properties/p"),
        ({"type": "array", "items": {"oneOf": [{"type": "string"}]}}, "/properties/p/items"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "/properties/p"),
        ({"$ref": "#/$defs/Gone"}, "/properties/p"),
        (_object(deep={}), "/properties/p/properties/deep"),
    ],
)
def test_what_has_no_strict_form_is_refused_with_its_place(part, path):
    with pytest.raises(NotStrictError, match=path) as caught:
        strict_schema(_object(["p"], p=part))
    assert caught.value.path == path


def _tool(schema: dict[str, Any], name: str = "tool_f", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "", "input_schema": schema, **more}


OPEN = _object(["p"], p={"type": "object"})
PLAIN = _object(["q"], q={"type": "string"}, n={"type": "integer", "default": 3})


def _functions(*tools: dict[str, Any], wire: Wire = STRICT, **facts: Any) -> list[dict[str, Any]]:
    body = chat_body(ChatRequest([], tools=tools), "m", wire=wire, facts=ModelFacts(**facts))
    return [tool["function"] for tool in body["tools"]]


def test_strictness_is_a_switch_of_each_tool():
    on, off, silent = _functions(_tool(PLAIN, strict=True), _tool(PLAIN, "tool_g", strict=False), _tool(PLAIN, "tool_h"))
    assert on["strict"] is True
    assert on["parameters"]["required"] == ["q", "n"]
    for function in (off, silent):
        assert "strict" not in function
        assert function["parameters"] == PLAIN
    preferred = _functions(_tool(PLAIN), _tool(PLAIN, "tool_g", strict=False), strict_tools=True)
    assert [f.get("strict") for f in preferred] == [True, None]
    named = _functions(_tool(PLAIN), _tool(PLAIN, "tool_g"), strict_tools=frozenset({"tool_g"}))
    assert [f.get("strict") for f in named] == [None, True]


def test_a_tool_without_a_strict_form_is_an_error_where_it_was_named_and_not_strict_where_it_was_not():
    for tool, facts in ((_tool(OPEN, strict=True), {}), (_tool(OPEN), {"strict_tools": frozenset({"tool_f"})})):
        with pytest.raises(NotStrictError, match=r"/properties/p.*'tool_f'"):
            _functions(tool, **facts)
    assert _functions(_tool(OPEN), _tool(PLAIN, "tool_g"), strict_tools=True)[0]["parameters"] == OPEN


def test_a_server_without_strict_mode_gets_the_schema_as_it_is():
    assert _functions(_tool(PLAIN, strict=True), wire=Wire())[0] == {"name": "tool_f", "description": "", "parameters": PLAIN}


def test_a_tool_without_parameters_has_an_empty_object():
    for schema in ({}, {"type": "object"}, _object()):
        assert _functions(_tool(schema))[0]["parameters"]["properties"] == {}
        assert _functions(_tool(schema, strict=True))[0]["parameters"] == {
            "type": "object", "properties": {}, "required": [], "additionalProperties": False,
        }  # fmt: skip


def _answer_format(schema: dict[str, Any]) -> dict[str, Any]:
    return chat_body(ChatRequest([], json_schema=schema), "m", wire=STRICT)["response_format"]["json_schema"]


def test_the_answer_s_schema_is_strict_only_where_that_changes_nothing_that_was_asked():
    closed = _answer_format(_object(["a"], a={"type": "integer"}))
    assert closed["strict"] is True
    assert closed["schema"]["additionalProperties"] is False
    for schema in (PLAIN, _object(["a"], a={"type": "string", "maxLength": 3}), OPEN):
        assert _answer_format(schema) == {"name": "answer", "schema": schema, "strict": False}


def test_references_are_put_in_place_for_a_provider_that_has_none_and_recursion_ends():
    node = _object(["kids"], name={"type": "string"}, kids={"type": "array", "items": {"$ref": "#/$defs/Node"}})
    word = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Word"}]}
    schema = {
        **_object(["n"], n={"$ref": "#/$defs/Node", "description": "the root"}, w={"$ref": "#/$defs/Word"}),
        "$defs": {"Node": node, "Word": word},
    }
    flat = inline_refs(schema)
    assert "$ref" not in json.dumps(flat)
    assert "$defs" not in flat
    assert flat["properties"]["n"]["description"] == "the root"
    assert flat["properties"]["n"]["properties"]["kids"]["items"] == {"type": "object"}
    assert flat["properties"]["w"]["anyOf"][1] == {}
    assert compile_schema(flat)({"n": {"name": "a", "kids": [{"name": "b", "kids": []}]}, "w": "x"})
    function = _functions(_tool(schema), wire=Wire(inline_refs=True))[0]
    assert function["parameters"] == flat


def test_a_reference_that_leads_nowhere_is_named_and_not_followed_for_ever():
    with pytest.raises(ConfigurationError, match=r"cannot be sent: at /properties/x, the reference '#/\$defs/X' leads nowhere"):
        inline_refs(_object(x={"$ref": "#/$defs/X"}))
    loop = {**_object(x={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}
    assert "$ref" not in json.dumps(inline_refs(loop))
    assert strict_schema(loop)
    word = {"anyOf": [{"$ref": "#/$defs/Word"}, {"type": "string"}]}
    assert strict_schema({**_object(w={"$ref": "#/$defs/Word"}), "$defs": {"Word": word}})["properties"]["w"]["anyOf"][1] == {
        "type": "null"
    }


SCHEMA = {
    **_object(
        ["q"], q={"type": "string"}, n={"type": "integer"}, maybe={"anyOf": [{"type": "integer"}, {"type": "null"}]},
        deep=_object(["a"], a={"type": "integer"}, b={"type": "string"}), rows={"type": "array", "items": {"$ref": "#/$defs/Row"}},
    ),
    "$defs": {"Row": _object(["x"], x={"type": "integer"}, y={"type": "integer"})},
}  # fmt: skip


def _restored(*deltas):
    return list(without_nulls(deltas, {"tool_f": SCHEMA}))


def test_nulls_that_only_strict_mode_asked_for_are_taken_out_at_every_depth():
    said = {"q": "x", "n": None, "maybe": None, "deep": {"a": 1, "b": None}, "rows": [{"x": 1, "y": None}, {"x": 2, "y": 3}]}
    text = json.dumps(said)
    call = [ToolCallDelta(0, "c1", "tool_f", text[:9]), ToolCallDelta(0, "", "", text[9:])]
    out = _restored("hm", *call, FinishDelta("tool_calls"))
    assert out[0] == "hm"
    assert out[2] == FinishDelta("tool_calls")
    assert (out[1].id, out[1].name) == ("c1", "tool_f")
    left = json.loads(out[1].arguments)
    assert left == {"q": "x", "maybe": None, "deep": {"a": 1}, "rows": [{"x": 1}, {"x": 2, "y": 3}]}
    assert compile_schema(SCHEMA)(left) == left


def test_calls_of_other_tools_and_calls_that_cannot_be_read_pass_as_they_came_also_at_a_sudden_end():
    other, broken = ToolCallDelta(0, "c1", "tool_other", '{"a": null}'), ToolCallDelta(1, "c2", "tool_f", '{"q": nul')
    assert _restored(other, broken) == [other, broken]


_leaf = st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "string", "enum": ["a", "b"]}])
_schema = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.builds(lambda i: {"type": "array", "items": i}, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, st.just({"type": "null"})),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3).flatmap(
            lambda p: (
                st.lists(st.sampled_from(sorted(p)), unique=True).map(lambda r: _object(r, **p)) if p else st.just(_object())
            )
        ),
    ),
    max_leaves=8,
)


@given(_schema, st.booleans())
def test_every_schema_of_plain_parts_has_a_strict_form_whose_values_fit_the_original(part, required):
    schema = _object(["p"] if required else [], p=part)
    strict = strict_schema(schema)
    assert _obeys_the_rules(strict)
    value = _least(strict)
    compile_schema(strict)(value)
    out = list(without_nulls([ToolCallDelta(0, "c", "t", json.dumps(value)), FinishDelta()], {"t": schema}))
    try:
        compile_schema(schema)(json.loads(out[0].arguments))
    except Mismatch as mismatch:  # pragma: no cover - only on failure
        pytest.fail(f"{schema} {value} {mismatch}")


def _least(schema: dict[str, Any]) -> Any:
    """A value of a strict schema with every null that it allows."""
    if "anyOf" in schema:
        return None if {"type": "null"} in schema["anyOf"] else _least(schema["anyOf"][0])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "null" in kinds:
        return None
    if "enum" in schema:
        return schema["enum"][0]
    if kinds == ["object"]:
        return {name: _least(s) for name, s in schema["properties"].items()}
    return {"string": "s", "integer": 1, "boolean": True, "array": []}[kinds[0]]
