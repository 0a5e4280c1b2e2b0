"""The LiteLLM proxy in front of a real server: one more server of the protocol, with edges of its own.

LOLLMS_TEST_LITELLM names the program `litellm` (of an environment with `litellm[proxy]`).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lollms_client import LollmsClient
from lollms_client._bindings.request import ChatRequest, Sampling
from lollms_client._http import CancelToken
from lollms_client._http.client import HttpClient
from lollms_client._stream.deltas import FinishDelta
from lollms_client.errors import BackendError, BackendRefusedError, CancelledError
from lollms_client.events import Usage
from lollms_client.llm_bindings.embedded import EmbeddedBinding
from lollms_client.llm_bindings.openai import OpenAIBinding

pytestmark = [pytest.mark.heavy, pytest.mark.embedded, pytest.mark.timeout(600)]

KEY = "sk-proxy-000001"
CONFIG = """
model_list:
  - model_name: small
    litellm_params: {{model: openai/{model}, api_base: "{url}", api_key: "{key}"}}
  - model_name: nowhere
    litellm_params: {{model: openai/x, api_base: "http://127.0.0.1:9/v1", api_key: k}}
litellm_settings: {{drop_params: true, telemetry: false, num_retries: 0}}
general_settings: {{master_key: "{proxy_key}"}}
"""
SCHEMA = {
    "type": "object",
    "properties": {"size": {"enum": ["small", "large"]}},
    "required": ["size"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def proxy(models, small, tmp_path_factory) -> Iterator[str]:
    program = os.environ.get("LOLLMS_TEST_LITELLM")
    if not program:
        pytest.skip("LOLLMS_TEST_LITELLM names no litellm program (pip install 'litellm[proxy]' into an environment of its own)")
    owner = EmbeddedBinding(small, models_dir=models, ctx_size=2048)
    owner.load_model()
    engine = owner._engine(CancelToken()).http
    folder = tmp_path_factory.mktemp("litellm")
    key = engine._headers["Authorization"].split()[-1]
    (folder / "config.yaml").write_text(CONFIG.format(model=small, url=f"{engine.base_url}/v1", key=key, proxy_key=KEY))
    with _running(program, folder) as url:
        yield url
    owner.close()


@contextlib.contextmanager
def _running(program: str, folder: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(folder)}
    argv = [program, "--config", str(folder / "config.yaml"), "--host", "127.0.0.1", "--port", str(port)]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(argv, cwd=folder, env=environment, stdout=log, stderr=log) as server,
    ):
        try:
            _await(f"http://127.0.0.1:{port}", server, folder / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


def _await(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    http = HttpClient(url, trust_env=False)
    deadline = time.monotonic() + 180
    with contextlib.closing(http):
        while True:
            try:
                http.get_json("/health/liveliness", read_timeout=5)
            except BackendError:
                if server.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"litellm did not come up:\n{log.read_text()[-3000:]}")
                CancelToken().wait(0.5)
            else:
                return


@pytest.fixture
def binding(proxy) -> Iterator[OpenAIBinding]:
    made = OpenAIBinding("small", base_url=proxy, api_key=KEY)
    yield made
    made.close()


def _ask(text: str = "Count from 1 to 20.", n: int = 16, **more: Any) -> ChatRequest:
    return ChatRequest([{"role": "user", "content": text}], Sampling(n_predict=n, temperature=0.0), **more)


def _text(deltas) -> str:
    return "".join(d for d in deltas if isinstance(d, str))


def test_an_answer_streams_through_the_proxy_and_says_what_it_cost(binding):
    deltas = list(binding.stream(_ask()))
    assert len([d for d in deltas if isinstance(d, str)]) > 5
    assert any(isinstance(d, FinishDelta) for d in deltas)
    assert [d.completion_tokens for d in deltas if isinstance(d, Usage)] == [16]


def test_a_schema_a_tool_of_a_hard_name_and_an_effort_go_through(binding):
    assert json.loads(_text(binding.stream(_ask("Tell me a story.", 40, json_schema=SCHEMA))))["size"] in ("small", "large")
    tool = {"name": "math::add numbers", "description": "Adds.", "input_schema": {}}
    assert list(binding.stream(_ask(n=4, tools=(tool,))))
    assert _text(binding.stream(_ask(n=4, reasoning_effort="high")))
    assert _text(binding.stream(_ask(n=4, reasoning_effort="none")))


def test_models_and_embeddings_come_through(binding):
    assert {row["model_name"] for row in binding.list_models()} == {"small", "nowhere"}
    one, two = binding.embed(["a cat", "a dog"])
    assert len(one) == len(two) > 100


def test_not_streaming_gives_the_same_answer(binding, proxy):
    whole = OpenAIBinding("small", base_url=proxy, api_key=KEY, wire={"streaming": False})
    with contextlib.closing(whole):
        settings = {"n_predict": 16, "temperature": 0.0}
        assert whole.generate_text("Count from 1 to 20.", **settings) == binding.generate_text("Count from 1 to 20.", **settings)


def test_errors_of_the_proxy_and_of_what_stands_behind_it_are_ours(proxy):
    for model, key, error in (
        ("small", "sk-wrong-00000", BackendRefusedError),
        ("gone", KEY, BackendRefusedError),
        ("nowhere", KEY, BackendError),
    ):
        asking = OpenAIBinding(model, base_url=proxy, api_key=key, retries=0)
        with contextlib.closing(asking), pytest.raises(error) as caught:
            asking.generate_text("hello")
        assert "sk-wrong-00000" not in str(caught.value)


def test_cancel_ends_a_request_at_once_and_the_next_one_is_served(binding):
    endless = _ask(n=1500, json_schema={"type": "array", "items": {"type": "integer"}, "minItems": 1000})
    at: list[float] = []

    def cancel() -> None:
        CancelToken().wait(1.0)
        at.append(time.monotonic())
        binding.cancel()

    threading.Thread(target=cancel, daemon=True).start()
    with pytest.raises(CancelledError):
        list(binding.stream(endless))
    assert time.monotonic() - at[0] < 0.5
    binding.reset_cancel()
    assert _text(binding.stream(_ask(n=4)))


def test_a_turn_is_played_through_the_proxy(proxy):
    config = {"model_name": "small", "base_url": proxy, "api_key": KEY}
    with LollmsClient("openai", llm_binding_config=config) as client:
        end = list(client.run_turn("Say hello.", n_predict=8, temperature=0.0))[-1]
    assert end.status == "completed"
    assert end.response
