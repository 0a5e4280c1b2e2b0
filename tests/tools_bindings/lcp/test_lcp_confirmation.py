"""The ready-made handlers for terminals and user interfaces."""

from __future__ import annotations

import builtins
import io
import queue
import sys
import threading

import pytest

from lollms_client.tools_bindings.lcp.confirmation import (
    cli_confirm_handler,
    cli_user_interaction_handler,
    make_gui_confirm_handler,
    make_gui_user_interaction_handler,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A person at a terminal who types these answers; returns what was asked."""

    def start(*answers):
        asked: list[str] = []
        left = list(answers)

        def answer(question=""):
            asked.append(question)
            found = left.pop(0)
            if isinstance(found, type):
                raise found
            return found

        monkeypatch.setattr(sys, "stdin", Terminal())
        monkeypatch.setattr(builtins, "input", answer)
        monkeypatch.setattr("getpass.getpass", answer)
        return asked

    return start


@pytest.mark.req("TG-5.6")
@pytest.mark.parametrize("stdin", [None, io.StringIO("y\n")])
def test_without_a_terminal_nothing_is_allowed(monkeypatch, stdin):
    monkeypatch.setattr(sys, "stdin", stdin)
    decision, reason = cli_confirm_handler("source", "label")
    assert decision == "reject"
    assert "standard input is not a terminal" in reason


def test_with_a_closed_standard_input_nothing_is_allowed(monkeypatch):
    closed = Terminal()
    closed.close()
    monkeypatch.setattr(sys, "stdin", closed)
    monkeypatch.setattr(Terminal, "isatty", io.StringIO.isatty)
    assert cli_confirm_handler("source", "label")[0] == "reject"


@pytest.mark.req("TG-5.7")
@pytest.mark.parametrize("length", [500, 501])
def test_the_action_is_shown_between_lines_up_to_500_characters(terminal, capsys, length):
    terminal("y")
    cli_confirm_handler("s" * length, "my_script")
    shown = "s" * 500 + ("..." if length > 500 else "")
    rule = "=" * 60
    assert capsys.readouterr().out == f"\n{rule}\n⚠️ AUTHORIZATION REQUIRED: my_script\n{rule}\n{shown}\n{rule}\n"


def test_a_command_line_is_shown_too(terminal, capsys):
    terminal("y")
    cli_confirm_handler("s", "label", ["--force", "x"])
    assert "['--force', 'x']" in capsys.readouterr().out


@pytest.mark.req("TG-5.8")
@pytest.mark.parametrize("answer", ["y", "yes", "", " YES ", "Y"])
def test_yes_and_enter_allow(terminal, answer):
    asked = terminal(answer)
    assert cli_confirm_handler("s", "l") == ("allow", "")
    assert asked == ["Authorize action? [y]es / [n]o / [a]lways: "]


@pytest.mark.req("TG-5.9")
@pytest.mark.parametrize("answer", ["a", "always", " ALWAYS"])
def test_always_is_always(terminal, answer):
    terminal(answer)
    assert cli_confirm_handler("s", "l") == ("always", "")


@pytest.mark.req("TG-5.10")
@pytest.mark.parametrize(("feedback", "reason"), [(" too risky ", "too risky"), ("  ", "User declined authorization.")])
@pytest.mark.parametrize("answer", ["n", "no", "NO"])
def test_no_asks_for_feedback(terminal, answer, feedback, reason):
    asked = terminal(answer, feedback)
    assert cli_confirm_handler("s", "l") == ("reject", reason)
    assert asked[1] == "Optional feedback for the agent: "


@pytest.mark.req("TG-5.11")
def test_another_answer_is_asked_again_and_leaving_is_a_refusal(terminal):
    asked = terminal("maybe", "yess", "y")
    assert cli_confirm_handler("s", "l") == ("allow", "")
    assert len(asked) == 3
    for leaving in (EOFError, KeyboardInterrupt):
        terminal(leaving)
        assert cli_confirm_handler("s", "l") == ("reject", "Operation cancelled by user.")
        terminal("n", leaving)
        assert cli_confirm_handler("s", "l") == ("reject", "Operation cancelled by user.")


@pytest.mark.req("TG-5.12")
def test_the_interface_gets_an_event_with_a_queue_for_the_answer():
    events: queue.Queue = queue.Queue()
    handler = make_gui_confirm_handler(events)
    thread = threading.Thread(target=handler, args=("source", "label", ["x"]))
    thread.start()
    event = events.get(timeout=20)
    answers = event.pop("response_queue")
    assert event == {"type": "approval_request", "source": "source", "script_label": "label", "argv": ["x"]}
    assert isinstance(answers, queue.Queue)
    assert answers.maxsize == 1
    answers.put(("allow", ""))
    thread.join(20)
    assert not thread.is_alive()


@pytest.mark.req("TG-5.13")
def test_the_agents_thread_waits_for_the_answer_and_the_interface_does_not():
    events: queue.Queue = queue.Queue()
    handler = make_gui_confirm_handler(events)
    answers: list = []
    agents = [threading.Thread(target=lambda n=n: answers.append((n, handler(f"source {n}", "label")))) for n in range(3)]
    for agent in agents:
        agent.start()
    pending = [events.get(timeout=20) for _ in agents]  # the interface goes on: it reads all three before it answers one
    assert answers == []
    for event in reversed(pending):
        event["response_queue"].put(("reject", event["source"]))
    for agent in agents:
        agent.join(20)
    assert sorted(answers) == [(n, ("reject", f"source {n}")) for n in range(3)]


@pytest.mark.req("TG-5.14")
def test_an_answer_that_does_not_come_in_time_is_a_refusal(monkeypatch):
    waited = []

    def get(self, block=True, timeout=None):
        waited.append(timeout)
        raise queue.Empty

    monkeypatch.setattr(queue.Queue, "get", get)
    assert make_gui_confirm_handler(queue.Queue())("s", "l") == ("reject", "Approval request timed out.")
    assert make_gui_user_interaction_handler(queue.Queue())({"type": "text"}) is None
    monkeypatch.undo()
    assert waited == [300, 300]
    assert make_gui_confirm_handler(queue.Queue(), timeout=0.01)("s", "l") == ("reject", "Approval request timed out.")


@pytest.mark.req("CT-A9.3")
def test_all_four_handlers_are_importable_and_the_confirm_one_takes_a_timeout():
    import inspect

    import lollms_client.tools_bindings.lcp.confirmation as module

    assert {
        "cli_confirm_handler", "cli_user_interaction_handler", "make_gui_confirm_handler", "make_gui_user_interaction_handler",
    } == set(module.__all__)  # fmt: skip
    parameters = inspect.signature(make_gui_confirm_handler).parameters
    assert list(parameters) == ["event_queue", "timeout"]
    assert parameters["timeout"].default == 300


def request(**facts):
    return {"type": "text", "title": "Key", "prompt": "Which", "options": [], "default": None, **facts}


def test_a_person_at_the_terminal_answers_a_question(terminal, capsys):
    asked = terminal(" Ada ")
    assert cli_user_interaction_handler(request()) == "Ada"
    assert asked == ["Which: "]
    assert "Key" in capsys.readouterr().out
    asked = terminal("")
    assert cli_user_interaction_handler(request(default="Bob")) == "Bob"
    assert asked == ["Which [Bob]: "]


def test_a_secret_is_not_shown_and_neither_is_its_default(terminal):
    asked = terminal(" s3cret ")
    assert cli_user_interaction_handler(request(type="secret", default="old")) == " s3cret "
    assert asked == ["Which: "]


def test_an_option_is_chosen_by_number_or_text(terminal, capsys):
    terminal("3", "x", "2")
    assert cli_user_interaction_handler(request(type="select", options=["red", "green"])) == "green"
    assert "  1. red\n  2. green\n" in capsys.readouterr().out
    terminal("red")
    assert cli_user_interaction_handler(request(type="select", options=["red", "green"])) == "red"


@pytest.mark.parametrize("leaving", [EOFError, KeyboardInterrupt])
def test_leaving_a_question_is_a_cancel(terminal, leaving):
    terminal(leaving)
    assert cli_user_interaction_handler(request()) is None


def test_without_a_terminal_a_question_is_cancelled(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("x"))
    assert cli_user_interaction_handler(request()) is None


def test_the_interface_answers_a_question_through_its_queue():
    events: queue.Queue = queue.Queue()
    handler = make_gui_user_interaction_handler(events)
    answers: list = []
    thread = threading.Thread(target=lambda: answers.append(handler(request(type="select"))))
    thread.start()
    event = events.get(timeout=20)
    assert (event["type"], event["request"]) == ("user_interaction_request", request(type="select"))
    event["response_queue"].put("green")
    thread.join(20)
    assert answers == ["green"]
