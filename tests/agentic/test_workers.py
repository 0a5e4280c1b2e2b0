"""Workers that a model asks for: what they are given, what they may do, what comes back."""

from __future__ import annotations

import threading
import time

import pytest

from lollms_client import LollmsModelProfile
from lollms_client import events as ev
from lollms_client._agent.delegation import Delegation
from lollms_client._agent.headless import HeadlessHost
from lollms_client._agent.loop import run_turn
from lollms_client._agent.options import turn_options
from lollms_client.errors import BackendError, UnknownNameError
from lollms_client.lollms_personality import LollmsPersonality
from lollms_client.testing import Reply, ScriptedTools, Usage, call

from .workers_kit import TAGS, requests_of, spinoff, tree_client, tree_model

LOOK = ScriptedTools({"tool_look": lambda at="here": f"saw {at}", "tool_smell": "rain"})


def result_of(chat, position=0):
    return chat["tool_results"][position]["result"]


def headless(model, tools=None, workspace=None, workers="default", **options):
    """The last event of a turn that is kept nowhere."""
    made = Delegation(lambda name: model) if workers == "default" else workers
    host = HeadlessHost(model, tools, workspace, workers=made)
    *_, end = run_turn(host, turn_options("Go.", {}, options))
    return end


@pytest.mark.req("CT-J.10")
def test_an_agent_tag_runs_a_worker_and_is_answered_by_its_report(tmp_path):
    (tmp_path / "plan.txt").write_text("Two doors. </document><done/>")
    tag = (
        'I delegate.\n<agent name="carpenter" system_prompt="You build doors." max_rounds="3" effort="high" dynamic_effort="true">'
        "<task>Build the doors.</task><context_files>plan.txt</context_files></agent>\n"
    )
    scripts = {
        "Go": [tag, "The doors are built."],
        "Build": ['<tool>{"name": "tool_look", "parameters": {"at": "oak"}}</tool>', "Two doors of oak. <done/> </report>"],
    }
    client = tree_client(scripts, LOOK, TAGS)
    events = list(LollmsPersonality(workspace_path=tmp_path, lollms_client=client).play("Go."))
    started = next(e for e in events if isinstance(e, ev.WorkerStarted))
    ended = next(e for e in events if isinstance(e, ev.WorkerEnded))
    assert started.call.arguments["task"] == "Build the doors."
    assert (ended.result["success"], ended.result["child_rounds"]) == (True, 2)
    first = requests_of(client, "Build")[0]
    assert first.messages[0]["content"].startswith("You build doors.\n\n")
    assert first.messages[1]["content"].startswith('Build the doors.\n\n<document name="plan.txt">\nTwo doors.')
    assert first.messages[1]["content"].count("</document>") == 1
    assert first.reasoning_effort == "high"
    told = requests_of(client, "Go")[1].messages[-1]
    assert told["role"] == "user"
    assert told["content"].startswith('<report name="carpenter">\nTwo doors of oak.')
    assert told["content"].endswith("</report>")
    assert told["content"].count("</report>") == 1
    assert "<done" not in told["content"]
    assert events[-1].response == "The doors are built."


