"""Turns that survive: what is written when, what is run again and what never is."""

from __future__ import annotations

import pytest

from lollms_client import events as ev
from lollms_client._agent.durable import checkpoint, transcript
from lollms_client._agent.questions import AskUser
from lollms_client._agent.toolsets import GivenTools
from lollms_client._http import CancelToken
from lollms_client._store.db import Database
from lollms_client._store.turns import TurnStore
from lollms_client.errors import BackendError, NotResumableError, StoreError, TurnBusyError
from lollms_client.testing import ScriptedLLM, call

from .durable_kit import Killed, end_of, only_turn, resumed, turn


@pytest.fixture
def db(tmp_path):
    with_file = Database(tmp_path / "turns.db")
    yield with_file
    with_file.close()


class Counter:
    """A tool that counts, in memory."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.keys: list[str] = []

    def tool(self, name="tool_count", effects=None):
        def count(word: str, tool_context=None):
            self.done.append(word)
            self.keys.append(tool_context["idempotency_key"])
            return f"counted {word}"

        schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
        facts = {"name": name, "description": "Counts.", "input_schema": schema, "callable": count}
        return {**facts, "effects": effects} if effects is not None else facts


def script(*words: str, end="All counted."):
    return [*(call("tool_count", word=word) for word in words), end]


def test_a_turn_that_ends_leaves_a_completed_checkpoint_with_the_documented_keys(db):
    counter = Counter()
    end_of(turn(db, ScriptedLLM(script("a", "b")), GivenTools([counter.tool()])))
    stored = TurnStore(db).load(only_turn(db))
    point = checkpoint(stored)
    assert list(point) == ["round_count", "turn_status", "virtual_history", "tool_calls", "workspace_changes", "timestamp"]
    assert (point["round_count"], point["turn_status"]) == (3, "completed")
    assert [(c["name"], c["parameters"], c["status"]) for c in point["tool_calls"]] == [
        ("tool_count", {"word": "a"}, "done"),
        ("tool_count", {"word": "b"}, "done"),
    ]
    assert [m["role"] for m in transcript(stored)] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    with pytest.raises(NotResumableError, match="completed"):
        resumed(db, ScriptedLLM([]))


def test_a_turn_whose_backend_fails_is_resumed_where_it_was_and_repeats_nothing(db):
    counter = Counter()
    tools = GivenTools([counter.tool()])
    with pytest.raises(BackendError, match="gone"):
        list(turn(db, ScriptedLLM([*script("a", "b")[:2], BackendError("gone")]), tools))
    (row,) = TurnStore(db).turns(only_open=True)
    assert (row.status, row.rounds, row.state["reason"]) == ("failed", 2, "gone")
    model = ScriptedLLM(["All counted."])
    end = end_of(resumed(db, model, tools))
    assert (end.status, end.response, end.rounds) == ("completed", "All counted.", 3)
    assert counter.done == ["a", "b"]
    assert [c["name"] for c in end.tool_calls] == ["tool_count", "tool_count"]
    assert [m["role"] for m in model.requests[0].messages] == ["system", "user", "assistant", "tool", "assistant", "tool"]


def test_a_call_that_was_started_and_has_no_result_is_asked_about_and_not_run(db):
    counter = Counter()
    tools = GivenTools([counter.tool()])
    with pytest.raises(Killed):
        list(turn(db, ScriptedLLM(script("a", "b")), tools, dies_after=["b"]))
    events = list(resumed(db, ScriptedLLM(["never asked"]), tools))
    (asked,) = [e for e in events if isinstance(e, ev.ApprovalRequested)]
    assert (asked.kind, asked.call.arguments, events[-1].status) == ("outcome", {"word": "b"}, "waiting_user")
    assert counter.done == ["a", "b"]


@pytest.mark.parametrize(
    ("decision", "done", "said"),
    [
        ({"decision": "retry"}, ["a", "b", "b"], "counted b"),
        ({"decision": "skip", "reason": "It is fine."}, ["a", "b"], "The operator skipped it. It is fine."),
        ({"decision": "result", "result": "b was there"}, ["a", "b"], "b was there"),
    ],
)
def test_a_person_decides_what_became_of_a_call_without_a_result(db, decision, done, said):
    counter = Counter()
    tools = GivenTools([counter.tool()])
    with pytest.raises(Killed):
        list(turn(db, ScriptedLLM(script("a", "b")), tools, dies_after=["b"]))
    assert end_of(resumed(db, ScriptedLLM([]), tools)).status == "waiting_user"
    store = TurnStore(db)
    (waiting,) = store.waiting()
    store.decide(waiting.turn.id, waiting.call.ticket, decision)
    assert store.waiting() == []
    model = ScriptedLLM(["All counted."])
    end = end_of(resumed(db, model, tools))
    assert (end.status, counter.done) == ("completed", done)
    assert said in model.requests[0].messages[-1]["content"]


@pytest.mark.parametrize("effects", [["read"], ["write", "idempotent"]])
def test_a_call_that_may_run_again_runs_again_with_the_same_key(db, effects):
    counter = Counter()
    tools = GivenTools([counter.tool(effects=effects)])
    with pytest.raises(Killed):
        list(turn(db, ScriptedLLM(script("a", "b")), tools, dies_after=["b"]))
    end = end_of(resumed(db, ScriptedLLM(["All counted."]), tools))
    assert (end.status, counter.done) == ("completed", ["a", "b", "b"])
    assert counter.keys[1] == counter.keys[2] != counter.keys[0]


@pytest.mark.parametrize(("policy", "done"), [("retry", ["b", "b"]), ("skip", ["b"])])
def test_a_stated_policy_decides_without_a_person(db, policy, done):
    counter = Counter()
    tools = GivenTools([counter.tool()])
    with pytest.raises(Killed):
        list(turn(db, ScriptedLLM(script("b")), tools, dies_after=["b"]))
    assert end_of(resumed(db, ScriptedLLM(["Done."]), tools, on_unknown=policy)).status == "completed"
    assert counter.done == done


def test_a_store_that_fails_after_the_tool_ran_loses_no_result_and_runs_nothing_twice(db, monkeypatch):
    counter = Counter()
    tools = GivenTools([counter.tool()])
    from lollms_client._store.turns import Lease

    whole, failed = Lease.call_ended, []

    def once(self, *args):
        if not failed:
            failed.append(True)
            raise StoreError("The disk is full.")
        return whole(self, *args)

    monkeypatch.setattr(Lease, "call_ended", once)
    with pytest.raises(StoreError, match="full"):
        list(turn(db, ScriptedLLM(script("a", "b")), tools))
    end = end_of(resumed(db, ScriptedLLM(script("b")), tools))
    assert (end.status, counter.done) == ("completed", ["a", "b"])
    assert [r["result"]["output"] for r in end.tool_results] == ["counted a", "counted b"]


def test_a_cancelled_reply_is_asked_for_again_and_a_cancelled_call_that_never_ran_runs(db):
    counter, token = Counter(), CancelToken()
    tools = GivenTools([counter.tool(), counter.tool("tool_other", ["write"]), counter.tool("tool_third", ["write"])])
    both = call("tool_other", word="x") + call("tool_third", word="y")
    for event in turn(db, ScriptedLLM([both]), tools, cancel=token):
        if isinstance(event, ev.ToolEnded):
            token.cancel()
    (row,) = TurnStore(db).turns()
    assert (row.status, counter.done) == ("cancelled", ["x"])
    end = end_of(resumed(db, ScriptedLLM(["Both."]), tools))
    assert (end.status, end.response, counter.done) == ("completed", "Both.", ["x", "y"])


def test_one_at_a_time_goes_on_with_a_turn(db):
    counter = Counter()
    tools = GivenTools([counter.tool()])
    playing = turn(db, ScriptedLLM(script("a")), tools)
    next(playing)
    with pytest.raises(TurnBusyError):
        resumed(db, ScriptedLLM([]), tools)
    playing.close()
    assert end_of(resumed(db, ScriptedLLM(script("a")), tools)).status == "completed"


def test_an_approval_waits_in_the_store_and_is_bound_to_its_arguments(db):
    counter = Counter()
    tools = GivenTools([counter.tool(effects=["destructive"])])
    options = {"call_options": {"defer_approval": True}}
    both = call("tool_count", word="x") + call("tool_count", word="y")
    events = list(turn(db, ScriptedLLM([both]), tools, **options))
    asked = [e for e in events if isinstance(e, ev.ApprovalRequested)]
    assert (events[-1].status, counter.done, len({e.ticket for e in asked})) == ("waiting_approval", [], 2)
    store = TurnStore(db)
    _, second = store.waiting()
    store.decide(second.turn.id, second.call.ticket, {"decision": "allow"})
    again = list(resumed(db, ScriptedLLM([]), tools, **options))
    assert (again[-1].status, counter.done) == ("waiting_approval", ["y"])
    (left,) = store.waiting()
    assert left.call.payload["arguments"] == {"word": "x"}
    store.decide(left.turn.id, left.call.ticket, {"decision": "reject", "reason": "Not this one."})
    model = ScriptedLLM(["Done."])
    end = end_of(resumed(db, model, tools, **options))
    assert (end.status, counter.done) == ("completed", ["y"])
    assert [r["result"]["success"] for r in end.tool_results] == [False, True]
    assert "Not this one." in str(model.requests[0].messages)


def test_the_turn_of_a_newer_version_is_refused_and_left_as_it_is(db):
    from lollms_client._store.statements import Statement
    from lollms_client.errors import StoreVersionError

    with pytest.raises(BackendError):
        list(turn(db, ScriptedLLM([BackendError("gone")])))
    with db.write() as tx:
        tx.run(Statement("UPDATE turns SET schema_version = 99"))
    with pytest.raises(StoreVersionError, match="newer lollms_client"):
        resumed(db, ScriptedLLM([]))
    with db.read() as tx:
        assert tx.rows(Statement("SELECT status, fence FROM turns")) == [("failed", 1)]


def test_the_turn_of_an_older_version_that_knew_less_is_read(db):
    import json

    from lollms_client._store.statements import Statement

    with pytest.raises(BackendError):
        list(turn(db, ScriptedLLM([BackendError("gone")])))
    with db.write() as tx:
        tx.run(Statement("UPDATE turns SET schema_version = 0, state = :state"), {"state": json.dumps({"rounds": 0})})
    assert end_of(resumed(db, ScriptedLLM(["Back."]))).response == "Back."


def test_a_question_of_the_model_waits_in_the_store_and_its_answer_is_the_call_s_result(db):
    asks = call("tool_ask_user", question="Which colour?", options=["red", "blue"])
    events = list(turn(db, ScriptedLLM([asks]), AskUser()))
    (asked,) = [e for e in events if isinstance(e, ev.ApprovalRequested)]
    assert (asked.kind, asked.reason, events[-1].status) == ("question", "Which colour?", "waiting_user")
    store = TurnStore(db)
    (waiting,) = store.waiting()
    assert waiting.call.result["result"]["request"]["options"] == ["red", "blue"]
    store.decide(waiting.turn.id, waiting.call.ticket, {"answer": "blue"})
    model = ScriptedLLM(["Blue it is."])
    assert end_of(resumed(db, model, AskUser())).status == "completed"
    assert model.requests[0].messages[-1]["content"] == "blue"


def test_a_question_that_waits_is_put_to_whoever_is_there_when_the_turn_goes_on(db):
    list(turn(db, ScriptedLLM([call("tool_ask_user", question="Which colour?")]), AskUser()))
    put = []
    options = {"user_interaction_handler": lambda request: put.append(request["prompt"]) or "green"}
    model = ScriptedLLM(["Green it is."])
    assert end_of(resumed(db, model, AskUser(), call_options=options)).status == "completed"
    assert (put, model.requests[0].messages[-1]["content"]) == (["Which colour?"], "green")


def test_a_turn_that_stopped_at_a_limit_gets_as_much_again(db):
    counter = Counter()
    tools = GivenTools([counter.tool()])
    end = end_of(turn(db, ScriptedLLM(script("a", "b", "c", "d")), tools, max_rounds=2))
    assert (end.status, end.rounds, TurnStore(db).load(only_turn(db)).row.status) == ("limit", 2, "cancelled")
    end = end_of(resumed(db, ScriptedLLM(script("c", "d")), tools))
    assert (end.status, end.rounds) == ("limit", 4)
    end = end_of(resumed(db, ScriptedLLM(["All counted."]), tools))
    assert (end.status, end.rounds, counter.done) == ("completed", 5, ["a", "b", "c", "d"])


def test_artefacts_of_a_turn_are_told_once_however_often_it_is_interrupted(db, tmp_path):
    tools = GivenTools([Counter().tool(effects=["destructive"])])
    options = {"call_options": {"defer_approval": True}}
    reply = ['<artifact name="a.txt" type="document">hello</artifact>', *call("tool_count", word="x")]
    model = ScriptedLLM([reply])
    assert end_of(turn(db, model, tools, tmp_path / "w", **options)).status == "waiting_approval"
    assert end_of(resumed(db, ScriptedLLM([]), tools, tmp_path / "w", **options)).status == "waiting_approval"
    store = TurnStore(db)
    (waiting,) = store.waiting()
    store.decide(waiting.turn.id, waiting.call.ticket, {"decision": "allow"})
    end = end_of(resumed(db, ScriptedLLM(["Done."]), tools, tmp_path / "w", **options))
    assert end.artefacts == [{"name": "a.txt", "version": 1, "action": "created", "size": 5}]
    assert (tmp_path / "w" / "a.txt").read_text() == "hello"
