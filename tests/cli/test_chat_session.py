"""The conversation behind `lollms chat`: turns, history, commands, approvals, what it costs; a scripted model, real tools."""

from __future__ import annotations

import io
import json
import queue
import threading

import pytest

from lollms_client.cli.chat.approval import Approval, change_of
from lollms_client.cli.chat.blocks import finished_length
from lollms_client.cli.chat.commands import COMMANDS, is_command, run_command
from lollms_client.cli.chat.complete import Completions
from lollms_client.cli.chat.paint import Painter
from lollms_client.cli.chat.plain import run_plain
from lollms_client.cli.chat.session import Session
from lollms_client.cli.chat.view import View, figures
from lollms_client.cli.chat.worker import Failure, Question, TurnInThread
from lollms_client.cli.tree import drawn
from lollms_client.errors import BackendError, ConfigurationError, UnknownNameError
from lollms_client.events import TextDelta, ThoughtDelta, TurnEnded, Usage
from lollms_client.lollms_core import LollmsClient
from lollms_client.lollms_utilities import one_line, safe_text
from lollms_client.testing import Capabilities, ReasoningDelta, Reply, ScriptedLLM, call


@pytest.fixture
def talk(tmp_path):
    """A session over a script; `.model` tells what was asked."""

    def make(script, capabilities=None, **keywords):
        client = LollmsClient(tools_binding_name="lcp")
        client.llm = ScriptedLLM(script, capabilities=capabilities)
        return Session(client, tmp_path, **keywords)

    return make


def play(session, prompt):
    return list(session.turn(prompt))


def roles(messages):
    return [m["role"] for m in messages]


def test_a_turn_goes_on_from_the_very_messages_of_the_turns_before(talk):
    session = talk([call("tool_list_files"), "First.", "Second."], system="Be kind.")
    play(session, "one")
    sent_before = session.model.requests[1].messages
    play(session, "two")
    sent = session.model.requests[2].messages
    assert sent[: len(sent_before)] == sent_before, "the prefix stays, so that a backend's cache holds"
    assert sent[0]["content"].startswith("Be kind.")
    assert roles(sent[1:]) == ["user", "assistant", "tool", "assistant", "user"]
    assert [e.answer for e in session.exchanges] == ["First.", "Second."]


def test_a_turn_that_was_stopped_leaves_a_conversation_that_can_go_on(talk):
    session = talk([call("tool_write_file", path="a.txt", content="x"), Reply(["never ", "told"], delay=30), "Later."])
    for event in session.turn("go"):
        if type(event).__name__ == "RoundStarted" and event.round == 2:
            session.cancel()
    assert session.last.status == "cancelled"
    assert session.history()[-1]["content"] == "(The turn ended here, before an answer.)"
    play(session, "and now?")
    assert session.exchanges[-1].answer == "Later."
    sent = session.model.requests[-1].messages
    assert roles(sent[1:]) == ["user", "assistant", "tool", "assistant", "user"]
    assert sent[-2]["content"] == "(The turn ended here, before an answer.)"


def test_a_turn_that_failed_can_be_resumed_or_left_behind(talk):
    session = talk([BackendError("it is down"), "Up again.", BackendError("it is down"), "Up once more."])
    with pytest.raises(BackendError):
        play(session, "one")
    assert session.turns == 1
    said = run_command(session, "/resume")
    assert [type(e).__name__ for e in said.plays()][-1] == "TurnEnded"
    assert [(e.prompt, e.answer) for e in session.exchanges] == [("one", "Up again.")]
    assert "nothing to resume" in run_command(session, "/resume").text
    with pytest.raises(BackendError):
        play(session, "two")
    play(session, "three")
    assert roles(session.history()) == ["user", "assistant"] * 3
    assert "nothing to resume" in run_command(session, "/resume").text


