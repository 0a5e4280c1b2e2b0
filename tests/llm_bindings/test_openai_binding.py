"""The openai binding: where it goes, what it sends to whom, and the calls beside answers."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap

import pytest
from wire_kit import CHAT, says, status, whole

from lollms_client import LollmsClient, LollmsLLMBinding
from lollms_client._bindings.registry import create, get_binding_desc, list_bindings
from lollms_client._bindings.request import ChatRequest, Sampling
from lollms_client.errors import BackendProtocolError, BackendRefusedError, BackendUnavailableError, ConfigurationError
from lollms_client.llm_bindings.openai import OpenAIBinding


@pytest.fixture
def bound(server):
    every: list[OpenAIBinding] = []

    def make(model_name: str | None = "m", **settings) -> OpenAIBinding:
        every.append(OpenAIBinding(model_name, base_url=server.url, retries=0, **settings))
        return every[-1]

    yield make
    for made in every:
        made.close()


def test_constructing_asks_nobody_and_imports_no_sdk_and_no_http():
    code = """
        import sys
        from lollms_client.llm_bindings.openai import OpenAIBinding
        binding = OpenAIBinding("gpt-x", api_key="k")
        assert binding.base_url == "https://api.openai.com/v1"
        assert binding.capabilities.native_tools and binding.capabilities.vision
        assert not {"openai", "httpx", "asyncio"} & set(sys.modules), sorted(sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=50, check=False)
    assert done.stderr == ""


def test_it_is_found_by_name_and_describes_itself():
    assert {"openai", "llama_cpp_server"} <= set(list_bindings("llm"))
    description = get_binding_desc("openai", "llm")
    assert {
        "title",
        "author",
        "version",
        "description",
        "global_input_parameters",
        "model_input_parameters",
    } <= description.keys()
    assert description["requirements"] == []


def test_every_setting_of_the_description_is_a_keyword_and_every_keyword_is_described():
    described = OpenAIBinding("m").description
    parameters = described.global_input_parameters + described.model_input_parameters
    for parameter in parameters:
        OpenAIBinding(**{"model_name": "m", parameter.name: parameter.default})
    for preset in described.presets:
        OpenAIBinding(**preset.parameters)
    own = {p for c in (OpenAIBinding, *OpenAIBinding.__mro__[1:3]) for p in inspect.signature(c.__init__).parameters}
    assert own - {"self", "settings", "config", "binding_name", "n_threads"} <= {p.name for p in parameters}


def test_a_setting_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ConfigurationError, match=r"no setting 'temprature'.*temperature"):
        create("llm", "openai", {"temprature": 1})


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ({"base_url": "http://h:8000"}, "http://h:8000/v1"),
        ({"base_url": "http://h:8000/v1/"}, "http://h:8000/v1"),
        ({"base_url": "https://h/openai/deployments/x"}, "https://h/openai/deployments/x"),
        ({"host_address": "localhost:1234"}, "http://localhost:1234/v1"),
        ({}, "https://api.openai.com/v1"),
    ],
)
def test_an_address_gets_a_scheme_and_a_path_where_it_has_none(said, url):
    assert OpenAIBinding("m", **said).base_url == url


@pytest.mark.parametrize("said", ["ftp://h", "http://", "://"])
def test_what_is_no_address_is_refused(said):
    with pytest.raises(ConfigurationError, match="is no address of a server"):
        OpenAIBinding("m", base_url=said)


