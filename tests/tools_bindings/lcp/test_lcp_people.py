"""People in the loop: whose handler is asked, what a late answer is worth, and how much a library may do from now on."""

from __future__ import annotations

import logging
import queue
import threading

import pytest

from lollms_client._tools import secrets
from lollms_client._tools.audit import AuditLog, read_audit
from lollms_client.errors import ConfigurationError
from lollms_client.tools_bindings.lcp import LCPBinding
from lollms_client.tools_bindings.lcp.confirmation import make_gui_confirm_handler, make_gui_user_interaction_handler

OPS = """
TOOL_EFFECTS = {"tool_write": ["write"], "tool_erase": ["destructive"], "tool_spawn": ["process"]}
AUTONOMY_LEVEL = ""
_CONFIRM_HANDLER = _USER_INTERACTION_HANDLER = None
def init_tools_library(config):
    global AUTONOMY_LEVEL
    AUTONOMY_LEVEL = config.get("autonomy_level", "safe")
def tool_write(name: str): return "wrote"
def tool_erase(name: str): return "erased"
def tool_level(): return AUTONOMY_LEVEL
def tool_spawn(name: str):
    import subprocess
    with open("done.txt", "a") as file:
        file.write(name)
    return subprocess.run(["true"]).returncode
def tool_ask(name: str): return _CONFIRM_HANDLER(name, "script")
def tool_login(how: str):
    word = _USER_INTERACTION_HANDLER({"type": "secret", "title": "Password", "prompt": "?"})
    print("printed", word)
    if how == "fail":
        raise ValueError("cannot log in with " + word)
    return {"success": True, "output": "in with " + word, word: [word]}
"""

HOW = [
    ("confirm", make_gui_confirm_handler, ("source", "label")),
    ("ask", make_gui_user_interaction_handler, ({"type": "secret"},)),
]


@pytest.fixture(autouse=True)
def _no_secrets_of_others(monkeypatch):
    monkeypatch.setattr(secrets, "_values", set())


def refuse(*_):
    return "reject", "no"


