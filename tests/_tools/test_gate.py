"""Who may run what: levels, decisions, what "always" covers, and questions that are not asked twice."""

from __future__ import annotations

import logging
import threading

import pytest

from lollms_client._tools.asks import GuardedConfirm, GuardedInteraction, ask, fingerprint
from lollms_client._tools.calls import CURRENT, RunningCall
from lollms_client._tools.effects import asks_about, check_level
from lollms_client._tools.gate import Allow, Gate, GateCall, Pending, Reject
from lollms_client.errors import ConfigurationError


class Person:
    """A handler that answers from a list and remembers the questions."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked: list[tuple] = []

    def __call__(self, source, script_label, argv=None):
        self.asked.append((source, script_label, argv))
        return self.answers.pop(0)


def call(handler=None, effects=("destructive",), arguments=None, **facts) -> GateCall:
    known = None if effects is None else frozenset(effects)
    return GateCall("tool_x", arguments if arguments is not None else {"path": "a"}, known, handler=handler, **facts)


@pytest.mark.parametrize(
    ("effects", "trusted", "strict", "safe"),
    [
        (None, True, "", ""),
        (None, False, "undeclared", "undeclared"),
        ({"read"}, True, "", ""),
        ({"read"}, False, "", ""),
        (set(), True, "", ""),
        ({"write"}, True, "write", ""),
        ({"write", "read"}, False, "write", ""),
        ({"destructive"}, True, "destructive", "destructive"),
        ({"network", "read"}, True, "network", "network"),
        ({"process", "write"}, True, "process, write", "process"),
        ({"teleport"}, True, "teleport", "teleport"),
    ],
)
def test_what_is_asked_about_at_each_level(effects, trusted, strict, safe):
    assert asks_about(effects, "strict", trusted=trusted) == strict
    assert asks_about(effects, "safe", trusted=trusted) == safe
    assert asks_about(effects, "full_access", trusted=trusted) == ""


def test_a_wrong_level_is_an_error_that_says_where_it_stands():
    with pytest.raises(
        ConfigurationError, match="here is 'paranoid'; an autonomy level is one of 'strict', 'safe', 'full_access'"
    ):
        check_level("paranoid", "here")


@pytest.mark.req("TG-5.3")
def test_allow_holds_for_one_run():
    person = Person(("allow", ""), ("reject", "not again"))
    gate = Gate()
    assert isinstance(gate.decide(call(person)), Allow)
    assert gate.decide(call(person)) == Reject("not again")
    assert len(person.asked) == 2


@pytest.mark.req("TG-5.4", "CT-A17.3")
def test_always_holds_for_that_tool_and_kind_of_action_in_that_session_and_binding():
    person = Person(("always", ""), *[("reject", "asked")] * 4)
    gate = Gate()
    assert isinstance(gate.decide(call(person)), Allow)
    assert isinstance(gate.decide(call(person, arguments={"path": "other"})), Allow)
    assert gate.decide(GateCall("tool_y", {}, frozenset({"destructive"}), handler=person)) == Reject("asked")
    assert gate.decide(call(person, effects=("network",))) == Reject("asked")
    assert gate.decide(call(person, session="another")) == Reject("asked")
    assert Gate().decide(call(person)) == Reject("asked")
    gate.forget()
    with pytest.raises(IndexError):
        person("no answer", "left") if isinstance(gate.decide(call()), Reject) else None


def test_what_is_allowed_always_is_not_asked_once_more_from_inside_the_tool():
    gate, person = Gate(), Person(("always", ""))
    first, second = gate.decide(call(person)), gate.decide(call(person))
    assert isinstance(first, Allow)
    assert first.granted
    assert second == first


@pytest.mark.req("TG-5.2", "CT-A9.4")
def test_the_handler_gets_the_json_arguments_and_the_name_of_a_plain_tool():
    person = Person(("allow", ""))
    Gate().decide(call(person, arguments={"path": "é", "n": 1}))
    assert person.asked == [('{"path": "é", "n": 1}', "tool_x", None)]


@pytest.mark.req("CT-A9.2")
@pytest.mark.parametrize(
    "answer",
    [None, True, "allow", (), ("allow",), ("yes", ""), ("ALLOW", ""), (True, ""), ("allow", "", {}, 1), {"allow": ""}, 1],
)
def test_what_is_no_documented_decision_is_a_refusal(answer):
    decision = Gate().decide(call(lambda *_: answer))
    assert isinstance(decision, Reject)
    assert "none of allow, always and reject" in decision.reason


@pytest.mark.req("CT-A9.2")
def test_a_handler_that_fails_has_not_allowed_anything(caplog):
    def handler(*_):
        raise OSError("window closed")

    with caplog.at_level(logging.ERROR):
        decision = Gate().decide(call(handler))
    assert decision == Reject("The confirm handler failed (OSError: window closed), so nothing was allowed.")
    assert "The confirm handler failed for tool_x" in caplog.text


def test_a_coroutine_is_no_decision_and_leaves_no_warning():
    async def handler(*_):
        return "allow", ""

    assert isinstance(Gate().decide(call(handler)), Reject)


def test_ctrl_c_at_the_question_ends_the_turn():
    def handler(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Gate().decide(call(handler))


def test_nobody_to_ask_is_a_refusal_that_says_how_to_allow():
    decision = Gate().decide(call())
    assert isinstance(decision, Reject)
    assert decision.reason.startswith("tool_x (destructive) needs a person's approval at level 'safe'. Nobody can be asked")
    assert '"autonomy_level": "full_access"' in decision.reason


def test_an_edit_is_what_runs():
    decision = Gate().decide(call(Person(("allow", "", {"path": "b"}))))
    assert isinstance(decision, Allow)
    assert (decision.arguments, decision.edited) == ({"path": "b"}, True)
    assert isinstance(Gate().decide(call(Person(("allow", "", "b")))), Reject)


def test_arguments_that_change_while_a_person_decides_are_refused():
    arguments = {"items": [100]}

    def handler(*_):
        arguments["items"][0] = 50
        return "allow", ""

    assert Gate().decide(call(handler, arguments=arguments)) == Reject("The arguments changed while a person decided about them.")


def test_deferred_calls_wait_under_tickets_of_their_own():
    gate = Gate("defer")
    first, second = gate.decide(call()), gate.decide(call())
    assert isinstance(first, Pending)
    assert isinstance(second, Pending)
    assert first.ticket != second.ticket
    assert first.reason == "tool_x (destructive) waits for a person's approval."


def test_a_stored_decision_holds_for_exactly_the_call_it_was_made_for():
    ticket = Gate("defer").decide(call()).ticket
    stored = {"ticket": ticket, "decision": "allow", "reason": ""}
    other = Gate("defer")  # another process: the ticket is all that survives
    assert isinstance(other.decide(call(stored=stored)), Allow)
    assert isinstance(other.decide(call(stored=stored, arguments={"path": "b"})), Pending)
    assert isinstance(other.decide(GateCall("tool_y", {"path": "a"}, frozenset({"process"}), stored=stored)), Pending)
    assert other.decide(call(stored={**stored, "decision": "reject", "reason": "no"})) == Reject("no")
    assert isinstance(other.decide(call(stored={**stored, "decision": "maybe"})), Reject)
    edited = other.decide(call(stored={**stored, "arguments": {"path": "c"}}))
    assert isinstance(edited, Allow)
    assert edited.arguments == {"path": "c"}


def test_an_unknown_approval_is_an_error():
    with pytest.raises(ConfigurationError, match="'ask' or 'defer'"):
        Gate("auto")  # type: ignore[arg-type]


def test_a_gate_asks_for_every_one_of_many_calls_at_once():
    lock, asked = threading.Lock(), []

    def handler(source, label):
        with lock:
            asked.append(source)
        return "reject", source

    gate = Gate()
    decisions = []
    threads = [
        threading.Thread(target=lambda n=n: decisions.append(gate.decide(call(handler, arguments={"n": n})))) for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert {d.reason for d in decisions} == {f'{{"n": {n}}}' for n in range(20)} == set(asked)


# Questions from inside a tool.


@pytest.fixture
def running():
    call_now = RunningCall("tool_x", session="s")
    token = CURRENT.set(call_now)
    yield call_now
    CURRENT.reset(token)


def guard(gate, handler) -> GuardedConfirm:
    return GuardedConfirm(gate, "lib", lambda: handler)


def test_a_question_that_the_gate_has_asked_is_not_asked_again(running):
    gate, person = Gate(), Person(("allow", ""), ("reject", "asked inside"))
    decision = gate.decide(call(person, arguments={"code": "print(1)", "n": 1}))
    assert isinstance(decision, Allow)
    running.granted.update(decision.granted)
    inside = guard(gate, person)
    assert inside("print(1)", "script.py") == ("allow", "")
    assert inside("print(1)", "script.py") == ("reject", "asked inside"), "one approval, one action"
    assert len(person.asked) == 2


def test_an_approval_covers_nothing_else(running):
    gate, person = Gate(), Person(("reject", "asked"), ("reject", "asked"), ("reject", "asked"))
    running.granted.add(fingerprint("", "print(1)"))
    inside = guard(gate, person)
    assert inside("print(2)", "script.py")[0] == "reject"
    assert inside("print(1)", "script.py", ["--force"])[0] == "reject"
    CURRENT.set(RunningCall("tool_x", parent=running))
    assert inside("print(1)", "script.py")[0] == "reject"
    assert len(person.asked) == 3


def test_always_from_inside_a_tool_covers_that_tool_and_label_in_that_session(running):
    gate, person = Gate(), Person(("always", "ok"), *[("reject", "asked")] * 3)
    inside = guard(gate, person)
    assert inside("a", "shell") == ("always", "ok")
    assert inside("b", "shell") == ("allow", "")
    assert inside("b", "python") == ("reject", "asked")
    CURRENT.set(RunningCall("tool_y", session="s"))
    assert inside("b", "shell") == ("reject", "asked")
    CURRENT.set(RunningCall("tool_x", session="t"))
    assert inside("b", "shell") == ("reject", "asked")


def test_a_careless_library_is_still_refused_what_is_no_decision(running):
    assert guard(Gate(), lambda *_: ("maybe", ""))("a", "b")[0] == "reject"
    assert guard(Gate(), lambda *_: None)("a", "b")[0] == "reject"
    assert guard(Gate(), None)("a", "b")[0] == "reject"
    assert guard(Gate(), lambda *_: ("allow", "", {"x": 1}))("a", "b")[0] == "reject"


def test_a_handler_of_the_call_comes_before_that_of_the_host(running):
    running.confirm_handler = Person(("reject", "of the call"))
    inner = RunningCall("tool_y", parent=running)
    CURRENT.set(inner)
    assert guard(Gate(), Person(("allow", "")))("a", "b") == ("reject", "of the call")


def test_a_question_from_a_thread_of_the_tool_is_asked_in_the_librarys_name():
    person = Person(("always", ""))
    gate = Gate()
    assert guard(gate, person)("a", "b", ["x"]) == ("always", "")
    assert guard(gate, person)("c", "b") == ("allow", "")
    assert person.asked == [("a", "b", ["x"])]


def test_the_interaction_guard_hands_on_the_request_and_a_text_or_none(running, caplog):
    request = {"type": "text", "title": "t", "prompt": "p", "options": [], "default": None}
    seen = []
    answers = iter(["text", None, 5])

    def handler(asked):
        seen.append(asked)
        return next(answers)

    inside = GuardedInteraction("lib", lambda: handler)
    assert [inside(request) for _ in range(3)] == ["text", None, "5"]
    assert all(s is request for s in seen)
    with caplog.at_level(logging.ERROR):
        assert inside(request) is None
    assert "The user interaction handler failed for the library lib" in caplog.text
    assert GuardedInteraction("lib", lambda: None)(request) is None


def test_ask_takes_lists_for_tuples_because_json_has_no_tuples():
    assert ask(lambda *_: ["reject", None], "s", "l", None) == ("reject", "", None)


def test_a_refusal_of_this_very_call_is_not_lifted_by_always():
    gate = Gate("defer")
    waiting = gate.decide(call(None))
    assert gate.decide(call(Person(("always", "")))).by == "handler"
    stored = {"ticket": waiting.ticket, "decision": "reject", "reason": "not this one"}
    assert gate.decide(call(None, stored=stored)) == Reject("not this one")
    assert gate.decide(call(None)).by == "always"
