"""`generate_with_tools` and `generate_with_mcp`: the documented calls that run a turn with tools."""

from __future__ import annotations

import pytest

from lollms_client import MSG_TYPE, LollmsClient
from lollms_client._bindings.request import Capabilities
from lollms_client.errors import BackendError, ConfigurationError, NotConfiguredError, UnknownNameError
from lollms_client.lollms_tools_binding import read_audit
from lollms_client.testing import ScriptedLLM, ScriptedTools, call, step
from lollms_client.tools_bindings.lcp import LCPBinding

ADD = {
    "name": "add",
    "description": "Adds.",
    "parameters": [
        {"name": "a", "type": "integer", "description": "one", "optional": False},
        {"name": "b", "type": "integer", "description": "other", "optional": True, "default": 40},
    ],
    "callable": lambda a, b: a + b,
}


def client_with(script, **capabilities):
    client = LollmsClient()
    client.llm = ScriptedLLM(script, capabilities=Capabilities(**capabilities) if capabilities else None)
    return client


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "greeter.py"
    path.write_text("def tool_greet(name: str) -> str:\n    '''Greets.'''\n    return f'Hello {name}'\n")
    return path


@pytest.mark.req("CT-C.11")
def test_tools_are_given_as_files_and_as_dicts_and_the_answer_has_the_documented_shape(library):
    client = client_with([call("tool_greet", name="Ada"), call("add", a="2"), "It is 42."])
    answer = client.generate_with_tools("Go.", [str(library), ADD], system_prompt="Be brief.")
    assert answer["response"] == "It is 42."
    assert answer["rounds"] == 3
    assert [(c["round"], c["name"], c["parameters"]) for c in answer["tool_calls"]] == [
        (1, "tool_greet", {"name": "Ada"}),
        (2, "add", {"a": "2"}),
    ]
    assert [(r["round"], r["name"], r["result"]["output"]) for r in answer["tool_results"]] == [
        (1, "tool_greet", "Hello Ada"),
        (2, "add", 42),
    ]
    assert set(answer) == {"response", "tool_calls", "tool_results", "rounds"}
    assert set(answer["tool_calls"][0]) == {"round", "name", "parameters", "raw"}
    first = client.llm.requests[0]
    assert first.messages[0] == {"role": "system", "content": "Be brief."}
    assert first.sampling.temperature == 0.7
    assert [t["name"] for t in first.tools] == ["tool_greet", "add"]


def test_what_to_chat_tool_specs_gives_can_be_given_whole(library):
    with LCPBinding(tool_files=[library], schema_cache=False) as binding:
        client = client_with([call("tool_greet", name="Bob"), "done"])
        answer = client.generate_with_tools("Go.", binding.to_chat_tool_specs())
    assert answer["tool_results"][0]["result"]["output"] == "Hello Bob"


def test_openai_s_form_of_a_tool_and_host_objects_are_understood():
    schema = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    seen = []
    tool = {
        "type": "function",
        "function": {"name": "half", "description": "Halves.", "parameters": schema},
        "callable": lambda x, lollms_client_instance: seen.append(lollms_client_instance) or x / 2,
    }
    client = client_with([call("half", x=3), "done"])
    assert client.generate_with_tools("Go.", [tool])["tool_results"][0]["result"]["output"] == 1.5
    assert seen == [client]


@pytest.mark.req("CT-C.12")
def test_without_auto_execute_nothing_runs_and_the_call_is_handed_back():
    ran = []
    tool = {**ADD, "callable": lambda **kw: ran.append(kw)}
    client = client_with([call("add", a=1)])
    answer = client.generate_with_tools("Go.", [tool], auto_execute=False)
    assert answer["pending_tool"] == {"name": "add", "parameters": {"a": 1}, "raw": '{"a": 1}'}
    assert answer["tool_calls"] == []
    assert ran == []
    bare = {k: v for k, v in ADD.items() if k != "callable"}
    assert "pending_tool" in client_with([call("add", a=1)]).generate_with_tools("Go.", [bare], auto_execute=False)


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([{"description": "no name"}], "needs a 'name'"),
        ([{"name": "x", "description": ""}], "no 'callable'"),
        ([{"name": "x", "callable": 3}], "cannot be called"),
        ([{"name": "x", "callable": print, "parameters": ["a"]}], "an object with a 'name'"),
        (["nowhere/tools.py"], "no file or folder of tools"),
        ("tools.py", "is a list"),
    ],
)
def test_what_is_no_tool_is_refused_before_anything_runs(tools, said):
    client = client_with(["never asked"])
    with pytest.raises(ConfigurationError, match=said):
        client.generate_with_tools("Go.", tools)
    assert client.llm.requests == []