def in_threads(*functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize(("make", "question"), [how[1:] for how in HOW], ids=[how[0] for how in HOW])
def test_an_answer_after_the_timeout_is_let_go_and_logged_without_its_words(make, question, caplog):
    events: queue.Queue = queue.Queue()
    assert make(events, timeout=0.01)(*question) in (("reject", "Approval request timed out."), None)
    answers = events.get(timeout=20)["response_queue"]
    with caplog.at_level(logging.WARNING):
        answers.put("hunter2-late")
        answers.put_nowait("hunter2-late")
    assert answers.empty()
    assert caplog.text.count("does not count") == 2
    assert "hunter2" not in caplog.text


def test_the_first_of_two_answers_counts_and_the_interface_never_blocks(caplog):
    events: queue.Queue = queue.Queue()
    got: list = []

    def interface():
        answers = events.get(timeout=20)["response_queue"]
        answers.put(("reject", "first"))
        answers.put(("allow", ""))

    in_threads(interface, lambda: got.append(make_gui_confirm_handler(events, timeout=20)("s", "l")))
    assert got == [("reject", "first")]
    assert "does not count" in caplog.text


def test_a_call_without_an_answer_in_time_does_not_run_whatever_comes_later(library, lcp, tmp_path):
    library("ops", OPS)
    events: queue.Queue = queue.Queue()
    binding = lcp(confirm_handler=make_gui_confirm_handler(events, timeout=0.01))
    result = binding.execute_tool("tool_spawn", {"name": "x"})
    events.get(timeout=20)["response_queue"].put(("always", ""))
    assert (result["status_code"], result["error"]) == (403, "Approval request timed out.")
    assert binding.execute_tool("tool_spawn", {"name": "x"})["status_code"] == 403
    assert not (tmp_path / "workspace" / "done.txt").exists()


@pytest.mark.parametrize("tool", ["tool_erase", "tool_ask"])
def test_two_turns_at_the_same_time_never_share_a_handler(library, lcp, tool):
    library("ops", OPS)
    binding = lcp(confirm_handler=refuse)
    both = threading.Barrier(2)
    asked: dict[str, list] = {"a": [], "b": []}

    def turn(who):
        def handler(source, label, argv=None):
            both.wait(20)
            asked[who].append(source)
            return "allow", ""

        for number in range(5):
            binding.execute_tool(tool, {"name": f"{who}{number}"}, confirm_handler=handler, session=who)

    in_threads(lambda: turn("a"), lambda: turn("b"))
    for who, sources in asked.items():
        assert len(sources) == 5
        assert all(f"{who}{number}" in source for number, source in enumerate(sources))


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_the_level_of_a_loaded_library_changes_in_mid_session(library, lcp, isolation):
    library("ops", OPS)
    library("other", "TOOL_EFFECTS = ['write']\ndef tool_other(): return 'ran'")
    binding, own = lcp(confirm_handler=refuse, isolation=isolation), {"autonomy_level": "safe"}
    unchanged = lcp(confirm_handler=refuse, isolation=isolation, host_tool_configs={"ops": own})
    for level, write, erase in (("strict", 403, 403), ("full_access", 200, 200), ("safe", 200, 403)):
        binding.set_autonomy_level("ops", level)
        assert binding.execute_tool("tool_level", {})["output"] == level
        assert binding.execute_tool("tool_write", {"name": "x"})["status_code"] == write
        assert binding.execute_tool("tool_erase", {"name": "x"})["status_code"] == erase
        assert binding.execute_tool("tool_other", {})["success"]
        assert unchanged.execute_tool("tool_level", {})["output"] == "safe"
    binding.set_autonomy_level(None, "strict")
    assert binding.execute_tool("tool_other", {})["status_code"] == 403
    assert binding.execute_tool("tool_write", {"name": "x"})["status_code"] == 200
    with pytest.raises(ConfigurationError):
        binding.set_autonomy_level("ops", "reckless")
    assert own == {"autonomy_level": "safe"}


def test_a_librarys_own_hook_hears_of_another_level(library, lcp):
    library("ops", "heard = []\ndef set_autonomy_level(level): heard.append(level)\ndef tool_heard(): return heard")
    binding = lcp()
    for level in ("strict", "strict", "safe"):
        binding.set_autonomy_level("ops", level)
        binding.execute_tool("tool_heard", {})
    assert binding.execute_tool("tool_heard", {})["output"] == ["safe"]  # "strict" came with its configuration


def test_a_tool_that_starts_programs_and_never_asks_is_asked_about(library, lcp, tmp_path):
    library("ops", OPS)
    result = lcp().execute_tool("tool_spawn", {"name": "x"})
    assert (result["success"], result["status_code"]) == (False, 403)
    assert "Nobody can be asked" in result["error"]
    assert not (tmp_path / "workspace" / "done.txt").exists()


def test_of_two_parallel_calls_the_rejected_one_never_runs(library, lcp, tmp_path):
    library("ops", OPS)

    def handler(source, label, argv=None):
        return ("reject", "no") if "bad" in source else ("allow", "")

    binding = lcp(confirm_handler=handler)
    found = {}
    in_threads(
        *[lambda n=n: found.update({n: binding.execute_tool("tool_spawn", {"name": n})["success"]}) for n in ("bad", "good")]
    )
    assert found == {"bad": False, "good": True}
    assert (tmp_path / "workspace" / "done.txt").read_text() == "good"


@pytest.mark.parametrize("how", ["return", "fail"])
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_secret_that_was_given_to_a_tool_is_in_nothing_that_its_call_brings_back(
    library, lcp, tmp_path, how, isolation, caplog
):
    library("ops", OPS)
    log = tmp_path / "audit.jsonl"
    binding = lcp(user_interaction_handler=lambda request: "hunter2-secret", isolation=isolation, audit=log)
    with caplog.at_level(logging.DEBUG):
        result = binding.execute_tool("tool_login", {"how": how})
    assert "[secret]" in repr(result)
    assert "hunter2" not in repr(result)
    assert "hunter2" not in caplog.text


def test_a_binding_notes_its_decisions_where_it_was_told(library, lcp, tmp_path, monkeypatch):
    monkeypatch.setenv("LOLLMS_AUDIT", str(tmp_path / "of_the_process.jsonl"))
    library("ops", OPS)
    for audit in (tmp_path / "own.jsonl", False):
        lcp(confirm_handler=refuse, audit=audit).execute_tool("tool_ask", {"name": "x"})
    assert [(e["tool"], e["decision"], e["reason"]) for e in read_audit(tmp_path / "own.jsonl")] == [("tool_ask", "reject", "no")]
    assert not (tmp_path / "of_the_process.jsonl").exists()
    assert AuditLog(tmp_path / "own.jsonl").path.stat().st_mode & 0o777 == 0o600


def test_the_levels_of_default_libraries_change_too(tmp_path):
    with LCPBinding(workspace_path=tmp_path) as binding:
        binding.mount_tool_library("workspace_tools")
        for name in ("a", "b"):
            (tmp_path / name).write_text("x")
        assert binding.execute_tool("tool_read_file", {"path": "a"})["success"]  # so it is loaded, at the level of the start
        assert binding.execute_tool("tool_delete_path", {"path": "a"})["status_code"] == 403
        binding.set_autonomy_level("workspace_tools", "full_access")
        assert binding.execute_tool("tool_delete_path", {"path": "a"})["success"]
        binding.set_autonomy_level("workspace_tools", "safe")
        assert binding.execute_tool("tool_delete_path", {"path": "b"})["status_code"] == 403
        assert (tmp_path / "b").exists()


def test_what_is_approved_at_a_terminal_is_shown_whole_and_cannot_command_it(monkeypatch, capsys):
    from lollms_client.tools_bindings.lcp import confirmation

    answers = iter(["v", "n", ""])
    monkeypatch.setattr(confirmation, "_has_terminal", lambda: True)
    questions = []
    monkeypatch.setattr("builtins.input", lambda question: questions.append(question) or next(answers))
    source = "rm -rf . \x1b[2K\rls \u202e" + "x" * 600 + "THE END"
    assert confirmation.cli_confirm_handler(source, "run\x1b[8m", ["a\x1b"])[0] == "reject"
    shown = capsys.readouterr().out
    assert not set("\x1b\r\u202e") & set(shown)
    assert "rm -rf . \\x1b[2K" in shown
    assert "[v]iew all" in questions[0]
    assert "THE END" in shown
