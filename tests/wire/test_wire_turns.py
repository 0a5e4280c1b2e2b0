"""Whole agent turns over the wire: names that no provider takes, strict tools, effort, over real sockets and real tools."""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
import threading
import time

import pytest
from wire_kit import USAGE, breaks, delta, events, fragment, holds, says, status

from lollms_client import LollmsClient
from lollms_client._http import CancelToken
from lollms_client.errors import BackendUnavailableError
from lollms_client.events import ToolEnded, TurnEnded
from lollms_client.testing import ScriptedTools

FITS = re.compile(r"[A-Za-z0-9_-]{1,64}")
HARD = ("coding.start", "a b", "x" * 80, "server::read")


@pytest.fixture
def client(server):
    made = LollmsClient("openai", llm_binding_config={"model_name": "m", "base_url": server.url})
    yield made
    made.close()


def _calls(*names: str, **arguments: object):
    """An answer that calls tools by the names that the request gave them."""

    def answer(conn, asked):
        parts = [fragment(n, json.dumps(arguments), index=i, id=f"c{i}") for i, n in enumerate(_on_the_wire(asked.body, names))]
        events(*parts, delta("tool_calls"), USAGE)(conn, asked)

    return answer


def _on_the_wire(body, ours) -> list[str]:
    """The wire names of tools, by what their descriptions say."""
    said = {tool["function"]["description"]: tool["function"]["name"] for tool in body["tools"]}
    return [said[f"Scripted {name}."] for name in ours]


@pytest.mark.req("CT-A11.1")
def test_names_that_no_provider_takes_work_in_a_turn_beside_others_and_keep_their_form_for_us(server, client):
    tools = ScriptedTools({name: name[:3] for name in (*HARD, "tool_ok")})
    client.tools = tools
    server.chats(_calls(*HARD, "tool_ok"), _calls("server::read"), says("done"))
    turn = list(client.run_turn("Call them all."))
    end = turn[-1]
    assert isinstance(end, TurnEnded)
    assert (end.status, end.response) == ("completed", "done")
    assert sorted(name for name, _ in tools.calls) == sorted([*HARD, "tool_ok", "server::read"])
    assert {e.call.name for e in turn if isinstance(e, ToolEnded)} == {*HARD, "tool_ok"}
    assert [c["name"] for c in end.tool_calls] == [*HARD, "tool_ok", "server::read"]
    first, second, third = server.bodies
    sent = [tool["function"]["name"] for tool in first["tools"]]
    assert len(set(sent)) == 5
    assert all(FITS.fullmatch(name) for name in sent)
    assert "tool_ok" in sent
    assert second["tools"] == third["tools"] == first["tools"]
    called = [c["function"]["name"] for m in third["messages"] for c in m.get("tool_calls") or ()]
    assert called == _on_the_wire(first, (*HARD, "tool_ok", "server::read"))
    assert third["messages"][: len(second["messages"])] == second["messages"], "what was sent stays as it is"
    assert all(FITS.fullmatch(m["name"]) for m in third["messages"] if m["role"] == "tool")


def test_a_request_that_is_asked_again_runs_no_tool_again(server, client):
    tools = ScriptedTools({"tool_ok": "fine"})
    client.tools = tools
    refusal = status(503, None, Retry_After="0")
    server.chats(refusal, _calls("tool_ok"), refusal, breaks, says("done"))
    client.llm.retry = dataclasses.replace(client.llm.retry, first_wait=0.0)
    end = list(client.run_turn("Call it."))[-1]
    assert (end.status, end.response, len(tools.calls)) == ("completed", "done", 1)
    assert len(server.asked) == 5
    assert server.bodies[2] == server.bodies[4]


def test_an_answer_that_breaks_off_after_a_call_runs_nothing_and_fails(server, client):
    tools = ScriptedTools({"tool_ok": "fine"})
    client.tools = tools
    server.chats(events(fragment("tool_ok", "{}", index=0, id="c"), done=False, end=False))
    with pytest.raises(BackendUnavailableError, match="closed the connection"):
        list(client.run_turn("Call it."))
    assert tools.calls == []
    assert len(server.asked) == 1


def test_cancelling_the_client_ends_a_turn_that_waits_for_the_server_within_200_ms(server, client):
    took = []
    for _ in range(3):
        arrived, at = threading.Event(), []
        server.chats(holds(arrived, head=False))

        def cancel(arrived=arrived, at=at) -> None:
            arrived.wait(10)
            CancelToken().wait(0.05)  # let the turn block in its read
            at.append(time.monotonic())
            client.cancel()

        threading.Thread(target=cancel, daemon=True).start()
        end = list(client.run_turn("Hello."))[-1]
        took.append(time.monotonic() - at[0])
        assert end.status == "cancelled"
    assert min(took) < 0.2


