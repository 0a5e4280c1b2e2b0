"""People in the loop, through the binding: who is asked, what is answered, and what runs then."""

from __future__ import annotations

import pytest

from lollms_client.errors import ToolArgumentError, UnknownNameError

EFFECTS = """
from pathlib import Path
TOOL_EFFECTS = {"tool_erase": ["destructive"], "tool_write": ["write"], "tool_look": ["read"]}
def tool_erase(name: str, times: int = 1):
    "Erases."
    with open("done.txt", "a") as file:
        file.write(f"{name} {times}\\n")
    return f"erased {name} {times}"
def tool_write(name: str): return "wrote"
def tool_look(name: str): return "looked"
def tool_undeclared(name: str): return "ran"
"""

BOTH = pytest.mark.parametrize("isolation", ["thread", "process"])


class Person:
    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked: list[tuple] = []

    def __call__(self, source, script_label, argv=None):
        self.asked.append((source, script_label, argv))
        return self.answers.pop(0)


@pytest.fixture
def done(tmp_path):
    path = tmp_path / "workspace" / "done.txt"
    return lambda: path.read_text().splitlines() if path.exists() else []


@pytest.mark.req("TG-5.1", "TG-5.5")
@BOTH
def test_a_rejected_call_has_no_effect_and_the_reason_reaches_the_model(library, lcp, done, isolation):
    library("ops", EFFECTS)
    result = lcp(confirm_handler=Person(("reject", "Not on a Friday.")), isolation=isolation).execute_tool(
        "tool_erase", {"name": "a"}
    )
    assert (result["success"], result["status_code"], result["error"]) == (False, 403, "Not on a Friday.")
    assert done() == []


@pytest.mark.req("TG-5.2", "TG-5.3", "CT-A9.4")
def test_allow_runs_once_and_the_handler_is_called_as_documented(library, lcp, done):
    library("ops", EFFECTS)
    person = Person(("allow", ""), ("reject", "enough"))
    binding = lcp(confirm_handler=person)
    assert binding.execute_tool("tool_erase", {"name": "é", "times": "2", "bogus": 1})["output"] == "erased é 2"
    assert binding.execute_tool("tool_erase", {"name": "é", "times": "2"})["error"] == "enough"
    assert person.asked == [('{"name": "é", "times": 2}', "tool_erase", None)] * 2
    assert done() == ["é 2"]


@pytest.mark.req("TG-5.4")
def test_always_runs_and_approves_the_rest_of_the_session(library, lcp, done):
    library("ops", EFFECTS)
    person = Person(("always", ""), ("reject", "other session"), ("reject", "other binding"))
    binding = lcp(confirm_handler=person)
    for name in "abc":
        assert binding.execute_tool("tool_erase", {"name": name})["success"] is True
    assert len(person.asked) == 1
    assert binding.execute_tool("tool_erase", {"name": "d"}, session="another")["error"] == "other session"
    assert lcp(confirm_handler=person).execute_tool("tool_erase", {"name": "e"})["error"] == "other binding"
    assert done() == ["a 1", "b 1", "c 1"]


@pytest.mark.req("CT-A9.2")
@pytest.mark.parametrize("answer", [None, "allow", ("ok", ""), ("allow",), True])
def test_what_is_no_decision_runs_nothing(library, lcp, done, answer):
    library("ops", EFFECTS)
    assert lcp(confirm_handler=Person(answer)).execute_tool("tool_erase", {"name": "a"})["status_code"] == 403
    assert done() == []


@pytest.mark.req("CT-A9.5")
@BOTH
def test_an_edit_is_validated_is_what_runs_and_is_told_to_the_model(library, lcp, done, isolation):
    library("ops", EFFECTS)
    person = Person(("allow", "", {"name": "b", "times": "3"}), ("allow", "", {"times": 1}))
    binding = lcp(confirm_handler=person, isolation=isolation)
    result = binding.execute_tool("tool_erase", {"name": "a"})
    assert result["output"] == "erased b 3"
    assert result["warnings"] == ["The operator changed this call's arguments before it ran: {'name': 'b', 'times': 3}"]
    wrong = binding.execute_tool("tool_erase", {"name": "a"})
    assert "The operator changed the arguments of this call, and they do not fit" in wrong["error"]
    assert done() == ["b 3"]