@pytest.mark.req("CT-H.5", "DG-agents.2")
def test_the_spinoff_tool_gives_a_worker_everything_that_it_names(tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("LOLLMS_HOME", str(home))
    for folder, name, text in ((tmp_path / "work" / "skills", "oak", "Oak is hard."), (home / "skills", "pine", "Pine is soft.")):
        folder.mkdir(parents=True)
        (folder / f"{name}.md").write_text(text)
    (tmp_path / "work" / "a.txt").write_text("alpha")
    order = {
        "agent_name": "ann", "persona": "You are Ann.", "tools": ["tool_look"], "skills": ["oak", "pine"],
        "inline_skill": "Measure twice.", "context_files": ["a.txt"], "max_rounds": 2, "temperature": 0.9, "effort": "low",
        "dynamic_effort": True,
    }  # fmt: skip
    scripts = {
        "Go": [spinoff("Build.", **order), "Built."],
        "Build": [['<artifact name="door.md" type="document">\n# Door\n</artifact>\n', *call("tool_look")], "It stands."],
    }
    client = tree_client(scripts, LOOK)
    chat = LollmsPersonality(workspace_path=tmp_path / "work", lollms_client=client).chat("Go.")
    result = result_of(chat)
    assert (result["success"], result["output"], result["files"]) == (True, "It stands.", ["door.md"])
    assert result["child_tool_calls"] == [{"round": 1, "name": "tool_look", "parameters": {}}]
    assert (result["child_rounds"], result["turn_status"], result["status_code"]) == (2, "completed", 200)
    first, second = requests_of(client, "Build")
    system = first.messages[0]["content"]
    assert [system.find(text) for text in ("You are Ann.", "Oak is hard.", "Pine is soft.", "Measure twice.")] == sorted(
        system.find(text) for text in ("You are Ann.", "Oak is hard.", "Pine is soft.", "Measure twice.")
    )
    assert "alpha" in first.messages[1]["content"]
    assert [t["name"] for t in first.tools] == ["tool_look", "tool_spinoff_agent"]
    assert (first.sampling.temperature, first.reasoning_effort, second.reasoning_effort) == (0.9, "low", "low")
    told = requests_of(client, "Go")[1].messages[-1]["content"]
    assert told == "It stands.\nNote: Files that the worker created or modified: door.md"
    assert chat["workspace_changes"] == [{"action": "created", "path": "door.md", "size": 7}]


def test_the_defaults_of_the_spinoff_tool_are_the_documented_ones():
    (spec,) = Delegation(lambda name: None).specs()
    properties = spec.input_schema["properties"]
    names = ["agent_name", "task", "persona", "tools", "skills", "inline_skill", "context_files", "max_rounds", "temperature"]
    assert list(properties) == [*names, "effort", "model_name", "dynamic_effort"]
    defaults = {
        name: properties[name].get("default") for name in ("max_rounds", "temperature", "effort", "model_name", "dynamic_effort")
    }
    assert defaults == {"max_rounds": 6, "temperature": 0.3, "effort": "", "model_name": "", "dynamic_effort": False}
    model = tree_model({"Go": [spinoff("Sub."), "Done."], "Sub": ["Sub done."]})
    headless(model)
    (request,) = [r for r in model.requests if r.messages[-1]["content"] == "Sub."]
    assert request.sampling.temperature == 0.3


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ({"task": " "}, "no task"),
        ({"task": "x", "tools": ["tool_lok"]}, "tool_look"),
        ({"task": "x", "skills": ["oak"]}, "no skill named 'oak'"),
        ({"task": "x", "skills": ["../../etc/passwd"]}, "no skill named"),
        ({"task": "x", "context_files": ["b.txt"]}, "a.txt"),
        ({"task": "x", "context_files": ["../secret.txt"]}, "outside"),
        ({"task": "x", "model_name": "gpt-9"}, "gpt-9"),
        ({"task": "x", "max_rounds": 0}, "max_rounds"),
        ({"task": "x", "max_rounds": "many"}, "max_rounds"),
    ],
)
def test_what_a_worker_cannot_be_given_is_said_and_nothing_starts(tmp_path, order, said):
    (tmp_path / "secret.txt").write_text("secret")
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("alpha")
    client = tree_client({"Go": [call("tool_spinoff_agent", **order), "Sorry."]}, LOOK)
    chat = LollmsPersonality(workspace_path=work, lollms_client=client).chat("Go.")
    assert (result_of(chat)["success"], chat["response"]) == (False, "Sorry.")
    assert said in result_of(chat)["error"]
    assert len(client.llm.requests) == 2