def test_a_turn_that_failed_after_a_call_keeps_what_was_done(talk):
    session = talk([call("tool_list_files"), BackendError("it is down"), "Up again."])
    with pytest.raises(BackendError):
        play(session, "one")
    play(session, "two")
    assert roles(session.model.requests[-1].messages[1:]) == ["user", "assistant", "tool", "assistant", "user"]


def test_an_answer_is_given_again_as_a_branch_that_one_can_go_over_to(talk):
    session = talk(["First.", "Another."])
    play(session, "one")
    list(run_command(session, "/retry").plays())
    assert [e.answer for e in session.exchanges] == ["Another."]
    assert run_command(session, "/branches").text == "  1. 2 messages, last: First.\n* 2. 2 messages, last: Another."
    run_command(session, "/branches 1")
    assert [e.answer for e in session.exchanges] == ["First."]


def test_what_was_said_is_said_otherwise_as_a_branch_and_the_tree_is_drawn(talk):
    session = talk(["A.", "B.", "Instead.", "On."])
    play(session, "one")
    play(session, "two")
    said = run_command(session, "/edit 1")
    assert said.prompt == "one"
    list(said.edits("one, but otherwise"))
    assert [(e.prompt, e.answer) for e in session.exchanges] == [("one, but otherwise", "Instead.")]
    assert roles(session.model.requests[-1].messages) == ["system", "user"]
    assert [line.split("  ")[0] for line in run_command(session, "/tree").text.splitlines()] == [
        line.split("  ")[0] for line in drawn(session.talk.get_tree())
    ]
    assert "* └─ user: one, but otherwise" in run_command(session, "/tree").text
    assert "├─ user: one " in run_command(session, "/tree").text
    play(session, "go on")
    assert run_command(session, "/edit").prompt == "go on"
    with pytest.raises(UnknownNameError, match="'3'"):
        run_command(session, "/edit 3")
    run_command(session, "/branches 1")
    assert [e.prompt for e in session.exchanges] == ["one", "two"]


def test_nothing_to_edit_and_nothing_to_draw(talk, capsys):
    session = talk(["A."])
    assert "nothing yet" in run_command(session, "/edit").text
    assert "nothing yet" in run_command(session, "/tree").text
    assert run_plain(session, io.StringIO("one\n/edit\n")) == 1
    assert "/edit needs a terminal" in capsys.readouterr().err


def test_a_prompt_that_could_not_be_said_otherwise_leaves_the_conversation_as_it_was(talk):
    session = talk(["A."])
    play(session, "one")
    with pytest.raises(ConfigurationError, match="not a person's"):
        list(session.said_otherwise(session.talk.get_branch()[-1], "x"))
    assert [e.prompt for e in session.exchanges] == ["one"]


def test_a_model_that_calls_otherwise_is_told_of_earlier_turns_in_plain_words(talk):
    session = talk([call("tool_list_files"), "Nothing there."])
    play(session, "what is there?")
    session.client.llm = other = ScriptedLLM(["{}"], capabilities=Capabilities(json_schema=True))
    assert session.history() == [
        {"role": "user", "content": "what is there?"},
        {"role": "assistant", "content": "Nothing there."},
    ]
    assert session.model is other


def test_undo_takes_one_turn_back_and_clear_all(talk):
    session = talk(["A.", "B.", "C."])
    for prompt in ("a", "b", "c"):
        play(session, prompt)
    assert run_command(session, "/undo").prompt == "c"
    assert [e.prompt for e in session.exchanges] == ["a", "b"]
    assert "2 turns" in run_command(session, "/clear").text
    assert session.history() == []
    assert "no turn" in run_command(session, "/undo").text
    assert session.turns == 3, "what was spent stays spent"


def test_effort_is_asked_for_as_set_and_checked(talk):
    session = talk(["A.", "B."])
    assert "high" in run_command(session, "/effort high").text
    play(session, "x")
    run_command(session, "/effort auto")
    play(session, "y")
    assert [r.reasoning_effort for r in session.model.requests] == ["high", None]
    with pytest.raises(ConfigurationError, match="not a level"):
        run_command(session, "/effort enormous")


