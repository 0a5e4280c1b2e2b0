"""The llama_cpp_server binding: what the server says about itself, its tokenizer, and requests without a model's name."""

from __future__ import annotations

import pytest
from wire_kit import says, status, whole

from lollms_client._bindings.request import ChatRequest, Sampling
from lollms_client.errors import BackendProtocolError, BackendUnavailableError
from lollms_client.llm_bindings.llama_cpp_server import LlamaCppServerBinding

PROPS = {
    "default_generation_settings": {"n_ctx": 4096},
    "total_slots": 2,
    "model_alias": "toy",
    "model_path": "/models/toy.gguf",
    "modalities": {"vision": True, "audio": False},
    "chat_template_caps": {"supports_tool_calls": True, "supports_parallel_tool_calls": False},
}


@pytest.fixture
def bound(server):
    every: list[LlamaCppServerBinding] = []

    def make(**settings) -> LlamaCppServerBinding:
        every.append(LlamaCppServerBinding(**{"base_url": server.root, "retries": 0, **settings}))
        return every[-1]

    yield make
    for made in every:
        made.close()


def test_it_goes_to_the_usual_address_where_none_is_given_and_every_described_setting_is_a_keyword():
    binding = LlamaCppServerBinding()
    assert binding.base_url == "http://127.0.0.1:8080/v1"
    assert binding.native.base_url == "http://127.0.0.1:8080"
    described = binding.description
    for parameter in described.global_input_parameters + described.model_input_parameters:
        LlamaCppServerBinding(**{parameter.name: parameter.default})


def test_what_the_server_says_about_itself_is_asked_once_and_what_was_said_goes_over_it(server, bound):
    server.on("/props", whole(PROPS))
    binding = bound()
    assert server.asked == []
    able = binding.capabilities
    assert (able.context_size, able.vision, able.video) == (4096, True, False)
    assert able.json_schema
    assert not able.native_tools, "that a template renders tools does not say that calls come back"
    assert binding.get_ctx_size() == 4096
    assert binding.get_model_info()["name"] == "toy"
    assert binding.ps() == [{"model_name": "toy", "path": "/models/toy.gguf", "context_size": 4096, "n_parallel": 2}]
    assert len(server.asked) == 1
    said = bound(capabilities={"native_tools": True, "context_size": 100}).capabilities
    assert (said.native_tools, said.context_size, said.vision) == (True, 100, True)


@pytest.mark.parametrize("answer", [status(404), status(503), whole(b"x"), whole([1])])
def test_a_server_that_does_not_say_has_what_was_configured_and_is_not_asked_at_every_turn(server, bound, answer):
    server.on("/props", answer)
    binding = bound(ctx_size=2048)
    for _ in range(3):
        assert binding.capabilities.json_schema
        assert not binding.capabilities.vision
    assert binding.get_ctx_size() == 2048
    assert binding.ps() == []
    assert len(server.asked) == 1


def test_loading_waits_for_the_server_and_looks_anew_at_what_it_says(server, bound):
    server.on("/props", status(503), whole(PROPS))
    server.on("/health", status(503, {"error": {"message": "Loading model"}}, Retry_After="0"), whole({"status": "ok"}))
    binding = bound(retries=1)
    assert not binding.capabilities.vision
    assert binding.load_model() is True
    assert binding.capabilities.vision
    server.on("/health", status(503, {"error": {"message": "Loading model"}}))
    with pytest.raises(BackendUnavailableError, match="Loading model"):
        bound().load_model()


def test_tokens_are_the_server_s_own(server, bound):
    server.on("/tokenize", whole({"tokens": [1, 2, 3]}))
    server.on("/detokenize", whole({"content": "abc"}))
    binding = bound()
    assert binding.tokenize("abc") == [1, 2, 3]
    assert binding.count_tokens("abc") == 3
    assert binding.detokenize([1, 2, 3]) == "abc"
    assert server.asked[0].body == {"content": "abc", "add_special": False}
    server.on("/tokenize", whole({"x": 1}))
    with pytest.raises(BackendProtocolError, match="without 'tokens'"):
        binding.tokenize("abc")


def test_a_server_without_a_tokenizer_leaves_counting_to_the_estimate(server, bound):
    assert bound().count_tokens("12345678") == 2


def test_a_request_needs_no_model_and_asks_for_signs_of_life(server, bound):
    server.on("/props", whole(PROPS))
    server.chats(says("a"))
    binding = bound()
    for request in (
        ChatRequest([]),
        ChatRequest([], Sampling(seed=1)),
        ChatRequest([], Sampling(seed=1), session="s"),
    ):
        assert "a" in list(binding.stream(request))
    assert all("model" not in body for body in server.bodies)
    assert all(body["return_progress"] for body in server.bodies)
    assert [body["cache_prompt"] for body in server.bodies] == [True, False, True]
