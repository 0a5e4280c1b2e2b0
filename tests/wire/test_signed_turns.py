"""Tool loops with providers that sign: over real sockets, what they sign comes back to them as they sent it, and to nobody else."""

from __future__ import annotations

import json

import ollama_kit
import pytest
from ollama_kit import OllamaServer
from wire_kit import USAGE, delta, events, fragment, says

from lollms_client import LollmsClient
from lollms_client._agent.headless import HeadlessHost
from lollms_client._agent.loop import run_turn
from lollms_client._agent.options import turn_options
from lollms_client.events import TurnEnded
from lollms_client.testing import ScriptedTools

DETAILS = [
    {"type": "reasoning.text", "text": "I need – the \"wörd\".\n", "signature": "EqoB/+==", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "gAAAA+/x==", "id": "rs_1", "format": "openai-responses-v1", "index": 1},
]  # fmt: skip
SIGNATURE = {"google": {"thought_signature": "CrICAdHtim827fQ=="}}
KNOWN = {"role", "content", "tool_calls", "tool_call_id", "name"}


@pytest.fixture
def client(server):
    with LollmsClient("openai", llm_binding_config={"model_name": "m", "base_url": server.url}) as made:
        yield made


def calls(arguments: str = "{}", call_id: str = "c1", pieces=(), **more):
    """An answer that calls the tool, and what is signed of it."""
    chunks = [delta(reasoning_details=[piece]) for piece in pieces]
    return events(*chunks, fragment("tool_ok", arguments, index=0, id=call_id, **more), delta("tool_calls"), USAGE)


def cut(block: dict) -> list[dict]:
    """A block in three pieces, as it is streamed."""
    grows = "text" if "text" in block else "data"
    place = {"type": block["type"], "index": block["index"]}
    return [{**place, grows: c} for c in block[grows]] + [{k: v for k, v in block.items() if k != grows}]


def play(client, prompt="Go.", messages=(), **options) -> tuple[HeadlessHost, TurnEnded]:
    host = HeadlessHost(client.llm, ScriptedTools({"tool_ok": lambda **_: "fine"}), messages=messages)
    *_, end = run_turn(host, turn_options(prompt, {}, options))
    assert isinstance(end, TurnEnded)
    return host, end


def test_what_was_signed_comes_back_unchanged_in_every_later_round_of_the_turn(server, client):
    written = '{"b":  1,\n "ä": "\\u00fc"}'
    streamed = [piece for block in DETAILS for piece in cut(block)]
    server.chats(calls(written, pieces=streamed), calls('{"x": 2}', "c2"), says("done"))
    _, end = play(client)
    assert (end.status, end.response) == ("completed", "done")
    first, second, third = server.bodies
    mine = second["messages"][-2]
    assert mine["reasoning_details"] == DETAILS
    assert json.dumps(mine["reasoning_details"], sort_keys=True) == json.dumps(DETAILS, sort_keys=True)
    assert mine["tool_calls"][0]["function"]["arguments"] == written, "the bytes that the model wrote"
    assert third["messages"][: len(second["messages"])] == second["messages"]
    assert "reasoning_details" not in third["messages"][-2], "the second answer signed nothing"
    assert all(m.keys() <= KNOWN for m in first["messages"])


def test_signatures_of_calls_come_back_with_their_calls(server, client):
    both = [
        fragment("tool_ok", '{"n": 1}', id="c1", index=0, extra_content=SIGNATURE),
        fragment("tool_ok", '{"n": 2}', id="c2", index=0),
        delta(content="", extra_content={"google": {"thought_signature": "last"}}),
    ]
    server.chats(events(*both, delta("tool_calls"), USAGE), says("done"))
    play(client)
    message = next(m for m in server.bodies[1]["messages"] if m["role"] == "assistant")
    assert [call.get("extra_content") for call in message["tool_calls"]] == [SIGNATURE, None]
    assert message["extra_content"] == {"google": {"thought_signature": "last"}}


def test_a_later_turn_carries_nothing_of_it(server, client):
    server.chats(
        calls(pieces=DETAILS, extra_content=SIGNATURE), says("<think>so</think>done"), calls(call_id="c9"), says("done again")
    )
    host, _ = play(client)
    assert any("reasoning_details" in m for m in host.messages)
    play(client, "And now?", host.messages)
    for body in server.bodies[2:]:
        earlier = body["messages"][: len(host.messages)]
        assert all(m.keys() <= KNOWN for m in earlier)
        assert all(call.keys() == {"id", "type", "function"} for m in earlier for call in m.get("tool_calls", ()))
        assert earlier[-1]["content"] == "done"


def test_a_server_that_signs_nothing_gets_messages_of_the_common_form_alone(server, client):
    thought = delta(reasoning_content="Hm.")
    server.chats(events(thought, fragment("tool_ok", "{}", index=0, id="c"), delta("tool_calls"), USAGE), says("done"))
    play(client)
    assert all(m.keys() <= KNOWN for body in server.bodies for m in body["messages"])


def test_a_generated_text_is_the_same_with_and_without_signatures(server, client):
    told: list[str] = []
    server.chats(events(*(delta(reasoning_details=[d]) for d in DETAILS), delta(content="hello"), delta("stop"), USAGE))
    assert client.generate_text("hi") == "hello"
    assert client.generate_text("hi", streaming_callback=lambda chunk, kind: told.append(chunk) or True) == "hello"
    assert "".join(told) == "hello"


def test_a_server_whose_facts_say_so_gets_its_thoughts_back_with_the_calls_of_the_turn(server):
    thoughts = (delta(reasoning_content="I "), delta(reasoning_content="need it."))
    called = events(*thoughts, fragment("tool_ok", "{}", index=0, id="c1"), delta("tool_calls"), USAGE)
    server.chats(called, events(*thoughts, delta(content="done"), delta("stop"), USAGE), says("later"))
    config = {"model_name": "m", "base_url": server.url, "wire": {"returned": ["reasoning_content"]}}
    with LollmsClient("openai", llm_binding_config=config) as client:
        host, _ = play(client)
        play(client, "And now?", host.messages)
    assert server.bodies[1]["messages"][-2]["reasoning_content"] == "I need it."
    later = server.bodies[2]["messages"]
    assert [m.get("reasoning_content") for m in later] == [None, "", None, None, None], "a field, and nothing in it"


@pytest.mark.parametrize("host", ["api.deepseek.com"])
def test_the_description_knows_the_hosts_that_want_thoughts_back(host):
    with LollmsClient("openai", llm_binding_config={"model_name": "m", "base_url": f"https://{host}", "api_key": "k"}) as client:
        assert "reasoning_content" in client.llm._wire.returned


def test_ollama_gets_the_thoughts_of_a_turn_back_with_its_calls():
    server = OllamaServer()
    thoughts = [ollama_kit.part(thinking="I "), ollama_kit.part(thinking="need it.")]
    server.chats(
        ollama_kit.ndjson(*thoughts, ollama_kit.call("tool_ok", {"n": 1}), ollama_kit.done()),
        ollama_kit.ndjson(*thoughts, ollama_kit.part("done"), ollama_kit.done()),
        ollama_kit.says("later"),
    )
    with LollmsClient("ollama", llm_binding_config={"model_name": "toy", "base_url": server.root}) as client:
        host, end = play(client)
        play(client, "And now?", host.messages)
    server.close()
    assert end.response == "done"
    assert server.bodies[1]["messages"][-2]["thinking"] == "I need it."
    assert not any("thinking" in m for m in server.bodies[2]["messages"])