@pytest.mark.req("TG-5.15")
def test_the_level_of_a_library_is_set_in_its_configuration(library, lcp):
    library("ops", EFFECTS)
    tools = ["tool_look", "tool_write", "tool_erase", "tool_undeclared"]
    asked_at = {"strict": ["tool_write", "tool_erase"], "safe": ["tool_erase"], "full_access": []}
    for level, wanted in asked_at.items():
        for settings in ({"host_tool_configs": {"ops": {"autonomy_level": level}}}, {"autonomy_level": level}):
            person = Person(*[("allow", "")] * 4)
            binding = lcp(confirm_handler=person, **settings)
            assert all(binding.execute_tool(name, {"name": "a"})["success"] for name in tools)
            assert [label for _, label, _ in person.asked] == wanted
    own = lcp(confirm_handler=Person(), autonomy_level="strict", host_tool_configs={"ops": {"autonomy_level": "full_access"}})
    assert own.execute_tool("tool_erase", {"name": "a"})["success"] is True
    assert own.execute_tool("tool_look", {"name": "a"}, autonomy_level="strict")["success"] is True


@pytest.mark.req("CT-A17.1")
def test_a_trusted_library_with_undeclared_effects_asks_by_its_own_logic_alone(library, lcp):
    library(
        "own_logic",
        """
        LEVEL, HANDLER = "safe", None
        def init_tools_library(config):
            global LEVEL, HANDLER
            LEVEL, HANDLER = config.get("autonomy_level", "safe"), config.get("confirm_handler")
        def tool_quiet(): return "ran"
        def tool_careful():
            if LEVEL == "strict":
                decision, reason = HANDLER("erase everything", "careful")
                if decision == "reject":
                    return {"success": False, "error": reason}
            return "ran"
        """,
    )
    person = Person(("reject", "no"))
    binding = lcp(confirm_handler=person, host_tool_configs={"own_logic": {"autonomy_level": "strict"}})
    assert binding.execute_tool("tool_quiet", {})["output"] == "ran"
    assert person.asked == []
    assert binding.execute_tool("tool_careful", {})["error"] == "no"
    assert person.asked == [("erase everything", "careful", None)]
    assert lcp(confirm_handler=person).execute_tool("tool_careful", {})["output"] == "ran"


@BOTH
def test_a_question_inside_a_tool_that_the_gate_has_asked_is_not_asked_twice(library, lcp, isolation):
    library(
        "runner",
        """
        TOOL_EFFECTS = {"tool_run": ["process"]}
        HANDLER = None
        def set_confirm_handler(handler):
            global HANDLER
            HANDLER = handler
        def tool_run(code: str, extra: bool = False):
            answers = [HANDLER(code, "script.py")]
            if extra:
                answers.append(HANDLER(code + "; more()", "script.py"))
            return {"output": [list(a) for a in answers]}
        """,
    )
    person = Person(("allow", "once"), ("allow", "once"), ("reject", "not more"))
    binding = lcp(confirm_handler=person, isolation=isolation)
    assert binding.execute_tool("tool_run", {"code": "print(1)"})["output"] == [["allow", ""]]
    assert len(person.asked) == 1
    assert binding.execute_tool("tool_run", {"code": "print(1)", "extra": True})["output"] == [
        ["allow", ""],
        ["reject", "not more"],
    ]
    assert [label for _, label, _ in person.asked] == ["tool_run", "tool_run", "script.py"]


@BOTH
def test_always_inside_a_tool_holds_for_that_tool_and_label(library, lcp, isolation):
    library(
        "shell",
        """
        _CONFIRM_HANDLER = None
        def tool_sh(command: str, label: str = "shell"): return list(_CONFIRM_HANDLER(command, label))
        def tool_sh2(command: str): return list(_CONFIRM_HANDLER(command, "shell"))
        """,
    )
    person = Person(("always", ""), ("reject", "label"), ("reject", "tool"), ("reject", "session"))
    binding = lcp(isolation=isolation, confirm_handler=person)
    assert binding.execute_tool("tool_sh", {"command": "ls"})["output"] == ["always", ""]
    assert binding.execute_tool("tool_sh", {"command": "cat"})["output"] == ["allow", ""]
    assert binding.execute_tool("tool_sh", {"command": "cat", "label": "root"})["output"] == ["reject", "label"]
    assert binding.execute_tool("tool_sh2", {"command": "cat"})["output"] == ["reject", "tool"]
    assert binding.execute_tool("tool_sh", {"command": "cat"}, session="s")["output"] == ["reject", "session"]


