"""What goes out: effort, thinking, pictures and videos, and what each vendor takes."""

from __future__ import annotations

import base64

import pytest

from lollms_client._bindings.request import ChatRequest, Sampling
from lollms_client._openai_compat.vendor import Vendor, Wire, read_vendor
from lollms_client._openai_compat.wire import ModelFacts, chat_body
from lollms_client.errors import ConfigurationError

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 20
NARROW = Wire(template_kwargs=False, silence=False)


ANY, PLAIN = Wire(), ModelFacts()


def _body(wire: Wire = ANY, facts: ModelFacts = PLAIN, **asked):
    body = chat_body(ChatRequest([], **asked), "m", wire=wire, facts=facts)
    return {k: v for k, v in body.items() if k in ("reasoning_effort", "thinking", "chat_template_kwargs")}


def test_an_effort_without_think_turns_thinking_on_and_goes_at_the_nearest_level():
    assert _body(reasoning_effort="high") == {"reasoning_effort": "high", "chat_template_kwargs": {"enable_thinking": True}}
    levels = ModelFacts(("low", "medium", "high"))
    assert _body(facts=levels, reasoning_effort="max")["reasoning_effort"] == "high"
    assert _body(facts=levels, think=True)["reasoning_effort"] == "high"
    assert _body() == {}


SILENT = {"thinking": False, "chat_template_kwargs": {"enable_thinking": False, "thinking": False}}


@pytest.mark.parametrize(
    "asked",
    [{"reasoning_effort": "none"}, {"reasoning_effort": 0.0}, {"think": False}, {"think": False, "reasoning_effort": "high"}],
)
def test_the_effort_none_silences_thinking(asked):
    assert _body(**asked) == SILENT


def test_a_vendor_that_refuses_unknown_keys_gets_only_what_it_knows():
    assert _body(NARROW, reasoning_effort="high") == {"reasoning_effort": "high"}
    assert _body(NARROW, reasoning_effort="none") == {}
    assert _body(NARROW, ModelFacts(("none", "low")), reasoning_effort="none") == {"reasoning_effort": "none"}
    assert _body(Wire(reasoning_effort=False), reasoning_effort="high") == {"chat_template_kwargs": {"enable_thinking": True}}


@pytest.mark.parametrize("asked", [{"think": True}, {"think": False}, {"reasoning_effort": "high"}, {"reasoning_effort": "none"}])
def test_with_glm_image_embedding_nothing_is_said_about_enable_thinking(asked):
    body = _body(facts=ModelFacts(text_first=True), **asked)
    assert "enable_thinking" not in body.get("chat_template_kwargs", {})


def _content(parts, **facts):
    return chat_body(ChatRequest([{"role": "user", "content": parts}]), "m", facts=ModelFacts(**facts))["messages"][0]["content"]


def test_with_glm_image_embedding_text_goes_first_whatever_order_it_was_given_in():
    picture = {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}
    parts = [picture, {"type": "text", "text": "a"}, {"type": "video_url", "video_url": {"url": "https://e.org/a.mp4"}}, "b"]
    assert [p["type"] for p in _content(parts, text_first=True)] == ["text", "text", "image_url", "video_url"]
    assert [p.get("text") for p in _content(parts, text_first=True)][:2] == ["a", "b"]
    assert [p["type"] for p in _content(parts)] == ["image_url", "text", "video_url", "text"]
    assert parts[0] is picture


def test_pictures_and_videos_go_out_as_addresses_or_data_whatever_form_they_came_in(tmp_path):
    file = tmp_path / "a.png"
    file.write_bytes(PNG)
    data = "data:image/png;base64," + base64.b64encode(PNG).decode()
    raw = base64.b64encode(PNG).decode()
    parts = [{"type": "image_url", "image_url": {"url": u, "detail": "low"}} for u in (str(file), data, raw)]
    assert _content(parts) == [{"type": "image_url", "image_url": {"url": data, "detail": "low"}}] * 3
    assert _content([{"type": "image_url", "image_url": str(file)}])[0]["image_url"] == {"url": data}
    clip = tmp_path / "a.mp4"
    clip.write_bytes(b"\0\0\0\x18ftypmp42")
    assert _content([{"type": "video_url", "video_url": {"url": str(clip)}}])[0]["video_url"]["url"].startswith(
        "data:video/mp4;base64,"
    )
    audio = {"type": "input_audio", "input_audio": {"data": "x"}}
    assert _content([audio]) == [audio]


def test_a_picture_that_is_not_there_is_an_error_before_anything_is_sent():
    with pytest.raises(ConfigurationError, match=r"gone\.png"):
        _content([{"type": "image_url", "image_url": {"url": "gone.png"}}])


VENDOR = Vendor(
    wire={"sampling": {"n_predict": "max_tokens", "repeat_penalty": "repetition_penalty"}},
    hosts={"api.example.com": {"strict": True, "sampling": {"n_predict": "max_completion_tokens"}}},
)


def test_what_a_vendor_takes_is_data_by_address_and_what_the_host_says_wins():
    here, there = VENDOR.wire_at("http://127.0.0.1:8000/v1"), VENDOR.wire_at("https://api.example.com/v1", {"strict": False})
    request = ChatRequest([], Sampling(n_predict=5, repeat_penalty=1.1, top_k=3))
    body = chat_body(request, "m", wire=here)
    assert (body["max_tokens"], body["repetition_penalty"]) == (5, 1.1)
    assert "top_k" not in body
    body = chat_body(request, "m", wire=there)
    assert body["max_completion_tokens"] == 5
    assert not {"max_tokens", "repetition_penalty"} & body.keys()
    assert (here.strict, there.strict, VENDOR.wire_at("https://api.example.com/v1").strict) == (False, False, True)


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"sttrict": True}, "no 'sttrict'.*strict"),
        ({"strict": "yes"}, r"wire\.strict should be true or false"),
        ({"sampling": {"topk": "k"}}, "sampling should map .*top_k"),
    ],
)
def test_a_wire_that_cannot_be_is_refused_with_its_field(said, match):
    with pytest.raises(ConfigurationError, match=match):
        VENDOR.wire_at("http://x/v1", said)


def test_a_description_that_holds_something_else_is_refused():
    with pytest.raises(ConfigurationError, match="openai_compatible should be"):
        read_vendor({"openai_compatible": {"baseurl": "x"}}, "d")
    with pytest.raises(ConfigurationError, match=r"no capability 'tools'.*native_tools"):
        Vendor(capabilities={"tools": True}).capabilities_with(None)


def test_a_server_that_cannot_stream_is_asked_for_whole_answers():
    body = chat_body(ChatRequest([]), "m", wire=Wire(streaming=False))
    assert body["stream"] is False
    assert "stream_options" not in body
    assert "stream_options" not in chat_body(ChatRequest([]), "m", wire=Wire(stream_usage=False))
