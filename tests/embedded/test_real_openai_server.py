"""A real OpenAI-compatible server (llama.cpp's, with a small model), spoken to by the bindings as any server is."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lollms_client import LollmsClient
from lollms_client._bindings.request import ChatRequest, Sampling
from lollms_client._http import CancelToken
from lollms_client._stream.deltas import FinishDelta
from lollms_client.errors import BackendRefusedError, CancelledError, ContextWindowError
from lollms_client.events import Usage
from lollms_client.llm_bindings.embedded import EmbeddedBinding
from lollms_client.llm_bindings.llama_cpp_server import LlamaCppServerBinding
from lollms_client.llm_bindings.openai import OpenAIBinding
from lollms_client.models import catalogue

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(600)]

WITH_TOOLS = ("qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct")
ADD = {
    "name": "math::add numbers." + "x" * 60,
    "description": "Adds two integers.",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 30}, "size": {"enum": ["small", "large"]}},
    "required": ["city", "size"],
    "additionalProperties": False,
}


@dataclass
class RealServer:
    """A server that runs: its address, its key, and the name of its model."""

    url: str
    key: str
    model: str


@pytest.fixture(scope="module")
def real(models, small) -> Iterator[RealServer]:
    owner = EmbeddedBinding(small, models_dir=models, ctx_size=2048)
    owner.load_model()
    http = owner._engine(CancelToken()).http
    yield RealServer(http.base_url, http._headers["Authorization"].split()[-1], small)
    owner.close()


BINDINGS = {"openai": OpenAIBinding, "llama_cpp_server": LlamaCppServerBinding}


@pytest.fixture(params=BINDINGS)
def spoken(request, real) -> Iterator[Any]:
    made = BINDINGS[request.param](real.model, base_url=real.url, api_key=real.key)
    yield made
    made.close()


def _ask(text: str = "Count from 1 to 20.", n: int = 16, **more: Any) -> ChatRequest:
    return ChatRequest([{"role": "user", "content": text}], Sampling(n_predict=n, temperature=0.0), **more)


def _usage(deltas) -> Usage:
    return next(d for d in deltas if isinstance(d, Usage))


def _text(deltas) -> str:
    return "".join(d for d in deltas if isinstance(d, str))


def test_an_answer_streams_and_says_what_it_cost(spoken):
    deltas = list(spoken.stream(_ask()))
    assert len([d for d in deltas if isinstance(d, str)]) > 5
    assert FinishDelta("length") in deltas
    usage = _usage(deltas)
    assert usage.completion_tokens == 16
    assert usage.prompt_tokens > 5


def test_not_streaming_gives_the_same_answer(spoken, real):
    whole = type(spoken)(real.model, base_url=real.url, api_key=real.key, wire={"streaming": False})
    settings = {"n_predict": 16, "temperature": 0.0, "seed": 1}
    try:
        assert whole.generate_text("Count from 1 to 20.", **settings) == spoken.generate_text("Count from 1 to 20.", **settings)
    finally:
        whole.close()


def test_a_schema_binds_the_answer(spoken):
    value = json.loads(_text(spoken.stream(_ask("Tell me a story. No JSON.", 80, json_schema=SCHEMA))))
    assert set(value) == {"city", "size"}
    assert value["size"] in ("small", "large")


@pytest.mark.parametrize("asked", [{"reasoning_effort": "high"}, {"reasoning_effort": "none"}, {"think": True}])
def test_what_is_said_about_reasoning_is_taken(spoken, asked):
    assert _text(spoken.stream(_ask(n=4, **asked)))


def test_tools_whatever_they_are_called_are_taken_and_told_where_the_model_s_template_has_them(models):
    there = [name for name in WITH_TOOLS if catalogue(models)[name].path(models).is_file()]
    if not there:
        pytest.skip(f"none of the models whose template has tools is there: {', '.join(WITH_TOOLS)}")
    owner = EmbeddedBinding(there[0], models_dir=models, ctx_size=2048)
    try:
        owner.load_model()
        http = owner._engine(CancelToken()).http
        for kind in BINDINGS.values():
            binding = kind(there[0], base_url=http.base_url, api_key=http._headers["Authorization"].split()[-1])
            with contextlib.closing(binding):
                plain, told = (_usage(binding.stream(_ask(n=4, tools=tools))) for tools in ((), (ADD,)))
                assert told.prompt_tokens > plain.prompt_tokens + 50
    finally:
        owner.close()


def test_embeddings_are_vectors_of_one_length_in_the_order_of_the_texts(spoken):
    one = spoken.embed("a cat")
    several = spoken.embed(["a cat", "a dog", "the stock market"])
    assert len(one) == len(several[0]) > 100
    assert several[0] == pytest.approx(one, abs=1e-2)
    assert several[0] != several[2]


def test_the_model_is_listed(spoken, real):
    assert real.model in [row["model_name"] for row in spoken.list_models()]


def test_a_wrong_key_is_refused(real):
    binding = OpenAIBinding(real.model, base_url=real.url, api_key="wrong-key-0000")
    with pytest.raises(BackendRefusedError, match="401") as caught:
        binding.generate_text("hello")
    assert "wrong-key-0000" not in str(caught.value)
    binding.close()


def test_a_prompt_that_is_too_long_says_so_with_both_figures(spoken):
    with pytest.raises(ContextWindowError) as caught:
        spoken.generate_text("word " * 4000)
    assert caught.value.context_size == 2048


def test_cancel_ends_an_answer_at_once_and_the_server_goes_on(spoken):
    endless = _ask(n=1500, json_schema={"type": "array", "items": {"type": "integer"}, "minItems": 1000})
    for text in ("Go.", " ".join(f"w{i % 97}" for i in range(550))):  # in the answer, and in the middle of the prompt
        begun, took = threading.Event(), []

        def cancel(begun: threading.Event = begun, took: list[float] = took) -> None:
            begun.wait(60)
            CancelToken().wait(0.3)
            took.append(time.monotonic())
            spoken.cancel()

        threading.Thread(target=cancel, daemon=True).start()
        begun.set()
        messages = [{"role": "user", "content": text}]
        with pytest.raises(CancelledError):
            list(spoken.stream(ChatRequest(messages, endless.sampling, json_schema=endless.json_schema)))
        assert time.monotonic() - took[0] < 0.5
        spoken.reset_cancel()
    assert _text(spoken.stream(_ask(n=4)))


def test_the_server_says_its_context_and_its_tokens_are_its_own(real):
    binding = LlamaCppServerBinding(base_url=real.url, api_key=real.key)
    assert binding.get_ctx_size() == 2048
    assert binding.load_model() is True
    assert binding.get_model_info()["name"]
    text = "Hello, wörld! <|im_end|>"
    tokens = binding.tokenize(text)
    assert binding.detokenize(tokens) == text
    assert binding.count_tokens(text) == len(tokens)
    assert binding.ps()[0]["context_size"] == 2048
    binding.close()


def test_a_client_by_name_plays_a_turn_against_it(real, tmp_path):
    config = {"model_name": real.model, "base_url": real.url, "api_key": real.key}
    with LollmsClient("llama_cpp_server", llm_binding_config=config) as client:
        end = list(client.run_turn("Say hello.", n_predict=8, temperature=0.0))[-1]
    assert end.response
    assert end.usage.completion_tokens <= 8
