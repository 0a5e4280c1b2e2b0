"""What servers get wrong, over real sockets: for each fault the documented error, or recovery."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import subprocess
import threading
import time

import pytest
from wire_kit import USAGE, Asked, WireServer, breaks, delta, events, fragment, holds, says, status, whole

from lollms_client._bindings.request import ChatRequest
from lollms_client._http import CancelToken
from lollms_client._stream.deltas import FinishDelta, ReasoningDelta, ToolCallDelta
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
from lollms_client.llm_bindings.openai import OpenAIBinding

HELLO = ChatRequest([{"role": "user", "content": "hello"}])


@pytest.fixture
def bound(server):
    """Makes bindings of the server that do not wait before they ask again where the server does not say how long."""
    every: list[OpenAIBinding] = []

    def make(**settings) -> OpenAIBinding:
        made = OpenAIBinding("m", base_url=server.url, **settings)
        made.retry = dataclasses.replace(made.retry, first_wait=0.0)
        every.append(made)
        return made

    yield make
    for made in every:
        made.close()


@pytest.fixture
def binding(bound):
    return bound(api_key="sk-secret-123")


def _stream(binding, request: ChatRequest = HELLO):
    return list(binding.stream(request))


# ---- recovery ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        breaks,
        *(status(c) for c in (408, 409, 429, 500, 502, 503, 504)),
        status(429, None, Retry_After="0"),
        status(503, b"<html>"),
    ],
)
def test_before_the_first_byte_a_fault_that_may_pass_is_asked_again(server, binding, fault):
    server.chats(fault, fault, says("hel", "lo"))
    assert _stream(binding) == ["hel", "lo", FinishDelta("stop"), Usage(7, 3)]
    assert len(server.asked) == 3
    assert server.bodies[0] == server.bodies[2]


def test_empty_choices_nulls_and_unknown_keys_say_nothing_and_harm_nothing(server, binding):
    odd = (
        {"choices": []},
        {"choices": None},
        {},
        {"choices": [{"delta": None}]},
        {"choices": [{}]},
        {"x": 1, "choices": [{"delta": {"y": 2}}]},
    )
    server.chats(events(*odd, delta(role="assistant", content=None), delta(content="a"), *odd, delta("stop"), *odd))
    assert _stream(binding) == ["a", FinishDelta("stop")]


def test_an_end_without_a_reason_is_an_end_where_the_server_says_done(server, binding):
    server.chats(events(delta(content="a")))
    assert _stream(binding) == ["a", FinishDelta("stop")]


@pytest.mark.parametrize("asked_to", [True, False])
def test_a_server_that_does_not_stream_is_understood(server, bound, asked_to):
    call = {"id": "c1", "type": "function", "function": {"name": "t", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": "a", "reasoning_content": "hm", "tool_calls": [call]}
    server.chats(
        whole(
            {
                "choices": [{"message": message, "finish_reason": "tool_calls"}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 3},
            }
        )
    )
    binding = bound(wire={"streaming": asked_to})
    expected = [ReasoningDelta("hm"), "a", ToolCallDelta(None, "c1", "t", '{"a": 1}'), FinishDelta("tool_calls"), Usage(7, 3)]
    assert _stream(binding) == expected
    assert server.bodies[0]["stream"] is asked_to


def test_content_in_parts_and_refusals_are_read(server, binding):
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}]
    server.chats(events(delta(content=parts), delta(refusal="No."), delta("stop")))
    assert _stream(binding) == [ReasoningDelta("hm"), "a", "No.", FinishDelta("stop")]


def test_arguments_that_come_as_an_object_become_their_text(server, binding):
    server.chats(events(delta("tool_calls", tool_calls=[{"function": {"name": "t", "arguments": {"a": "ü"}}}])))
    assert _stream(binding)[0] == ToolCallDelta(None, "", "t", '{"a": "ü"}')


def test_a_connection_is_used_again_after_a_stream(server, binding):
    server.chats(says("a"))
    for _ in range(3):
        _stream(binding)
    assert server.connections == 1


def test_an_answer_that_is_kept_open_after_it_was_called_done_ends_all_the_same(server, binding):
    arrived = threading.Event()
    server.chats(holds(arrived, delta(content="a"), delta("stop"), "[DONE]"))
    began = time.monotonic()
    assert _stream(binding) == ["a", FinishDelta("stop")]
    assert time.monotonic() - began < 10
    server.chats(says("b"))
    assert "b" in _stream(binding)


# ---- errors --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        (status(429, None, Retry_After="7"), BackendRefusedError, "429"),
        (status(500), BackendError, "500"),
        (status(503), BackendUnavailableError, "503"),
        (status(504), BackendTimeoutError, "504"),
        (breaks, BackendUnavailableError, "closed the connection"),
    ],
)
def test_a_fault_that_does_not_pass_is_raised_after_the_last_retry(server, bound, fault, error, said):
    binding = bound(retry_budget=5.0)
    server.chats(fault)
    with pytest.raises(error, match=said) as caught:
        _stream(binding)
    waits_too_long = caught.value.retry_after == 7
    assert len(server.asked) == (1 if waits_too_long else 3)
    assert isinstance(caught.value, BackendRefusedError) == waits_too_long


@pytest.mark.parametrize(
    ("code", "error"),
    [(400, BackendRefusedError), (401, BackendRefusedError), (404, BackendRefusedError), (422, BackendRefusedError)],
)
def test_a_refusal_is_raised_at_once_with_the_server_s_words(server, binding, code, error):
    server.chats(status(code, {"error": {"message": "no such thing", "code": "no_such_thing"}}))
    with pytest.raises(error, match=rf"{code}: no such thing \(no_such_thing\)") as caught:
        _stream(binding)
    assert caught.value.status_code == code
    assert len(server.asked) == 1


def test_a_quota_that_is_used_up_is_not_asked_again(server, binding):
    server.chats(status(429, {"error": {"message": "You are out of credit.", "code": "insufficient_quota"}}))
    with pytest.raises(BackendRefusedError, match="insufficient_quota"):
        _stream(binding)
    assert len(server.asked) == 1


def test_a_prompt_that_is_too_long_is_said_to_be(server, binding):
    said = {"error": {"message": "This model's maximum context length is 10 tokens.", "code": "context_length_exceeded"}}
    server.chats(status(400, said))
    with pytest.raises(ContextWindowError):
        _stream(binding)


GARBAGE = [
    "not json",
    "[1]",
    '{"choices": 3}',
    '{"choices": ["a"]}',
    '{"choices": [{"delta": "a"}]}',
    '{"choices": [{"delta": {"tool_calls": [1]}}]}',
]


@pytest.mark.parametrize(
    ("rest", "error", "said"),
    [
        (events(delta(content="a"), end=False, done=False), BackendUnavailableError, "closed the connection"),
        (events(delta(content="a"), done=False), BackendProtocolError, "in the middle"),
        *((events(delta(content="a"), g), BackendProtocolError, "not a part of an answer") for g in GARBAGE),
        (events(delta(content="a"), {"error": {"message": "boom", "code": "503"}}), BackendUnavailableError, "boom"),
        (events(delta(content="a"), {"error": {"message": "boom", "code": "server_error"}}), BackendError, "boom"),
        (events(delta(content="a"), {"error": "boom"}), BackendError, "boom"),
    ],
)
def test_what_goes_wrong_after_the_first_byte_is_raised_after_what_came_and_never_asked_again(server, binding, rest, error, said):
    server.chats(rest)
    deltas = binding.stream(HELLO)
    assert next(deltas) == "a"
    with pytest.raises(error, match=said):
        list(deltas)
    assert len(server.asked) == 1


def test_an_event_that_is_named_an_error_is_one(server, binding):
    def answer(conn, asked: Asked) -> None:
        raw = b'event: error\ndata: {"message": "boom", "code": 503}\n\n'
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s" % (len(raw), raw))

    server.chats(answer)
    with pytest.raises(BackendUnavailableError, match="boom"):
        _stream(binding)


@pytest.mark.parametrize("body", [{"choices": []}, {}, [1], b"not json", {"choices": [{"message": "x"}]}])
def test_a_whole_answer_that_is_none_is_a_protocol_error(server, binding, body):
    server.chats(whole(body))
    with pytest.raises(BackendProtocolError):
        _stream(binding)


def test_silence_is_a_timeout_and_not_asked_again(server, bound):
    binding = bound(timeout=0.2)
    server.chats(holds(threading.Event(), head=False))
    with pytest.raises(BackendTimeoutError):
        _stream(binding)
    assert len(server.asked) == 1


def test_the_key_is_in_no_error_also_where_the_server_says_it_back(server, binding):
    server.chats(status(401, {"error": {"message": "Incorrect API key provided: sk-secret-123."}}))
    with pytest.raises(BackendRefusedError, match="Incorrect API key") as caught:
        _stream(binding)
    assert "sk-secret-123" not in str(caught.value)
    assert "sk-secret-123" not in f"{binding!r} {vars(binding)!r} {binding._connection!r}"
    assert server.asked[0].headers["authorization"] == "Bearer sk-secret-123"


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


@pytest.mark.parametrize("head", [False, True], ids=["in the prompt", "between events"])
def test_cancel_ends_a_request_within_200_ms(server, binding, head):
    took = []
    for _ in range(3):
        arrived = threading.Event()
        server.chats(holds(arrived, head=head))
        at = _cancels(binding.cancel, arrived)
        with pytest.raises(CancelledError):
            _stream(binding)
        took.append(time.monotonic() - at[0])
        binding.reset_cancel()
    assert min(took) < 0.2
    server.chats(says("on"))
    assert "on" in _stream(binding)


def test_a_caller_s_own_token_ends_the_answer_early_without_an_error(server, binding):
    arrived, token = threading.Event(), CancelToken()
    server.chats(holds(arrived, delta(content="a")))
    deltas = binding.stream(HELLO, token)
    assert next(deltas) == "a"
    _cancels(token.cancel, arrived)
    assert list(deltas) == []


def test_cancel_ends_the_wait_before_asking_again(server, bound):
    binding = bound(retry_budget=9000.0)
    arrived = threading.Event()
    refuse = status(429, None, Retry_After="3600")
    server.chats(lambda conn, asked: (refuse(conn, asked), arrived.set()))
    _cancels(binding.cancel, arrived)
    with pytest.raises(CancelledError):
        _stream(binding)
    assert len(server.asked) == 1


def test_a_callback_that_stops_ends_the_request_at_the_server(server, binding):
    ended = threading.Event()

    def endless(conn, asked: Asked) -> None:
        from wire_kit import HEAD, send_event

        conn.sendall(HEAD)
        try:
            while True:
                send_event(conn, delta(content="x"))
        except OSError:
            ended.set()
            raise

    server.chats(endless)
    assert binding.generate_text("hello", streaming_callback=lambda chunk, kind: False) == "x"
    assert ended.wait(10)


# ---- parallel calls ------------------------------------------------------------------------------------------------------------

CALLS = {
    "all at position 0": [fragment("tool_add", '{"a": 1}', index=0), fragment("tool_sub", '{"b": 2}', index=0)],
    "position 0, same tool twice": [fragment("tool_add", '{"a": 1}', index=0, id="x"), fragment("tool_add", '{"a": 2}', index=0, id="y")],
    "no positions, no ids": [fragment("tool_add", '{"a": 1}'), fragment("tool_sub", '{"b": 2}')],
    "fragments with an id only on the first": [
        fragment("tool_add", '{"a"', index=0, id="x"), fragment("tool_sub", '{"b"', index=1, id="y"),
        fragment(arguments=": 1}", index=0), fragment(arguments=": 2}", index=1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("chunks", CALLS.values(), ids=CALLS.keys())
def test_parallel_calls_are_told_apart_in_a_whole_turn(server, chunks, tmp_path):
    from lollms_client import LollmsClient
    from lollms_client.events import ToolEnded, TurnEnded
    from lollms_client.testing import ScriptedTools

    tools = ScriptedTools({"tool_add": lambda a: a + 1, "tool_sub": lambda b: b - 1})
    server.chats(events(*chunks, delta("tool_calls"), USAGE), says("done"))
    with LollmsClient("openai", llm_binding_config={"model_name": "m", "base_url": server.url}) as client:
        client.tools = tools
        turn = list(client.run_turn("Add and subtract."))
    assert len(tools.calls) == 2
    assert len([e for e in turn if isinstance(e, ToolEnded)]) == 2
    assert isinstance(turn[-1], TurnEnded)
    assert (turn[-1].status, turn[-1].response) == ("completed", "done")
    sent = server.bodies[1]["messages"][-3:]
    ids = [call["id"] for call in sent[0]["tool_calls"]]
    assert len(set(ids)) == 2
    assert [m["tool_call_id"] for m in sent[1:]] == ids


# ---- TLS -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path):
    """A certificate of this machine that nobody trusts, with its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("makes a certificate with the program openssl, which is not installed")
    made = tmp_path / "both.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    out = ["-keyout", str(made), "-out", str(tmp_path / "certificate.pem"), "-days", "2"]
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *out, *names], check=True, capture_output=True, timeout=50
    )
    made.write_text(made.read_text() + (tmp_path / "certificate.pem").read_text())
    return made


def test_a_certificate_is_checked_unless_it_is_named_or_the_check_is_off(certificate):
    server = WireServer(certificate)
    server.chats(says("a"))
    try:
        for settings in ({"certificate_file": str(certificate)}, {"verify_ssl": False}):
            with contextlib.closing(OpenAIBinding("m", base_url=server.url, retries=0, **settings)) as binding:
                assert binding.generate_text("hello") == "a"
        doubtful, refused = OpenAIBinding("m", base_url=server.url, retries=0), r"is not trusted.*certificate_file"
        with contextlib.closing(doubtful), pytest.raises(BackendUnavailableError, match=refused):
            doubtful.generate_text("hello")
    finally:
        server.close()


def test_cancel_ends_a_request_over_tls_too(certificate):
    server, arrived = WireServer(certificate), threading.Event()
    server.chats(holds(arrived))
    try:
        binding = OpenAIBinding("m", base_url=server.url, certificate_file=str(certificate))
        at = _cancels(binding.cancel, arrived)
        with contextlib.closing(binding), pytest.raises(CancelledError):
            _stream(binding)
        assert time.monotonic() - at[0] < 2
    finally:
        server.close()
