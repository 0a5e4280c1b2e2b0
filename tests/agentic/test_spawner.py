"""`SubAgentSpawner` and `tool_spinoff_agent` as functions: for programs, and for tools that a turn calls."""

from __future__ import annotations

import inspect

import pytest

from lollms_client import LollmsClient
from lollms_client.errors import BackendError, ConfigurationError, NotConfiguredError
from lollms_client.lollms_agentic import SubAgentSpawner, tool_spinoff_agent
from lollms_client.lollms_personality import LollmsPersonality
from lollms_client.testing import Reply, ScriptedTools, Usage, call

from .workers_kit import requests_of, tree_client

LOOK = ScriptedTools({"tool_look": lambda at="here": f"saw {at}"})


@pytest.mark.req("CT-H.3", "DG-agents.1")
def test_the_guide_s_call_runs_a_worker_whose_first_round_has_the_effort():
    scripts = {
        "Optimize": [["Hard.\n<effort level='low'/>\n", *call("tool_look", at="index")], "It is fast now."],
    }
    client = tree_client(scripts, LOOK)
    agent_spawner = SubAgentSpawner(LollmsPersonality(lollms_client=client))
    result = agent_spawner.spawn(
        instruction="Optimize the inner database indexing routine.",
        effort="high",
        dynamic_effort=True,  # Allows child worker to adjust its own effort
    )
    assert (result["success"], result["output"], result["child_rounds"]) == (True, "It is fast now.", 2)
    assert result["child_tool_calls"] == [{"round": 1, "name": "tool_look", "parameters": {"at": "index"}}]
    assert [r.reasoning_effort for r in client.llm.requests] == ["high", "low"]
    assert [r.sampling.temperature for r in client.llm.requests] == [0.3, 0.3]
    documented = ["instruction", "personality_conditioning", "model_name", "temperature", "max_steps", "effort", "dynamic_effort"]
    parameters = inspect.signature(SubAgentSpawner.spawn).parameters
    assert list(parameters)[1:] == documented
    assert [parameters[name].default for name in documented[1:]] == [None, None, 0.3, 5, None, False]
    limits = inspect.signature(SubAgentSpawner).parameters
    assert (limits["max_depth"].default, limits["max_per_turn"].default) == (3, 5)


@pytest.mark.req("DG-agents.3")
def test_without_dynamic_effort_a_worker_s_own_tags_change_nothing():
    client = tree_client({"Sub": [["Hm.\n<effort level='max'/>\n", *call("tool_look")], "Done."]}, LOOK)
    assert SubAgentSpawner(client).spawn("Sub.", effort="low")["success"]
    assert [r.reasoning_effort for r in client.llm.requests] == ["low", "low"]


@pytest.mark.req("CT-H.4")
def test_over_the_limits_nothing_starts():
    client = tree_client({"Sub": ["Done."]}, LOOK)
    spawner = SubAgentSpawner(client, max_per_turn=2)
    results = [spawner.spawn("Sub.") for _ in range(3)]
    assert [r["success"] for r in results] == [True, True, False]
    assert "2 workers" in results[2]["error"]
    assert len(client.llm.requests) == 2
    none = SubAgentSpawner(client, max_depth=0).spawn("Sub.")
    assert (none["success"], len(client.llm.requests)) == (False, 2)
    assert "0 agents" in none["error"]


@pytest.mark.req("CT-H.4")
def test_depth_counts_through_spawns_within_spawns():
    made = []

    def deeper() -> str:
        result = SubAgentSpawner(made[0], max_depth=2).spawn("Sub.")
        return result["output"] if result["success"] else result["error"]

    tools = ScriptedTools({"tool_deeper": deeper})

    def last_word(request):
        return f"below: {request.messages[-1]['content']}"

    client = tree_client({"Sub": [call("tool_deeper"), last_word]}, tools)
    made.append(client)
    result = SubAgentSpawner(client, max_depth=2).spawn("Sub.")
    assert result["output"].startswith("below: below: 2 agents stand one below the other")
    assert len(client.llm.requests) == 4


def test_a_worker_has_the_persona_that_it_is_given_or_its_agent_s_role_and_workspace(tmp_path):
    client = tree_client({"Sub": ['<artifact name="a.md">\nx\n</artifact>\n'] * 2}, LOOK)
    agent = LollmsPersonality(workspace_path=tmp_path / "work", lollms_client=client, role="reviewer")
    spawner = SubAgentSpawner(agent)
    assert spawner.spawn("Sub.")["files"] == ["a.md"]
    spawner.spawn("Sub.", personality_conditioning="You are Ann.")
    first, second = (r.messages[0]["content"] for r in client.llm.requests)
    assert "Your role: reviewer." in first
    assert second.startswith("You are Ann.")
    assert (tmp_path / "work" / "a.md").read_text() == "x\n"