def test_the_round_limit_leaves_one_round_for_the_answer():
    client = client_with([step("add", a=1), step("add", a=2), step("final_answer", answer="41 and 42")], json_schema=True)
    answer = client.generate_with_tools("Go.", [ADD], max_tool_rounds=2)
    assert (answer["response"], answer["rounds"]) == ("41 and 42", 3)


@pytest.mark.req("CT-C.22")
@pytest.mark.parametrize("arity", [2, 3, 4])
def test_a_callback_hears_of_text_rounds_and_tools_and_stops_by_false(arity):
    heard = []
    callbacks = {
        2: lambda chunk, kind: heard.append((chunk, kind)),
        3: lambda chunk, kind, params: heard.append((chunk, kind, params)),
        4: lambda chunk, kind, params=None, metadata=None: heard.append((chunk, kind, params)),
    }
    client = client_with([call("add", a=2), "It is 42."])
    client.generate_with_tools("Go.", [ADD], streaming_callback=callbacks[arity])
    names = [h[1].name.removeprefix("MSG_TYPE_") for h in heard]
    assert names == ["ROUND_START", "TOOL_START", "TOOL_END", "ROUND_END", "ROUND_START", "CHUNK", "ROUND_END"]
    if arity > 2:
        ended = heard[2][2]
        assert (ended["name"], ended["parameters"], ended["result"]["output"]) == ("add", {"a": 2}, 42)

    client = client_with([["It ", "is ", "42."]])
    answer = client.generate_with_tools("Go.", [ADD], streaming_callback=lambda c, t: c != "is ")
    assert answer["response"] == "It is"


def test_a_callback_that_raises_ends_the_turn_and_nothing_stays_open():
    def callback(chunk, kind):
        raise ZeroDivisionError

    client = client_with([call("add", a=2), "never asked"])
    with pytest.raises(ZeroDivisionError) as caught:
        client.generate_with_tools("Go.", [ADD], streaming_callback=callback)
    assert caught.value.__traceback__ is not None  # which holds the turn's frames
    assert client._turns == set()


def test_calls_in_parallel_are_all_counted():
    client = client_with([call("add", a=1) + call("add", a=2) + call("add", a=3), call("add", a=4), "done"])
    answer = client.generate_with_mcp("Go.", tools=[ADD], max_tool_calls=3)
    assert [r["result"].get("output") for r in answer["tool_results"]] == [41, 42, 43, None]


def test_a_callback_of_another_shape_is_refused():
    with pytest.raises(ConfigurationError, match="streaming callback takes"):
        client_with(["x"]).generate_with_tools("Go.", [ADD], streaming_callback=lambda chunk: True)


@pytest.mark.req("DG-core.5", "CT-C.16")
def test_the_client_s_own_tools_are_offered_and_both_limits_hold():
    client = client_with([call("add", a=1, b=2), call("add", a=3, b=4), call("add", a=5, b=6), "3 and 7"])
    client.tools = ScriptedTools({"add": lambda a, b: a + b, "other": 1})
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    answer = client.generate_with_mcp("Go.", discussion_history=history, max_tool_calls=2)
    assert answer["final_answer"] == answer["response"] == "3 and 7"
    assert answer["error"] is None
    assert [r["result"].get("output") for r in answer["tool_results"]] == [3, 7, None]
    assert "which is all that this turn may make" in answer["tool_results"][2]["result"]["error"]
    assert client.llm.requests[0].messages[:2] == history
    assert [t["name"] for t in client.llm.requests[0].tools] == ["add", "other"]
    assert set(answer) == {"final_answer", "error", "response", "tool_calls", "tool_results", "rounds"}

    client = client_with([call("add", a=n, b=n) for n in range(5)])
    client.tools = ScriptedTools({"add": lambda a, b: a + b})
    answer = client.generate_with_mcp("Go.", max_llm_iterations=2)
    assert answer["rounds"] == 2
    assert "limit of 2 rounds" in answer["error"]


