"""`lollms chat` as a person has it: a real pseudo-terminal, keys going in, letters coming out; the model follows a script."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pexpect
import pytest

PROMPT = "›"
UP, TAB, CTRL_C, CTRL_D, ALT_ENTER, KILL_LINE = "\x1b[A", "\t", "\x03", "\x04", "\x1b\r", "\x15"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\x08")

MODEL = """
from lollms_client.testing import Capabilities, ReasoningDelta, Reply, ScriptedLLM, call

BindingName = "Talk"


def said(request):
    return request.messages[-1]["content"].split("\\n\\n")[0]


def echo(request):
    return f"heard [{said(request).replace(chr(10), '|')}] after {len(request.messages) - 1}"


class Talk(ScriptedLLM):
    def __init__(self, model_name="scripted", **config):
        super().__init__(SCRIPT, model_name=model_name)


SCRIPT = """


class Talk:
    """A child that runs `lollms chat`."""

    def __init__(self, tmp_path, script: str, *arguments: str, size=(40, 100), begins=PROMPT, editor=""):
        self.begins = begins
        folder = tmp_path / "bindings" / "talk"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(MODEL + textwrap.dedent(script).strip() + "\n")
        self.workspace = tmp_path / "work"
        self.workspace.mkdir(exist_ok=True)
        environment = {**os.environ, "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "VISUAL": "", "EDITOR": editor}
        words = ["-m", "lollms_client", "chat", "--binding", "talk", "--bindings-dir", str(tmp_path / "bindings")]
        words += ["--workspace", str(self.workspace), *arguments]
        self.child = pexpect.spawn(sys.executable, words, env=environment, dimensions=size, encoding="utf-8", timeout=30)
        self.child.delaybeforesend = None
        self.seen = ""

    def __enter__(self) -> Talk:
        self.wait(self.begins)
        return self

    def __exit__(self, *_):
        self.child.close(force=True)

    def type(self, keys: str) -> None:
        self.child.send(keys)

    def wait(self, pattern: str) -> str:
        """Waits for a regular expression; gives what came until then, without what only moves the cursor."""
        self.child.expect(pattern)
        came = _ESCAPES.sub("", self.child.before + self.child.after)
        self.seen += came
        return came

    def prompt(self) -> str:
        return self.wait(PROMPT)

    def say(self, text: str) -> str:
        """Types a line, and waits for the figures of its turn and the next prompt."""
        self.type(f"{text}\r")
        came = self.wait(r"\d+ generated")
        self.prompt()
        return came

    def end(self, keys: str = CTRL_D) -> int:
        self.type(keys)
        self.child.expect(pexpect.EOF)
        self.child.close()
        return self.child.exitstatus


def test_a_line_is_answered_with_figures_and_the_next_turn_remembers_it(tmp_path):
    with Talk(tmp_path, "[echo, echo]") as talk:
        came = talk.say("good day")
        assert "heard [good day] after " in came
        first = int(came.partition("after ")[2].split()[0])
        assert re.search(r"[\d,]+ prompt \(0 cached\) · \d+ generated", came)
        assert f"after {first + 2}" in talk.say("and again")
        assert talk.end() == 0


@pytest.mark.parametrize(
    "keys", [f"one{ALT_ENTER}two", "one\\\rtwo", "\x1b[200~one\ntwo\x1b[201~"], ids=["alt-enter", "backslash", "paste"]
)
def test_several_lines_are_one_input(tmp_path, keys):
    with Talk(tmp_path, "[echo]") as talk:
        assert "heard [one|two] after" in talk.say(keys)
        assert talk.end() == 0


def test_what_was_typed_is_kept_below_the_home_folder_for_its_owner_and_comes_back(tmp_path):
    with Talk(tmp_path, "[echo]") as talk:
        talk.say("a line to keep")
        assert talk.end() == 0
    kept = Path(os.environ["LOLLMS_HOME"], "chat_history")
    assert kept.stat().st_mode & 0o077 == 0
    with Talk(tmp_path, "[echo]") as talk:
        assert "heard [a line to keep]" in talk.say(UP)
        assert talk.end() == 0


def test_a_conversation_is_continued_and_its_last_turn_is_offered_to_be_resumed(tmp_path):
    gone = "__import__('lollms_client.errors', fromlist=['x']).BackendError('it is down')"
    with Talk(tmp_path, f'[call("tool_append_file", path="a.txt", content="1"), {gone}]') as talk:
        talk.type("write it\r")
        talk.wait("it is down")
        talk.prompt()
        assert talk.end() == 0
    with Talk(tmp_path, "[echo]", begins="Resume it") as talk:
        assert "stopped after round 1: 'write it'" in talk.seen
        talk.type("n\r")
        talk.prompt()
        assert talk.end() == 0
    with Talk(tmp_path, '["It is written."]', begins="Resume it") as talk:
        talk.type("\r")
        assert "It is written." in talk.wait(r"\d+ generated")
        talk.prompt()
        assert talk.end() == 0
    assert (talk.workspace / "a.txt").read_text() == "1"
    with Talk(tmp_path, "[echo]", "--continue") as talk:
        assert "Going on with: write it" in talk.seen
        assert "after 5" in talk.say("and now?")  # the system prompt, the turn as it was, the question
        assert talk.end() == 0


def test_commands_their_arguments_and_files_are_completed(tmp_path):
    with Talk(tmp_path, "[echo]") as talk:
        (talk.workspace / "quarterly_report.md").write_text("x")
        talk.type(f"/thoug{TAB}\r")
        assert "There are no thoughts." in talk.wait("no thoughts.")
        talk.prompt()
        talk.type(f"/effort mini{TAB}\r")
        talk.wait("Reasoning effort: minimal")
        talk.prompt()
        assert "heard [read quarterly_report.md]" in talk.say(f"read @quart{TAB}")
        assert talk.end() == 0


def test_a_wrong_command_is_told_and_the_talk_goes_on(tmp_path):
    with Talk(tmp_path, "[echo]") as talk:
        talk.type("/thughts\r")
        talk.wait("no command named '/thughts'")
        talk.prompt()
        talk.say("hello")
        assert talk.end("/exit\r") == 0


DELETE = '[call("tool_delete_path", path="a.txt"), lambda r: "told: " + r.messages[-1]["content"], call("tool_delete_path", path="b.txt"), "done"]'


def test_the_change_is_shown_and_yes_lets_it_happen(tmp_path):
    with Talk(tmp_path, DELETE) as talk:
        (talk.workspace / "a.txt").write_text("first\nsecond\n")
        talk.type("go\r")
        shown = talk.wait("Allow it")
        assert "--- a.txt" in shown
        assert "-second" in shown
        assert shown.count("-first") == 1, "the change is shown once"
        assert (talk.workspace / "a.txt").exists()
        talk.type("y\r")
        came = talk.wait("generated")
        assert "✓ tool_delete_path" in came
        assert "Files: deleted a.txt" in came
        assert not (talk.workspace / "a.txt").exists()


def test_no_with_a_reason_keeps_the_file_and_tells_the_model_why(tmp_path):
    with Talk(tmp_path, DELETE) as talk:
        (talk.workspace / "a.txt").write_text("x")
        talk.type("go\r")
        talk.wait("Allow it")
        talk.type("n\r")
        talk.wait("Why not")
        talk.type("I still need it\r")
        assert "told: " in (came := talk.wait("generated"))
        assert "I still need it" in came.partition("told: ")[2]
        assert (talk.workspace / "a.txt").exists()


def test_always_is_not_asked_again(tmp_path):
    with Talk(tmp_path, DELETE) as talk:
        (talk.workspace / "a.txt").write_text("x")
        (talk.workspace / "b.txt").write_text("x")
        talk.type("go\r")
        talk.wait("Allow it")
        talk.type("a\r")
        talk.wait("generated")
        talk.prompt()
        assert "Allow it" not in talk.say("again")
        assert not (talk.workspace / "b.txt").exists()


def test_edited_arguments_are_mended_shown_again_and_are_what_runs(tmp_path):
    with Talk(tmp_path, DELETE) as talk:
        (talk.workspace / "a.txt").write_text("keep")
        (talk.workspace / "other.txt").write_text("goes")
        talk.type("go\r")
        talk.wait("Allow it")
        talk.type("e\r")
        talk.wait("Edit the arguments")
        talk.wait('"path"')
        for _ in range(3):  # the text has three lines; the cursor stands at its end
            talk.type(KILL_LINE + "\x7f")
        talk.type('{"pth": "other.txt"' + ALT_ENTER)
        talk.wait("This is not JSON")
        talk.type("}" + ALT_ENTER)
        talk.wait("'path' is missing")
        talk.type(KILL_LINE + '{"path": "other.txt"}' + ALT_ENTER)
        assert "-goes" in talk.wait("Allow it")
        talk.type("y\r")
        talk.wait("generated")
        assert (talk.workspace / "a.txt").exists()
        assert not (talk.workspace / "other.txt").exists()


def test_a_message_is_edited_on_the_line_and_sent_as_a_branch(tmp_path):
    with Talk(tmp_path, "[echo, echo]") as talk:
        talk.say("one")
        talk.type("/edit\r")
        talk.wait("one")
        talk.type("\r")
        talk.wait("Nothing was sent")
        talk.prompt()
        talk.type("/edit\r")
        talk.wait("one")
        talk.type(" more\r")
        assert "heard [one more] after 1" in talk.wait(r"\d+ generated")
        talk.prompt()
        talk.type("/tree\r")
        assert "└─ user: one more" in talk.wait(r"one more  \w+")
        talk.prompt()
        assert talk.end() == 0


def test_a_message_is_edited_in_the_editor_of_the_person(tmp_path):
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\necho instead > "$1"\n')
    script.chmod(0o700)
    with Talk(tmp_path, "[echo, echo, echo]", editor=str(script)) as talk:
        talk.say("one")
        talk.say("two")
        assert "heard [instead] after 1" in talk.say("/edit 1")
        assert talk.end() == 0


def test_ctrl_c_stops_the_turn_and_not_the_program(tmp_path):
    script = """[
        call("tool_write_file", path="kept.txt", content="hi"),
        Reply(["begun ", *["and on "] * 500], delay=0.1),
        echo,
    ]"""
    with Talk(tmp_path, script) as talk:
        talk.type("go\r")
        talk.wait("begun")
        talk.type(CTRL_C)
        assert "ended as cancelled" in talk.wait("generated")
        talk.prompt()
        assert (talk.workspace / "kept.txt").read_text() == "hi"
        assert "heard [still there?]" in talk.say("still there?")
        assert talk.end() == 0


def test_ctrl_c_stops_a_turn_that_asked_something_before(tmp_path):
    script = '[call("tool_delete_path", path="a.txt"), Reply(["begun ", *["and on "] * 500], delay=0.1), echo]'
    with Talk(tmp_path, script) as talk:
        (talk.workspace / "a.txt").write_text("x")
        talk.type("go\r")
        talk.wait("Allow it")
        talk.type("y\r")
        talk.wait("begun")
        talk.type(CTRL_C)
        talk.wait("ended as cancelled")
        talk.prompt()
        assert "heard [on]" in talk.say("on")


def test_a_second_ctrl_c_ends_the_program_where_the_turn_does_not_end(tmp_path):
    stuck = "(say() for say in (lambda: 'It has begun.\\n\\n', lambda: __import__('threading').Event().wait(60) and ''))"
    with Talk(tmp_path, f"[lambda r: Reply({stuck})]") as talk:
        talk.type("go\r")
        talk.wait("It has begun")
        talk.type(CTRL_C)
        talk.wait("stopping")
        assert talk.end(CTRL_C) == 130


def test_ctrl_c_at_a_question_stops_the_turn_and_allows_nothing(tmp_path):
    with Talk(tmp_path, '[call("tool_delete_path", path="a.txt"), echo]') as talk:
        (talk.workspace / "a.txt").write_text("x")
        talk.type("go\r")
        talk.wait("Allow it")
        talk.type(CTRL_C)
        talk.wait("ended as cancelled")
        talk.prompt()
        assert (talk.workspace / "a.txt").exists()
        assert "heard [next]" in talk.say("next")


def test_ctrl_c_empties_a_line_and_ends_on_an_empty_one(tmp_path):
    with Talk(tmp_path, "[echo]") as talk:
        talk.type("not this" + CTRL_C)
        assert "heard [this]" in talk.say("this")
        assert talk.end(CTRL_C) == 0


def test_what_is_typed_while_a_turn_plays_is_not_lost(tmp_path):
    with Talk(tmp_path, '[Reply(["slow ", "ly"], delay=0.4), echo]') as talk:
        talk.type("go\r")
        talk.wait("slow")
        talk.type("typed ahead\r")
        talk.wait("generated")
        assert "heard [typed ahead]" in talk.wait("generated")


ASKER = '''
TOOL_EFFECTS = {"tool_order": ["read"]}
_ask = None


def set_user_interaction_handler(handler):
    global _ask
    _ask = handler


def tool_order() -> dict:
    """Orders food."""
    dish = _ask({"type": "select", "title": "Lunch", "prompt": "Which dish", "options": ["soup", "rice"], "default": None})
    code = _ask({"type": "secret", "title": "", "prompt": "Door code", "options": [], "default": None})
    note = _ask({"type": "text", "title": "", "prompt": "A note", "options": [], "default": "none"})
    return {"success": True, "output": f"{dish}/{len(code)}/{note}"}
'''


@pytest.mark.req("TG-13.1")
def test_a_tool_asks_for_a_choice_a_secret_and_a_text(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "order.py").write_text(ASKER)
    script = '[call("tool_order"), lambda r: "got " + r.messages[-1]["content"]]'
    with Talk(tmp_path, script, "--tools", str(tmp_path / "mine")) as talk:
        talk.type("lunch\r")
        talk.wait("1. soup")
        talk.wait("Which dish")
        talk.type("9\r")
        talk.wait("its number from 1 to 2")
        talk.wait("Which dish")
        talk.type("2\r")
        talk.wait("Door code")
        talk.type("4321\r")
        talk.wait(r"A note \[none\]")
        talk.type("\r")
        assert "got " in (came := talk.wait("generated"))
        assert "rice/4/none" in came
        assert "4321" not in talk.seen


def test_thoughts_are_folded_and_shown_when_asked_for(tmp_path):
    thought = "Let me see. " * 30
    with Talk(tmp_path, f"[[ReasoningDelta({thought!r}), 'Done.']]") as talk:
        came = talk.say("think")
        assert re.search(r"thought for \d+\.\d s, 359 characters: Let me see\.", came)
        assert came.count("Let me see.") < 12
        talk.type("/thoughts\r")
        for _ in range(30):
            talk.wait(r"see\.")


def test_markdown_is_rendered_each_line_once_and_controls_are_shown_not_obeyed(tmp_path):
    text = "# Title\n\nSome **bold** text.\n\n- one\n- two\n\n```python\nx = 1\n```\n\nA \x1b[2Jtrap \x9b31m and \u202eturned.\n"
    with Talk(tmp_path, f"[Reply([*{text!r}], delay=0.004)]") as talk:
        talk.type("show\r")
        talk.child.expect("generated")
        raw = talk.child.before
        plain = _ESCAPES.sub("", raw)
        assert "\x1b[2J" not in raw
        assert "\x9b" not in raw
        assert "\u202e" not in raw
        assert "A \\x1b[2Jtrap \\x9b31m and \\u202eturned." in plain
        assert "**" not in plain.rpartition("Title")[2]
        assert " • two" in plain


def test_a_program_without_the_libraries_says_which_extra_brings_them(tmp_path):
    code = "import sys; sys.modules['rich'] = None; from lollms_client.cli import main; sys.exit(main(['chat', '--binding', 'openai']))"
    child = pexpect.spawn(
        sys.executable, ["-c", code], env={**os.environ, "TERM": "xterm-256color"}, encoding="utf-8", timeout=30
    )
    child.expect(r"pip install 'lollms_client\[cli\]'")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 2


def piped(tmp_path, script, text, *arguments):
    """Runs it over a pipe, without the libraries of the terminal."""
    folder = tmp_path / "bindings" / "talk"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(MODEL + script + "\n")
    (tmp_path / "work").mkdir(exist_ok=True)
    code = "import sys; sys.modules['rich'] = sys.modules['prompt_toolkit'] = None; from lollms_client.cli import main; sys.exit(main())"
    words = ["chat", "--binding", "talk", "--bindings-dir", str(tmp_path / "bindings"), "--workspace", str(tmp_path / "work")]
    return subprocess.run(
        [sys.executable, "-c", code, *words, *arguments], input=text, capture_output=True, text=True, timeout=60, check=False
    )


def test_over_a_pipe_each_line_is_a_prompt_and_nothing_is_asked(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("x")
    script = '[echo, call("tool_delete_path", path="a.txt"), "I may not."]'
    done = piped(tmp_path, script, "hello\n\ndelete it\n/system\n/exit\nnever\n")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("heard [hello]")
    assert lines[1:] == ["I may not.", "There is no system prompt."]
    assert "Nobody can be asked" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert (tmp_path / "work" / "a.txt").exists()


@pytest.mark.req("CT-A9.1")
def test_over_a_pipe_yes_allows_risky_steps(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("x")
    done = piped(tmp_path, '[call("tool_delete_path", path="a.txt"), "Gone."]', "delete it\n", "--yes")
    assert done.stdout == "Gone.\n"
    assert not (tmp_path / "work" / "a.txt").exists()


def test_a_terminal_that_cannot_be_painted_is_treated_as_a_pipe(tmp_path):
    (tmp_path / "bindings" / "talk").mkdir(parents=True)
    (tmp_path / "bindings" / "talk" / "__init__.py").write_text(MODEL + "[lambda r: echo(r) + chr(27) + '[2J']\n")
    words = ["-m", "lollms_client", "chat", "--binding", "talk", "--bindings-dir", str(tmp_path / "bindings")]
    child = pexpect.spawn(
        sys.executable, [*words, "--workspace", str(tmp_path)], env={**os.environ, "TERM": "dumb"}, encoding="utf-8", timeout=30
    )
    child.sendline("hello")
    child.expect(r"heard \[hello\] after \d+\\x1b")
    child.sendeof()
    child.expect(pexpect.EOF)
    assert "\x1b" not in child.before
    child.close()
    assert child.exitstatus == 0


def test_over_a_pipe_a_failed_turn_is_told_and_the_exit_code_says_so(tmp_path):
    done = piped(tmp_path, "[]", "hello\n")
    assert done.returncode == 1
    assert "The script has 0 answers" in done.stderr


def test_importing_the_command_line_loads_neither_library(tmp_path):
    code = "import sys, json; import lollms_client.cli as c; c.parser(); print(json.dumps([m for m in ('rich', 'prompt_toolkit', 'httpx', 'yaml') if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == []
