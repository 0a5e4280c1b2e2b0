"""`LollmsClient` over real bindings: what it builds, what it refuses, how it is cancelled, from where it can be called."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import threading

import pytest

from lollms_client import LollmsClient
from lollms_client import events as ev
from lollms_client._bindings.request import Capabilities
from lollms_client.errors import ConfigurationError, NotConfiguredError, UnknownNameError
from lollms_client.testing import Reply, ScriptedLLM, ScriptedTools, call
from lollms_client.tools_bindings.lcp import LCPBinding


@pytest.mark.req("TG-8.1")
def test_the_client_mounts_lcp_with_the_handler_and_the_settings_that_it_was_given(tmp_path):
    (tmp_path / "asker.py").write_text(
        "HANDLER = None\nCONFIG = {}\n"
        "def init_tools_library(config):\n    CONFIG.update(config)\n"
        "def set_confirm_handler(handler):\n    global HANDLER\n    HANDLER = handler\n"
        "def tool_ask() -> dict:\n"
        "    '''Asks.'''\n"
        "    return {'success': True, 'output': [HANDLER('source', 'label', None)[0], CONFIG['autonomy_level']]}\n"
    )
    asked = []

    def handler(source, script_label, argv=None):
        asked.append((source, script_label))
        return "allow", ""

    client = LollmsClient(
        tools_binding_name="lcp",
        tools_binding_config={
            "tools_folders": [str(tmp_path)],
            "confirm_handler": handler,
            "workspace_path": tmp_path / "w",
            "host_tool_configs": {"asker": {"autonomy_level": "safe"}, "system_shell": {"autonomy_level": "safe"}},
        },
    )
    assert isinstance(client.tools, LCPBinding)
    assert client.tools.execute_tool("tool_ask", {})["output"] == ["allow", "safe"]
    assert asked == [("source", "label")]
    client.close()


def test_what_was_not_configured_is_none_and_says_how_to_configure_it():
    client = LollmsClient()
    assert client.llm is None
    assert client.tools is None
    for ask in (
        lambda: client.generate_text("x"),
        lambda: client.run_turn("x"),
        lambda: client.count_tokens("x"),
        lambda: client.embed("x"),
    ):
        with pytest.raises(NotConfiguredError, match="llm_binding_name"):
            ask()
        with pytest.raises(RuntimeError):
            ask()


def test_a_binding_that_is_not_there_is_an_error_that_names_those_that_are():
    with pytest.raises(UnknownNameError, match="embedded"):
        LollmsClient(llm_binding_name="embeded")
    with pytest.raises(UnknownNameError, match="lcp"):
        LollmsClient(tools_binding_name="lpc")
    with pytest.raises(ConfigurationError):
        LollmsClient(tools_binding_name="lcp", tools_binding_config={"tool_folders": []})


def test_building_a_client_of_the_embedded_model_needs_no_file_and_no_network():
    client = LollmsClient(llm_binding_name="embedded")
    assert client.llm.model_name
    client.close()


def test_cancel_from_another_thread_ends_a_turn_that_waits_for_the_model():
    client = LollmsClient()
    started = threading.Event()

    def waiting(request):
        started.set()
        return Reply(["a", "b"], delay=60)

    client.llm = ScriptedLLM([waiting])
    thread = threading.Thread(target=lambda: (started.wait(10), client.cancel()))
    thread.start()
    end = list(client.run_turn("x"))[-1]
    thread.join(10)
    assert end.status == "cancelled"
    client.llm = ScriptedLLM(["fine"])
    assert list(client.run_turn("x"))[-1].response == "fine", "a cancelled client goes on working"


def test_turns_run_inside_a_running_event_loop_and_from_many_threads(tmp_path):
    client = LollmsClient(tools_binding_name="lcp", tools_binding_config={"schema_cache": False})

    async def inside() -> str:
        client.llm = ScriptedLLM([call("tool_list_files"), "ok"])
        return list(client.run_turn("x", workspace_path=tmp_path))[-1].response

    assert [asyncio.run(inside()) for _ in range(2)] == ["ok", "ok"]
    client.llm = ScriptedLLM(["ok"] * 8)
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(list(client.run_turn("x"))[-1].response)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(10)
    assert answers == ["ok"] * 8
    client.close()


def test_a_turn_inside_a_tool_runs_its_own_calls_in_its_own_workspace(tmp_path):
    (tmp_path / "outer.py").write_text(
        "from pathlib import Path\n"
        "def tool_outer(lollms_client_instance=None) -> dict:\n"
        "    '''Runs a turn.'''\n"
        "    events = list(lollms_client_instance.run_turn('inner', workspace_path='inner'))\n"
        "    return {'success': True, 'output': [events[-1].response, sorted(p.name for p in Path('.').iterdir())]}\n"
    )
    tools = {"tools_folders": [str(tmp_path), str(LCPBinding(schema_cache=False).workspace_path)], "schema_cache": False}
    from lollms_client.tools_bindings.lcp import DEFAULT_TOOLS

    tools["tools_folders"] = [str(tmp_path), str(DEFAULT_TOOLS)]
    client = LollmsClient(tools_binding_name="lcp", tools_binding_config=tools)
    client.llm = ScriptedLLM([call("tool_outer"), call("tool_write_file", path="a.txt", content="x"), "inner done", "outer done"])
    end = list(client.run_turn("x", workspace_path=tmp_path / "w"))[-1]
    assert end.response == "outer done"
    assert end.tool_results[0]["result"]["output"] == ["inner done", ["inner"]]
    assert (tmp_path / "w" / "inner" / "a.txt").read_text() == "x"
    client.close()


def test_the_conversation_so_far_stands_before_the_turn():
    client = LollmsClient()
    client.llm = ScriptedLLM(["You said Ada."])
    before = [{"role": "user", "content": "I am Ada."}, {"role": "assistant", "content": "Hello Ada."}]
    list(client.run_turn("Who am I?", system_prompt="Be short.", messages=before))
    assert [m["content"] for m in client.llm.requests[0].messages] == ["Be short.", "I am Ada.", "Hello Ada.", "Who am I?"]


def test_generating_calls_go_to_the_model():
    client = LollmsClient()
    client.llm = ScriptedLLM(["one", "two"])
    assert client.generate_text("x") == "one"
    assert client.generate_from_messages([{"role": "user", "content": "x"}]) == "two"
    assert client.count_tokens("abc") == 3
    assert client.detokenize(client.tokenize("abc")) == "abc"


def test_events_are_plain_data_for_json():
    client = LollmsClient()
    client.llm = ScriptedLLM([call("tool_a", x=1), "ok"])
    client.tools = ScriptedTools({"tool_a": 1})
    data = [e.to_dict() for e in client.run_turn("x")]
    assert data[0]["event"] == "turn_started"
    started = next(d for d in data if d["event"] == "tool_started")
    assert started["call"]["arguments"] == {"x": 1}
    assert isinstance(ev.TurnEnded("completed", "", 0).to_dict()["usage"], dict)


@pytest.mark.req("CT-D.1", "DG-core.6")
def test_the_text_processor_stands_on_the_model_and_its_names_on_the_client():
    client = LollmsClient()
    client.llm = ScriptedLLM(['{"answer": "yes"}', "```python\nprint(1)\n```"] * 2)
    for processor in (client.llm.tp, client):
        assert processor.yes_no("Is it?") is True
        assert processor.generate_code("Print one.").strip() == "print(1)"
        assert processor.remove_thinking_blocks("<think>hm</think>Hello") == "Hello"
        for name in ("sequential_summarize", "deep_analyze", "generate_codes", "multichoice_question", "multichoice_ranking"):
            assert callable(getattr(processor, name))
    assert LollmsClient().extract_thinking_blocks("<think>hm</think>Hello") == ["hm"], "splitting a text needs no model"
    for name in ("generate_structured_content", "generate_structured_content_pydantic", "long_context_processing"):
        assert callable(getattr(client, name))


def test_chat_answers_a_discussion_as_it_stands():
    class Discussion:
        def export(self, fmt):
            assert fmt == "openai_chat"
            return [{"role": "user", "content": "Hi"}]

    client = LollmsClient()
    client.llm = ScriptedLLM(["Hello"])
    assert client.chat(Discussion()) == "Hello"
    assert client.llm.requests[0].messages == [{"role": "user", "content": "Hi"}]


@pytest.mark.req("CT-C.8", "DG-core.3", "DG-video.1")
def test_generate_text_takes_the_documented_keywords_and_hands_them_to_the_model():
    names = [
        "prompt", "images", "videos", "system_prompt", "n_predict", "stream", "temperature", "top_k", "top_p", "repeat_penalty",
        "repeat_last_n", "seed", "streaming_callback", "think", "reasoning_effort",
    ]  # fmt: skip
    parameters = inspect.signature(LollmsClient().generate_text).parameters
    assert list(parameters)[: len(names)] == names
    assert LollmsClient.generate is LollmsClient.generate_text
    client = LollmsClient()
    client.llm = ScriptedLLM(["Hello"], capabilities=Capabilities(vision=True, video=True))
    sampling = {
        "n_predict": 1,
        "temperature": 0.2,
        "top_k": 3,
        "top_p": 0.4,
        "repeat_penalty": 1.5,
        "repeat_last_n": 6,
        "seed": 7,
    }
    url = "https://example.org/a"
    answer = client.generate("Hi", [url], [url], "Be kind.", stream=True, think=True, reasoning_effort="low", **sampling)
    assert answer == "Hello"
    asked = client.llm.requests[0]
    assert asked.messages[0] == {"role": "system", "content": "Be kind."}
    assert [part["type"] for part in asked.messages[1]["content"]] == ["text", "image_url", "video_url"]
    assert {name: getattr(asked.sampling, name) for name in sampling} == sampling
    assert (asked.think, asked.reasoning_effort) == (True, "low")


@pytest.mark.req("CT-C.9")
def test_the_other_calls_on_the_active_model_are_there():
    class Known(ScriptedLLM):
        def embed(self, text, **kwargs):
            return [float(len(text))]

    client = LollmsClient()
    client.llm = Known(["one", "two"], capabilities=Capabilities(context_size=99, vision=True))
    messages = [{"role": "user", "content": "Hi"}]
    assert client.generate_from_messages(messages, temperature=0.1) == "one"
    assert client.llm.requests[0].messages == messages
    assert client.detokenize(client.tokenize("abc")) == "abc"
    assert (client.count_tokens("abc"), client.embed("abc"), client.get_ctx_size()) == (3, [3.0], 99)
    assert client.list_models() == [{"model_name": "scripted"}]
    assert (client.has_vision_capability(), client.has_video_capability()) == (True, False)
    client.cancel()
    assert client.llm.is_cancelled()
    assert client.chat(type("Discussion", (), {"export": lambda self, fmt: messages})()) == "two"


@pytest.mark.req("CT-C.17", "DG-structure.14")
def test_the_completion_formats_have_their_documented_values():
    from lollms_client import ELF_COMPLETION_FORMAT, MSG_TYPE, lollms_types

    assert (ELF_COMPLETION_FORMAT.Instruct.value, ELF_COMPLETION_FORMAT.Chat.value) == (0, 1)
    assert (lollms_types.MSG_TYPE, lollms_types.ELF_COMPLETION_FORMAT) == (MSG_TYPE, ELF_COMPLETION_FORMAT)


@pytest.mark.req("DG-structure.5", "DG-structure.15", "DG-utils.1")
def test_documented_modules_are_where_they_are_documented_and_the_former_ones_are_gone():
    from lollms_client import lollms_core, lollms_utilities

    assert lollms_core.LollmsClient is LollmsClient
    assert callable(LollmsClient.generate_with_mcp)
    assert callable(LollmsClient.sequential_summarize)
    assert callable(lollms_utilities.normalize_video_input)
    for gone in ("lollms_functions", "lollms_tasks"):
        assert importlib.util.find_spec(f"lollms_client.{gone}") is None
