"""The shell library: what runs, what is asked about, what comes back, what is left behind."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lollms_client._sandbox import mechanisms
from lollms_client.tools_bindings.lcp import LCPBinding
from lollms_client.tools_bindings.lcp.default_tools.system_shell._commands import judge
from tests.default_tools.people import Person

confined = pytest.mark.skipif(mechanisms.best() is None, reason="this machine has no confinement")


@pytest.fixture
def person():
    return Person()


@pytest.fixture
def shell(load, person, ws):
    module = load("system_shell", confirm_handler=person)
    yield module
    module.close_tools_library()


def test_both_outputs_come_in_order_with_the_exit_status(shell):
    result = shell.tool_system_shell("echo one; echo two >&2; echo three; exit 3")
    assert result["error"].split("\n") == ["one", "two", "three", "[exit status 3]"]
    assert result["return_code"] == 3
    assert shell.tool_system_shell("echo fine")["output"] == "fine"


@confined
def test_a_command_that_reads_runs_unasked_in_a_workspace_that_it_cannot_change(shell, person, ws, monkeypatch):
    (ws / "a.txt").write_text("alpha\n")
    assert shell.tool_system_shell("cat a.txt | wc -l")["output"].strip() == "1"
    assert person.asked == []
    monkeypatch.setattr(shell, "judge", lambda command: judge("ls"))  # whatever the judgement missed
    result = shell.tool_system_shell("echo x > made")
    assert "Read-only" in result["error"] or "Permission denied" in result["error"]
    assert not (ws / "made").exists()


def test_what_changes_something_is_asked_about_and_told_why(shell, person, ws):
    assert shell.tool_system_shell("echo x > made")["success"]
    assert (ws / "made").read_text() == "x\n"
    ((source, label),) = person.asked
    assert source == "echo x > made"
    assert "it writes into a file" in label


def test_a_refusal_is_told_with_its_reason(shell, person, ws):
    person.answer = ("reject", "keep it")
    result = shell.tool_system_shell("rm -rf .")
    assert "keep it" in result["error"]
    person.answer = ("maybe", "")
    assert not shell.tool_system_shell("touch x")["success"]
    assert not (ws / "x").exists()


def test_what_the_operator_puts_in_its_place_is_what_runs(shell, person, ws):
    person.answer = ("allow", "", {"command": "touch other"})
    assert "The operator changed the command. What ran: touch other" in shell.tool_system_shell("touch made")["output"]
    assert [p.name for p in ws.iterdir()] == ["other"]
    for edit in ({"command": "touch more", "working_directory": "/"}, {"command": " "}, {}, 7):
        person.answer = ("allow", "", edit)
        assert not shell.tool_system_shell("touch made")["success"]
    assert [p.name for p in ws.iterdir()] == ["other"]


def test_always_is_for_the_same_commands_and_nothing_that_follows_them(shell, person, ws):
    person.answer = ("always", "")
    shell.tool_system_shell("touch a")
    shell.tool_system_shell("touch b")
    assert len(person.asked) == (1 if mechanisms.best() else 2), "unconfined, it is for the very same command"
    person.asked[:] = person.asked[:1]
    shell.tool_system_shell("touch c; rm a")
    shell.tool_system_shell("touch $(echo d)")
    shell.tool_system_shell("touch $(echo e)")
    assert len(person.asked) == 4, "another command, and what is not understood each time"
    shell.tool_system_shell("touch $(echo e)")
    assert len(person.asked) == 4, "the very same again"


def test_always_given_through_a_binding_covers_no_other_command_that_is_not_known(tmp_path):
    person = Person("always", "")
    commands = ["touch $(echo a)", "rm $(echo a)", "python3 -c 1", "python3 -c 2", "xargs touch", "xargs rm"]
    with LCPBinding(confirm_handler=person, workspace_path=tmp_path) as binding:
        for command in commands * 2:
            binding.execute_tool("tool_system_shell", {"command": command})
        assert [source for source, _ in person.asked] == commands
        for value in ("1", "2"):
            binding.execute_tool("tool_system_shell", {"command": "printenv A", "environment": {"A": value}})
        assert len(person.asked) == len(commands) + 2


def test_the_question_says_in_which_folder_and_whether_in_the_background(shell, person, ws):
    (ws / "sub").mkdir()
    shell.tool_system_shell("touch a", working_directory="sub", background=True)
    ((_, label),) = person.asked
    assert "in the folder 'sub' in the background" in label


@pytest.mark.parametrize("hiding", ["\x1b[2K", "\r", "\b", "\x9b2K", "\u202e", "\x7f"])
def test_a_command_that_would_not_read_as_what_runs_is_refused_before_anybody_is_asked(shell, person, ws, hiding):
    result = shell.tool_system_shell(f"touch made; echo '{hiding}'")
    assert "control characters" in result["error"]
    assert person.asked == []
    assert list(ws.iterdir()) == []


def test_the_name_of_a_question_is_one_line_whatever_the_command_holds(shell, person):
    for command in ("sort '-o\na' b", "'a\nb' c"):
        shell.tool_system_shell(command)
        assert person.asked[-1][1].isprintable()


@pytest.mark.parametrize(
    "given", [{"command": "echo '\0'"}, {"command": "echo '\ud800'"}, {"command": "ls", "environment": {"A": "\0"}}]
)
def test_what_no_program_can_be_given_is_told_and_not_asked(shell, person, given):
    assert "NUL character" in shell.tool_system_shell(**given)["error"]
    assert person.asked == []


def test_variables_are_asked_about_and_reach_the_command(shell, person):
    result = shell.tool_system_shell("printenv TEA", environment={"TEA": "assam"})
    assert result["output"] == "assam"
    ((source, label),) = person.asked
    assert source == "TEA='assam' printenv TEA"
    assert "it sets environment variables" in label


def test_the_hosts_own_variables_stay_with_the_host(shell, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "abc123")
    assert "abc123" not in str(shell.tool_system_shell("printenv"))


def test_it_works_in_a_folder_of_the_workspace_and_in_no_other(shell, ws):
    (ws / "sub").mkdir()
    assert shell.tool_system_shell("pwd", working_directory="sub")["output"] == str(ws / "sub")
    for wrong in ("..", "/etc", "missing"):
        assert not shell.tool_system_shell("pwd", working_directory=wrong)["success"]


@confined
def test_an_approved_command_still_changes_nothing_outside_the_workspace(shell, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "made"
    result = shell.tool_system_shell(f"echo x > {outside}; touch inside")
    assert not outside.exists()
    assert result["success"]


def test_what_is_left_behind_does_not_hold_the_call_and_is_ended(shell):
    began = time.monotonic()
    result = shell.tool_system_shell("sleep 60 & echo done")
    assert time.monotonic() - began < 20
    assert result["output"].startswith("done\n[1 of its processes still ran")


def test_a_command_ends_at_its_deadline(shell):
    result = shell.tool_system_shell("trap '' TERM; echo begun; sleep 60", timeout=1)
    assert "begun" in result["error"]
    assert "took longer than 1 seconds" in result["error"]


def test_a_background_command_is_listed_heard_and_ended(shell):
    assert shell.tool_system_shell("echo up; sleep 600", background=True)["output"] == "Started in the background as job 1."
    deadline = time.monotonic() + 20
    while "up" not in shell.tool_shell_job_output("1")["output"]:
        assert time.monotonic() < deadline
    assert "running for" in shell.tool_shell_jobs()["output"]
    assert "ended from here" in shell.tool_shell_stop("1")["output"]
    assert "There is: 1" in shell.tool_shell_stop("7")["error"]


def test_a_session_sees_and_ends_its_own_background_commands_alone(tmp_path, person):
    with LCPBinding(confirm_handler=person, workspace_path=tmp_path) as binding:
        started = binding.execute_tool("tool_system_shell", {"command": "sleep 600", "background": True}, session="one")
        assert "job 1" in started["output"]
        assert "sleep 600" in binding.execute_tool("tool_shell_jobs", {}, session="one")["output"]
        assert "sleep 600" not in binding.execute_tool("tool_shell_jobs", {}, session="two")["output"]
        for tool in ("tool_shell_job_output", "tool_shell_stop"):
            assert "There is: none" in binding.execute_tool(tool, {"job": "1"}, session="two")["error"]
        assert "ended from here" in binding.execute_tool("tool_shell_stop", {"job": "1"}, session="one")["output"]


def test_the_gate_and_the_library_ask_once_together_in_strict(tmp_path, person):
    with LCPBinding(confirm_handler=person, autonomy_level="strict", workspace_path=tmp_path) as binding:
        assert binding.execute_tool("tool_system_shell", {"command": "echo hi"})["output"] == "hi"
    assert len(person.asked) == 1


def test_without_confinement_everything_is_asked_about_and_the_question_says_so(shell, person, monkeypatch):
    monkeypatch.setattr(mechanisms, "best", lambda: None)
    assert shell.tool_system_shell("echo hi")["output"] == "hi"
    assert "there is no confinement here" in person.asked[0][1]


@confined
def test_a_person_may_let_git_work_on_repositories_and_nothing_else(shell, person, ws, tmp_path, monkeypatch):
    settings = tmp_path / "settings"
    settings.write_text("[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    (ws / "notes.txt").write_text("one")
    assert shell.tool_system_shell("git init -q -b main && git add . && git commit -q -m first")["success"]
    assert person.asked[0][0] == "git init -q -b main && git add . && git commit -q -m first"
    assert shell.tool_system_shell("git log --format='%an %ae %s'")["output"] == "Ada Lovelace ada@example.org first"
    for command in ("touch .git/hooks/new", "git config core.fsmonitor x", "git add . && touch .git/hooks/new", "sh -c 'git gc'"):
        shell.tool_system_shell(command)
        assert not (ws / ".git/hooks/new").exists()
        assert "fsmonitor" not in (ws / ".git/config").read_text()
    assert shell.tool_system_shell("git commit -q --allow-empty -m x", environment={"A": "b"})["success"] is False
    (ws / "notes.txt").write_text("two")
    hook = ws / ".git/hooks/pre-commit"  # of the person's own; what it runs works in the workspace and no further
    hook.write_text("#!/bin/sh\ntouch .git/seen\ntouch .venv/planted\ntrue\n")
    hook.chmod(0o755)
    (ws / ".venv").mkdir()
    (ws / ".venv" / "pyvenv.cfg").touch()
    assert shell.tool_system_shell("git commit -q -a -m second")["success"]
    assert (ws / ".git/seen").exists()
    assert not (ws / ".venv/planted").exists()
    assert shell.tool_system_shell("git log --format=%s")["output"].split() == ["second", "first"]
    assert len(person.asked) == 7


@pytest.mark.skipif(mechanisms.by_name("landlock") is None, reason="this machine has no Landlock")
def test_where_nothing_keeps_a_repository_a_writing_command_says_so_and_a_reading_one_runs(shell, person, monkeypatch, ws):
    monkeypatch.setattr(mechanisms, "best", lambda: mechanisms.Mechanism("landlock", True))  # as in most containers
    (ws / ".git").mkdir()
    assert shell.tool_system_shell("echo hi")["output"] == "hi"
    assert person.asked == []
    assert shell.tool_system_shell("touch new /outside")["success"] is False
    assert "nothing here keeps .git as it is" in person.asked[0][1]
    assert (ws / "new").exists()
    assert not Path("/outside").exists()