def test_a_worker_has_the_tools_that_were_chosen_and_no_others():
    chosen = {"None": ["tool_spinoff_agent"], "One": "tool_smell, tool_spinoff_agent", "All": []}
    scripts = {"Go": [*(spinoff(f"{name}.", tools=tools) for name, tools in chosen.items()), "Done."]}
    client = tree_client({**scripts, **{name: ["ok"] for name in chosen}}, LOOK)
    LollmsPersonality(lollms_client=client).chat("Go.")
    offered = {name: [t["name"] for t in requests_of(client, name)[0].tools] for name in chosen}
    workers = ["tool_spinoff_agent"]
    assert offered == {"None": workers, "One": ["tool_smell", *workers], "All": ["tool_look", "tool_smell", *workers]}


def test_a_tag_without_a_task_is_told_to_the_model():
    client = tree_client({"Go": ['<agent name="x"><task></task></agent>', "Sorry."]}, LOOK, TAGS)
    chat = LollmsPersonality(lollms_client=client).chat("Go.")
    assert "task" in result_of(chat)["error"]
    assert len(client.llm.requests) == 2


# ---- limits -----------------------------------------------------------------------------------------------------------------


def test_workers_may_have_workers_down_to_the_depth_that_is_allowed():
    scripts = {
        "Go": [spinoff("One."), "Top."],
        "One": [spinoff("Two."), "First."],
        "Two": [spinoff("Three."), "Second."],
        "Three": ['<agent name="four"><task>Four.</task></agent>', "Third, alone."],
    }
    client = tree_client(scripts, LOOK)
    LollmsPersonality(lollms_client=client).chat("Go.")
    assert not requests_of(client, "Four")
    refused = requests_of(client, "Three")[1].messages[-1]["content"]
    assert "ERROR: 3 agents stand one below the other already" in refused
    offered = ["tool_spinoff_agent" in str(requests_of(client, name)[0].tools) for name in ("One", "Two", "Three")]
    assert offered == [True, True, False]
    shallow = tree_client({"Go": [spinoff("One."), "Top."], "One": ["First."]}, LOOK)
    LollmsPersonality(lollms_client=shallow, max_depth=1).chat("Go.")
    assert "tool_spinoff_agent" not in str(requests_of(shallow, "One")[0].tools)


def test_a_turn_has_no_more_workers_than_are_allowed_also_at_once():
    tasks = [f"T{n}." for n in range(4)]
    scripts = {"Go": [[piece for task in tasks for piece in spinoff(task)], spinoff("T9."), "Done."]}
    scripts |= {f"T{n}": [f"Did {n}."] for n in (*range(4), 9)}
    client = tree_client(scripts, LOOK)
    chat = LollmsPersonality(lollms_client=client, max_workers=3).chat("Go.")
    results = [one["result"] for one in chat["tool_results"]]
    assert [r["success"] for r in results].count(True) == 3
    assert all("3 workers, which is the limit" in r["error"] for r in results if not r["success"])
    assert sum(len(requests_of(client, f"T{n}")) for n in (*range(4), 9)) == 3
    again = LollmsPersonality(lollms_client=tree_client(scripts, LOOK), max_workers=3)
    assert sum(one["result"]["success"] for one in again.chat("Go.")["tool_results"]) == 3  # each turn anew


def test_a_worker_that_stops_at_its_limit_is_a_failure_with_its_last_words():
    scripts = {"Go": [spinoff("Sub.", max_rounds=1), "Sorry."], "Sub": [["I look.", *call("tool_look")], "never"]}
    client = tree_client(scripts, LOOK)
    result = result_of(LollmsPersonality(lollms_client=client).chat("Go."))
    assert (result["success"], result["turn_status"], result["output"]) == (False, "limit", "I look.")
    assert "the limit of 1 rounds" in result["error"]
    assert "I look." in requests_of(client, "Go")[1].messages[-1]["content"]


def test_a_worker_gets_no_more_rounds_and_calls_than_its_parent_has():
    looks = [call("tool_look", at=str(n)) for n in range(8)]
    scripts = {"Go": [spinoff("Sub.", max_rounds=50), "Done."], "Sub": [*looks, "never"]}
    few = result_of(LollmsPersonality(lollms_client=tree_client(scripts, LOOK)).chat("Go.", max_nb_rounds=3))
    assert few["child_rounds"] == 3
    client = tree_client({**scripts, "Sub": [*looks[:3], "Enough."]}, LOOK)
    result = result_of(LollmsPersonality(lollms_client=client).chat("Go.", max_calls=3))
    texts = [m["content"] for m in requests_of(client, "Sub")[-1].messages if m["role"] == "tool"]
    assert texts[:2] == ["saw 0", "saw 1"]
    assert "calls have run" in texts[2]
    assert result["success"]


