"""Every language model binding against a server of its protocol: streaming, stopping, cancelling from outside, and what goes wrong.

A binding whose description says `openai_compatible` speaks chat completions; others stand in SPEAKS. `embedded` serves itself; its
part runs with a real model in tests/embedded.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from wire_kit import CHAT, Answer, Asked, delta, holds, says, status, whole

from lollms_client import LollmsClient, get_binding_desc, list_bindings
from lollms_client._bindings.registry import create
from lollms_client._bindings.request import ChatRequest
from lollms_client._http import CancelToken
from lollms_client.errors import (
    BackendError,
    BackendProtocolError,
    BackendRefusedError,
    BackendUnavailableError,
    CancelledError,
    LollmsError,
)
from lollms_client.testing import check_llm


@dataclass(frozen=True)
class Protocol:
    """How servers of one kind answer.

    Attributes:
        path: Where they are asked.
        below: What stands between the server's root and the address that a binding is given.
        says: An answer of a text in pieces.
        holds: Says some pieces, or not even a head, sets the event, and then says nothing for ever.
    """

    path: str
    below: str
    says: Callable[..., Answer]
    holds: Callable[..., Answer]


NDJSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"


def _line(conn: socket.socket, value: dict[str, Any]) -> None:
    raw = json.dumps(value).encode() + b"\n"
    conn.sendall(b"%x\r\n%s\r\n" % (len(raw), raw))


def _ollama_piece(text: str) -> dict[str, Any]:
    return {"model": "m", "message": {"role": "assistant", "content": text}, "done": False}


def _ollama_says(*texts: str) -> Answer:
    end = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3}  # fmt: skip

    def answer(conn: socket.socket, asked: Asked) -> None:
        conn.sendall(NDJSON)
        for line in (*map(_ollama_piece, texts), end):
            _line(conn, line)
        conn.sendall(b"0\r\n\r\n")

    return answer


def _ollama_holds(arrived: threading.Event, *texts: str, head: bool = True) -> Answer:
    def answer(conn: socket.socket, asked: Asked) -> None:
        if head:
            conn.sendall(NDJSON)
            for text in texts:
                _line(conn, _ollama_piece(text))
        arrived.set()

    return answer


CHAT_COMPLETIONS = Protocol(
    CHAT, "/v1", says, lambda arrived, *texts, head=True: holds(arrived, *(delta(content=t) for t in texts), head=head)
)
OLLAMA = Protocol("/api/chat", "", _ollama_says, _ollama_holds)
SPEAKS = {"ollama": OLLAMA}
SERVES_ITSELF = {"embedded"}


def _protocol(name: str) -> Protocol:
    if "openai_compatible" in get_binding_desc(name, "llm"):
        return CHAT_COMPLETIONS
    return SPEAKS[name]


OF_SERVERS = [name for name in list_bindings("llm") if name not in SERVES_ITSELF]


@pytest.fixture(params=OF_SERVERS)
def name(request) -> str:
    return request.param


@pytest.fixture
def protocol(name) -> Protocol:
    return _protocol(name)


@pytest.fixture
def binding(server, name, protocol):
    made = create("llm", name, {"model_name": "m", "base_url": server.root + protocol.below, "retries": 0})
    yield made
    made.close()


def _later(cancel: Callable[[], None], arrived: threading.Event) -> list[float]:
    """Cancels in another thread once the request waits; gives the time at which it did."""
    at: list[float] = []

    def wait_and_cancel() -> None:
        arrived.wait(20)
        CancelToken().wait(0.05)  # let the caller block in its read
        at.append(time.monotonic())
        cancel()

    threading.Thread(target=wait_and_cancel, daemon=True).start()
    return at


def test_every_language_model_binding_says_what_it_speaks():
    unknown = [n for n in OF_SERVERS if "openai_compatible" not in get_binding_desc(n, "llm") and n not in SPEAKS]
    assert unknown == [], "say in SPEAKS how their servers answer"


def test_the_protocols_that_are_spoken_are_told_apart_by_the_bindings(server, binding, protocol):
    server.on(protocol.path, protocol.says("a"))
    binding.generate_text("hello")
    assert protocol.path in {asked.path for asked in server.asked}


def test_it_generates_as_the_contract_says(server, binding, protocol):
    server.on(protocol.path, protocol.says("One, ", "two, ", "three, ", "four, ", "five."))
    assert check_llm(binding) == []
    assert len([asked for asked in server.asked if asked.path == protocol.path]) >= 6


def test_a_check_that_can_fail_fails_where_streaming_and_not_streaming_differ(server, binding, protocol):
    server.on(protocol.path, protocol.says("one"), protocol.says("one"), protocol.says("two"))
    found = "\n".join(check_llm(binding))
    assert "Streaming gives 'two', not streaming 'one'" in found


@pytest.mark.parametrize("head", [False, True], ids=["in the prompt", "in the middle"])
def test_cancel_from_another_thread_ends_an_answer_that_the_server_holds_back(server, binding, protocol, head):
    took = []
    for _ in range(3):
        arrived = threading.Event()
        server.on(protocol.path, protocol.holds(arrived, "a", head=head))
        at = _later(binding.cancel, arrived)
        assert binding.generate_text("hello") == ("a" if head else "")
        took.append(time.monotonic() - at[0])
        assert binding.is_cancelled()
    assert min(took) < 0.2
    server.on(protocol.path, protocol.says("on"))
    assert binding.generate_text("hello") == "on"


def test_cancel_of_a_client_ends_what_its_binding_does(server, name, protocol):
    arrived = threading.Event()
    server.on(protocol.path, protocol.holds(arrived, "a"))
    with LollmsClient(
        name, llm_binding_config={"model_name": "m", "base_url": server.root + protocol.below, "retries": 0}
    ) as client:
        _later(client.cancel, arrived)
        assert client.generate_text("hello") == "a"


def test_a_cancelled_stream_is_an_error_and_a_caller_s_own_token_an_early_end(server, binding, protocol):
    request = ChatRequest([{"role": "user", "content": "hello"}])
    arrived = threading.Event()
    server.on(protocol.path, protocol.holds(arrived, "a"))
    _later(binding.cancel, arrived)
    with pytest.raises(CancelledError):
        list(binding.stream(request))
    arrived, token = threading.Event(), CancelToken()
    server.on(protocol.path, protocol.holds(arrived, "a"))
    _later(token.cancel, arrived)
    assert list(binding.stream(request, token)) == ["a"]


@pytest.mark.parametrize(
    ("answer", "error", "code"),
    [
        (status(401), BackendRefusedError, 401),
        (status(404), BackendRefusedError, 404),
        (status(500), BackendError, 502),
        (status(503), BackendUnavailableError, 503),
        (whole(b"<html>not what was asked for</html>"), BackendProtocolError, 502),
        (whole([1, 2]), BackendProtocolError, 502),
    ],
    ids=["401", "404", "500", "503", "garbage", "another form"],
)
def test_what_a_server_does_wrong_is_one_of_our_errors(server, binding, protocol, answer, error, code):
    server.on(protocol.path, answer)
    for call in (
        lambda: binding.generate_text("hello"),
        lambda: list(binding.stream(ChatRequest([{"role": "user", "content": "hello"}]))),
    ):
        with pytest.raises(error) as caught:
            call()
        assert isinstance(caught.value, LollmsError)
        assert caught.value.status_code == code


def test_an_answer_that_breaks_off_is_one_of_our_errors_after_what_came(server, binding, protocol):
    def breaks_off(conn: socket.socket, asked: Asked) -> None:
        protocol.holds(threading.Event(), "a")(conn, asked)
        conn.shutdown(socket.SHUT_RDWR)

    server.on(protocol.path, breaks_off)
    deltas = binding.stream(ChatRequest([{"role": "user", "content": "hello"}]))
    assert next(deltas) == "a"
    with pytest.raises(BackendError):
        list(deltas)


def test_nobody_there_is_one_of_our_errors_that_names_the_address(name, protocol):
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    binding = create("llm", name, {"model_name": "m", "base_url": f"http://127.0.0.1:{port}{protocol.below}", "retries": 0})
    with pytest.raises(BackendUnavailableError, match=rf"127\.0\.0\.1:{port}"):
        binding.generate_text("hello")
    binding.close()