def test_the_model_is_switched_in_place_by_profile_or_by_name(tmp_path):
    folder = tmp_path / "bindings" / "many"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        "from lollms_client.testing import ScriptedLLM\n"
        "BindingName = 'Many'\n"
        "class Many(ScriptedLLM):\n"
        "    def __init__(self, model_name='m1'):\n"
        "        super().__init__(['one', 'two'], model_name=model_name)\n"
        "    def list_models(self):\n"
        "        return [{'model_name': 'm1'}, {'model_name': 'm2'}]\n"
    )
    client = LollmsClient(
        llm_binding_name="many",
        llm_bindings_dir=folder.parent,
        llm_model_profiles=[{"name": "big", "binding_profile_name": "master", "model_name": "m9", "prices": {"prompt": 2}}],
    )
    client.switch_model("master")
    session = Session(client, tmp_path)
    assert "m1, m2" in run_command(session, "/model").text
    play(session, "x")
    assert "m2" in run_command(session, "/model m2").text
    play(session, "y")
    assert len(session.exchanges) == 2, "the conversation goes on"
    assert "profile big" in run_command(session, "/model big").text
    assert session.prices() == {"prompt": 2.0}
    with pytest.raises(UnknownNameError, match="'m2'"):
        run_command(session, "/model m3")
    assert session.model.model_name == "m9", "a slip changes nothing"


def test_tools_can_be_put_away_and_looked_at(talk):
    session = talk(["A.", "B."])
    assert "tool_read_file" in run_command(session, "/tools").text
    assert '"path"' in run_command(session, "/tools tool_read_file").text
    run_command(session, "/tools off")
    play(session, "x")
    run_command(session, "/tools on")
    play(session, "y")
    assert [bool(r.tools) for r in session.model.requests] == [False, True]
    with pytest.raises(UnknownNameError, match="tool_read_file"):
        run_command(session, "/tools tool_read_fil")


def test_system_files_thoughts_cost_and_help(talk, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / ".hidden").write_text("x")
    session = talk([[ReasoningDelta("Let me see."), "A."]])
    run_command(session, "/system Speak plainly.")
    play(session, "x")
    assert session.model.requests[0].messages[0]["content"].startswith("Speak plainly.")
    assert "Speak plainly." in run_command(session, "/system").text
    assert run_command(session, "/system off").text == "There is no system prompt."
    assert run_command(session, "/files").text == "notes.txt"
    assert run_command(session, "/thoughts").text == "Let me see."
    assert "No prices are known" in run_command(session, "/cost").text
    assert all(f"/{name}" in run_command(session, "/help").text for name in COMMANDS)
    assert run_command(session, "/exit").leave
    with pytest.raises(ConfigurationError, match="takes a number"):
        run_command(session, "/thoughts many")


def test_a_conversation_is_saved_for_people_and_as_it_was_sent(talk, tmp_path):
    session = talk(["An answer."])
    play(session, "A question.")
    run_command(session, f"/save {tmp_path / 'talk.md'}")
    assert (tmp_path / "talk.md").read_text() == "**You:** A question.\n\n**Model:** An answer.\n"
    run_command(session, f"/save {tmp_path / 'talk.json'}")
    assert json.loads((tmp_path / "talk.json").read_text())["messages"] == session.history()
    with pytest.raises(ConfigurationError, match="needs a file"):
        run_command(session, "/save")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        run_command(session, f"/save {tmp_path / 'no' / 'talk.md'}")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/help", True),
        ("/nope at all", True),
        ("/etc/hosts is what?", False),
        ("hello /help", False),
        ("/a\nb", False),
        ("", False),
    ],
)
def test_a_path_is_no_command(line, command):
    assert is_command(line) is command


def test_a_named_file_is_named_and_a_picture_goes_along_where_the_model_sees(talk, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "red.png").write_bytes(
        bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de")
        + bytes.fromhex("0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082")
    )
    session = talk(["A."], Capabilities(native_tools=True, vision=True))
    play(session, "compare @notes.txt and @red.png and @nobody")
    content = session.model.requests[0].messages[-1]["content"]
    text = next(part["text"] for part in content if part["type"] == "text")
    assert text.startswith("compare notes.txt and red.png and @nobody")
    assert [part["type"] for part in content].count("image_url") == 1


