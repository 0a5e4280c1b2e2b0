"""One tool's call, compiled: defaults, filtering, host objects, coroutines, and what it costs."""

from __future__ import annotations

import functools
import time

import pytest

from lollms_client._tools.plan import CallPlan
from lollms_client._tools.spec import ToolSpec
from lollms_client.errors import ToolArgumentError


def plan(properties: dict, required=(), **facts) -> CallPlan:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return CallPlan(ToolSpec("tool_x", "", schema, "lib", **facts))


THREE = plan(
    {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}, "ratio": {"type": "number", "default": 0.5}},
    ["query"],
)


def test_left_out_arguments_get_their_defaults():
    assert THREE.prepare({"query": "a"}) == ({"query": "a", "limit": 10, "ratio": 0.5}, [])


def test_null_for_an_optional_argument_means_its_default():
    assert THREE.prepare({"query": "a", "limit": None})[0]["limit"] == 10


@pytest.mark.parametrize("text", ["null", "None"])
def test_null_spelt_as_text_means_the_default_where_text_does_not_fit(text):
    assert THREE.prepare({"query": "a", "limit": text})[0]["limit"] == 10
    assert THREE.prepare({"query": text})[0]["query"] == text


def test_null_is_a_value_where_the_schema_takes_null():
    nullable = plan({"n": {"type": "integer", "default": 5, "nullable": True}})
    assert nullable.prepare({"n": None})[0] == {"n": None}


def test_null_for_a_required_argument_is_refused():
    with pytest.raises(ToolArgumentError, match=r"Argument 'query': expected text \(a string\), got null"):
        THREE.prepare({"query": None})


def test_a_default_of_another_type_than_its_parameter_is_filled_and_accepted_back():
    odd = plan({"mode": {"type": "integer", "default": "auto"}, "n": {"type": "integer", "default": None}})
    assert odd.prepare({}) == ({"mode": "auto", "n": None}, [])
    assert odd.prepare({"mode": "auto", "n": None}) == ({"mode": "auto", "n": None}, [])


def test_an_optional_argument_without_a_known_default_is_left_to_python():
    assert plan({"n": {"type": "integer"}}).prepare({"n": None}) == ({}, [])


def test_a_default_that_can_be_changed_is_fresh_for_every_call():
    lists = plan({"tags": {"type": "array", "default": ["a"]}})
    first = lists.prepare({})[0]
    first["tags"].append("b")
    second = lists.prepare({"tags": None})[0]
    second["tags"].append("c")
    assert lists.prepare({})[0] == {"tags": ["a"]}


def test_unknown_names_are_dropped_and_reported_with_the_near_one():
    arguments, warnings = THREE.prepare({"query": "a", "limt": 3, "zzz": 1})
    assert arguments == {"query": "a", "limit": 10, "ratio": 0.5}
    assert warnings == [
        "'limt' is not an argument of tool_x and was dropped; did you mean 'limit'?",
        "'zzz' is not an argument of tool_x and was dropped; its arguments are: limit, query, ratio.",
    ]


def test_every_wrong_argument_is_named_in_one_error():
    with pytest.raises(ToolArgumentError) as wrong:
        THREE.prepare({"qurey": "a", "limit": "many", "ratio": []})
    assert str(wrong.value) == (
        "tool_x was not called. Argument 'query' is missing. Argument 'limit': expected an integer, got \"many\" (text). "
        "Argument 'ratio': expected a number, got [] (a list). "
        "'qurey' is not an argument of tool_x and was dropped; did you mean 'query'?"
    )
    assert wrong.value.argument == "query"


def test_an_endlessly_nested_argument_is_an_error_and_not_a_crash():
    node = {"type": "array", "items": {"$ref": "#/properties/x"}}
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ToolArgumentError, match="'x' is nested too deeply"):
        plan({"x": node}).prepare({"x": deep})


def test_a_tool_with_kwargs_gets_everything_but_the_names_of_host_objects():
    free = plan({"a": {"type": "integer"}}, ["a"], accepts_kwargs=True)
    arguments, warnings = free.prepare({"a": "1", "b": "2", "tool_context": {"workspace_path": "/"}})
    assert arguments == {"a": 1, "b": "2"}
    assert warnings == ["'tool_context' is not an argument of tool_x and was dropped; its arguments are: a."]


def test_a_declared_host_parameter_is_never_taken_from_the_model():
    declared = plan({"a": {"type": "integer"}}, ["a"], hidden=frozenset({"lollms_client_instance"}))
    assert declared.prepare({"a": 1, "lollms_client_instance": "mine"})[0] == {"a": 1}
    assert declared.call(lambda **k: k, {"a": 1}, {"lollms_client_instance": "host's"}) == {
        "a": 1,
        "lollms_client_instance": "host's",
    }


def test_host_objects_reach_only_tools_that_declare_them_or_take_kwargs():
    host = {"tool_context": {"x": 1}, "lollms_client_instance": "client", "discussion_instance": None}
    assert plan({}).call(lambda **k: k, {}, host) == {}
    assert plan({}, hidden=frozenset({"discussion_instance"})).call(lambda **k: k, {}, host) == {"discussion_instance": None}
    assert plan({}, accepts_kwargs=True).call(lambda **k: k, {}, host) == {
        "tool_context": {"x": 1},
        "lollms_client_instance": "client",
    }


def test_positional_only_parameters_are_passed_by_position():
    def tool(a, b=2, /, *, c=3):
        return a, b, c

    p = plan({"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}}, ["a"], positional_only=("a", "b"))
    assert p.call(tool, p.prepare({"a": 1, "b": 5, "c": 6})[0], {}) == (1, 5, 6)
    assert p.call(tool, p.prepare({"a": 1})[0], {}) == (1, 2, 3)


def test_a_coroutine_is_run_to_its_end_also_behind_a_plain_function():
    async def later(x):
        return x + 1

    p = plan({"x": {"type": "integer"}}, ["x"])
    assert p.run(later, {"x": 1}) == {"output": 2, "status_code": 200, "success": True}
    assert p.run(functools.partial(later), {"x": 1})["output"] == 2


def test_warnings_stand_in_the_result():
    result = plan({}).run(lambda: "ok", {"x": 1})
    assert result == {
        "output": "ok", "status_code": 200, "success": True,
        "warnings": ["'x' is not an argument of tool_x and was dropped; its arguments are: none."],
    }  # fmt: skip


def test_a_call_with_three_arguments_costs_at_most_three_microseconds():
    def tool(query, limit=10, ratio=0.5):
        return {"success": True, "output": 1}

    arguments = {"query": "hello world", "limit": 5, "ratio": 0.25}
    best, bare = float("inf"), float("inf")
    for _ in range(40):  # in turn, so that other work on the machine slows both
        started = time.perf_counter()
        for _ in range(500):
            THREE.run(tool, arguments)
        middle = time.perf_counter()
        for _ in range(500):
            tool(**arguments)
        best, bare = min(best, (middle - started) / 500), min(bare, (time.perf_counter() - middle) / 500)
    assert best < 3e-6 or best < 10 * bare, "at most 3 µs; on a busy machine, ten times what the bare call costs"
