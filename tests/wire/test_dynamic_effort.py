"""Dynamic mode over the wire: what a server is told about thinking, round by round, as the model changes its effort."""

from __future__ import annotations

import json

import ollama_kit
import pytest
import wire_kit
from wire_kit import USAGE, delta, events, fragment

from lollms_client import LollmsClient, LollmsLLMBinding
from lollms_client.events import EffortChange, TextDelta
from lollms_client.testing import ScriptedTools

LEVELS = ["high", "low", "max", "medium", "none"]


def tag(level: str) -> str:
    return f'Step.\n<effort level="{level}"/>\n'


def profile(**facts) -> dict:
    made = {"name": "p", "binding_profile_name": "master", "model_name": "toy", "is_default": True, **facts}
    return {"llm_model_profiles": [made]}


def openai_client(server, config=None, **more) -> LollmsClient:
    return LollmsClient("openai", llm_binding_config={"model_name": "toy", "base_url": server.url, **(config or {})}, **more)


def ollama_client(server, model="toy", **more) -> LollmsClient:
    return LollmsClient("ollama", llm_binding_config={"model_name": model, "base_url": server.root}, **more)


def openai_steps(*levels: str):
    """Answers that call a tool and set the effort, one behind the other, and a last one."""
    for number, level in enumerate(levels):
        call = fragment("tool_ok", json.dumps({"n": number}), index=0, id=f"c{number}")
        yield events(delta(content=tag(level)[:9]), delta(content=tag(level)[9:]), call, delta("tool_calls"), USAGE)
    yield wire_kit.says("done")


def ollama_steps(*levels: str):
    for number, level in enumerate(levels):
        yield ollama_kit.ndjson(ollama_kit.part(tag(level)), ollama_kit.call("tool_ok", {"n": number}), ollama_kit.done())
    yield ollama_kit.says("done")


def play(client, **options) -> list:
    with client:
        client.tools = ScriptedTools({"tool_ok": lambda n: "fine"})
        return list(client.run_turn("Go.", **{"dynamic_effort": True, **options}))


@pytest.mark.req("DG-dynamic.7")
def test_after_high_ollama_is_told_to_think_with_its_level_among_the_options(ollama):
    ollama.chats(*ollama_steps("high"))
    turn = play(ollama_client(ollama))
    first, second = ollama.bodies
    assert first["think"] is False
    assert "think" not in first.get("options", {})
    assert second["think"] is True
    assert second["options"]["think"] == "high"
    assert [e for e in turn if isinstance(e, EffortChange)] == [EffortChange("high")]


def test_a_model_at_ollama_that_thinks_by_levels_is_told_the_level(ollama):
    ollama.chats(*ollama_steps("high", "max"))
    play(ollama_client(ollama, "gpt-oss:20b"))
    assert [body["think"] for body in ollama.bodies] == [False, "high", "high"]


def test_a_model_at_ollama_that_cannot_think_is_told_nothing_about_it(ollama):
    ollama.models["plain:1b"]["capabilities"].append("tools")
    ollama.chats(*ollama_steps("high"))
    play(ollama_client(ollama, "plain:1b"))
    assert not any("think" in body or "think" in body.get("options", {}) for body in ollama.bodies)


@pytest.mark.req("DG-dynamic.8")
def test_after_high_a_server_of_the_openai_protocol_is_told_the_effort_and_to_think(server):
    server.chats(*openai_steps("high"))
    play(openai_client(server))
    first, second = server.bodies
    assert first["thinking"] is False
    assert first["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}
    assert "reasoning_effort" not in first
    assert second["reasoning_effort"] == "high"
    assert second["chat_template_kwargs"] == {"enable_thinking": True}
    assert "thinking" not in second


def test_thinking_is_silenced_again_after_none(server):
    server.chats(*openai_steps("high", "none"))
    play(openai_client(server))
    assert [body["chat_template_kwargs"]["enable_thinking"] for body in server.bodies] == [False, True, False]
    assert [body.get("thinking", "left out") for body in server.bodies] == [False, "left out", False]


def test_a_server_that_refuses_unknown_keys_is_told_by_the_effort_alone(server):
    narrow = {"wire": {"template_kwargs": False, "silence": False}}
    server.chats(*openai_steps("high", "none"))
    play(openai_client(server, narrow, **profile(supported_reasoning_efforts="none, low, high")))
    for body in server.bodies:
        assert body.keys().isdisjoint({"thinking", "chat_template_kwargs"})
    assert [body.get("reasoning_effort") for body in server.bodies] == ["none", "high", "none"]


@pytest.mark.req("DG-dynamic.10")
@pytest.mark.parametrize("supported", [["low", "medium", "high"], ["high", "max"], ["none", "Deep"], ["fast", "slow", "deep"]])
def test_each_round_s_level_is_projected_on_the_levels_that_the_model_supports(server, ollama, supported):
    numbers = ["0.0", "0.3", "0.9", "1.0"]
    wanted = ["none", *LEVELS, *numbers]
    projected = [LollmsLLMBinding.translate_reasoning_effort(level, supported) for level in wanted]
    facts = profile(supported_reasoning_efforts=", ".join(supported))
    server.chats(*openai_steps(*wanted[1:]))
    play(openai_client(server, **facts))
    assert [body.get("reasoning_effort") for body in server.bodies] == projected
    ollama.chats(*ollama_steps(*wanted[1:]))
    play(ollama_client(ollama, **facts))
    asked = [None if level in ("none", "0.0") else effort for level, effort in zip(wanted, projected, strict=True)]
    assert [body.get("options", {}).get("think") for body in ollama.bodies] == asked


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_the_tag_goes_back_to_no_server(server, ollama, kind):
    where, client, steps = (server, openai_client, openai_steps) if kind == "openai" else (ollama, ollama_client, ollama_steps)
    where.chats(*steps("high", "none"))
    turn = play(client(where))
    said = [m["content"] for m in where.bodies[-1]["messages"] if m["role"] == "assistant"]
    assert said == ["Step.\n", "Step.\n"]
    assert "".join(e.text for e in turn if isinstance(e, TextDelta)) == "Step.\nStep.\ndone"
    assert where.bodies[2]["messages"][: len(where.bodies[1]["messages"])] == where.bodies[1]["messages"]


def test_without_dynamic_mode_a_model_changes_nothing_by_the_tag(server):
    server.chats(*openai_steps("high"))
    turn = play(openai_client(server), dynamic_effort=False)
    assert all(body.keys().isdisjoint({"thinking", "chat_template_kwargs", "reasoning_effort"}) for body in server.bodies)
    assert not any(isinstance(e, EffortChange) for e in turn)