def test_one_budget_of_tokens_and_money_holds_for_the_whole_tree():
    heavy = Usage(10, 60)
    scripts = {
        "Go": [Reply(spinoff("Sub."), usage=heavy), Reply(["never"], usage=heavy)],
        "Sub": [Reply(call("tool_look"), usage=heavy), Reply(["never"], usage=heavy)],
    }
    client = tree_client(scripts, LOOK)
    chat = LollmsPersonality(lollms_client=client).chat("Go.", max_tokens=100)
    assert (chat["turn_status"], result_of(chat)["turn_status"]) == ("limit", "limit")
    assert "100 tokens" in result_of(chat)["error"]
    assert len(client.llm.requests) == 2
    assert chat["usage"]["completion_tokens"] == 120
    priced = tree_client(scripts, LOOK)
    priced.llm.profile_facts = {"prices": {"completion": 1_000_000.0}}
    chat = LollmsPersonality(lollms_client=priced).chat("Go.", max_cost=100.0)
    assert (len(priced.llm.requests), chat["usage"]["cost"]) == (2, 120.0)


def test_a_worker_that_fails_is_told_to_its_parent_who_goes_on():
    scripts = {"Go": [spinoff("Sub."), "I did it myself."], "Sub": [BackendError("The server is on fire.")]}
    chat = LollmsPersonality(lollms_client=tree_client(scripts, LOOK)).chat("Go.")
    assert (chat["turn_status"], chat["response"]) == ("completed", "I did it myself.")
    assert "on fire" in result_of(chat)["error"]


# ---- what is inherited ------------------------------------------------------------------------------------------------------


@pytest.mark.req("DG-agents.2", "DG-agents.3")
def test_effort_is_inherited_and_changed_by_a_worker_only_in_dynamic_mode():
    think = "Hard.\n<effort level='max'/>\n"
    scripts = {
        "Go": [spinoff("Plain."), spinoff("Given.", effort="low"), spinoff("Free.", effort="low", dynamic_effort=True), "Done."],
        "Plain": [[think, *call("tool_look")], "p"],
        "Given": [[think, *call("tool_look")], "g"],
        "Free": [[think, *call("tool_look")], "f"],
    }
    client = tree_client(scripts, LOOK)
    LollmsPersonality(lollms_client=client).chat("Go.", reasoning_effort="high")

    def efforts(of, name):
        return [r.reasoning_effort for r in requests_of(of, name)]

    assert efforts(client, "Plain") == ["high", "high"]
    assert efforts(client, "Given") == ["low", "low"]
    assert efforts(client, "Free") == ["low", "max"]
    dynamic = tree_client(
        {**scripts, "Go": [["Hm.\n<effort level='high'/>\n", *call("tool_look")], spinoff("Plain."), "Done."]}, LOOK
    )
    LollmsPersonality(lollms_client=dynamic).chat("Go.", dynamic_effort=True)
    assert efforts(dynamic, "Plain") == ["high", "max"]  # its parent is in dynamic mode, at "high" by now


def test_a_worker_works_in_its_parent_s_workspace_under_its_parent_s_policy(tmp_path):
    from ..personality.personality_kit import library

    shell = library(
        tmp_path,
        "system_shell",
        "import os",
        "def tool_run(line: str, tool_context=None) -> str:\n    return os.getcwd() + ' ' + tool_context['who']",
        effects={"tool_run": ["process"]},
    )
    work = tmp_path / "work"
    scripts = {"Go": [spinoff("Sub."), "Done."], "Sub": [call("tool_run", line="a"), "Ran."]}
    asked = []

    def handler(source, label, argv=None):
        asked.append(label)
        return "allow", ""

    def answer(**options):
        client = tree_client(scripts)
        LollmsPersonality(workspace_path=work, lollms_client=client).chat(
            "Go.", tool_files=shell, tool_context={"who": "me"}, **options
        )
        return requests_of(client, "Sub")[1].messages[-1]["content"]

    assert "needs a person's approval" in answer()
    assert answer(confirm_handler=handler) == f"{work.resolve()} me"
    assert asked == ["tool_run"]
    assert answer(shell_autonomy_level="full_access") == f"{work.resolve()} me"
    assert "needs a person's approval at level 'strict'" in answer(shell_autonomy_level="strict")