def test_without_anybody_to_ask_the_reason_says_how_to_allow(library, lcp, done):
    library("ops", EFFECTS)
    result = lcp().execute_tool("tool_erase", {"name": "a"})
    assert result["status_code"] == 403
    assert "no confirm handler is configured" in result["error"]
    assert done() == []


def test_a_deferred_call_waits_and_runs_once_the_decision_for_it_is_there(library, lcp, done):
    library("ops", EFFECTS)
    binding = lcp(approval="defer")
    waiting = binding.execute_tool("tool_erase", {"name": "a"})
    assert {k: waiting[k] for k in ("success", "status", "status_code", "arguments")} == {
        "success": False, "status": "pending", "status_code": 202, "arguments": {"name": "a", "times": 1},
    }  # fmt: skip
    assert waiting["reason"] == "tool_erase (destructive) waits for a person's approval."
    assert done() == []
    decision = {"ticket": waiting["ticket"], "decision": "allow", "reason": ""}
    later = lcp(approval="defer")
    assert later.execute_tool("tool_erase", {"name": "b"}, approval=decision)["status"] == "pending"
    assert (
        later.execute_tool("tool_erase", {"name": "a"}, approval={**decision, "decision": "reject", "reason": "no"})["error"]
        == "no"
    )
    assert later.execute_tool("tool_erase", {"name": "a"}, approval=decision)["output"] == "erased a 1"
    assert done() == ["a 1"]


def test_a_call_made_from_inside_a_tool_goes_through_the_gate(library, lcp, done):
    library("ops", EFFECTS)
    library(
        "outer", "def tool_outer(tool_context=None): return tool_context['binding'].execute_tool('tool_erase', {'name': 'a'})"
    )
    person = Person(("reject", "nested"))
    binding = lcp()
    result = binding.execute_tool("tool_outer", {}, tool_context={"binding": binding}, confirm_handler=person)
    assert (result["success"], result["error"]) == (False, "nested")
    assert [label for _, label, _ in person.asked] == ["tool_erase"]
    assert done() == []


def test_every_way_to_a_tool_is_asked_once(library, lcp, done):
    library("ops", EFFECTS)
    person = Person(("reject", "1"), ("reject", "2"), ("allow", ""))
    binding = lcp(confirm_handler=person)
    assert binding.to_chat_tool_specs()["tool_erase"]["callable"](name="a")["error"] == "1"
    binding.register_tool_from_code("more", EFFECTS.replace("tool_erase", "tool_erase_more"))
    assert binding.execute_tool("tool_erase_more", {"name": "a"})["error"] == "2"
    assert binding.execute_tool("tool_erase", {"name": "a"})["success"] is True
    assert len(person.asked) == 3


@BOTH
def test_the_time_a_person_takes_inside_a_tool_is_not_the_tools(library, lcp, isolation):
    import threading

    library(
        "patient", "_CONFIRM_HANDLER = None\ndef tool_ask(): return list(_CONFIRM_HANDLER('s', 'l'))\ndef tool_warm(): return 1"
    )

    def slow(*_):
        threading.Event().wait(1.5)
        return "allow", "at last"

    binding = lcp(isolation=isolation, confirm_handler=slow)
    binding.execute_tool("tool_warm", {})
    assert binding.execute_tool("tool_ask", {}, timeout=1.0)["output"] == ["allow", "at last"]


def test_arguments_can_be_checked_without_a_call(library, lcp):
    library("ask", "def tool_ask(n: int, word: str = 'x') -> dict:\n    '''Asks.'''\n    raise SystemExit\n")
    binding = lcp()
    assert binding.check_arguments("tool_ask", {"n": "7"}) == ({"n": 7, "word": "x"}, [])
    fitted, dropped = binding.check_arguments("tool_ask", {"n": 7, "wrod": "y"})
    assert fitted == {"n": 7, "word": "x"}
    assert "wrod" in dropped[0]
    with pytest.raises(ToolArgumentError, match="'n'"):
        binding.check_arguments("tool_ask", {"n": "many"})
    with pytest.raises(UnknownNameError, match="tool_ask"):
        binding.check_arguments("tool_ast", {})