def test_key_and_address_come_from_the_environment_where_they_are_not_given(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.chats(says("a"))
    for settings in ({}, {"api_key": "given"}, {"service_key": "older-name", "organization": "org", "headers": {"X-More": "1"}}):
        with LollmsClient("openai", llm_binding_config={"model_name": "m", **settings}) as client:
            assert client.generate_text("hello") == "a"
    keys = [asked.headers["authorization"] for asked in server.asked]
    assert keys == ["Bearer from-environment", "Bearer given", "Bearer older-name"]
    assert server.asked[2].headers["openai-organization"] == "org"
    assert server.asked[2].headers["x-more"] == "1"


def test_openai_s_own_server_gets_no_key_that_it_does_not_know():
    from lollms_client._openai_compat.wire import chat_body

    asked = ChatRequest([], Sampling(9, 0.1, 40, 0.9, 1.1, 64, 1), reasoning_effort="high")
    own, other = OpenAIBinding("m"), OpenAIBinding("m", base_url="http://127.0.0.1:8000/v1")
    assert chat_body(asked, "m", wire=own._wire).keys() == {
        "model", "messages", "stream", "stream_options", "max_completion_tokens", "temperature", "top_p", "seed", "reasoning_effort",
    }  # fmt: skip
    assert {"max_tokens", "top_k", "repeat_penalty", "chat_template_kwargs"} <= chat_body(asked, "m", wire=other._wire).keys()


def test_without_a_model_s_name_nothing_is_sent_and_the_error_says_what_to_do(server, bound):
    with pytest.raises(ConfigurationError, match="needs a model_name"):
        bound(None).generate_text("hello")
    assert server.asked == []


def test_settings_hold_where_a_call_leaves_them_open(server, bound):
    server.chats(says("a"))
    bound(temperature=0.5, n_predict=7).generate_text("hello", temperature=0.1)
    assert (server.bodies[0]["temperature"], server.bodies[0]["max_tokens"]) == (0.1, 7)


def test_streaming_and_not_streaming_give_the_same_text(server, bound):
    server.chats(says("a", "b", "c"))
    pieces: list[str] = []
    whole_text = bound().generate_text("hello", streaming_callback=lambda chunk, kind: pieces.append(chunk))
    assert pieces == ["a", "b", "c"]
    assert bound().generate_text("hello", stream=False) == whole_text == "abc"


@pytest.mark.parametrize("form", ["data", "models", "bare"])
def test_models_are_listed_in_whatever_form_the_server_has(server, bound, form):
    rows = [{"id": "a", "owned_by": "o", "created": 5, "max_model_len": 4096}, {"name": "b"}, "c"]
    server.on("/v1/models", whole(rows if form == "bare" else {form: rows}))
    listed = bound().list_models()
    assert listed[0] == {"model_name": "a", "owned_by": "o", "created": 5, "context_size": 4096}
    assert [row["model_name"] for row in listed] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "answer", [status(404), status(405), status(501), whole(b"<html>"), whole({"data": []}), whole({"x": 1})]
)
def test_a_server_without_a_list_has_the_model_that_was_named(server, bound, answer):
    server.on("/v1/models", answer)
    assert bound().list_models() == [{"model_name": "m"}]
    assert bound(None).list_models() == []


def test_a_list_that_was_refused_is_an_error(server, bound):
    server.on("/v1/models", status(401))
    with pytest.raises(BackendRefusedError, match="401"):
        bound().list_models()


def test_nobody_there_is_an_error_that_names_the_address():
    with pytest.raises(BackendUnavailableError, match=r"Nothing answers at http://127\.0\.0\.1:9"):
        OpenAIBinding("m", base_url="http://127.0.0.1:9", retries=0).generate_text("hello")


def test_embeddings_come_in_the_order_of_the_texts_for_one_and_for_several(server, bound):
    rows = [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]
    server.on("/v1/embeddings", whole({"data": rows}), whole({"data": rows[:1]}))
    binding = bound(embedding_model="e")
    assert binding.embed(["a", "b"]) == [[1.0], [2.0]]
    assert binding.embed("a", dimensions=1, model_name="other") == [2.0]
    assert binding.embed([]) == []
    assert [asked.body for asked in server.asked] == [
        {"model": "e", "input": ["a", "b"]}, {"model": "other", "input": "a", "dimensions": 1},
    ]  # fmt: skip


@pytest.mark.parametrize("answer", [{"data": []}, {"data": [{"x": 1}]}, {}, "x", [1]])
def test_what_is_no_embedding_is_a_protocol_error(server, bound, answer):
    server.on("/v1/embeddings", whole(answer))
    with pytest.raises(BackendProtocolError, match="not 1 embeddings"):
        bound().embed("a")


def test_facts_that_are_said_go_over_those_of_the_vendor(bound):
    binding = bound(capabilities={"vision": False, "context_size": 9000, "reasoning_efforts": ["low", "high"]})
    assert not binding.capabilities.vision
    assert binding.capabilities.native_tools
    assert binding.capabilities.reasoning_efforts == ("low", "high")
    assert binding.get_ctx_size() == binding.get_model_info()["context_size"] == 9000
    with pytest.raises(ConfigurationError, match="no capability 'tool'"):
        bound(capabilities={"tool": True})
    with pytest.raises(BackendRefusedError, match="takes no images"):
        binding.generate_text("what is this?", images=["https://example.org/a.png"])


def test_another_model_can_be_used_from_now_on(server, bound):
    server.chats(says("a"))
    binding = bound()
    assert binding.load_model("n") is True
    binding.generate_text("hello")
    assert server.bodies[0]["model"] == "n"
    assert binding.count_tokens("12345678") == 2


def test_a_file_of_certificates_that_is_none_is_our_error(tmp_path):
    from lollms_client.errors import LollmsError

    binding = OpenAIBinding("m", base_url="https://127.0.0.1:9", certificate_file=str(tmp_path / "gone.pem"), retries=0)
    with pytest.raises(LollmsError):
        binding.generate_text("hello")


@pytest.mark.req("DG-video.1")
def test_every_llm_binding_takes_videos():
    from lollms_client._bindings.registry import load

    classes = [LollmsLLMBinding, *(load("llm", name) for name in list_bindings("llm"))]
    assert len(classes) > 2
    for cls in classes:
        assert inspect.signature(cls.generate_text).parameters["videos"].default is None


def test_the_path_of_a_request_is_that_of_the_protocol(server, bound):
    server.chats(says("a"))
    bound().generate_text("hello")
    assert (server.asked[0].method, server.asked[0].path) == ("POST", CHAT)
