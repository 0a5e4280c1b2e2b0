"""Workers of turns that were interrupted: nothing of theirs is lost or done twice, and what they wait for comes to the top."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from lollms_client import events as ev
from lollms_client.errors import BackendError
from lollms_client.lollms_personality import LollmsPersonality
from lollms_client.testing import Reply, ScriptedTools, Usage, call

from ..personality.personality_kit import library
from .workers_kit import requests_of, spinoff, tree_client

ACTOR = Path(__file__).parent / "killed_parent.py"
DROP = "def tool_drop(line: str) -> str:\n    with open('dropped.txt', 'a') as file:\n        file.write(line + ';')\n    return line"


class Killed(BaseException):
    """Stands for the end of the process."""


def result_of(chat, position=0):
    return chat["tool_results"][position]["result"]


def test_a_parent_that_was_killed_in_mid_spawn_goes_on_with_its_worker(python, tmp_path):
    with subprocess.Popen(
        [python, str(ACTOR), str(tmp_path), "begin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "there\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    done = subprocess.run(
        [python, str(ACTOR), str(tmp_path), "resume"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    said = json.loads(done.stdout)
    assert (said["result"]["response"], said["result"]["turn_status"], said["requests"]) == ("All done.", "completed", 2)
    assert (tmp_path / "ledger.txt").read_text().split() == ["parent", "1", "worker", "1", "worker", "2"]
    worker = result_of(said["result"], 1)
    assert (worker["output"], worker["child_rounds"], len(worker["child_tool_calls"])) == ("Sub done.", 4, 3)
    turns = LollmsPersonality(workspace_path=tmp_path).turns().turns()
    assert [(row.parent_turn is None, row.status) for row in turns] == [(True, "completed"), (False, "completed")]
    assert turns[1].parent_turn == turns[0].id
    assert turns[1].owner == turns[0].owner


def broken_at(scripts, name, number):
    """The scripts, with the process at an end at one request of one agent."""

    def dies(request):
        raise Killed

    script = list(scripts[name])
    script[number] = dies
    return {**scripts, name: script}


@pytest.mark.parametrize(("name", "number"), [("Sub", 0), ("Sub", 1), ("Low", 1), ("Go", 2)])
def test_wherever_a_tree_of_agents_ends_it_goes_on_there_and_every_effect_is_there_once(tmp_path, name, number):
    scripts = {
        "Go": [call("tool_note", line="1"), spinoff("Sub."), "Done."],
        "Sub": [[*call("tool_note", line="2"), *spinoff("Low.")], "Sub done."],
        "Low": [call("tool_note", line="3"), "Low done."],
    }
    notes = []
    tools = ScriptedTools({"tool_note": lambda line: notes.append(line) or line})
    with pytest.raises(Killed):
        LollmsPersonality(workspace_path=tmp_path / "killed").chat("Go.", tree_client(broken_at(scripts, name, number), tools))
    agent = LollmsPersonality(workspace_path=tmp_path / "killed")
    assert agent.has_resumable_turn()
    chat = agent.resume_turn(lollms_client=tree_client(scripts, tools))
    assert (chat["response"], sorted(notes)) == ("Done.", ["1", "2", "3"])
    whole = LollmsPersonality(workspace_path=tmp_path / "whole").chat("Go.", tree_client(scripts, tools))
    assert _plain(chat) == _plain(whole)
    assert not agent.has_resumable_turn()


def _plain(chat):
    """A result without what differs from run to run."""
    text = json.dumps([chat["tool_calls"], [{**r, "result": {**r["result"], "turn_id": ""}} for r in chat["tool_results"]]])
    return [chat["response"], chat["rounds"], text]


def parent_that_dies_with_its_worker(workspace):
    """An agent whose process ends when its worker's turn is over and nothing was written of that beside it."""
    agent = LollmsPersonality(workspace_path=workspace)
    store = agent.turns()
    begin = store.begin

    def dies(*_, **__):
        raise Killed

    def begin_and_die(row, also=None):
        lease = begin(row, also)
        if row.parent_turn is None:
            lease.call_ended = lease.turn_ended = dies
        return lease

    store.begin = begin_and_die
    return agent


def test_a_worker_that_was_done_is_not_played_again_and_what_it_used_still_counts(tmp_path):
    used = Usage(5, 50)
    scripts = {
        "Go": [Reply(spinoff("Sub."), usage=used), Reply(["Done."], usage=used)],
        "Sub": [Reply(["Sub done."], usage=used)],
    }
    tools = ScriptedTools({"tool_look": 1})
    with pytest.raises(Killed):
        parent_that_dies_with_its_worker(tmp_path).chat("Go.", tree_client(scripts, tools))
    again = LollmsPersonality(workspace_path=tmp_path)
    client = tree_client(scripts, tools)
    result = again.resume_turn(lollms_client=client)
    assert (result["response"], result_of(result)["output"]) == ("Done.", "Sub done.")
    assert requests_of(client, "Sub") == []
    assert result["usage"]["completion_tokens"] == 150


def test_the_budget_of_a_tree_counts_what_was_used_before_it_was_interrupted(tmp_path):
    used = Usage(5, 50)
    scripts = {
        "Go": [Reply(spinoff("Sub."), usage=used), Reply(["never"], usage=used)],
        "Sub": [
            Reply(call("tool_look"), usage=used),
            Reply(call("tool_look", again=True), usage=used),
            Reply(["never"], usage=used),
        ],
    }
    tools = ScriptedTools({"tool_look": lambda **_: "seen"})
    with pytest.raises(Killed):
        LollmsPersonality(workspace_path=tmp_path).chat("Go.", tree_client(broken_at(scripts, "Sub", 1), tools), max_tokens=140)
    client = tree_client(scripts, tools)
    result = LollmsPersonality(workspace_path=tmp_path).resume_turn(lollms_client=client)
    assert (result["turn_status"], result_of(result)["turn_status"]) == ("limit", "limit")
    assert len(client.llm.requests) == 1
    assert result["usage"]["completion_tokens"] == 150