def test_what_cannot_be_is_said():
    client = tree_client({"Sub": ["Done."]})
    assert "no task" in SubAgentSpawner(client).spawn(" ")["error"]
    assert "one round" in SubAgentSpawner(client).spawn("Sub.", max_steps=0)["error"]
    with pytest.raises(ConfigurationError, match="parent_agent"):
        SubAgentSpawner("me")
    with pytest.raises(NotConfiguredError, match="client"):
        SubAgentSpawner(LollmsPersonality()).spawn("Sub.")
    with pytest.raises(NotConfiguredError, match="language model"):
        SubAgentSpawner(LollmsClient()).spawn("Sub.")
    with pytest.raises(NotConfiguredError, match="client"):
        tool_spinoff_agent("ann", "Sub.")


def test_more_steps_than_a_turn_has_by_default_are_given_where_they_are_asked_for():
    looks = [call("tool_look", at=str(n)) for n in range(24)]
    client = tree_client({"Sub": [*looks, "Done."]}, LOOK)
    assert SubAgentSpawner(client).spawn("Sub.", max_steps=25)["child_rounds"] == 25


@pytest.mark.req("CT-H.5")
def test_the_spinoff_function_has_the_documented_form_and_result(tmp_path):
    (tmp_path / "a.txt").write_text("alpha")
    client = tree_client({"Sub": [[*call("tool_look"), '<artifact name="b.md">\nx\n</artifact>\n'], "Done."]}, LOOK)
    result = tool_spinoff_agent(
        agent_name="ann",
        task="Sub.",
        persona="You are Ann.",
        tools=["tool_look"],
        skills=[],
        inline_skill="Measure twice.",
        context_files=["a.txt"],
        max_rounds=3,
        temperature=0.8,
        effort="high",
        model_name="",
        dynamic_effort=False,
        lollms_client_instance=client,
        tool_context={"workspace_path": str(tmp_path)},
    )
    assert (result["success"], result["output"], result["files"]) == (True, "Done.", ["b.md"])
    first = client.llm.requests[0]
    assert "Measure twice." in first.messages[0]["content"]
    assert "alpha" in first.messages[1]["content"]
    assert (first.reasoning_effort, first.sampling.temperature) == ("high", 0.8)
    names = ["agent_name", "task", "persona", "tools", "skills", "inline_skill", "context_files", "max_rounds", "temperature"]
    parameters = inspect.signature(tool_spinoff_agent).parameters
    assert list(parameters)[:12] == [*names, "effort", "model_name", "dynamic_effort"]
    assert [parameters[n].default for n in list(parameters)[7:12]] == [6, 0.3, "", "", False]


def test_a_worker_that_a_tool_asked_for_waits_for_nobody(tmp_path):
    def share(lollms_client_instance=None):
        return SubAgentSpawner(lollms_client_instance).spawn("Part.")["error"]

    tools = [{"name": "tool_share", "callable": share, "effects": ["read"]}]
    scripts = {"Go": [call("tool_share"), BackendError("gone")], "Part": [call("tool_ask_user", question="Which?"), "never"]}
    client = tree_client(scripts)
    agent = LollmsPersonality(workspace_path=tmp_path, lollms_client=client, tools=tools)
    with pytest.raises(BackendError):
        agent.chat("Go.", ask_user=True)
    told = requests_of(client, "Go")[1].messages[-1]["content"]
    assert told == "The worker needed a person, and nobody could be asked: Which?"
    assert agent.pending() == []


def test_a_tool_that_hands_out_tasks_does_so_for_the_turn_that_called_it(tmp_path):
    asked = []

    def handler(source, label, argv=None):
        asked.append(label)
        return "allow", ""

    def share(lollms_client_instance=None):
        return [tool_spinoff_agent("ann", f"Part {n}.", lollms_client_instance=lollms_client_instance) for n in (1, 2, 3)]

    tools = [
        {"name": "tool_share", "callable": share, "effects": ["write"]},
        {"name": "tool_risk", "callable": lambda: "risked", "effects": ["process"]},
    ]
    used = Usage(1, 10)
    scripts = {
        "Go": [call("tool_share"), "All parts are done."],
        **{f"Part {n}": [Reply(call("tool_risk"), usage=used), Reply([f"Part {n} done."], usage=used)] for n in (1, 2, 3)},
    }
    client = tree_client(scripts)
    agent = LollmsPersonality(workspace_path=tmp_path, lollms_client=client, tools=tools, max_workers=2)
    chat = agent.chat("Go.", confirm_handler=handler)
    parts = chat["tool_results"][0]["result"]["output"]
    assert [part["success"] for part in parts] == [True, True, False]
    assert "2 workers" in parts[2]["error"]
    assert asked == ["tool_risk", "tool_risk"]
    rows = agent.turns().turns()
    assert [row.parent_turn for row in rows] == [None, rows[0].id, rows[0].id]
    assert [row.parent_call for row in rows[1:]] == [f"{rows[0].id}:1:0/1", f"{rows[0].id}:1:0/2"]
    assert [[t["name"] for t in r.tools][:2] for r in requests_of(client, "Part 1")] == [["tool_share", "tool_risk"]] * 2
