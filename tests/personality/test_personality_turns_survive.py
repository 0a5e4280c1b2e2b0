"""Turns of a personality that were interrupted: by a kill, a failure, a cancel, a person who is not there."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from lollms_client._paths import home
from lollms_client._store.db import Database
from lollms_client.errors import BackendError, NotResumableError, TurnBusyError, UnknownNameError
from lollms_client.lollms_personality import LollmsPersonality
from lollms_client.testing import Reply, ScriptedTools, call

from .personality_kit import TAGS, client_of, library

ACTOR = Path(__file__).parent / "killed_agent.py"
LINES = ["one", "two", "three", "three and a half", "four"]
ASKS = "def tool_drop(line: str) -> str:\n    with open('dropped.txt', 'a') as file:\n        file.write(line + '\\n')\n    return 'dropped ' + line"


def begin_and_kill(python: str, workspace: Path) -> None:
    """Plays the turn in a process of its own and kills it in round 3."""
    with subprocess.Popen(
        [python, str(ACTOR), str(workspace), "begin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "there\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL


@pytest.mark.req("DG-checkpoint.2", "DG-checkpoint.3", "DG-checkpoint.11", "DG-checkpoint.12")
def test_an_agent_that_was_killed_in_round_three_goes_on_there_in_another_process(python, tmp_path):
    begin_and_kill(python, tmp_path)
    here = LollmsPersonality(workspace_path=tmp_path)
    assert here.has_resumable_turn()
    left = here.checkpoint()
    assert (left["round_count"], left["turn_status"]) == (2, "in_progress")
    assert [message["role"] for message in left["virtual_history"]] == ["user", "assistant", "tool", "assistant", "tool"]
    statuses = [(c["round"], c["name"], c["status"]) for c in left["tool_calls"]]
    assert statuses[-1] == (3, "tool_look", "started")
    assert [status for *_, status in statuses[:-1]] == ["done"] * 4
    done = subprocess.run(
        [python, str(ACTOR), str(tmp_path), "resume"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    said = json.loads(done.stdout)
    result = said["result"]
    assert (result["response"], result["rounds"], result["turn_status"]) == ("The ledger is kept.", 5, "completed")
    assert (tmp_path / "ledger.txt").read_text().split("\n")[:-1] == LINES
    assert said["messages"][1].startswith("Keep the ledger.")  # not the prompt that it was resumed with
    assert len(result["tool_calls"]) == 6
    assert not here.has_resumable_turn()
    assert here.checkpoint()["turn_status"] == "completed"
    with pytest.raises(NotResumableError):
        here.resume_turn(lollms_client=client_of())


@pytest.mark.req("DG-checkpoint.4", "DG-checkpoint.5", "DG-checkpoint.6", "DG-checkpoint.7", "DG-checkpoint.8", "DG-checkpoint.9")
def test_a_checkpoint_has_the_documented_keys(tmp_path):
    seen = []

    def write(name):
        seen.append(agent.checkpoint())
        (tmp_path / name).write_text("new")
        return f"wrote {name}"

    tools = [{"name": "tool_write", "callable": write, "parameters": [{"name": "name"}], "effects": ["write"]}]
    call_of = '<think>I write.</think><tool>{{"name": "tool_write", "parameters": {{"name": "{}"}}}}</tool>'
    (tmp_path / "old.txt").write_text("old and long")
    script = [call_of.format("a.txt"), call_of.format("old.txt"), "never heard"]
    agent = LollmsPersonality(workspace_path=tmp_path, lollms_client=client_of(*script, capabilities=TAGS), tools=tools)
    agent.chat("Write.", streaming_callback=lambda chunk, kind: chunk != "Round 3")
    left = agent.checkpoint()
    assert [one["turn_status"] for one in (*seen, left)] == ["in_progress", "in_progress", "cancelled"]
    assert [one["round_count"] for one in (*seen, left)] == [0, 1, 2]
    assert [one["tool_calls"][-1]["status"] for one in (*seen, left)] == ["started", "started", "done"]
    history = left["virtual_history"]
    assert [message["role"] for message in history] == ["user", "assistant", "user", "assistant", "user"]
    assert history[1]["content"] == script[0]
    assert history[2]["content"] == '<tool_result name="tool_write">\nwrote a.txt\n</tool_result>'
    calls = [(one["round"], one["name"], one["parameters"], one["result"]["output"]) for one in left["tool_calls"]]
    assert calls == [(n, "tool_write", {"name": name}, f"wrote {name}") for n, name in ((1, "a.txt"), (2, "old.txt"))]
    assert [(c["action"], c["path"]) for c in left["workspace_changes"]] == [("created", "a.txt"), ("modified", "old.txt")]
    assert abs(left["timestamp"] - time.time()) < 60
    agent.resume_turn(lollms_client=client_of("Written.", capabilities=TAGS))
    assert agent.checkpoint()["turn_status"] == "completed"


@pytest.mark.req("DG-checkpoint.12")
def test_the_guide_s_example_runs_as_printed(tmp_path, monkeypatch):
    said = []
    monkeypatch.setitem(globals(), "print", said.append)

    def application(client):
        personality = LollmsPersonality(workspace_path=tmp_path)

        # 1. Check if an interrupted turn exists
        if personality.has_resumable_turn():
            print("Incomplete turn detected. Resuming...")
            result = personality.chat(
                prompt="organize this folder",  # Original prompt is loaded from checkpoint automatically
                lollms_client=client,
                resume_turn=True,  # Re-hydrates virtual history and continues execution
            )
        else:
            result = personality.chat(prompt="organize this folder", lollms_client=client)
        return result

    tools = ScriptedTools({"tool_look": "a mess"})
    with pytest.raises(BackendError):
        application(client_of(call("tool_look"), BackendError("gone"), tools=tools))
    client = client_of("All is in order.", tools=tools)
    assert application(client)["response"] == "All is in order."
    assert said == ["Incomplete turn detected. Resuming..."]
    assert [m["content"] for m in client.llm.requests[0].messages if m["role"] == "tool"] == ["a mess"]
    assert len(tools.calls) == 1
    assert application(client_of("Again."))["response"] == "Again."
    assert len(said) == 1


def test_without_a_turn_to_go_on_with_the_prompt_is_played():
    assert LollmsPersonality().chat("Hello.", client_of("Hi."), resume_turn=True)["response"] == "Hi."
    with pytest.raises(NotResumableError):
        LollmsPersonality().resume_turn(lollms_client=client_of())


def test_looking_for_turns_makes_no_store(tmp_path):
    agent = LollmsPersonality(workspace_path=tmp_path / "work", lollms_client=client_of())
    assert (agent.has_resumable_turn(), agent.pending(), agent.checkpoint()) == (False, [], None)
    assert not (tmp_path / "work").exists()


@pytest.mark.req("DG-checkpoint.11")
def test_without_a_workspace_turns_live_as_long_as_the_object(tmp_path):
    agent = LollmsPersonality(lollms_client=client_of("One.", Reply(["Two."], error=BackendError("gone")), "Two."))
    assert not agent.has_resumable_turn()
    agent.chat("One?")
    assert not agent.has_resumable_turn()
    with pytest.raises(BackendError):
        agent.chat("Two?")
    assert agent.has_resumable_turn()
    assert agent.checkpoint()["turn_status"] == "failed"
    assert agent.resume_turn()["response"] == "Two."
    assert not agent.has_resumable_turn()


def test_a_turn_that_was_cancelled_streams_on_as_in_a_first_run(tmp_path):
    tools = ScriptedTools({"tool_look": "seen"})
    first = LollmsPersonality(workspace_path=tmp_path)
    stop = first.chat(
        "Look.", client_of(["Looking.", *call("tool_look")], "Never.", tools=tools), lambda chunk, kind: chunk != "Round 2"
    )
    assert (stop["turn_status"], stop["was_cancelled"], stop["rounds"]) == ("cancelled", True, 1)
    heard = []
    second = LollmsPersonality(workspace_path=tmp_path)
    result = second.resume_turn(lambda chunk, kind: heard.append(chunk), client_of("I have seen it.", tools=tools))
    assert (result["response"], result["rounds"], len(result["tool_calls"])) == ("I have seen it.", 2, 1)
    assert "I have seen it." in heard
    assert result["turn_id"] == stop["turn_id"]
    assert len(tools.calls) == 1


def test_a_turn_that_stopped_at_its_limit_gets_more_rounds(tmp_path):
    tools = ScriptedTools({"tool_look": lambda at: f"seen {at}"})
    client = client_of(*[call("tool_look", at=n) for n in range(4)], "Done.", tools=tools)
    agent = LollmsPersonality(workspace_path=tmp_path, lollms_client=client)
    first = agent.chat("Look.", max_nb_rounds=2)
    assert (first["turn_status"], first["rounds"], first["was_cancelled"]) == ("limit", 2, False)
    assert "2 rounds" in first["reason"]
    assert agent.resume_turn(max_nb_rounds=1)["rounds"] == 3
    assert (agent.resume_turn()["turn_status"], agent.has_resumable_turn()) == ("completed", False)


def test_one_of_several_turns_can_be_chosen_and_one_can_be_given_up(tmp_path):
    agent = LollmsPersonality(workspace_path=tmp_path)
    ids = []
    for name in ("first", "second", "third"):
        with pytest.raises(BackendError):
            agent.chat(name, client_of(BackendError("gone")))
        ids.append(agent.turns().turns()[-1].id)
    client = client_of("First.", "Third.")
    assert agent.resume_turn(lollms_client=client, turn_id=ids[0])["response"] == "First."
    assert agent.resume_turn(lollms_client=client)["response"] == "Third."
    agent.discard_turn()
    assert not agent.has_resumable_turn()
    with pytest.raises(NotResumableError):
        agent.discard_turn()
    other = LollmsPersonality("another", workspace_path=tmp_path)
    assert not other.has_resumable_turn()
    assert other.checkpoint() is None
    assert other.checkpoint(ids[1])["turn_status"] == "completed"


def test_who_comes_second_is_told_that_the_turn_is_being_played(tmp_path):
    entered, go_on = threading.Event(), threading.Event()

    def wait():
        entered.set()
        assert go_on.wait(30)
        return "waited"

    tools = ScriptedTools({"tool_wait": wait})
    results = []
    first = LollmsPersonality(workspace_path=tmp_path)
    playing = threading.Thread(
        target=lambda: results.append(first.chat("Wait.", client_of(call("tool_wait"), "Done.", tools=tools)))
    )
    playing.start()
    try:
        assert entered.wait(30)
        second = LollmsPersonality(workspace_path=tmp_path)
        assert not second.has_resumable_turn()
        with pytest.raises(TurnBusyError):
            second.chat("Wait.", client_of("never asked"), resume_turn=True)
    finally:
        go_on.set()
        playing.join(30)
    assert results[0]["response"] == "Done."


def test_a_turn_that_was_made_ready_and_never_played_is_free_again(tmp_path):
    agent = LollmsPersonality(workspace_path=tmp_path)
    with pytest.raises(BackendError):
        agent.chat("Go.", client_of(BackendError("gone")))
    with pytest.raises(UnknownNameError):
        agent.resume_turn(lollms_client=client_of("never"), tools=["no_such_tool"])
    events = agent.play("", client_of("never"), resume_turn=True)
    next(events)
    events.close()
    assert agent.has_resumable_turn()
    assert agent.resume_turn(lollms_client=client_of("Done."))["response"] == "Done."


# ---- what waits for a person --------------------------------------------------------------------------------------------------


@pytest.fixture
def dropper(tmp_path):
    """A library whose tool loses something."""
    return library(tmp_path, "dropper", ASKS, effects={"tool_drop": ["destructive"]})


def test_an_approval_waits_in_the_store_and_is_given_by_another_object(tmp_path, dropper):
    script = [[*call("tool_drop", line="a"), *call("tool_drop", line="b")], "Dropped what I could."]
    workspace = tmp_path / "work"
    first = LollmsPersonality(workspace_path=workspace).chat(
        "Drop them.", client_of(script[0]), tool_files=dropper, defer_approval=True
    )
    assert first["turn_status"] == "waiting_approval"
    assert [(p["name"], p["parameters"], p["kind"]) for p in first["pending"]] == [
        ("tool_drop", {"line": "a"}, "approval"),
        ("tool_drop", {"line": "b"}, "approval"),
    ]
    person = LollmsPersonality(workspace_path=workspace)
    assert person.pending() == first["pending"]
    a, b = person.pending()
    with pytest.raises(UnknownNameError, match="'allow'"):
        person.decide(a["ticket"], "yes")
    with pytest.raises(NotResumableError):
        person.decide("no such ticket", "allow")
    person.decide(b["ticket"], "reject", reason="Keep b.")
    assert person.resume_turn(lollms_client=client_of(), tool_files=dropper)["turn_status"] == "waiting_approval"
    person.decide(a["ticket"], "allow", arguments={"line": "A"})
    assert person.pending() == []
    client = client_of(script[1])
    last = LollmsPersonality(workspace_path=workspace).resume_turn(lollms_client=client, tool_files=dropper)
    assert (last["turn_status"], last["response"]) == ("completed", "Dropped what I could.")
    assert (workspace / "dropped.txt").read_text() == "A\n"
    outcomes = [one["result"] for one in last["tool_results"]]
    assert [r["success"] for r in outcomes] == [True, False]
    assert "Keep b." in outcomes[1]["error"]


def test_a_question_of_the_model_waits_and_is_answered_later(tmp_path):
    script = [call("tool_ask_user", question="Which colour?"), "Blue it is."]
    agent = LollmsPersonality(workspace_path=tmp_path)
    first = agent.chat("Paint it.", client_of(script[0]), ask_user=True)
    assert (first["turn_status"], first["pending"][0]["reason"]) == ("waiting_user", "Which colour?")
    agent.decide(agent.pending()[0]["ticket"], answer="Blue.")
    client = client_of(script[1])
    assert agent.resume_turn(lollms_client=client, ask_user=True)["response"] == "Blue it is."
    assert client.llm.requests[0].messages[-1]["content"] == "Blue."
    asked = []
    handler = lambda request: asked.append(request["prompt"]) or "Red."  # noqa: E731 - a handler in one line
    now = agent.chat("Paint it.", client_of(*script), ask_user=True, user_interaction_handler=handler)
    assert (now["turn_status"], asked) == ("completed", ["Which colour?"])


def test_a_turn_goes_on_under_the_policy_that_it_began_with(tmp_path):
    shell = library(tmp_path, "system_shell", ASKS, effects={"tool_drop": ["process"]})
    agent = LollmsPersonality(workspace_path=tmp_path / "work")
    with pytest.raises(BackendError):
        agent.chat("Go.", client_of(BackendError("gone")), tool_files=shell, shell_autonomy_level="full_access")
    result = agent.resume_turn(lollms_client=client_of(call("tool_drop", line="a"), "Done."), tool_files=shell)
    assert result["tool_results"][0]["result"]["success"]
    with pytest.raises(BackendError):
        agent.chat("Go.", client_of(BackendError("gone")), tool_files=shell, shell_autonomy_level="full_access")
    narrower = agent.resume_turn(
        lollms_client=client_of(call("tool_drop", line="a"), "Done."), tool_files=shell, shell_autonomy_level="strict"
    )
    assert narrower["tool_results"][0]["result"]["status_code"] == 403


def test_turns_are_kept_for_a_workspace_by_whatever_path_and_not_in_it(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "link").symlink_to(work)
    with pytest.raises(BackendError):
        LollmsPersonality(workspace_path=work).chat("Go.", client_of(BackendError("gone")))
    assert list(work.iterdir()) == []
    assert [path.name.rpartition("-")[0] for path in home("turns").glob("*.db")] == ["work"]
    assert LollmsPersonality(workspace_path=tmp_path / "link").has_resumable_turn()
    assert not LollmsPersonality(workspace_path=tmp_path / "other").has_resumable_turn()


def test_a_store_can_be_named_or_given(tmp_path):
    place = tmp_path / "elsewhere" / "agents.db"
    with pytest.raises(BackendError):
        LollmsPersonality(workspace_path=tmp_path / "work", store=place).chat("Go.", client_of(BackendError("gone")))
    assert place.exists()
    assert not (tmp_path / "work" / ".lollms").exists()
    database = Database(place)
    with LollmsPersonality(store=database) as agent:
        assert agent.resume_turn(lollms_client=client_of("Done."))["response"] == "Done."
    with database.read():
        pass  # it is still its owner's
    database.close()


def test_what_was_looked_up_is_not_looked_up_again(tmp_path):
    asked = []

    def search(query):
        asked.append(query)
        return "It is deep."

    agent = LollmsPersonality(workspace_path=tmp_path, data_source=search, system_prompt="Be brief.")
    with pytest.raises(BackendError):
        agent.chat("How deep?", client_of(BackendError("gone")))
    agent.system_prompt = "Be long."
    client = client_of("Deep.")
    result = agent.resume_turn(lollms_client=client)
    assert asked == ["How deep?"]
    assert [s["text"] for s in result["sources"]] == ["It is deep."]
    told = [m["content"] for m in client.llm.requests[0].messages]
    assert told[0].startswith("Be brief.")
    assert "It is deep." in told[1]