# ---- figures --------------------------------------------------------------------------------------------------------------------


def test_prices_are_for_a_million_tokens_and_cached_ones_have_their_own():
    usage = Usage(prompt_tokens=3_000_000, completion_tokens=500_000, cached_tokens=1_000_000)
    assert usage.cost({"prompt": 2.0, "cached": 0.5, "completion": 8.0}) == pytest.approx(2 * 2.0 + 0.5 + 4.0)
    assert usage.cost({"prompt": 2.0}) == pytest.approx(6.0)
    assert usage.cost(None) is None


def test_what_a_turn_took_is_told_with_its_cost_where_prices_are_known(talk):
    session = talk([Reply(["A."], usage=Usage(2000, 500, 1500))])
    session.prices = lambda: {"prompt": 1000.0, "completion": 2000.0, "cached": 0.0}
    play(session, "x")
    assert session.last.cost == pytest.approx(1.5)
    assert "2,000 prompt (1,500 cached) · 500 generated" in figures(session.last, session.paid)
    assert "cost 1.5000 (together 1.5000)" in figures(session.last, session.paid)
    assert "cost" not in figures(talk_exchange(session), None)


def talk_exchange(session):
    session.last.cost = None
    return session.last


# ---- approvals ------------------------------------------------------------------------------------------------------------------


def test_a_risky_call_is_refused_where_nobody_asks_and_runs_with_full_access(talk, tmp_path):
    (tmp_path / "a.txt").write_text("x")
    session = talk([call("tool_delete_path", path="a.txt"), "No.", call("tool_delete_path", path="a.txt"), "Yes."])
    play(session, "delete it")
    assert (tmp_path / "a.txt").exists()
    assert "full_access" in run_command(session, "/autonomy full_access").text
    play(session, "delete it")
    assert not (tmp_path / "a.txt").exists()
    with pytest.raises(UnknownNameError, match="strict"):
        run_command(session, "/autonomy lax")


def test_at_strict_a_write_is_asked_about_with_what_it_would_change(talk, tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    session = talk([call("tool_edit_file", path="a.txt", search="two", replace="three"), "Done."], autonomy="strict")
    asked = []
    for item in TurnInThread(session, lambda: session.turn("edit")).items():
        if isinstance(item, Question):
            asked.append(item.subject)
            assert (tmp_path / "a.txt").read_text() == "one\ntwo\n", "nothing happens before the answer"
            item.answer(("allow", ""))
    assert [a.label for a in asked] == ["tool_edit_file"]
    shown = change_of(tmp_path, "tool_edit_file", {"path": "a.txt", "search": "three", "replace": "two"})
    assert shown[-2:] == ["-three", "+two"]
    assert (tmp_path / "a.txt").read_text() == "one\nthree\n"


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("tool_write_file", {"path": "a.txt", "content": "one\n"}, ["-two"]),
        ("tool_write_file", {"path": "new.txt", "content": "hi"}, ["--- /dev/null", "+++ new.txt", "+hi"]),
        ("tool_append_file", {"path": "a.txt", "content": "three"}, ["+three"]),
        ("tool_edit_file", {"path": "a.txt", "search": "one", "replace": "1"}, ["-one", "+1"]),
        ("tool_move_path", {"source": "a.txt", "destination": "b.txt"}, ["rename from a.txt", "rename to b.txt"]),
        ("tool_copy_file", {"source": "a.txt", "destination": "b.txt"}, ["copy from a.txt", "copy to b.txt"]),
        ("tool_delete_path", {"path": "a.txt"}, ["+++ /dev/null", "-one", "-two"]),
        ("tool_delete_path", {"path": "folder"}, ["--- folder/ (1 files)", "-folder/in.txt"]),
    ],
)
def test_the_change_of_a_file_tool_is_known_before_it_runs(tmp_path, tool, arguments, expected):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "in.txt").write_text("x")
    lines = change_of(tmp_path, tool, arguments)
    assert [line for line in expected if line not in lines] == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("tool_write_file", {"path": "../outside.txt", "content": "x"}),
        ("tool_write_file", {"content": "x"}),
        ("tool_edit_file", {"path": "a.bin", "search": "x", "replace": "y"}),
        ("tool_edit_file", {"path": "missing", "search": "x", "replace": "y"}),
        ("tool_elsewhere", {"path": "a.txt"}),
    ],
)
def test_nothing_is_shown_where_nothing_can_be_known(tmp_path, tool, arguments):
    (tmp_path / "a.bin").write_bytes(b"\xff\xfe\x00x")
    (tmp_path.parent / "outside.txt").write_text("secret")
    assert change_of(tmp_path, tool, arguments) == []


