"""The ollama binding over real sockets: where it goes, what it learns of a model, models got and given back, whole turns."""

from __future__ import annotations

import base64
import inspect
import subprocess
import sys
import textwrap
import threading

import pytest
from ollama_kit import call, done, holds, ndjson, part, refusal, says, shown
from wire_kit import status, whole

from lollms_client import LollmsClient
from lollms_client._bindings.registry import create, list_bindings
from lollms_client._bindings.request import ChatRequest
from lollms_client._http import CancelToken
from lollms_client._stream.deltas import FinishDelta, ReasoningDelta
from lollms_client.errors import BackendError, BackendProtocolError, CancelledError, ConfigurationError, UnknownNameError
from lollms_client.events import ThoughtDelta, ToolEnded, TurnEnded, Usage
from lollms_client.llm_bindings.ollama import OllamaBinding
from lollms_client.llm_bindings.ollama.facts import PullProgress
from lollms_client.testing import ScriptedTools, check_llm

HELLO = [{"role": "user", "content": "hello"}]
PNG = base64.b64encode(b"\x89PNG rest of it").decode()


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch):
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    monkeypatch.delenv("OLLAMA_API_KEY", raising=False)


@pytest.fixture
def bound(ollama):
    every: list[OllamaBinding] = []

    def make(model_name: str | None = "toy", **settings) -> OllamaBinding:
        every.append(OllamaBinding(model_name, **{"base_url": ollama.root, "retries": 0, **settings}))
        return every[-1]

    yield make
    for made in every:
        made.close()


# ---- where it goes ---------------------------------------------------------------------------------------------------------------


