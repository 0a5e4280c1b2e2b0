"""What Ollama servers, and what stands before them, get wrong, over real sockets: the documented error, or recovery."""

from __future__ import annotations

import dataclasses
import json
import threading
import time

import pytest
from ollama_kit import OllamaServer, done, holds, ndjson, part, refusal, says
from wire_kit import breaks, status, whole

from lollms_client._bindings.request import ChatRequest
from lollms_client._http import CancelToken
from lollms_client._stream.deltas import FinishDelta
from lollms_client.errors import (
    BackendError,
    BackendProtocolError,
    BackendRefusedError,
    BackendTimeoutError,
    BackendUnavailableError,
    CancelledError,
    ContextWindowError,
)
from lollms_client.events import Usage
from lollms_client.llm_bindings.ollama import OllamaBinding

HELLO = ChatRequest([{"role": "user", "content": "hello"}])


@pytest.fixture
def bound(ollama):
    every: list[OllamaBinding] = []

    def make(**settings) -> OllamaBinding:
        made = OllamaBinding("toy", base_url=ollama.root, **settings)
        made.retry = dataclasses.replace(made.retry, first_wait=0.0)
        every.append(made)
        return made

    yield make
    for made in every:
        made.close()


def _chats(server: OllamaServer) -> int:
    return len(server.bodies)


@pytest.mark.parametrize("fault", [breaks, *(refusal(c, "busy") for c in (429, 500, 502, 503)), status(503, b"<html>")])
def test_before_the_first_byte_a_fault_that_may_pass_is_asked_again(ollama, bound, fault):
    ollama.chats(fault, fault, says("hel", "lo"))
    assert list(bound().stream(HELLO)) == ["hel", "lo", FinishDelta("stop"), Usage(7, 3)]
    assert _chats(ollama) == 3


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        (refusal(500, "llama runner process has terminated"), BackendError, "500: llama runner process has terminated"),
        (breaks, BackendUnavailableError, "closed the connection"),
    ],
)
def test_a_fault_that_does_not_pass_is_raised_after_the_last_retry(ollama, bound, fault, error, said):
    ollama.chats(fault)
    with pytest.raises(error, match=said):
        list(bound().stream(HELLO))
    used = fault is breaks  # on the connection that had told about the model: made once more on another, which is no retry
    assert _chats(ollama) == 3 + used


BEHIND = {
    "error": {
        "code": 400,
        "message": "request (2622 tokens) exceeds the available context size (512 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 2622,
        "n_ctx": 512,
    }
}


def test_a_prompt_that_is_too_long_is_an_error_with_its_figures_and_not_cut_in_silence(ollama, bound):
    ollama.chats(refusal(400, json.dumps(BEHIND)))  # newer servers hand on the error of the engine behind them as a text
    with pytest.raises(ContextWindowError, match=r"2,622 tokens long and the context holds 512") as caught:
        list(bound().stream(HELLO))
    assert (caught.value.prompt_tokens, caught.value.context_size) == (2622, 512)
    assert (ollama.bodies[0]["truncate"], ollama.bodies[0]["shift"]) == (False, False)
    assert _chats(ollama) == 1


@pytest.mark.parametrize("words", ["{", "{}", '{"error": "boom"}', '{"error": "{"}'])
def test_an_error_inside_an_error_is_read_as_far_as_it_goes(ollama, bound, words):
    ollama.chats(refusal(400, words))
    with pytest.raises(BackendRefusedError, match="boom" if "boom" in words else r"\{"):
        list(bound().stream(HELLO))


@pytest.mark.parametrize(
    ("code", "words", "error"),
    [
        (400, '"toy" does not support chat', BackendRefusedError),
        (401, "unauthorized", BackendRefusedError),
        (400, "the input length exceeds the context length", ContextWindowError),
    ],
)
def test_a_refusal_is_raised_at_once_with_the_server_s_words(ollama, bound, code, words, error):
    ollama.chats(refusal(code, words))
    with pytest.raises(error, match=words):
        list(bound().stream(HELLO))
    assert _chats(ollama) == 1


