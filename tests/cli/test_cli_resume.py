"""`lollms run` killed in the middle, `lollms resume`, `lollms pending` and `lollms discussions`, as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pexpect
import pytest

from lollms_client.cli.stored import ago

BINDING = '''
import os, signal
from lollms_client.errors import BackendError
from lollms_client.testing import ScriptedLLM, call
BindingName = "Steps"

class Steps(ScriptedLLM):
    """Appends two lines, deletes a file where there is one to delete, answers; a pure function of what it is asked."""

    def __init__(self, model_name="steps", **kwargs):
        super().__init__([self.next] * 99, model_name=model_name)
        self.binding_name = "steps"

    def list_models(self):
        return [{"model_name": name} for name in ("steps", "stairs")]

    def next(self, request):
        done = sum(m["role"] == "tool" for m in request.messages)
        if os.environ.get("STEPS_DIE_AT") == str(done):
            os.kill(os.getpid(), signal.SIGKILL)
        if os.environ.get("STEPS_FAIL_AT") == str(done):
            raise BackendError("it is down")
        if done < 2:
            return call("tool_append_file", path="log.txt", content=f"line {done + 1}")
        if done == 2 and "delete" in request.messages[-5]["content"]:
            return call("tool_delete_path", path="old.txt")
        return "All steps are done."
'''


@pytest.fixture
def lollms(tmp_path):
    """Runs a command of ours in a process of its own, over a scripted model."""
    folder = tmp_path / "bindings" / "steps"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(BINDING)
    (folder / "description.yaml").write_text("title: Steps\nauthor: us\nversion: '1'\ndescription: A script.\n")
    (tmp_path / "work").mkdir()

    def run(*words, check=0, **env):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "lollms_client", *words],
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LOLLMS_HOME": str(tmp_path / "home"), **env},
            cwd=tmp_path,
        )
        assert done.returncode == check, (done.returncode, done.stdout, done.stderr)
        return done

    def at_terminal(*words, stdout_to=None, **env):
        command = [sys.executable, "-W", "error", "-m", "lollms_client", *words]
        if stdout_to is not None:
            command = ["/bin/sh", "-c", f'exec "$@" > {stdout_to}', "sh", *command]
        plain = {name: value for name, value in os.environ.items() if name not in ("VISUAL", "EDITOR")}
        environment = {**plain, "LOLLMS_HOME": str(tmp_path / "home"), "TERM": "xterm", "NO_COLOR": "1", **env}
        child = pexpect.spawn(command[0], command[1:], env=environment, cwd=str(tmp_path), encoding="utf-8", timeout=40)
        child.delaybeforesend = None
        return child

    run.at_terminal = at_terminal
    run.model = ["--binding", "steps", "--bindings-dir", str(tmp_path / "bindings")]
    run.work = tmp_path / "work"
    return run


def lines(work: Path) -> list[str]:
    return (work / "log.txt").read_text().split("\n")


def test_a_run_that_was_killed_is_finished_by_resume_and_nothing_happens_twice(lollms):
    run = ["run", "Go on.", "--workspace", str(lollms.work), *lollms.model]
    lollms(*run, check=-signal.SIGKILL, STEPS_DIE_AT="2")
    assert lines(lollms.work) == ["line 1", "line 2"]
    (row,) = json.loads(lollms("discussions", "list", "--json").stdout)
    assert row["resumable"]
    done = lollms("resume")
    assert "Resuming after round 2: Go on." in done.stdout
    assert "All steps are done." in done.stdout
    assert "3 rounds, 2 tool calls" in done.stdout
    assert lines(lollms.work) == ["line 1", "line 2"]
    shown = lollms("discussions", "show", row["id"]).stdout
    assert "Go on." in shown
    assert "All steps are done." in shown
    assert "There is no turn to resume" in lollms("resume", check=1).stderr


def test_what_needs_approval_waits_and_is_answered_from_another_process(lollms):
    (lollms.work / "old.txt").write_text("x")
    done = lollms("run", "Go and delete.", "--workspace", str(lollms.work), "--defer", *lollms.model, check=4)
    assert "`lollms pending`" in done.stderr
    listed = lollms("pending").stdout
    assert "1. approval: tool_delete_path" in listed
    (waiting,) = json.loads(lollms("pending", "--json").stdout)
    assert waiting["parameters"] == {"path": "old.txt"}
    (row,) = json.loads(lollms("discussions", "list", "--json").stdout)
    assert (waiting["discussion_id"], waiting["title"]) == (row["id"], "Go and delete.")
    assert waiting["workspace"] == str(lollms.work)
    assert abs(datetime.fromisoformat(waiting["since"]).timestamp() - time.time()) < 300
    assert f"asked just now · in 'Go and delete.' · workspace {lollms.work} · turn " in listed
    assert (lollms.work / "old.txt").exists()
    lollms("pending", "answer", "1", "perhaps", check=2)
    lollms("pending", "answer", "1", "allow")
    assert "Nothing waits for you." in lollms("pending").stdout
    assert "All steps are done." in lollms("resume").stdout
    assert not (lollms.work / "old.txt").exists()
    assert lines(lollms.work) == ["line 1", "line 2"]


def test_an_ephemeral_run_leaves_nothing_behind(lollms, tmp_path):
    lollms("run", "Go on.", "--workspace", str(lollms.work), "--ephemeral", *lollms.model)
    assert not (tmp_path / "home" / "discussions.db").exists()
    assert "no conversations yet" in lollms("discussions", "list").stdout


def test_conversations_are_listed_searched_drawn_exported_taken_in_and_deleted(lollms, tmp_path):
    lollms("run", "Watch the heron.", "--workspace", str(lollms.work), *lollms.model)
    (row,) = json.loads(lollms("discussions", "list", "--json").stdout)
    assert row["title"] == "Watch the heron."
    assert row["id"] in lollms("discussions", "search", "heron").stdout
    tree = lollms("discussions", "tree", row["id"][-8:]).stdout
    assert "* user: Watch the heron." in tree
    assert "* assistant: All steps are done." in tree
    assert "**assistant**" in lollms("discussions", "export", row["id"], "--format", "markdown").stdout
    lollms("discussions", "export", row["id"], "-o", "talk.json")
    lollms("discussions", "delete", row["id"], check=2)
    lollms("discussions", "delete", row["id"], "--yes")
    assert lollms("discussions", "import", "talk.json").stdout.strip() == row["id"]
    assert json.loads(lollms("discussions", "list", "--json").stdout)[0]["title"] == "Watch the heron."
    assert "There are: " in lollms("discussions", "show", "nothing", check=2).stderr
    lollms("discussions", "import", "bindings/steps/__init__.py", check=2)


@pytest.mark.parametrize("secret", ["api_key=sk-hidden", 'headers={"A": "Bearer sk-hidden"}', "base_url=https://me:sk-hidden@h/"])
def test_no_secret_of_the_command_line_is_noted(lollms, tmp_path, secret):
    lollms("run", "Go on.", "--workspace", str(lollms.work), *lollms.model, "--set", secret, "--set", "speed=3")
    found = b"".join(p.read_bytes() for p in (tmp_path / "home").iterdir() if p.is_file())
    assert b"speed" in found
    assert b"sk-hidden" not in found


def test_a_turn_that_defers_goes_on_deferring_and_takes_other_arguments(lollms):
    (lollms.work / "old.txt").write_text("x")
    (lollms.work / "older.txt").write_text("x")
    lollms("run", "Go and delete.", "--workspace", str(lollms.work), "--defer", *lollms.model, check=4)
    assert "wait for an answer" in lollms("resume", check=4).stderr
    assert (lollms.work / "old.txt").exists()
    lollms("pending", "answer", "1", "allow", "--arguments", "[1]", check=2)
    lollms("pending", "answer", "1", "allow", "--arguments", '{"path": "older.txt"}')
    (row,) = json.loads(lollms("discussions", "list", "--json").stdout)
    lollms("resume", row["id"][-8:])
    assert (lollms.work / "old.txt").exists()
    assert not (lollms.work / "older.txt").exists()


@pytest.mark.parametrize(("policy", "lines_there"), [("skip", ["line 1", "line 2"]), ("retry", ["line 1", "line 2", "line 2"])])
def test_a_call_whose_outcome_nobody_knows_is_asked_about_or_settled_by_a_policy(lollms, policy, lines_there):
    tools = lollms.work.parent / "tools"
    tools.mkdir()
    (tools / "fragile.py").write_text(
        "import os, signal\n"
        "def tool_append_file(path: str, content: str) -> str:\n"
        '    """Appends a line."""\n'
        "    open(path, 'a').write(content + '\\n')\n"
        "    if content == 'line 2' and os.environ.get('DIE_INSIDE'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return 'appended'\n"
    )
    run = ["run", "Go on.", "--workspace", str(lollms.work), "--tools", str(tools), *lollms.model]
    lollms(*run, check=-signal.SIGKILL, DIE_INSIDE="1")
    assert "It may have done its work or not" in lollms("resume", check=4).stdout
    assert "1. outcome: tool_append_file" in lollms("pending").stdout
    if policy == "skip":
        lollms("pending", "answer", "1", "skip", "--reason", "I looked: the line is there.")
        lollms("resume")
    else:
        lollms("resume", check=4)
        lollms("pending", "answer", "1", "retry")
        lollms("resume")
    assert lines(lollms.work) == [*lines_there, ""]


def test_a_backend_that_fails_leaves_word_how_to_go_on(lollms):
    done = lollms("run", "Go on.", "--workspace", str(lollms.work), *lollms.model, check=1, STEPS_FAIL_AT="1")
    assert "`lollms resume" in done.stderr
    assert "All steps are done." in lollms("resume").stdout
    assert lines(lollms.work) == ["line 1", "line 2"]


@pytest.mark.parametrize(
    ("passed", "said"), [(0, "just now"), (59, "just now"), (200, "3 min ago"), (7300, "2 h ago"), (180000, "2 d ago")]
)
def test_an_age_is_told_in_whole_minutes_hours_or_days(passed, said):
    assert ago(time.time() - passed) == said


@pytest.fixture
def waiting(lollms):
    """A turn that waits for leave to delete old.txt."""
    for name in ("old.txt", "older.txt"):
        (lollms.work / name).write_text("x")
    lollms("run", "Go and delete.", "--workspace", str(lollms.work), "--defer", *lollms.model, check=4)
    return lollms


def ended(child):
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


def test_resume_asks_and_takes_other_arguments_only_where_they_fit(waiting):
    child = waiting.at_terminal("resume")
    child.expect("Your answer .edit")
    child.send("edit\r")
    child.expect_exact('{   "path": "old.txt" }')  # it stands there to be changed
    child.send("\x15" + '{"pth": "older.txt"}\r')
    child.expect("'path' is missing")
    child.send("\x15" + '{"path": "older.txt"}\r')
    child.expect('with: {"path": "older.txt"}')
    child.expect("Your answer")
    child.send("allow\r")
    child.expect("All steps are done.")
    assert ended(child) == 0
    assert (waiting.work / "old.txt").exists()
    assert not (waiting.work / "older.txt").exists()


def test_resume_opens_the_editor_of_the_person_for_arguments(waiting, tmp_path):
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\nsed -i s/old.txt/older.txt/ "$2"\n')
    script.chmod(0o700)
    child = waiting.at_terminal("resume", EDITOR="false", VISUAL=f"'{script}' -w")
    child.expect("Your answer")
    child.send("e\r")
    child.expect('with: {"path": "older.txt"}')
    child.expect("Your answer")
    child.send("allow\r")
    child.expect("All steps are done.")
    assert ended(child) == 0
    assert not (waiting.work / "older.txt").exists()


def test_what_is_wrong_is_read_before_the_editor_opens_again(waiting, tmp_path):
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\necho "{" > "$1"\n')
    script.chmod(0o700)
    child = waiting.at_terminal("resume", EDITOR=str(script))
    child.expect("Your answer")
    child.send("e\r")
    for keys in ("\r", "\x04"):
        child.expect("This is not JSON")
        child.expect("Enter opens the editor again")
        child.send(keys)
    assert ended(child) == 4
    assert "1. approval: tool_delete_path" in waiting("pending").stdout


def test_an_editor_that_fails_takes_nothing_and_what_waits_goes_on_waiting(waiting):
    child = waiting.at_terminal("resume", VISUAL="false")
    child.expect("Your answer")
    child.send("e\r")
    child.expect("The editor 'false' ended with 1")
    assert ended(child) == 2
    assert "1. approval: tool_delete_path" in waiting("pending").stdout


def test_resume_with_json_asks_beside_the_data(waiting, tmp_path):
    child = waiting.at_terminal("resume", "--json", stdout_to="out.jsonl")
    child.expect("1. approval: tool_delete_path")
    child.expect("Your answer")
    child.send("e\r")
    child.expect("Instead of it")
    child.send('{"path": "older.txt"}\r')
    child.expect("Your answer")
    child.send("allow\r")
    assert ended(child) == 0
    events = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert events[0]["event"] == "turn_started"
    assert events[-1]["response"] == "All steps are done."
    assert not (waiting.work / "older.txt").exists()


def test_resume_with_json_and_nobody_there_prints_data_alone(waiting):
    done = waiting("resume", "--json", check=4)
    assert "1 of its calls wait for an answer" in done.stderr
    assert {json.loads(line)["event"] for line in done.stdout.splitlines()} >= {"turn_started", "turn_ended"}


@pytest.mark.parametrize("noted", ["an option", "a profile", "the configuration"])
def test_another_model_goes_on_with_the_binding_that_the_turn_ran_with(lollms, tmp_path, noted):
    words = []
    if noted != "an option":
        (tmp_path / "home").mkdir()
        named = (
            {"binding_name": "steps"}
            if noted == "the configuration"
            else {"binding_profiles": {"own": {"binding_name": "steps"}}}
        )
        config = {"llm": {"bindings_dir": str(tmp_path / "bindings"), **named}}
        (tmp_path / "home" / "config.yaml").write_text(json.dumps(config))
        words = ["--profile", "own"] if noted == "a profile" else []
    run = ["run", "Go on.", "--workspace", str(lollms.work), *(lollms.model if noted == "an option" else words)]
    lollms(*run, check=-signal.SIGKILL, STEPS_DIE_AT="2")
    wrong = lollms("resume", "--model", "ladder", check=2)
    for piece in ("'ladder'", "'steps'", "stairs"):
        assert piece in wrong.stderr
    done = lollms("resume", "--model", "stairs")
    assert "With the model stairs (steps" in done.stdout
    assert "All steps are done." in done.stdout
