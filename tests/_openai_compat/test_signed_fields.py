"""Signed fields of an answer are gathered from its pieces, and come out as the provider made them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._bindings.request import ChatRequest
from lollms_client._http.sse import SseEvent
from lollms_client._openai_compat.signed import RETURNED
from lollms_client._openai_compat.vendor import Wire
from lollms_client._openai_compat.wire import chat_body, deltas_of, deltas_of_answer
from lollms_client._stream.deltas import FinishDelta, SignedDelta, ToolCallDelta
from lollms_client.errors import ConfigurationError

CALL = {"id": "c1", "index": 0, "type": "function", "function": {"name": "t", "arguments": "{}"}}


def streamed(*pieces: dict, returned=RETURNED) -> SignedDelta | None:
    chunks = [{"choices": [{"delta": piece}]} for piece in pieces] + [{"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    *_, last = deltas_of([SseEvent(json.dumps(c)) for c in [*chunks]] + [SseEvent("[DONE]")], "S", returned=returned)
    return last if isinstance(last, SignedDelta) else None


def text(piece: str, index: int | None = 0, **more) -> dict:
    return {"type": "reasoning.text", "text": piece, **({} if index is None else {"index": index}), **more}


@pytest.mark.parametrize("index", [0, None])
def test_pieces_of_a_reasoning_block_become_the_block_with_its_signature(index):
    signed = streamed(
        {"reasoning_details": [text("Let me ", index, signature=None, id="r1", format="anthropic-claude-v1")]},
        {"reasoning_details": [text("see.", index)]},
        {"reasoning_details": [{"type": "reasoning.text", "signature": "c2ln", **({} if index is None else {"index": index})}]},
    )
    assert signed is not None
    assert signed.fields["reasoning_details"] == [
        text("Let me see.", index, signature="c2ln", id="r1", format="anthropic-claude-v1")
    ]


def test_blocks_of_other_places_and_other_kinds_stay_apart_and_in_order():
    summary, hidden = {"type": "reasoning.summary", "summary": "a"}, {"type": "reasoning.encrypted", "data": "xx"}
    signed = streamed(
        {"reasoning_details": [{**summary, "index": 0}]},
        {"reasoning_details": [{**hidden, "index": 0}, {**hidden, "index": 1}]},
        {"reasoning_details": [{**summary, "index": 0}]},
    )
    assert signed == SignedDelta(
        {"reasoning_details": [{**summary, "summary": "aa", "index": 0}, {**hidden, "index": 0}, {**hidden, "index": 1}]}
    )


def test_encrypted_blocks_without_a_place_are_whole_each():
    blocks = [{"type": "reasoning.encrypted", "data": "a", "id": "x"}, {"type": "reasoning.encrypted", "data": "b", "id": "y"}]
    assert streamed(*({"reasoning_details": [b]} for b in blocks)) == SignedDelta({"reasoning_details": blocks})


def thinking(piece: str, signature: str = "") -> dict:
    return {"type": "thinking", "thinking": piece, "signature": signature}


@pytest.mark.parametrize("repeats", [False, True], ids=["signature alone", "signature with the text once more"])
def test_thinking_blocks_end_with_their_signatures(repeats):
    hidden = {"type": "redacted_thinking", "data": "zz"}
    signed = streamed(
        *({"thinking_blocks": [thinking(p)]} for p in ("Step ", "1.")),
        {"thinking_blocks": [thinking("Step 1." if repeats else "", "s1")]},
        {"thinking_blocks": [hidden]},
        {"thinking_blocks": [thinking("2", "s2")]},
        {"thinking_blocks": [thinking("", "s3")]},
    )
    assert signed == SignedDelta(
        {"thinking_blocks": [thinking("Step 1.", "s1"), hidden, thinking("2", "s2"), thinking("", "s3")]}
    )


def test_signatures_of_calls_belong_to_their_calls_whatever_position_they_have():
    google = {"google": {"thought_signature": "A=="}}
    signed = streamed(
        {"tool_calls": [{**CALL, "extra_content": google}]},
        {"tool_calls": [{**CALL, "id": "c2", "provider_specific_fields": {"thought_signature": "B"}}]},
        {"tool_calls": [{"id": "c3", "index": 1, "function": {"name": "t"}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}, "extra_content": {"google": {"thought_signature": "C"}}}]},
        {"extra_content": {"google": {"thought_signature": "D"}}, "content": "x"},
    )
    assert signed == SignedDelta(
        {"extra_content": {"google": {"thought_signature": "D"}}},
        {
            "c1": {"extra_content": google},
            "c2": {"provider_specific_fields": {"thought_signature": "B"}},
            "c3": {"extra_content": {"google": {"thought_signature": "C"}}},
        },
    )


def test_plain_thoughts_go_back_only_where_they_are_wanted_and_only_behind_calls():
    said = [{"reasoning_content": "Hm, "}, {"reasoning_content": "hm."}]
    call = {"tool_calls": [CALL]}
    assert streamed(*said, call) is None
    assert streamed(*said, returned=("reasoning_content",)) is None
    assert streamed(*said, call, returned=("reasoning_content",)) == SignedDelta({"reasoning_content": "Hm, hm."})


def test_an_answer_that_came_whole_gives_its_fields_as_they_are():
    message = {
        "content": "a",
        "reasoning_details": [text("x", None), text("y", None, signature="s")],
        "tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": "A"}}}],
    }
    deltas = list(deltas_of_answer({"choices": [{"message": message, "finish_reason": "tool_calls"}]}, "S"))
    assert deltas[-1] == SignedDelta(
        {"reasoning_details": message["reasoning_details"]}, {"c1": {"extra_content": {"google": {"thought_signature": "A"}}}}
    )
    assert [type(d) for d in deltas] == [str, ToolCallDelta, FinishDelta, SignedDelta]


def test_a_server_that_signs_nothing_has_nothing_to_get_back():
    assert streamed({"content": "a"}, {"tool_calls": [CALL]}, {"reasoning": "hm"}, {"reasoning_details": None}) is None


@given(st.text(min_size=1), st.lists(st.integers(0, 40), max_size=6), st.booleans())
def test_a_block_is_the_same_wherever_it_is_cut(whole, cuts, placed):
    index = 0 if placed else None
    at = sorted({min(c, len(whole)) for c in cuts})
    pieces = [whole[a:b] for a, b in zip([0, *at], [*at, len(whole)], strict=True)]
    signed = streamed(*({"reasoning_details": [text(p, index)]} for p in pieces))
    assert signed is not None
    assert signed.fields["reasoning_details"] == [text(whole, index)]


def _sent(wire: Wire, *messages: dict) -> list[dict]:
    return chat_body(ChatRequest(list(messages)), "m", wire=wire)["messages"]


def test_a_server_that_wants_thoughts_with_calls_gets_an_empty_one_where_an_earlier_turn_has_lost_it():
    wire = Wire().with_facts({"returned": ["reasoning_content"]}, "wire")
    called = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    assert _sent(wire, called)[0]["reasoning_content"] == ""
    assert _sent(wire, {**called, "reasoning_content": "hm"})[0]["reasoning_content"] == "hm"
    assert "reasoning_content" not in _sent(wire, {"role": "assistant", "content": "a"})[0]
    assert "reasoning_content" not in _sent(Wire(), called)[0]


def test_a_server_may_have_words_of_its_own_for_silence():
    wire = Wire().with_facts({"silence": {"thinking": {"type": "disabled"}}, "template_kwargs": False}, "wire")
    body = chat_body(ChatRequest([], reasoning_effort="none"), "m", wire=wire)
    assert body["thinking"] == {"type": "disabled"}
    assert "chat_template_kwargs" not in body
    assert "thinking" not in chat_body(ChatRequest([], reasoning_effort="high"), "m", wire=wire)


@pytest.mark.parametrize("wrong", [{"returned": "reasoning_details"}, {"returned": [1]}, {"silence": 3}, {"strict": {}}])
def test_a_wire_that_makes_no_sense_is_refused_by_name(wrong):
    with pytest.raises(ConfigurationError, match=f"wire.{next(iter(wrong))} should"):
        Wire().with_facts(wrong, "wire")