def test_a_strict_tool_of_plain_python_gets_its_own_defaults_where_the_model_sends_null(server, tmp_path):
    library = tmp_path / "lib" / "greet.py"
    library.parent.mkdir()
    library.write_text(
        textwrap.dedent('''
            def tool_greet(who: str, word: str = "Hello", times: int | None = None):
                """Greets.

                Args:
                    who: whom
                """
                return f"{word} {who} {times}"
        ''')
    )
    config = {"model_name": "m", "base_url": server.url, "wire": {"strict": True}, "strict_tools": True}
    call = fragment("tool_greet", '{"who": "Ann", "word": null, "times": null}', index=0, id="c1")
    server.chats(events(call, delta("tool_calls"), USAGE), says("done"))
    lcp = {"tools_binding_name": "lcp", "tools_binding_config": {"tools_folders": [str(library.parent)]}}
    with LollmsClient("openai", llm_binding_config=config, **lcp) as client:
        end = list(client.run_turn("Greet Ann.", workspace_path=tmp_path / "ws"))[-1]
    assert end.tool_results[0]["result"]["output"] == "Hello Ann None"
    assert end.tool_calls[0]["parameters"] == {"who": "Ann"}
    greet = next(t["function"] for t in server.bodies[0]["tools"] if t["function"]["name"] == "tool_greet")
    assert greet["strict"] is True
    assert greet["parameters"]["required"] == ["who", "word", "times"]


@pytest.mark.req("CT-E.13")
def test_an_effort_given_without_think_turns_thinking_on_in_the_request(server, client):
    server.chats(says("a"))
    client.generate_text("hello", reasoning_effort="low")
    list(client.run_turn("hello", reasoning_effort="low"))
    for body in server.bodies:
        assert body["reasoning_effort"] == "low"
        assert body["chat_template_kwargs"] == {"enable_thinking": True}


@pytest.mark.req("DG-dynamic.11")
@pytest.mark.parametrize("asked", [{"reasoning_effort": "none"}, {"think": False}])
def test_the_effort_none_silences_thinking_in_the_request(server, client, asked):
    server.chats(says("a"))
    client.generate_text("hello", **asked)
    body = server.bodies[0]
    assert body["thinking"] is False
    assert body["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}


def _profile(**facts):
    return {
        "llm_model_profiles": [{"name": "p", "binding_profile_name": "master", "model_name": "glm", "is_default": True, **facts}]
    }


PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
VIDEO = {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}
TEXT = {"type": "text", "text": "What is this?"}


@pytest.mark.req("DG-effort.7", "DG-effort.8")
def test_a_profile_with_glm_image_embedding_sends_text_first_and_says_nothing_about_enable_thinking(server):
    server.chats(says("a"))
    config = {"base_url": server.url}
    with LollmsClient("openai", llm_binding_config=config, **_profile(glm_image_embedding=True)) as client:
        for asked in ({"think": True}, {"think": False}, {"reasoning_effort": "high"}, {}):
            client.generate_from_messages([{"role": "user", "content": [PICTURE, TEXT, PICTURE]}], **asked)
    for body in server.bodies:
        assert body["model"] == "glm"
        assert body["messages"][0]["content"] == [TEXT, PICTURE, PICTURE]
        assert "enable_thinking" not in body.get("chat_template_kwargs", {})


@pytest.mark.req("DG-video.2")
def test_structured_items_of_video_reach_a_backend_that_takes_video(server):
    server.chats(says("a"))
    with LollmsClient("openai", llm_binding_config={"base_url": server.url}, **_profile(video_enabled=True)) as client:
        client.generate_from_messages([{"role": "user", "content": [TEXT, VIDEO]}])
        client.generate_text("What is this?", videos=["https://example.org/a.mp4"])
    assert [body["messages"][0]["content"] for body in server.bodies] == [[TEXT, VIDEO]] * 2


def test_a_profile_s_efforts_are_the_levels_that_are_asked_for(server):
    server.chats(says("a"))
    profile = _profile(supported_reasoning_efforts="high, max")
    with LollmsClient("openai", llm_binding_config={"base_url": server.url}, **profile) as client:
        client.generate_text("hello", reasoning_effort="medium")
    assert server.bodies[0]["reasoning_effort"] == "high"