def test_an_approval_of_a_worker_comes_to_the_top_and_is_answered_from_another_object(tmp_path):
    dropper = library(tmp_path, "dropper", DROP, effects={"tool_drop": ["destructive"]})
    scripts = {
        "Go": [spinoff("Sub."), "All done."],
        "Sub": [spinoff("Low."), "Sub done."],
        "Low": [[*call("tool_drop", line="a"), *call("tool_drop", line="b")], "Low done."],
    }
    work = tmp_path / "work"
    events = list(
        LollmsPersonality(workspace_path=work).play("Go.", tree_client(scripts), tool_files=dropper, defer_approval=True)
    )
    asked = [e for e in events if isinstance(e, ev.ApprovalRequested)]
    assert [(e.call.name, e.call.arguments, e.kind) for e in asked] == [
        ("tool_drop", {"line": "a"}, "approval"),
        ("tool_drop", {"line": "b"}, "approval"),
    ]
    assert events[-1].status == "waiting_approval"
    person = LollmsPersonality(workspace_path=work)
    waiting = person.pending()
    assert [(w["ticket"], w["turn_id"]) for w in waiting] == [(e.ticket, e.turn_id) for e in asked]
    assert not (work / "dropped.txt").exists()
    person.decide(waiting[1]["ticket"], "allow")
    second = person.resume_turn(lollms_client=tree_client(scripts), tool_files=dropper, defer_approval=True)
    assert (second["turn_status"], [p["parameters"] for p in second["pending"]]) == ("waiting_approval", [{"line": "a"}])
    person.decide(waiting[0]["ticket"], "reject", reason="Keep a.")
    client = tree_client(scripts)
    last = LollmsPersonality(workspace_path=work).resume_turn(lollms_client=client, tool_files=dropper)
    assert (last["turn_status"], last["response"], last["pending"]) == ("completed", "All done.", [])
    assert (work / "dropped.txt").read_text() == "b;"
    told = [m["content"] for m in requests_of(client, "Low")[0].messages if m["role"] == "tool"]
    assert "Keep a." in told[0]
    assert told[1] == "b"
    assert person.pending() == []


def test_what_a_worker_waits_for_is_not_asked_any_more_once_its_parent_was_given_up(tmp_path):
    dropper = library(tmp_path, "dropper", DROP, effects={"tool_drop": ["destructive"]})
    scripts = {"Go": [spinoff("Sub."), "never"], "Sub": [call("tool_drop", line="a"), "never"]}
    agent = LollmsPersonality(workspace_path=tmp_path / "work")
    agent.chat("Go.", tree_client(scripts), tool_files=dropper, defer_approval=True)
    assert len(agent.pending()) == 1
    agent.discard_turn()
    assert agent.pending() == []
    assert not agent.has_resumable_turn()


def test_a_worker_s_question_waits_like_its_parent_s(tmp_path):
    scripts = {"Go": [spinoff("Sub."), "Done."], "Sub": [call("tool_ask_user", question="Which door?"), "The left one."]}
    agent = LollmsPersonality(workspace_path=tmp_path)
    first = agent.chat("Go.", tree_client(scripts), ask_user=True)
    assert (first["turn_status"], [p["reason"] for p in first["pending"]]) == ("waiting_user", ["Which door?"])
    agent.decide(agent.pending()[0]["ticket"], answer="Left.")
    client = tree_client(scripts)
    assert agent.resume_turn(lollms_client=client, ask_user=True)["response"] == "Done."
    assert requests_of(client, "Sub")[0].messages[-1]["content"] == "Left."


def test_a_worker_whose_backend_failed_stays_failed_for_its_parent(tmp_path):
    scripts = {"Go": [spinoff("Sub."), BackendError("gone too")], "Sub": [BackendError("gone")]}
    agent = LollmsPersonality(workspace_path=tmp_path)
    with pytest.raises(BackendError, match="gone too"):
        agent.chat("Go.", tree_client(scripts, ScriptedTools({})))
    client = tree_client({"Go": [spinoff("Sub."), "I go on alone."]}, ScriptedTools({}))
    result = agent.resume_turn(lollms_client=client)
    assert (result["response"], len(client.llm.requests)) == ("I go on alone.", 1)
    assert "gone" in result_of(result)["error"]


def test_a_worker_at_its_limit_is_not_given_more_when_its_parent_goes_on(tmp_path):
    scripts = {"Go": [spinoff("Sub.", max_rounds=1), "Done."], "Sub": [["I look.", *call("tool_look")], "never"]}
    tools = ScriptedTools({"tool_look": 1})
    with pytest.raises(Killed):
        parent_that_dies_with_its_worker(tmp_path).chat("Go.", tree_client(scripts, tools))
    client = tree_client(scripts, tools)
    result = LollmsPersonality(workspace_path=tmp_path).resume_turn(lollms_client=client)
    worker = result_of(result)
    assert (worker["turn_status"], worker["child_rounds"], worker["output"]) == ("limit", 1, "I look.")
    assert requests_of(client, "Sub") == []
