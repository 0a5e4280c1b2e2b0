"""Messages of earlier turns go out without thoughts and signatures, and else as they were."""

from __future__ import annotations

import pytest

from lollms_client._agent.history import plain, unsigned
from lollms_client._store.db import Database
from lollms_client._stream.deltas import SignedDelta
from lollms_client.errors import BackendError
from lollms_client.testing import ScriptedLLM, ScriptedTools, call

from .durable_kit import end_of, resumed, turn

CALL = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}
SIGNED = {"reasoning_details": [{"type": "reasoning.text", "signature": "s"}], "reasoning_content": "hm", "thinking": "hm"}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def test_thoughts_and_signed_fields_go_and_what_was_said_and_called_stays():
    signed_call = {**CALL, "extra_content": {"google": {"thought_signature": "s"}}}
    message = assistant("<think>hm</think>\nI look.", name="ada", tool_calls=[signed_call], **SIGNED)
    assert plain(message) == assistant("I look.", name="ada", tool_calls=[CALL])
    assert unsigned(message) == assistant("<think>hm</think>\nI look.", name="ada", tool_calls=[CALL])
    assert message["tool_calls"] == [signed_call], "the history itself is not touched"


@pytest.mark.parametrize("role", ["user", "system", "tool"])
def test_only_what_an_assistant_said_is_changed(role):
    message = {"role": role, "content": "<think>hm</think>a", "tool_call_id": "c", "cache_control": {"type": "ephemeral"}}
    assert plain(message) is message
    assert unsigned(message) is message


def test_a_model_s_own_markers_count_and_content_in_parts_is_read_too():
    own = (("[T]", "[/T]"),)
    assert plain(assistant("[T]hm[/T]a"), own) == assistant("a")
    assert plain(assistant("[T]hm[/T]a")) == assistant("[T]hm[/T]a")
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "<think>hm</think>a"}, picture]
    assert plain(assistant(parts)) == assistant([{"type": "text", "text": "a"}, picture])


@pytest.mark.parametrize("content", [None, "", "no thought at all"])
def test_a_message_without_thoughts_stays_as_it_is(content):
    assert plain(assistant(content)) == assistant(content)


@pytest.mark.parametrize(("model", "kept"), [("scripted", True), ("another", False)])
def test_an_interrupted_turn_goes_on_with_what_was_signed_where_the_same_model_goes_on(tmp_path, model, kept):
    db, tools = Database(tmp_path / "turns.db"), ScriptedTools({"tool_ok": "fine"})
    signed = SignedDelta({"reasoning_details": SIGNED["reasoning_details"]}, {"c": {"extra_content": {"google": "s"}}})
    with pytest.raises(BackendError, match="gone"):
        list(turn(db, ScriptedLLM([[*call("tool_ok", "c"), signed], BackendError("gone")]), tools))
    goes_on = ScriptedLLM(["done"], model_name=model)
    assert end_of(resumed(db, goes_on, tools)).status == "completed"
    db.close()
    said = goes_on.requests[0].messages[2]
    assert (said.get("reasoning_details") == SIGNED["reasoning_details"]) is kept
    assert ("extra_content" in said["tool_calls"][0]) is kept