def test_only_the_tools_that_are_named_are_offered():
    client = client_with(["ok"])
    client.tools = ScriptedTools({"one": 1, "two": 2})
    client.generate_with_mcp("Go.", tools=["two", ADD])
    assert [t["name"] for t in client.llm.requests[0].tools] == ["two", "add"]
    with pytest.raises(UnknownNameError, match="'one'"):
        client.generate_with_mcp("Go.", tools=["tow"])


def test_a_backend_that_fails_is_the_answer_s_error():
    client = client_with([BackendError("the server is gone")])
    client.tools = ScriptedTools({"one": 1})
    answer = client.generate_with_mcp("Go.")
    assert (answer["final_answer"], answer["error"], answer["tool_calls"]) == ("", "the server is gone", [])
    with pytest.raises(NotConfiguredError, match="tools_binding_name"):
        client_with(["x"]).generate_with_mcp("Go.")


def test_interactive_calls_are_put_before_the_person_one_by_one():
    asked = []

    def handler(source, label, argv=None):
        asked.append((source, label))
        return [("reject", "not that one"), ("allow", "")][len(asked) - 1]

    client = client_with([call("add", a=1, b=2), call("add", a=3, b=4), "7"])
    client.tools = ScriptedTools({"add": lambda a, b: a + b})
    answer = client.generate_with_mcp("Go.", interactive_tool_execution=True, confirm_handler=handler)
    assert [(r["result"].get("output"), r["result"].get("error")) for r in answer["tool_results"]] == [
        (None, "not that one"),
        (7, None),
    ]
    assert [label for _, label in asked] == ["add", "add"]
    client.llm = ScriptedLLM([call("add", a=1, b=2), "no"])
    refused = client.generate_with_mcp("Go.", interactive_tool_execution=True)
    assert refused["tool_results"][0]["result"]["status_code"] == 403, "without a terminal nobody can say yes"


def test_what_a_person_decided_about_interactive_calls_is_in_the_audit_log_and_an_edit_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("LOLLMS_AUDIT", str(tmp_path / "audit.jsonl"))
    answers = [("reject", "not that one"), ("allow", "", {"a": 30, "b": 4})]
    client = client_with([call("add", a=1, b=2), call("add", a=3, b=4), "34"])
    client.tools = ScriptedTools({"add": lambda a, b: a + b})
    answer = client.generate_with_mcp("Go.", interactive_tool_execution=True, confirm_handler=lambda *_: answers.pop(0))
    result = answer["tool_results"][1]["result"]
    assert result["output"] == 34
    assert "The operator changed this call's arguments before it ran" in result["warnings"][0]
    told = [(e["tool"], e["by"], e["decision"], e["status"], e.get("reason", "")) for e in read_audit()]
    assert told == [("add", "handler", "reject", 403, "not that one"), ("add", "handler", "allow", 200, "")]


def test_pictures_go_with_the_prompt():
    client = client_with(["a cat"])
    client.tools = ScriptedTools({"one": 1})
    client.generate_with_mcp("What is it?", images=["https://example.org/cat.png"])
    content = client.llm.requests[0].messages[-1]["content"]
    assert content[0] == {"type": "text", "text": "What is it?"}
    assert content[1] == {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}


def test_msg_types_are_those_of_the_client():
    heard = []
    client = client_with(["hi"])
    client.callback = lambda chunk, kind: heard.append((chunk, kind))
    client.generate_text("x")
    assert heard == [("hi", MSG_TYPE.MSG_TYPE_CHUNK)]