def test_only_a_tools_own_call_can_be_edited():
    tools = {"tool_x"}
    assert Approval.of('{"a": 1}', "tool_x", None, tools).arguments == {"a": 1}
    assert Approval.of("rm -rf", "tool_x", None, tools).arguments is None
    assert Approval.of('{"a": 1}', "a script", None, tools).arguments is None
    assert Approval.of('{"a": 1}', "tool_x", ["sh"], tools).arguments is None


def test_whoever_leaves_in_the_middle_leaves_nobody_waiting_for_an_answer(talk, tmp_path):
    (tmp_path / "a.txt").write_text("x")
    session = talk([call("tool_delete_path", path="a.txt"), "Well."])
    work = TurnInThread(session, lambda: session.turn("delete it"))
    items = work.items()
    for item in items:
        if isinstance(item, Question):
            break
    items.close()
    item.answer(item.otherwise)
    [thread] = [t for t in threading.enumerate() if t.name == "lollms-chat-turn"]
    thread.join(30)
    assert not thread.is_alive()
    assert (tmp_path / "a.txt").exists()


def test_a_turn_that_is_stopped_before_it_begins_asks_the_model_nothing(talk):
    session = talk(["never"])
    work = TurnInThread(session, lambda: session.turn("x"))
    work.cancel()
    assert [i.status for i in work.items() if isinstance(i, TurnEnded)] == ["cancelled"]
    assert session.model.requests == []


def test_an_error_of_the_backend_comes_as_what_it_is(talk):
    session = talk([BackendError("it is down")])
    found = [i for i in TurnInThread(session, lambda: session.turn("x")).items() if isinstance(i, Failure)]
    assert [str(f.error) for f in found] == ["it is down"]


# ---- what is seen ---------------------------------------------------------------------------------------------------------------


def test_nothing_from_a_model_or_tool_commands_the_terminal():
    every = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x200F, 0x202E, 0x2066, 0x2028])) + "é\ud800"
    safe = safe_text(every)
    assert [c for c in safe if not c.isprintable() and c not in "\n\t"] == []
    assert "\\x1b" in safe
    assert "\\u202e" in safe
    assert "é" in safe
    assert one_line("a\nb\x1b[2J  c" * 20, 30) == one_line("a\nb\x1b[2J  c" * 20, 30)[:30]


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("A paragraph", ""),
        ("A paragraph\n", ""),
        ("A paragraph\n\nAnother", ""),
        ("A paragraph\n\nAnother\n", "A paragraph\n\n"),
        ("# Title\nText\n", "# Title\n"),
        ("- one\n- two\n", ""),
        ("- one\n\n  more\n\nText\n", "- one\n\n  more\n\n"),
        ("```py\nx = 1\n\ny = 2\n", ""),
        ("```py\nx = 1\n```\nText\n", "```py\nx = 1\n```\n"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", ""),
    ],
)
def test_a_block_is_finished_once_another_has_begun(text, finished):
    assert text[: finished_length(text)] == finished