@pytest.mark.parametrize(
    ("rest", "error", "said"),
    [
        (ndjson(part("a"), end=False), BackendUnavailableError, "closed the connection"),
        (ndjson(part("a")), BackendProtocolError, "in the middle"),
        (ndjson(part("a"), b'{"message": {"content": "b'), BackendProtocolError, "not a part of an answer"),
        (ndjson(part("a"), b"<html>\n"), BackendProtocolError, "<html>"),
        (
            ndjson(part("a"), {"error": "an error was encountered while running the model"}),
            BackendError,
            "an error was encountered",
        ),
    ],
)
def test_what_goes_wrong_after_the_first_byte_is_raised_after_what_came_and_never_asked_again(ollama, bound, rest, error, said):
    ollama.chats(rest)
    deltas = bound().stream(HELLO)
    assert next(deltas) == "a"
    with pytest.raises(error, match=said):
        list(deltas)
    assert _chats(ollama) == 1


def test_a_whole_answer_from_something_that_does_not_stream_is_understood(ollama, bound):
    ollama.chats(whole({**done(), "message": {"role": "assistant", "content": "a"}}))
    assert list(bound().stream(HELLO)) == ["a", FinishDelta("stop"), Usage(7, 3)]


def test_an_answer_that_is_kept_open_after_it_was_called_done_ends_all_the_same(ollama, bound):
    ollama.chats(holds(threading.Event(), part("a"), done()))
    began = time.monotonic()
    assert "a" in list(bound().stream(HELLO))
    assert time.monotonic() - began < 10


def test_a_connection_is_used_again_after_a_stream(ollama, bound):
    ollama.chats(says("a"))
    binding = bound()
    for _ in range(3):
        list(binding.stream(HELLO))
    assert ollama.connections == 1


def test_silence_is_a_timeout_and_not_asked_again(ollama, bound):
    ollama.chats(holds(threading.Event(), head=False))
    with pytest.raises(BackendTimeoutError):
        list(bound(timeout=0.2).stream(HELLO))
    assert _chats(ollama) == 1


def test_nobody_at_the_address_is_said_to_be(ollama):
    ollama.close()
    binding = OllamaBinding("toy", base_url=ollama.root, retries=0)
    assert binding.ps() == []
    for ask in (lambda: binding.generate_text("hello"), binding.list_models, binding.version, lambda: binding.pull_model("toy")):
        with pytest.raises(BackendUnavailableError, match=r"Nothing answers at .*Is the server running"):
            ask()


def test_the_key_is_in_no_error_also_where_the_server_says_it_back(ollama, bound):
    binding = bound(api_key="sk-secret-123")
    ollama.chats(refusal(401, "bad key sk-secret-123"))
    with pytest.raises(BackendRefusedError, match="bad key") as caught:
        list(binding.stream(HELLO))
    assert "sk-secret-123" not in f"{caught.value} {binding!r} {vars(binding)!r}"


# ---- cancelling ----------------------------------------------------------------------------------------------------------------


def _cancels(cancel, ready: threading.Event) -> list[float]:
    """Cancels in another thread once the request waits; gives the time."""
    at: list[float] = []

    def later() -> None:
        ready.wait(10)
        CancelToken().wait(0.05)  # let the caller block in its read
        at.append(time.monotonic())
        cancel()

    threading.Thread(target=later, daemon=True).start()
    return at


@pytest.mark.parametrize(
    ("path", "head"),
    [("/api/show", False), ("/api/chat", False), ("/api/chat", True)],
    ids=["asking about the model", "in the prompt", "between parts"],
)
def test_cancel_ends_a_request_within_200_ms(ollama, bound, path, head):
    took = []
    for _ in range(3):
        binding, arrived = bound(), threading.Event()
        ollama.on(path, holds(arrived, head=head))
        at = _cancels(binding.cancel, arrived)
        with pytest.raises(CancelledError):
            list(binding.stream(HELLO))
        took.append(time.monotonic() - at[0])
    assert min(took) < 0.2


def test_a_caller_s_own_token_ends_the_answer_early_without_an_error(ollama, bound):
    arrived, token = threading.Event(), CancelToken()
    ollama.chats(holds(arrived, part("a")))
    deltas = bound().stream(HELLO, token)
    assert next(deltas) == "a"
    _cancels(token.cancel, arrived)
    assert list(deltas) == []


def test_cancel_ends_loading_and_listing_too(ollama, bound):
    for path, ask in (("/api/generate", OllamaBinding.load_model), ("/api/tags", OllamaBinding.list_models)):
        binding, arrived = bound(), threading.Event()
        ollama.on(path, holds(arrived, head=False))
        _cancels(binding.cancel, arrived)
        with pytest.raises(CancelledError):
            ask(binding)