def test_constructing_asks_nobody_and_imports_no_sdk_and_no_http():
    code = """
        import sys
        from lollms_client.llm_bindings.ollama import OllamaBinding
        assert OllamaBinding("m").base_url == "http://127.0.0.1:11434"
        assert not {"ollama", "httpx", "asyncio"} & set(sys.modules), sorted(sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=50, check=False)
    assert done.stderr == ""


def test_it_is_found_by_name_and_every_described_setting_and_command_is_there():
    assert "ollama" in list_bindings("llm")
    described = OllamaBinding("m").description
    parameters = described.global_input_parameters + described.model_input_parameters
    for parameter in parameters:
        OllamaBinding(**{"model_name": "m", parameter.name: parameter.default})
    for preset in described.presets:
        OllamaBinding(**preset.parameters)
    own = {p for c in (OllamaBinding, OllamaBinding.__mro__[1]) for p in inspect.signature(c.__init__).parameters}
    assert own - {"self", "settings", "config", "binding_name"} <= {p.name for p in parameters}
    for command in described.commands:
        takes = inspect.signature(getattr(OllamaBinding, command["name"])).parameters
        assert {p["name"] for p in command["parameters"]} <= takes.keys()


def test_a_setting_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ConfigurationError, match=r"no setting 'temprature'.*temperature"):
        create("llm", "ollama", {"temprature": 1})


def test_address_and_key_come_from_the_environment_where_they_are_not_given(ollama, monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", f' "{ollama.root.removeprefix("http://")}/" ')
    monkeypatch.setenv("OLLAMA_API_KEY", "from-environment")
    ollama.chats(says("a"))
    for settings in ({}, {"api_key": "given"}, {"host_address": ollama.root, "service_key": "older-name"}):
        with LollmsClient("ollama", llm_binding_config={"model_name": "toy", **settings}) as client:
            assert client.generate_text("hello") == "a"
    keys = [a.headers["authorization"] for a in ollama.asked if a.path == "/api/chat"]
    assert keys == ["Bearer from-environment", "Bearer given", "Bearer older-name"]


# ---- what a model can do -----------------------------------------------------------------------------------------------------------


def test_what_the_server_says_about_a_model_is_asked_once_a_model_and_what_was_said_goes_over_it(ollama, bound):
    ollama.models["seer:latest"] = shown("tools", "vision", context=4096)
    binding = bound("seer")
    assert ollama.asked == []
    able = binding.capabilities
    assert (able.native_tools, able.parallel_tool_calls, able.vision, able.context_size) == (True, True, True, 4096)
    assert (able.json_schema, able.embeddings, able.reasoning_efforts) == (True, True, ())
    info = binding.get_model_info()
    assert (info["name"], info["supports_vision"], info["supports_thinking"], info["family"]) == ("seer", True, False, "toy")
    assert len(ollama.asked) == 1
    binding.select_model("plain:1b")
    assert not binding.capabilities.vision
    binding.select_model("seer")
    assert binding.capabilities.vision
    assert len(ollama.asked) == 2
    said = bound("seer", capabilities={"vision": False, "context_size": 100}, ctx_size=2048).capabilities
    assert (said.vision, said.native_tools, said.context_size) == (False, True, 100)
    assert bound("gpt-oss:20b").capabilities.reasoning_efforts == ("low", "medium", "high")


@pytest.mark.parametrize("answer", [status(404), status(500), whole(b"x"), whole([1]), whole({})])
def test_a_server_that_does_not_say_has_what_was_configured_and_is_not_asked_at_every_turn(ollama, bound, answer):
    ollama.on("/api/show", answer)
    binding = bound(ctx_size=2048, capabilities={"native_tools": True})
    for _ in range(3):
        able = binding.capabilities
        assert (able.native_tools, able.vision, able.json_schema, able.context_size or 2048) == (True, None, True, 2048)
    assert binding.get_ctx_size() == 2048
    assert len(ollama.asked) == 1


def test_a_server_that_took_too_long_said_nothing_and_is_asked_again_at_once(ollama, bound):
    show = ollama._about_model(ollama._show)
    ollama.on("/api/show", holds(threading.Event(), head=False), show)
    binding = bound(timeout=0.3)
    able = binding.capabilities
    assert (able.native_tools, able.vision) == (False, None)
    assert binding.capabilities.native_tools, "what took too long once is no fact about the model"
    assert [asked.path for asked in ollama.asked] == ["/api/show"] * 2
    assert binding.capabilities.native_tools
    assert len(ollama.asked) == 2


def test_a_busy_server_that_says_late_what_it_loaded_is_asked_again(ollama, bound):
    ollama.on("/api/ps", holds(threading.Event(), head=False), ollama._ps)
    ollama.chats(says("a"), says("b"))
    binding = bound(timeout=0.3)
    binding.generate_text("hello")
    assert binding.get_ctx_size() == 8192, "the most that there can be, as long as the server does not say"
    assert binding.get_ctx_size() == 4096


def test_a_loaded_machine_has_longer_to_say_what_a_model_can_than_other_facts_take(ollama, bound, monkeypatch):
    given = []
    binding = bound()
    real = binding.http.post_json
    monkeypatch.setattr(
        binding.http, "post_json", lambda path, body, cancel, wait: (given.append(wait), real(path, body, cancel, wait))[1]
    )
    assert binding.capabilities.native_tools
    assert given == [30.0]


def test_the_context_that_is_asked_for_is_the_one_that_the_model_is_loaded_with(ollama):
    ollama.chats(says("a"))
    profile = {
        "name": "p",
        "binding_profile_name": "master",
        "model_name": "toy",
        "is_default": True,
        "forced_context_size": 2048,
    }
    for more, size in (({}, 4096), ({"llm_model_profiles": [profile]}, 2048)):
        config = {"model_name": "toy", "base_url": ollama.root, "ctx_size": 4096}
        with LollmsClient("ollama", llm_binding_config=config, **more) as client:
            assert client.get_ctx_size() == size
            client.generate_text("hello")
        assert ollama.bodies[-1]["options"]["num_ctx"] == size


def test_the_context_that_the_server_chose_is_known_once_the_model_has_answered(ollama, bound):
    ollama.chats(says("a"))
    binding = bound("gpt-oss:20b")
    assert binding.get_ctx_size() == 131072
    binding.generate_text("hello")
    assert [binding.get_ctx_size() for _ in range(3)] == [4096] * 3
    assert len([a for a in ollama.asked if a.path == "/api/ps"]) == 1
    ollama.models["gpt-oss:20b"] = shown("vision", context=131072)
    binding.load_model()
    assert binding.capabilities.vision, "a model that is loaded anew is looked at anew"
    assert binding.get_model_info()["max_context_size"] == 131072


# ---- answers -----------------------------------------------------------------------------------------------------------------------


def test_it_generates_as_every_binding_does(ollama, bound):
    ollama.chats(ndjson(part(thinking="hm"), part("one "), part("two"), done()))
    assert check_llm(bound()) == []


def test_thoughts_text_and_cost_come_as_they_are_said(ollama, bound):
    ollama.chats(ndjson(part(thinking="h"), part(thinking="m"), part("a"), done("length")))
    binding = bound()
    deltas = list(binding.stream(ChatRequest(HELLO)))
    assert deltas == [ReasoningDelta("h"), ReasoningDelta("m"), "a", FinishDelta("length"), Usage(7, 3)]
    assert binding.generate_text("hello") == "<think>hm</think>a"


@pytest.mark.req("CT-E.13")
@pytest.mark.parametrize(("model", "think"), [("toy", True), ("gpt-oss:20b", "high"), ("unknown-to-show", True)])
def test_an_effort_turns_thinking_on_in_the_form_that_the_model_takes(ollama, bound, model, think):
    ollama.models["unknown-to-show:latest"] = {}  # as an old server has it
    ollama.chats(says("a"))
    assert bound(model).generate_text("hello", reasoning_effort="high") == "a"
    body = ollama.bodies[0]
    assert (body["think"], body["options"]["think"]) == (think, "high")


def test_a_model_that_cannot_think_is_not_asked_to_since_it_would_refuse(ollama, bound):
    ollama.chats(says("a"))
    assert bound("plain:1b").generate_text("hello", reasoning_effort="high") == "a"
    assert "think" not in ollama.bodies[0]


def test_a_picture_reaches_a_model_that_takes_pictures_and_no_other(ollama, bound):
    ollama.chats(says("A pig."))
    assert bound("seer").generate_text("What is it?", images=[PNG]) == "A pig."
    assert ollama.bodies[0]["messages"] == [{"role": "user", "content": "What is it?", "images": [PNG]}]
    with pytest.raises(BackendError, match="takes no images"):
        bound("plain:1b").generate_text("What is it?", images=[PNG])


def test_a_schema_is_the_form_of_the_answer(ollama, bound):
    ollama.chats(says('{"a": 1}'))
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    bound().generate_text("hello", json_schema=schema)
    assert ollama.bodies[0]["format"] == schema


def test_embeddings_come_one_by_one_and_many_at_once(ollama, bound):
    binding = bound(embedding_model="plain:1b", keep_alive="1h")
    assert binding.embed("abc") == [3.0, 0.5]
    assert binding.embed(["a", "bc"], model_name="toy", dimensions=2) == [[1.0, 0.5], [2.0, 0.5]]
    assert binding.embed([]) == []
    sent = {"model": "toy", "input": ["a", "bc"], "truncate": False, "dimensions": 2, "keep_alive": "1h"}
    assert ollama.last("/api/embed") == sent
    ollama.on("/api/embed", whole({"embeddings": [[1.0]]}))
    with pytest.raises(BackendProtocolError, match="1 embeddings"):
        binding.embed(["a", "b"])


# ---- models --------------------------------------------------------------------------------------------------------------------


def test_models_are_listed_loaded_used_and_given_back(ollama, bound):
    binding = bound(None, ctx_size=4096, keep_alive="30m", n_threads=2)
    assert binding.version() == "0.12.6"
    assert [m["model_name"] for m in binding.list_models()] == list(ollama.models)
    assert binding.list_models()[0]["parameter_size"] == "1.5B"
    assert binding.ps() == []
    assert binding.load_model("toy") is True
    assert ollama.loaded == {"toy:latest": {"num_ctx": 4096, "num_thread": 2}}
    assert ollama.last("/api/generate")["keep_alive"] == "30m"
    ollama.chats(says("a"))
    assert binding.generate_text("hello") == "a"
    assert ollama.bodies[0]["options"] == ollama.loaded["toy:latest"], "else the server would load it anew"
    assert [m["model_name"] for m in binding.ps()] == ["toy:latest"]
    assert binding.unload_model() is True
    assert binding.ps() == []


def test_unloading_what_is_not_there_frees_nothing_and_closing_leaves_the_server_alone(ollama, bound):
    assert bound("not-there").unload_model() is False
    assert bound(None).unload_model() is False
    binding = bound()
    binding.load_model()
    binding.retire()
    binding.close()
    assert list(ollama.loaded) == ["toy:latest"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda b: b.generate_text("hello"),
        lambda b: b.load_model(),
        lambda b: b.embed("a"),
        lambda b: b.delete_model("tou"),
    ],
)
def test_a_model_that_is_not_there_is_an_error_that_says_which_are_and_how_to_get_it(ollama, bound, ask):
    ollama.chats(says("a"))
    with pytest.raises(
        UnknownNameError, match=r"named 'tou'\. There are: .*'toy:latest'.*pull_model\('tou'\).*`ollama pull tou`"
    ):
        ask(bound("tou"))


def test_a_place_that_is_no_such_server_is_not_taken_for_one_without_the_model(ollama, bound):
    ollama.on("/api/tags", status(404))
    with pytest.raises(BackendError, match="404"):
        bound("tou").generate_text("hello")
    ollama.on("/api/tags", ollama._tags)
    ollama.on("/api/chat", refusal(404, "no route"))
    with pytest.raises(BackendError, match="no route"):
        bound("toy").generate_text("hello")


def test_a_model_is_deleted(ollama, bound):
    binding = bound()
    assert binding.delete_model("plain:1b") is True
    assert "plain:1b" not in [m["model_name"] for m in binding.list_models()]
    assert [a.method for a in ollama.asked if a.path == "/api/delete"] == ["DELETE"]


PULL = [
    {"status": "pulling manifest"},
    {"status": "pulling aa", "digest": "aa", "total": 100},
    {"status": "pulling aa", "digest": "aa", "total": 100, "completed": 40},
    {"status": "pulling aa", "digest": "aa", "total": 100, "completed": 100},
    {"status": "pulling bb", "digest": "bb", "total": 10, "completed": 10},
    {"status": "verifying sha256 digest"},
    {"status": "success"},
]


def test_a_model_is_got_with_word_of_how_far_it_is(ollama, bound):
    ollama.on("/api/pull", ndjson(*PULL))
    binding, heard = bound("new"), []
    assert not binding.capabilities.native_tools
    ollama.models["new:latest"] = shown("tools")
    assert binding.pull_model("new", heard.append) is True
    assert [(p.bytes_done, p.bytes_total) for p in heard] == [(0, 0), (0, 100), (40, 100), (100, 100), *[(110, 110)] * 3]
    assert heard[-1] == PullProgress("new", "success", 110, 110)
    assert ollama.last("/api/pull") == {"model": "new", "stream": True}
    assert binding.capabilities.native_tools, "what was not known before is asked anew"


@pytest.mark.parametrize(
    ("parts", "error", "said"),
    [
        ([PULL[0], {"error": "pull model manifest: file does not exist"}], BackendError, "file does not exist"),
        (PULL[:3], BackendProtocolError, "in the middle, after 'pulling aa'"),
        ([PULL[0], b"garbage\n"], BackendProtocolError, "garbage"),
    ],
)
def test_a_model_that_cannot_be_got_is_an_error(ollama, bound, parts, error, said):
    ollama.on("/api/pull", ndjson(*parts))
    with pytest.raises(error, match=said):
        bound().pull_model("new")


def test_looking_up_a_context_ends_with_the_request_that_needs_it(ollama, bound):
    ollama.chats(says("a"))
    binding, arrived = bound(), threading.Event()
    binding.generate_text("hello")
    ollama.on("/api/ps", holds(arrived, head=False))
    threading.Thread(target=lambda: arrived.wait(10) and binding.cancel(), daemon=True).start()
    with pytest.raises(CancelledError):
        list(binding.stream(ChatRequest(HELLO)))


def test_getting_a_model_ends_when_its_callback_or_a_token_or_the_binding_says_so(ollama, bound):
    binding, token = bound(), CancelToken()
    ollama.on("/api/pull", holds(threading.Event(), *PULL[:3]))
    assert binding.pull_model("new", lambda p: p.bytes_done < 40) is False
    assert binding.pull_model("new", lambda p: p.bytes_done and token.cancel(), token) is False
    with pytest.raises(CancelledError):
        binding.pull_model("new", lambda p: p.bytes_done and binding.cancel())


# ---- whole turns -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def client(ollama):
    made = LollmsClient("ollama", llm_binding_config={"model_name": "toy", "base_url": ollama.root})
    yield made
    made.close()


@pytest.mark.parametrize(
    "calls",
    [
        [call("tool_add", {"a": 1}), call("tool_add", {"a": 2})],
        [call("tool_add", {"a": 1}, index=0), call("tool_add", {"a": 2}, index=0)],
        [part(tool_calls=[{"function": {"name": "tool_add", "arguments": {"a": n}}} for n in (1, 2)])],
        [call("tool_add", {"a": 1}, id="same"), call("tool_add", {"a": 2}, id="same")],
    ],
    ids=["no positions", "position 0 for all", "in one part", "one id for both"],
)
def test_parallel_calls_are_told_apart_in_a_whole_turn(ollama, client, calls):
    client.tools = tools = ScriptedTools({"tool_add": lambda a: a + 1})
    ollama.chats(ndjson(part(thinking="Twice."), part("Let me see."), *calls, done()), says("2 and 3"))
    turn = list(client.run_turn("Add one to 1 and to 2.", reasoning_effort="high"))
    end = turn[-1]
    assert isinstance(end, TurnEnded)
    assert (end.status, end.response) == ("completed", "2 and 3")
    assert sorted(arguments["a"] for _, arguments in tools.calls) == [1, 2]
    assert len([e for e in turn if isinstance(e, ToolEnded)]) == 2
    assert "".join(e.text for e in turn if isinstance(e, ThoughtDelta)) == "Twice."
    assert [b["think"] for b in ollama.bodies] == [True, True]
    asked, *results = ollama.bodies[1]["messages"][-3:]
    assert [c["function"]["arguments"] for c in asked["tool_calls"]] == [{"a": 1}, {"a": 2}]
    ids = [c["id"] for c in asked["tool_calls"]]
    assert len(set(ids)) == 2
    assert [(m["tool_name"], m["tool_call_id"]) for m in results] == [("tool_add", i) for i in ids]


def test_names_that_are_hard_for_models_and_servers_keep_their_form_for_us(ollama, client):
    hard = ("server::read", "a b", "x" * 80)
    client.tools = tools = ScriptedTools(dict.fromkeys(hard, "done"))

    def answer(conn, asked):
        names = [t["function"]["name"] for t in asked.body["tools"]]
        ndjson(*(call(name, {}) for name in names), done())(conn, asked)

    ollama.chats(answer, says("done"))
    end = list(client.run_turn("Call them all."))[-1]
    assert end.status == "completed"
    assert sorted(name for name, _ in tools.calls) == sorted(hard)


def test_a_model_without_tools_of_its_own_is_held_to_a_schema_and_calls_them_all_the_same(ollama):
    ollama.chats(
        says('{"todo": "add", "tool": "tool_add", "arg', 'uments": {"a": 1}}'),
        says('{"todo": "nothing", "tool": "final_answer", "arguments": {"answer": "2"}}'),
    )
    with LollmsClient("ollama", llm_binding_config={"model_name": "plain:1b", "base_url": ollama.root}) as client:
        client.tools = tools = ScriptedTools({"tool_add": lambda a: a + 1})
        begins, *_, end = client.run_turn("Add one to 1.")
    assert (begins.dialect, begins.tools) == ("constrained", ["tool_add"]), client.llm.model_facts()
    assert all("tools" not in body and "tool_add" in str(body.get("format")) for body in ollama.bodies), ollama.bodies
    assert (end.status, end.response) == ("completed", "2")
    assert tools.calls == [("tool_add", {"a": 1})]
