from __future__ import annotations

import json

import pytest

from lollms_client._bindings.request import ChatRequest, Sampling
from lollms_client._http.sse import SseEvent
from lollms_client._openai_compat.wire import chat_body, deltas_of
from lollms_client._stream.deltas import FinishDelta, ReasoningDelta, ToolCallDelta
from lollms_client.errors import BackendProtocolError, BackendUnavailableError, ContextWindowError
from lollms_client.events import Usage


def _events(*chunks: object) -> list[SseEvent]:
    return [SseEvent(chunk if isinstance(chunk, str) else json.dumps(chunk)) for chunk in chunks]


def _delta(finish: str | None = None, **delta: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_a_call_s_own_sampling_wins_over_the_defaults_and_what_nobody_said_is_left_out():
    request = ChatRequest([{"role": "user", "content": "x"}], Sampling(temperature=0.0, n_predict=5), stop=("END",))
    body = chat_body(request, "m", Sampling(temperature=0.9, top_k=40, seed=3))
    assert body == {
        "model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True, "stream_options": {"include_usage": True},
        "temperature": 0.0, "max_tokens": 5, "top_k": 40, "seed": 3, "stop": ["END"],
    }  # fmt: skip


def test_schema_and_tools_go_in_their_documented_form():
    tool = {"name": "tool_x", "description": "d", "input_schema": {"type": "object"}}
    body = chat_body(ChatRequest([], json_schema={"type": "object"}, tools=(tool,)), "m")
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    function = {"name": "tool_x", "description": "d", "parameters": {"type": "object", "properties": {}}}
    assert body["tools"] == [{"type": "function", "function": function}]


def test_every_kind_of_piece_becomes_its_delta():
    stream = _events(
        _delta(role="assistant", content=None),
        _delta(reasoning_content="hm"),
        _delta(reasoning="hm2"),
        _delta(content="a"),
        _delta(content=""),
        _delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "t", "arguments": "{"}}]),
        _delta(tool_calls=[{"index": 0, "function": {"arguments": "}"}}]),
        _delta("tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}},
    )
    assert list(deltas_of(stream, "S")) == [
        ReasoningDelta("hm"), ReasoningDelta("hm2"), "a", ToolCallDelta(0, "c1", "t", "{"), ToolCallDelta(0, "", "", "}"),
        FinishDelta("tool_calls"), Usage(9, 2, 4),
    ]  # fmt: skip


def test_an_error_inside_the_stream_is_raised_after_what_came():
    deltas = deltas_of(_events(_delta(content="a"), {"error": {"code": 503, "message": "going down"}}), "S")
    assert next(deltas) == "a"
    with pytest.raises(BackendUnavailableError, match="going down"):
        next(deltas)
    too_long = {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 4, "message": "x"}}
    with pytest.raises(ContextWindowError):
        list(deltas_of(_events(too_long), "S"))


@pytest.mark.parametrize("chunk", ["not json", "[1]", "3"])
def test_what_is_no_part_of_an_answer_is_a_protocol_error(chunk):
    with pytest.raises(BackendProtocolError, match="S sent something"):
        list(deltas_of(_events(chunk), "S"))


def test_a_stream_without_an_end_is_a_protocol_error():
    with pytest.raises(BackendProtocolError, match="in the middle"):
        list(deltas_of(_events(_delta(content="a")), "S"))
