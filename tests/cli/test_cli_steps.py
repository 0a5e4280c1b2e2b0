"""What a turn does is shown by `lollms run` and by `lollms chat` in the same lines; the turns are real, the model is scripted."""

from __future__ import annotations

import io

import pytest

from lollms_client.cli.chat.plain import run_plain
from lollms_client.cli.chat.session import Session
from lollms_client.cli.chat.view import View
from lollms_client.cli.render import TurnRenderer
from lollms_client.lollms_core import LollmsClient
from lollms_client.testing import Capabilities, Reply, ScriptedLLM, call

PROGRAM = (
    '<artifact name="shop.py" type="code" language="python">\nclass Till:\n    def ring(self):\n        return 1\n</artifact>\n'
)
REPORT = '<artifact name="plan.md" type="document">\n# Doors\n\nOf oak.\n</artifact>\n'


@pytest.fixture
def session(tmp_path):
    def make(script, **keywords):
        client = LollmsClient(tools_binding_name="lcp")
        client.llm = ScriptedLLM(script, **keywords)
        return Session(client, tmp_path)

    return make


def in_chat(events):
    out = io.StringIO()
    view = View(out)
    view.begin()
    for event in events:
        view.show(event)
    view.pause()
    return out.getvalue().replace("\x1b[K", "")


def in_run(events):
    out = io.StringIO()
    renderer = TurnRenderer(out)
    for event in events:
        renderer.show(event)
    return out.getvalue()


def test_an_artefact_is_its_file_and_its_units_and_never_its_body(session):
    events = list(session([f"Here it is.\n{PROGRAM}{REPORT}That was it.", "Done."]).turn("write a shop"))
    chat = in_chat(events)
    for shown in (chat, in_run(events).partition("Answer\n")[0]):
        lines = [line.strip() for line in shown.splitlines() if line.strip()]
        at = lines.index("▸ shop.py")
        assert lines[at + 1 : at + 3] == ["class Till", "def ring()"]
        at = lines.index("▸ plan.md")
        assert lines[at + 1] == "Section: Doors"
        assert "✓ shop.py created" in lines
        assert "return 1" not in shown
        assert "Of oak" not in shown
    assert chat.index("Here it is.") < chat.index("▸ shop.py") < chat.index("▸ plan.md") < chat.index("That was it.")


def test_a_reply_that_is_an_artefact_alone_is_not_shown_as_text(session):
    chat = in_chat(session([PROGRAM, ""]).turn("write a shop"))
    assert "▸ shop.py" in chat
    assert "return 1" not in chat


def test_workers_and_a_change_of_effort_are_shown(session):
    tag = '<agent name="carpenter"><task>Build the\x1b[2J doors.</task></agent>\n'
    talk = session(
        ['I think harder.\n<effort level="high"/>\n', tag, "Two doors of oak.", "The doors are built."],
        capabilities=Capabilities(),
    ).talk
    events = list(talk.play("go", workers=True, dynamic_effort=True))
    for shown in (in_chat(events), in_run(events)):
        assert "effort from now on: high" in shown
        assert "⇢ worker Build the\\x1b[2J doors." in shown
        assert shown.index("⇢ worker") < shown.index("Two doors of oak.") < shown.index("The doors are built.")
    assert "✓ worker (" in in_chat(events)


def test_what_waits_is_shown_and_that_the_turn_goes_on_later(session, tmp_path):
    (tmp_path / "a.txt").write_text("keep")
    talk = session([call("tool_delete_path", path="a.txt"), "It stays."]).talk
    events = list(talk.play("delete it", defer_approval=True))
    chat = in_chat(events)
    assert "? tool_delete_path waits (approval)" in chat
    assert "The turn ended as waiting_approval" in chat
    assert "`lollms pending` takes your answer, and /resume goes on" in chat
    (waiting,) = talk.db_manager.waiting()
    talk.db_manager.decide(waiting["turn_id"], waiting["ticket"], "reject")
    chat = in_chat(talk.play_resumed())
    assert chat.index("↻ The turn goes on where it stopped.") < chat.index("It stays.")


def test_over_a_pipe_the_same_is_told_beside_the_answer(session, capsys):
    run_plain(session([Reply([PROGRAM, "Written."])]), io.StringIO("write a shop\n"))
    told = capsys.readouterr()
    assert "▸ shop.py\n    class Till\n    def ring()\n" in told.err
    assert "Written." in told.out
