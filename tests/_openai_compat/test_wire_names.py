"""Tool names on the wire, both ways."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lollms_client._bindings.request import ChatRequest
from lollms_client._openai_compat.names import WireNames, names_of
from lollms_client._openai_compat.wire import chat_body

FITS = re.compile(r"[A-Za-z0-9_-]{1,64}")
HARD = ["coding.start", "a b", "x" * 80, "server::read", "x" * 81, "a.b", "a/b", "日本", ".", "tool_ok"]


@given(st.sets(st.text(min_size=1, max_size=90) | st.sampled_from(HARD), max_size=12))
def test_every_name_fits_no_two_share_one_and_each_comes_back(names):
    wire = WireNames(names)
    sent = {name: wire.out(name) for name in names}
    assert all(FITS.fullmatch(w) for w in sent.values())
    assert len(set(sent.values())) == len(names)
    assert all(wire.back(w) == name for name, w in sent.items())
    assert all(sent[name] == name for name in names if FITS.fullmatch(name))
    assert WireNames(sorted(names, reverse=True)).out("a b") == wire.out("a b")


def test_a_name_keeps_its_wire_form_whatever_else_is_there():
    alone = WireNames(["server::read"]).out("server::read")
    assert alone == WireNames(HARD).out("server::read")
    assert alone.startswith("server_read_")


def test_a_tool_that_really_has_another_s_wire_form_keeps_it():
    taken = WireNames(["a b"]).out("a b")
    both = WireNames(["a b", taken])
    assert both.out(taken) == taken
    assert both.out("a b") != taken
    assert both.back(both.out("a b")) == "a b"


def test_a_name_that_was_never_sent_stays_as_it_is():
    assert WireNames(HARD).back("tool_of_the_model_s_own") == "tool_of_the_model_s_own"


def _tool(name: str) -> dict[str, object]:
    return {"name": name, "description": "", "input_schema": {}}


def test_tools_and_the_transcript_go_out_under_wire_names_and_what_is_ours_is_not_touched():
    call = {"id": "c1", "type": "function", "function": {"name": "server::read", "arguments": "{}"}}
    gone = {"id": "c2", "type": "function", "function": {"name": "gone tool", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": [call, gone]},
        {"role": "tool", "tool_call_id": "c1", "name": "server::read", "content": "ok"},
    ]
    request = ChatRequest(messages, tools=(_tool("server::read"), _tool("tool_ok")))
    names = names_of(request)
    body = chat_body(request, "m", names=names)
    wire = names.out("server::read")
    assert [t["function"]["name"] for t in body["tools"]] == [wire, "tool_ok"]
    said = body["messages"][1]["tool_calls"]
    assert [c["function"]["name"] for c in said] == [wire, names.out("gone tool")]
    assert all(FITS.fullmatch(c["function"]["name"]) for c in said)
    assert body["messages"][2]["name"] == wire
    assert call["function"]["name"] == messages[2]["name"] == "server::read"


@pytest.mark.parametrize("name", [n for n in HARD if not FITS.fullmatch(n)])
def test_each_hard_name_fits_on_the_wire(name):
    assert FITS.fullmatch(WireNames([name]).out(name))
