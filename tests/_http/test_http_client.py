"""The HTTP client against real sockets: answers, failures, and a cancel that frees a blocked caller."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time

import pytest

from lollms_client._http import CancelToken
from lollms_client._http.client import HttpClient, Timeouts
from lollms_client.errors import (
    BackendError,
    BackendProtocolError,
    BackendRefusedError,
    BackendTimeoutError,
    BackendUnavailableError,
    CancelledError,
    ContextWindowError,
    LollmsError,
)


@pytest.fixture
def client(server):
    http = HttpClient(server.url, {"Authorization": "Bearer k"}, Timeouts(connect=5, read=20), trust_env=False)
    yield http
    http.close()


def _seconds(call, error: type[Exception]) -> float:
    began = time.monotonic()
    with pytest.raises(error):
        call()
    return time.monotonic() - began


def test_json_goes_out_and_comes_back(server, client):
    server.answers(b'{"ok": [1, 2]}')
    assert client.post_json("/v1/x", {"a": "ü"}) == {"ok": [1, 2]}
    assert client.get_json("/y") == {"ok": [1, 2]}
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/x HTTP/1.1")
    assert b"authorization: bearer k" in head.lower()
    assert json.loads(body) == {"a": "ü"}
    assert server.connections == 1, "a connection is used again"


def _streams(*pieces: bytes, end: bool = True):
    def handler(conn: socket.socket, request: bytes) -> None:
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces:
            conn.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        if end:
            conn.sendall(b"0\r\n\r\n")
        else:
            conn.shutdown(socket.SHUT_RDWR)

    return handler


def test_events_stream_until_done(server, client):
    server.handler = _streams(b"data: 1\n", b"\nda", b"ta: 2\n\n: ping\n\ndata: [DONE]\n\ndata: late\n\n")
    assert [event.data for event in client.stream_sse("/s", {})] == ["1", "2"]


def test_a_stream_that_breaks_off_is_an_error_after_what_came(server, client):
    server.handler = _streams(b"data: 1\n\n", end=False)
    events = client.stream_sse("/s", {})
    assert next(events).data == "1"
    with pytest.raises(BackendUnavailableError, match="closed the connection"):
        next(events)


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        ("400 Bad", b'{"error": {"message": "no such field"}}', BackendRefusedError, "no such field"),
        ("401 No", b"plain words", BackendRefusedError, "plain words"),
        ("404 Not Found", b'{"error": "model not found"}', BackendRefusedError, "model not found"),
        ("429 Slow", b'{"detail": "slow down"}', BackendRefusedError, "slow down"),
        ("500 Oops", b"", BackendError, "500"),
        ("503 Busy", b'{"error": {"message": "Loading model"}}', BackendUnavailableError, "Loading model"),
        ("504 Late", b"{}", BackendTimeoutError, "504"),
    ],
)
def test_statuses_become_our_errors(server, client, status, body, error, said):
    server.answers(body, status)
    with pytest.raises(error, match=said) as caught:
        client.post_json("/x", {})
    if isinstance(caught.value, BackendRefusedError):
        assert caught.value.status_code == int(status[:3])
    with pytest.raises(error, match=said):
        list(client.stream_sse("/x", {}))


def test_a_prompt_that_is_too_long_says_both_numbers(server, client):
    error = {"code": 400, "message": "too long", "type": "exceed_context_size_error", "n_prompt_tokens": 9030, "n_ctx": 4096}
    server.answers(json.dumps({"error": error}).encode(), "400 Bad Request")
    with pytest.raises(ContextWindowError, match=r"9,030 tokens.*4,096") as caught:
        client.post_json("/x", {})
    assert (caught.value.prompt_tokens, caught.value.context_size) == (9030, 4096)


def test_what_is_not_json_is_a_protocol_error(server, client):
    server.answers(b"<html>", kind="text/html")
    with pytest.raises(BackendProtocolError, match="<html>"):
        client.get_json("/x")


def test_what_is_not_http_is_our_error_too(server, client):
    server.handler = lambda conn, request: conn.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")
    with pytest.raises(LollmsError):
        client.get_json("/x")


def test_nobody_there_is_unavailable():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    http = HttpClient(url, trust_env=False)
    with contextlib.closing(http), pytest.raises(BackendUnavailableError, match="Nothing answers at"):
        http.get_json("/")


def test_a_server_that_hangs_up_on_a_used_connection_is_asked_on_another(server, client):
    """Some do so after each few answers, without a word; on a connection of its own a request is not asked twice."""
    served: dict[int, int] = {}

    def handler(conn: socket.socket, request: bytes) -> None:
        served[id(conn)] = served.get(id(conn), 0) + 1
        if served[id(conn)] > 1:
            conn.shutdown(socket.SHUT_RDWR)
            return
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")

    server.handler = handler
    assert [client.post_json("/x", {"n": n}) for n in range(4)] == [{}] * 4
    assert server.connections == 4

    server.requests.clear()
    server.handler = lambda conn, request: conn.shutdown(socket.SHUT_RDWR)
    fresh = HttpClient(server.url)
    with pytest.raises(BackendUnavailableError, match="closed the connection"):
        fresh.post_json("/x", {})
    assert len(server.requests) == 1
    fresh.close()


def test_silence_is_a_timeout(server, client):
    assert _seconds(lambda: client.get_json("/x", read_timeout=0.2), BackendTimeoutError) < 10


@pytest.mark.parametrize("warm", [False, True], ids=["new connection", "reused connection"])
@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n"])
def test_cancelling_frees_a_caller_that_waits_on_the_socket(server, client, sent, warm):
    if warm:
        server.answers(b"{}")
        client.get_json("/warm")
    arrived, token = threading.Event(), CancelToken()

    def silent(conn: socket.socket, request: bytes) -> None:
        conn.sendall(sent)
        arrived.set()

    server.handler = silent
    cancelled_at: list[float] = []

    def cancel() -> None:
        arrived.wait(10)
        token.wait(0.1)  # let the caller block in its read
        cancelled_at.append(time.monotonic())
        token.cancel()

    threading.Thread(target=cancel, daemon=True).start()
    with pytest.raises(CancelledError):
        list(client.stream_sse("/s", {}, token))
    assert time.monotonic() - cancelled_at[0] < 0.5
    assert server.connections == 1
    server.answers(b'{"after": 1}')
    assert client.get_json("/x") == {"after": 1}, "the client goes on to work"


def test_a_cancelled_token_asks_nobody(server, client):
    token = CancelToken()
    token.cancel()
    with pytest.raises(CancelledError):
        client.get_json("/x", token)
    assert server.requests == []


def test_leaving_a_stream_ends_its_request(server, client):
    ended = threading.Event()

    def endless(conn: socket.socket, request: bytes) -> None:
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        try:
            while True:
                conn.sendall(b"data: x\n\n" * 1000)
        except OSError:
            ended.set()

    server.handler = endless
    events = client.stream_sse("/s", {})
    assert next(events).data == "x"
    events.close()
    assert ended.wait(10)


def test_a_fault_of_the_reader_is_not_taken_for_one_of_the_server(server, client):
    server.answers(b"abc")

    def read() -> None:
        with client.open("GET", "/x") as answer:
            assert next(iter(answer)) == b"abc"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()


def test_proxies_of_the_environment_hold_only_where_trusted(server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    server.answers(b'{"from": "proxy"}')
    with contextlib.closing(HttpClient("http://model.invalid:8000")) as trusting:
        assert trusting.get_json("/x") == {"from": "proxy"}
    assert server.requests[0].startswith(b"GET http://model.invalid:8000/x ")
    with contextlib.closing(HttpClient("http://127.0.0.1:9", trust_env=False)) as own, pytest.raises(BackendUnavailableError):
        own.get_json("/x")
    assert len(server.requests) == 1


def test_many_threads_share_one_client(server, client):
    def echo(conn: socket.socket, request: bytes) -> None:
        body = request.partition(b"\r\n\r\n")[2]
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    server.handler = echo
    wrong: list[object] = []

    def ask(number: int) -> None:
        for i in range(20):
            if client.post_json("/x", {"n": number, "i": i}) != {"n": number, "i": i}:
                wrong.append((number, i))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    assert len(server.requests) == 160