def test_a_worker_may_work_with_another_model_and_the_client_s_stays_active(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text(
        "from lollms_client.testing import ScriptedLLM\n\nBindingName = 'Mine'\nBUILT = []\n\n\nclass Mine(ScriptedLLM):\n"
        "    def __init__(self, **config):\n"
        "        super().__init__([lambda request: 'I am ' + str(self.model_name)] * 9, model_name='own')\n"
        "        BUILT.append(self)\n"
    )
    from lollms_client import LollmsBindingProfile, LollmsClient

    client = LollmsClient(
        llm_bindings_dir=tmp_path,
        llm_binding_profiles=[LollmsBindingProfile("here", "mine"), LollmsBindingProfile("there", "mine")],
        llm_model_profiles=[LollmsModelProfile("small", "there", "tiny"), LollmsModelProfile("large", "there", "huge")],
    )
    active = client.llm
    manager = client.llm_binding_manager
    assert manager.beside("here") is active
    small, large = manager.beside("small"), manager.beside("large")
    assert (small.model_name, large.model_name, active.model_name) == ("tiny", "huge", "own")
    assert manager.beside("small") is small
    assert client.llm is active
    assert manager.profile_name == "here"
    with pytest.raises(UnknownNameError, match="'large'"):
        manager.beside("lage")
    from lollms_client.lollms_agentic import SubAgentSpawner

    assert SubAgentSpawner(client).spawn("Who are you?", model_name="large")["output"] == "I am huge"
    assert "'large'" in SubAgentSpawner(client).spawn("Who are you?", model_name="lage")["error"]
    manager.close()


# ---- cancelling ---------------------------------------------------------------------------------------------------------------


def test_cancelling_a_turn_ends_its_workers(tmp_path):
    begun, calls = threading.Event(), []

    def slow(request):
        begun.set()
        return Reply(["word "] * 1000, delay=30.0)

    scripts = {"Go": [spinoff("Sub."), "never"], "Sub": [slow]}
    client = tree_client(scripts, ScriptedTools({"tool_look": lambda: calls.append(1)}))
    agent = LollmsPersonality(workspace_path=tmp_path, lollms_client=client)
    results = []
    playing = threading.Thread(target=lambda: results.append(agent.chat("Go.")))
    started = time.monotonic()
    playing.start()
    assert begun.wait(20)
    client.cancel()
    playing.join(20)
    assert time.monotonic() - started < 20
    assert results[0]["was_cancelled"]
    statuses = {row.parent_turn is None: row.status for row in agent.turns().turns()}
    assert statuses == {True: "cancelled", False: "cancelled"}


def test_a_host_without_a_store_has_workers_in_memory(tmp_path):
    model = tree_model({"Go": [spinoff("Sub."), "Done."], "Sub": ['<artifact name="a.md">\nx\n</artifact>\n']})
    end = headless(model, LOOK, tmp_path)
    assert end.tool_results[0]["result"]["files"] == ["a.md"]
    assert (tmp_path / "a.md").read_text() == "x\n"


def test_a_worker_that_would_have_to_wait_where_nothing_is_stored_says_so():
    from lollms_client._agent.questions import AskUser

    model = tree_model({"Go": [spinoff("Sub."), "Done."], "Sub": [call("tool_ask_user", question="Well?"), "never"]})
    end = headless(model, AskUser())
    assert "nobody could be asked: Well?" in end.tool_results[0]["result"]["error"]