class Screen:
    """A terminal of a few lines, which obeys what the painter sends, and remembers what scrolled away."""

    def __init__(self, height):
        self.height, self.lines, self.row, self.column = height, [""], 0, 0

    def write(self, text):
        at = 0
        while at < len(text):
            if text.startswith("\x1b[", at):
                end = at + 2
                while text[end].isdigit():
                    end += 1
                count, kind = int(text[at + 2 : end] or 0), text[end]
                if kind == "A":
                    top = max(0, len(self.lines) - self.height)
                    assert self.row - count >= top, "the painter went above the screen"
                    self.row -= count
                elif kind == "J":
                    del self.lines[self.row + 1 :]
                if kind in "JK":
                    self.lines[self.row] = self.lines[self.row][: self.column]
                at = end + 1
            elif text[at] == "\n":
                self.row, self.column = self.row + 1, 0
                if self.row == len(self.lines):
                    self.lines.append("")
                at += 1
            elif text[at] == "\r":
                self.column = 0
                at += 1
            else:
                end = min(i for i in (text.find("\x1b", at), text.find("\n", at), len(text)) if i >= 0)
                line, self.column = self.lines[self.row], self.column + end - at
                self.lines[self.row] = line[: self.column - end + at] + text[at:end] + line[self.column :]
                at = end


def test_finished_lines_are_written_once_and_open_ones_again():
    screen = Screen(6)
    painter = Painter(screen.write, lambda: 6)
    painter.print([], ["a"])
    painter.print([], ["a", "b"])
    painter.print(["A", "B"], ["c"])
    painter.print([], [f"line {i}" for i in range(50)])
    painter.print(["C"], ["d"])
    assert screen.lines == ["A", "B", "C", "d", ""]
    painter.clear()
    assert screen.lines == ["A", "B", "C", ""]


def test_a_long_answer_on_a_small_screen_is_written_whole_and_in_order():
    screen = Screen(8)
    out = io.StringIO()
    view = View(out)
    view._painter = Painter(screen.write, lambda: 8)
    words = "".join(f"Paragraph {i}.\n\n" for i in range(40)) + "```\n" + "".join(f"code {i}\n" for i in range(40)) + "```\n"
    view.begin()
    for i in range(0, len(words), 7):
        view._painted = 0.0
        view.show(TextDelta(words[i : i + 7]))
    view.pause()
    shown = [line.strip() for line in screen.lines if line.strip()]
    assert shown == [f"Paragraph {i}." for i in range(40)] + [f"code {i}" for i in range(40)]


def test_a_thought_becomes_one_line():
    out = io.StringIO()
    view = View(out)
    view.begin()
    for _ in range(40):
        view.show(ThoughtDelta("I wonder.\n"))
    view.show(TextDelta("Yes."))
    view.pause()
    lines = [line for line in out.getvalue().replace("\x1b[K", "").splitlines() if "thought for" in line]
    assert len(lines) == 1
    assert "399 characters: I wonder." in lines[0]


# ---- completion -----------------------------------------------------------------------------------------------------------------


def test_commands_arguments_files_and_paths_are_completed(talk, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text("x")
    completions = Completions(talk([]))

    def found(before):
        return [(c.text, c.back) for c in completions.of(before)]

    assert found("/mo") == [("/model", 3)]
    assert ("minimal", 3) in found("/effort min")
    assert ("tool_read_file", 6) in found("/tools read_f")
    assert found("see @gui") == [("docs/guide.md", 3)]
    assert found("see docs/gu") == [("guide.md", 2)]
    assert found("see do") == []
    assert found("plain words") == []


def test_questions_of_a_turn_are_answered_in_the_order_in_which_they_come():
    asked: queue.SimpleQueue[Question[str]] = queue.SimpleQueue()
    question = Question("subject", "otherwise")
    waiter = threading.Thread(target=lambda: asked.put(question.wait()))
    waiter.start()
    question.answer("yes")
    waiter.join(10)
    assert asked.get(timeout=1) == "yes"
