"""Dynamic mode where the decoder is bound: a step says the effort of those that follow."""

from __future__ import annotations

import json

import pytest

from lollms_client import events as ev
from lollms_client._agent.dialects.constrained import EFFORT_LEVELS, step_schema
from lollms_client._agent.durable import checkpoint, transcript
from lollms_client._agent.headless import HeadlessHost
from lollms_client._agent.loop import run_turn
from lollms_client._agent.options import turn_options
from lollms_client._agent.state import TurnState
from lollms_client._store.db import Database
from lollms_client._store.turns import TurnStore
from lollms_client.testing import Capabilities, ScriptedLLM, ScriptedTools

from .durable_kit import only_turn, turn

BOUND = Capabilities(json_schema=True)


def step(tool: str, effort: object = None, **arguments: object) -> str:
    said = {"todo": "go on", "tool": tool, "arguments": arguments}
    return json.dumps(said if effort is None else {**said, "effort": effort}, ensure_ascii=False)


def played(script, *, dynamic: bool = True, tools=None):
    model = ScriptedLLM(script, capabilities=BOUND)
    host = HeadlessHost(model, ScriptedTools({"tool_ok": lambda n: n}) if tools is None else tools, None)
    return model, host, list(run_turn(host, turn_options("Go.", {}, {"dynamic_effort": dynamic})))


def changes(events) -> list[str]:
    return [e.level for e in events if isinstance(e, ev.EffortChange)]


def offered(schema) -> list[tuple[str, object]]:
    return [(s["properties"]["tool"]["const"], s["properties"].get("effort")) for s in schema["anyOf"]]


SCRIPT = [
    step("tool_ok", "high", n=1),
    step("tool_ok", n=2),
    step("tool_ok", "none", n="é \ud800"),
    step("final_answer", answer="Done."),
]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_step_sets_the_effort_of_those_that_follow_and_the_change_is_an_event(size):
    model, _, events = played([[text[i : i + size] for i in range(0, len(text), size)] for text in SCRIPT])
    assert [r.reasoning_effort for r in model.requests] == ["none", "high", "high", "none"]
    assert changes(events) == ["high", "none"]
    assert (events[-1].status, events[-1].response) == ("completed", "Done.")


def test_what_a_step_said_about_its_effort_is_neither_shown_nor_kept_nor_said_again(tmp_path):
    db = Database(tmp_path / "turns.db")
    model = ScriptedLLM(SCRIPT, capabilities=BOUND)
    events = list(turn(db, model, ScriptedTools({"tool_ok": lambda n: n}), dynamic_effort=True))
    assert changes(events) == ["high", "none"]
    shown = "".join(e.text for e in events if isinstance(e, (ev.TextDelta, ev.ThoughtDelta)))
    assert shown == "go on" * 4 + "Done."
    stored = TurnStore(db).load(only_turn(db))
    for kept in (transcript(stored), [r.reply["raw"] for r in stored.rounds], events[-1].tool_calls):
        assert '"effort"' not in str(kept)
    steps = [m["content"] for m in transcript(stored) if m["role"] == "assistant"]
    assert [json.loads(s)["arguments"] for s in steps[:3]] == [{"n": 1}, {"n": 2}, {"n": "é \ud800"}]
    examples_end = next(i for i, m in enumerate(model.requests[-1].messages) if str(m["content"]).startswith("TASK:"))
    assert '"effort"' not in str(model.requests[-1].messages[examples_end:])
    assert checkpoint(stored)
    db.close()


def test_only_in_dynamic_mode_the_model_is_offered_an_effort_and_told_of_it():
    for dynamic in (True, False):
        model, host, _ = played(SCRIPT, dynamic=dynamic)
        first = model.requests[0]
        assert ("effort" in str(first.messages)) is dynamic
        assert ("effort" in str(first.json_schema)) is dynamic
        choice = {"enum": list(EFFORT_LEVELS)} if dynamic else None
        assert offered(first.json_schema) == [("final_answer", None), ("tool_ok", choice)]
        plain = step_schema(host.tools.specs(), [], TurnState(), dynamic=dynamic)["anyOf"][1]
        assert plain["required"] == ["todo", "tool", "arguments"]
        assert list(plain["properties"])[:3] == ["todo", "tool", "arguments"], "the effort is what a step ends with"


def test_outside_dynamic_mode_a_step_with_an_effort_changes_nothing():
    model, _, events = played(SCRIPT, dynamic=False)
    assert [r.reasoning_effort for r in model.requests] == [None] * 4
    assert changes(events) == []


def test_an_effort_that_nobody_knows_is_told_to_the_person_and_changes_nothing():
    model, _, events = played([step("tool_ok", "ultra", n=1), step("tool_ok", " HIGH ", n=2), step("final_answer", answer="ok")])
    assert [r.reasoning_effort for r in model.requests] == ["none", "none", "high"]
    assert [("ultra" in e.text, e.kind) for e in events if isinstance(e, ev.Notice)] == [(True, "effort")]


def test_an_answer_ends_the_turn_whatever_effort_it_names():
    model, host, events = played([step("tool_ok", n=1), step("final_answer", "high", answer="Done."), "never asked"])
    assert (len(model.requests), changes(events), events[-1].response) == (2, [], "Done.")
    assert '"effort"' not in str(host.messages)


def test_without_tools_there_is_no_step_and_so_no_word_of_an_effort():
    model, _, events = played(['{"effort": "high"}'], tools=ScriptedTools({}))
    assert "effort" not in str(model.requests[0].messages)
    assert events[-1].response == '{"effort": "high"}'
