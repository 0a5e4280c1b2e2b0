"""Ollama's protocol as pure functions: what a request becomes, what an answer's bytes become, however they are cut."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._bindings.request import ChatRequest, Sampling
from lollms_client._openai_compat.names import WireNames, names_of
from lollms_client._stream.deltas import FinishDelta, ReasoningDelta, SignedDelta, ToolCallDelta
from lollms_client.errors import BackendError, BackendProtocolError, ConfigurationError, ContextWindowError
from lollms_client.events import Usage
from lollms_client.llm_bindings.ollama.address import address_of
from lollms_client.llm_bindings.ollama.facts import NOTHING_KNOWN, facts_of
from lollms_client.llm_bindings.ollama.protocol import Asking, chat_body, deltas_of, lines_of

PNG = b"\x89PNG rest of it"
TEXT = {"type": "text", "text": "What is this?"}


def _body(messages=(), asking=Asking(), **request):  # noqa: B008 - a frozen value
    asked = ChatRequest(list(messages), **request)
    return chat_body(asked, "m", asking, names_of(asked))


def _deltas(*parts, names=WireNames()):  # noqa: B008 - a frozen value
    return list(deltas_of([json.dumps(p).encode() + b"\n" for p in parts], "the server", names))


# ---- out -----------------------------------------------------------------------------------------------------------------------


def test_a_request_says_what_was_asked_and_nothing_else():
    assert _body([{"role": "user", "content": "hello"}]) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "truncate": False,
        "shift": False,
    }
    assert _body(asking=Asking(truncate=True)).keys() == {"model", "messages", "stream"}


def test_every_setting_has_its_name_in_the_options():
    asking = Asking(Sampling(temperature=0.9, top_k=5), {"min_p": 0.1, "seed": 8}, context=4096, threads=3, keep_alive="9m")
    body = _body(asking=asking, sampling=Sampling(9, 0.1, None, 0.9, 1.1, 64, 7), stop=("END",), json_schema={"type": "object"})
    assert body["options"] == {
        "num_predict": 9, "temperature": 0.1, "top_k": 5, "top_p": 0.9, "repeat_penalty": 1.1, "repeat_last_n": 64, "seed": 7,
        "num_ctx": 4096, "num_thread": 3, "min_p": 0.1, "stop": ["END"],
    }  # fmt: skip
    assert (body["keep_alive"], body["format"]) == ("9m", {"type": "object"})


@pytest.mark.parametrize(
    ("asked", "asking", "think", "effort"),
    [
        ({}, Asking(), None, None),
        ({"think": True}, Asking(), True, None),
        ({"think": False}, Asking(), False, None),
        ({"reasoning_effort": "high"}, Asking(), True, "high"),
        ({"reasoning_effort": "none"}, Asking(), False, None),
        ({"reasoning_effort": "high", "think": False}, Asking(), False, None),
        ({"reasoning_effort": "max"}, Asking(efforts=("low", "high")), True, "high"),
        ({"reasoning_effort": "max"}, Asking(efforts=("Low", "High"), takes_levels=True), "high", "High"),
        ({"think": True}, Asking(efforts=("low", "medium", "high"), takes_levels=True), "high", "high"),
        ({"reasoning_effort": "deep"}, Asking(efforts=("fast", "deep"), takes_levels=True), True, "deep"),
        ({"reasoning_effort": "high"}, Asking(thinks=False), None, None),
        ({"think": False}, Asking(thinks=False), None, None),
        ({"reasoning_effort": "high"}, Asking(thinks=True), True, "high"),
    ],
)
def test_thinking_is_asked_for_in_the_form_that_the_model_takes(asked, asking, think, effort):
    body = _body(asking=asking, **asked)
    assert (body.get("think"), body.get("options", {}).get("think")) == (think, effort)


def test_pictures_go_as_base64_beside_the_text_in_whatever_form_they_come(tmp_path):
    file = tmp_path / "a.png"
    file.write_bytes(PNG)
    plain = base64.b64encode(PNG).decode()
    for source in (str(file), plain, f"data:image/png;base64,{plain}"):
        said = [TEXT, {"type": "image_url", "image_url": {"url": source}}, "And more?"]
        assert _body([{"role": "user", "content": said}])["messages"] == [
            {"role": "user", "content": "What is this?\nAnd more?", "images": [plain]}
        ]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, "fetches none"),
        ({"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}, "'video_url'"),
        ({"type": "image_url", "image_url": {"url": "/no/such.png"}}, "such.png"),
    ],
)
def test_what_the_server_cannot_take_is_refused_with_the_reason(part, said):
    with pytest.raises(ConfigurationError, match=said):
        _body([{"role": "user", "content": [TEXT, part]}])


def test_tools_calls_and_results_go_in_the_server_s_form_under_wire_names():
    tool = {"name": "server::read", "description": "Reads.", "input_schema": {"properties": {"p": {"type": "string"}}}}
    call = {"id": "c1", "type": "function", "function": {"name": "server::read", "arguments": '{"p": "ü"}'}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": "c1", "name": "server::read", "content": "text"},
    ]
    body = _body(messages, tools=(tool,))
    wire = names_of(ChatRequest(messages, tools=(tool,))).out("server::read")
    assert wire != "server::read"
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": wire,
                "description": "Reads.",
                "parameters": {"type": "object", "properties": {"p": {"type": "string"}}},
            },
        }
    ]
    assert body["messages"] == [
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [{"id": "c1", "function": {"name": wire, "arguments": {"p": "ü"}}}],
        },
        {"role": "tool", "content": "text", "tool_name": wire, "tool_call_id": "c1"},
    ]


@pytest.mark.parametrize(
    ("said", "sent"),
    [({"a": 1}, {"a": 1}), ("", {}), (None, {}), ('{"a"', {"arguments": '{"a"'}), ("[1]", {"arguments": [1]})],
)
def test_arguments_always_go_as_an_object(said, sent):
    message = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "t", "arguments": said}}]}
    assert _body([message])["messages"][0]["tool_calls"] == [{"function": {"name": "t", "arguments": sent}}]


# ---- in ------------------------------------------------------------------------------------------------------------------------

ANSWER = [
    {"message": {"role": "assistant", "content": "", "thinking": "hm, ü"}, "done": False},
    {"message": {"role": "assistant", "content": "a\nb"}, "done": False},
    {"message": {"content": "", "tool_calls": [{"function": {"index": 0, "name": "t", "arguments": {"a": "ü"}}}]}, "done": False},
    {"message": {"content": "", "tool_calls": [{"function": {"index": 0, "name": "t", "arguments": {}}}]}, "done": False},
    {"message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3},
]
MEANT = [
    ReasoningDelta("hm, ü"),
    "a\nb",
    ToolCallDelta(0, "", "t", '{"a": "ü"}'),
    ToolCallDelta(1, "", "t", "{}"),
    SignedDelta({"thinking": "hm, ü"}),
    FinishDelta("tool_calls"),
    Usage(7, 3),
]


@given(st.data(), st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \n"]), st.booleans())
def test_an_answer_is_the_same_wherever_its_bytes_are_cut(data, end, ended):
    raw = end.join(json.dumps(p, ensure_ascii=False).encode() for p in ANSWER) + (end if ended else b"")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=20)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert list(deltas_of(pieces, "the server")) == MEANT


@given(st.lists(st.binary(max_size=9), max_size=9))
def test_any_bytes_cut_anywhere_give_the_lines_of_the_whole(pieces):
    assert list(lines_of(pieces)) == [line for line in b"".join(pieces).split(b"\n") if line.strip()]


@given(st.binary(max_size=60))
def test_any_bytes_are_an_answer_or_an_error_of_ours(raw):
    try:
        assert isinstance(list(deltas_of([raw], "the server")), list)
    except BackendError:
        pass


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
)


@given(st.dictionaries(st.sampled_from(["message", "done", "done_reason", "error", "eval_count"]), json_values), json_values)
def test_parts_of_any_shape_are_an_answer_or_an_error_of_ours(part, message):
    try:
        _deltas(part, {"message": {"content": message, "thinking": message, "tool_calls": message}}, {"done": True})
    except BackendError:
        pass


def test_what_follows_the_end_is_not_read_and_reasons_are_the_server_s():
    assert _deltas({"done": True, "done_reason": "length"}, {"error": "x"}) == [FinishDelta("length")]
    assert _deltas({"done": True}) == [FinishDelta("stop")]


def test_names_come_back_in_their_own_form_and_ids_as_they_are():
    names = WireNames(["server::read"])
    call = {"id": "call_1", "function": {"name": names.out("server::read"), "arguments": '{"as": "text"}'}}
    assert _deltas({"message": {"tool_calls": [call]}, "done": True}, names=names) == [
        ToolCallDelta(0, "call_1", "server::read", '{"as": "text"}'),
        FinishDelta("tool_calls"),
    ]


@pytest.mark.parametrize(
    ("parts", "error", "said"),
    [
        ([{"message": {"content": "a"}}], BackendProtocolError, "in the middle"),
        ([], BackendProtocolError, "in the middle"),
        ([[1]], BackendProtocolError, "not a part of an answer"),
        ([{"message": "a"}], BackendProtocolError, "not a part of an answer"),
        ([{"message": {"tool_calls": [{"name": "t"}]}}], BackendProtocolError, "not a part of an answer"),
        ([{"error": "boom"}], BackendError, "500: boom"),
        ([{"error": "boom", "status_code": 503}], BackendError, "503: boom"),
        ([{"error": "the input length exceeds the context length"}], ContextWindowError, "longer than the model's context"),
    ],
)
def test_what_is_no_answer_is_an_error_that_says_so(parts, error, said):
    with pytest.raises(error, match=said):
        _deltas(*parts)


# ---- what the server says about a model --------------------------------------------------------------------------------------------


def test_servers_that_list_no_capabilities_say_them_by_template_and_projector():
    old = {"template": "{{ if .Tools }}{{ .Tools }}{{ end }}", "projector_info": {"x": 1}, "details": {"family": "mllama"}}
    facts = facts_of({**old, "model_info": {"mllama.context_length": 4096}})
    assert (facts.tools, facts.vision, facts.thinks, facts.trained_context) == (True, True, None, 4096)
    assert facts_of({"template": "{{ .Prompt }}"}).tools is False


@pytest.mark.parametrize("said", [None, [], {}, "x", {"capabilities": 3, "model_info": [], "parameters": 5, "template": 1}])
def test_a_server_that_says_nothing_about_a_model_leaves_everything_open(said):
    facts = facts_of(said)
    assert (facts.tools, facts.vision, facts.thinks, facts.context(None)) == (None, None, None, None)
    assert NOTHING_KNOWN.context(100) == 100


def test_the_context_is_what_is_asked_for_as_far_as_the_model_goes():
    facts = facts_of(
        {
            "parameters": 'stop  "x"\nnum_ctx                        2048\n',
            "model_info": {"general.architecture": "a", "a.context_length": 8192},
        }
    )
    assert [facts.context(n) for n in (None, 4096, 99999)] == [2048, 4096, 8192]


# ---- addresses -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("1.2.3.4", "http://1.2.3.4:11434"),
        (":56789", "http://127.0.0.1:56789"),
        ("example.com:56789/path/", "http://example.com:56789/path"),
        ("http://example.com", "http://example.com:80"),
        ("https://example.com", "https://example.com:443"),
        ("https://example.com:9/path", "https://example.com:9/path"),
        ("[1:2::1]", "http://[1:2::1]:11434"),
        ("::1", "http://[::1]:11434"),
        ("https://[1:2::1]:9", "https://[1:2::1]:9"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("[::]:9", "http://[::1]:9"),
        ("http://user:key@h:1/x", "http://user:key@h:1/x"),
        ("http://h:11434/v1/", "http://h:11434"),
        ("h:11434/api", "http://h:11434"),
    ],
)
def test_an_address_may_have_any_form_that_the_server_s_own_tools_take(said, url):
    assert address_of(said) == url


@pytest.mark.parametrize("said", ["http://", "ftp://h", "://h", "h:port", "http://h:99999"])
def test_what_is_no_address_is_refused(said):
    with pytest.raises(ConfigurationError, match="is no address of a server"):
        address_of(said)
