"""What the audit log holds, and that it holds nothing else."""

from __future__ import annotations

import json
import multiprocessing

import pytest

from lollms_client._tools import audit, secrets
from lollms_client._tools.audit import AuditLog, audit_log, read_audit
from lollms_client.cli import main
from lollms_client.tools_bindings.lcp import LCPBinding

TOOLS = """TOOL_EFFECTS = {"tool_look": ["read"], "tool_drop": ["destructive"], "tool_put": ["write"]}
_CONFIRM_HANDLER = None

def tool_look(name: str) -> str:
    return name

def tool_put(name: str) -> str:
    return name

def tool_drop(name: str) -> str:
    return name

def tool_ask(name: str) -> str:
    return str(_CONFIRM_HANDLER("rm " + name, "shell"))
"""


@pytest.fixture(autouse=True)
def _own_log(tmp_path, monkeypatch):
    monkeypatch.setenv("LOLLMS_AUDIT", str(tmp_path / "audit.jsonl"))


@pytest.fixture
def binding(tmp_path):
    (tmp_path / "things.py").write_text(TOOLS)
    answers = iter([("reject", "still needed: hunter2"), ("always", ""), ("allow", "")])
    with LCPBinding(
        tool_files=[tmp_path / "things.py"], workspace_path=tmp_path, confirm_handler=lambda *_: next(answers)
    ) as made:
        yield made


def entries():
    audit_log().flush()
    return list(read_audit())


def test_who_decided_what_about_which_call_and_what_came_of_it(binding):
    for name in ("tool_look", "tool_put", "tool_drop", "tool_drop", "tool_drop", "tool_ask"):
        binding.execute_tool(name, {"name": "private value"}, session="s")
    found = [(e["tool"], e["decision"], e["by"], e.get("status")) for e in entries()]
    assert found == [
        ("tool_put", "allow", "policy", 200),
        ("tool_drop", "reject", "handler", 403),
        ("tool_drop", "allow", "handler", 200),
        ("tool_drop", "allow", "always", 200),
        ("tool_ask", "allow", "handler", None),
    ]
    assert all(len(e["arguments"]) == 64 and e["session"] == "s" for e in entries())


def test_neither_arguments_nor_secrets_stand_in_it(binding, monkeypatch):
    monkeypatch.setattr(secrets, "_values", {"hunter2"})
    binding.execute_tool("tool_drop", {"name": "private value"})
    text = json.dumps(entries())
    assert "private value" not in text
    assert "hunter2" not in text
    assert "still needed: [secret]" in text


def test_a_constructor_and_a_log_that_is_off_write_nothing(binding, tmp_path, monkeypatch):
    assert not (tmp_path / "audit.jsonl").exists()
    monkeypatch.setenv("LOLLMS_AUDIT", "off")
    binding.execute_tool("tool_drop", {"name": "x"})
    assert not (tmp_path / "audit.jsonl").exists()
    assert list(read_audit()) == []


def test_a_log_that_cannot_be_written_fails_no_call(binding, tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOLLMS_AUDIT", str(tmp_path / "file" / "audit.jsonl"))
    binding.execute_tool("tool_drop", {"name": "x"})
    assert binding.execute_tool("tool_drop", {"name": "x"})["success"]
    assert "cannot be written" in caplog.text


def test_a_full_file_makes_way_and_the_last_ones_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "FULL", 2000)
    log = AuditLog(tmp_path / "audit.jsonl")
    for number in range(200):
        log.write({"tool": "t", "number": number}, at_once=True)
    found = [e["number"] for e in read_audit(log.path)]
    assert found == list(range(found[0], 200))
    assert len(list(tmp_path.glob("audit.jsonl*"))) == audit.KEPT
    assert log.path.stat().st_mode & 0o777 == 0o600


def _write_many(path, who):
    audit.FULL = 20_000
    log = AuditLog(path)
    for number in range(100):
        log.write({"who": who, "number": number}, at_once=True)


def test_lines_of_several_processes_are_whole_and_none_is_lost(tmp_path):
    context = multiprocessing.get_context("spawn")
    path = tmp_path / "audit.jsonl"
    processes = [context.Process(target=_write_many, args=(path, who)) for who in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    found = [(e["who"], e["number"]) for e in read_audit(path)]
    assert sorted(found) == [(who, number) for who in range(3) for number in range(100)]


def test_the_command_shows_and_filters_them(binding, capsys):
    binding.execute_tool("tool_put", {"name": "x"})
    binding.execute_tool("tool_drop", {"name": "x"})
    audit_log().flush()
    assert main(["audit", "--decision", "reject", "--since", "1h"]) == 0
    shown = capsys.readouterr().out
    assert "reject by handler" in shown
    assert "tool_drop  destructive; still needed" in shown
    assert "tool_put" not in shown
    assert main(["audit", "--tool", "tool_put", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["by"] == "policy"
    assert main(["audit", "--since", "soon"]) == 2


def _child(log):
    log.write({"who": "child"}, at_once=True)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_neither_waits_for_its_parents_lock_nor_repeats_its_lines(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    with log._lock:
        log._held.append((0.0, {"who": "parent"}))
        child = multiprocessing.get_context("fork").Process(target=_child, args=(log,))
        child.start()
        child.join(30)
        ended = child.exitcode
        child.kill()
    log.flush()
    assert ended == 0
    assert sorted(entry["who"] for entry in read_audit(log.path)) == ["child", "parent"]


def test_an_operators_edit_that_does_not_fit_is_noted(tmp_path):
    (tmp_path / "things.py").write_text(TOOLS)
    answer = ("allow", "", {"wrong": 1})
    with LCPBinding(tool_files=[tmp_path / "things.py"], workspace_path=tmp_path, confirm_handler=lambda *_: answer) as binding:
        assert not binding.execute_tool("tool_drop", {"name": "x"})["success"]
    assert [(e["decision"], e["by"], e["status"]) for e in entries()] == [("allow", "handler", 400)]


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_no_tool_changes_the_log_nor_what_stands_beside_it(tmp_path, isolation):
    (tmp_path / "audit.jsonl").write_text("before")
    with LCPBinding(workspace_path=tmp_path, isolation=isolation) as made:
        for name in ("audit.jsonl", "audit.jsonl.1", "audit.lock"):
            refused = made.execute_tool("tool_write_file", {"path": name, "content": "forged"})
            assert "belongs to our records" in refused["error"]
        assert made.execute_tool("tool_write_file", {"path": "audit.txt", "content": "x"})["success"]
    audit_log().flush()
    assert (tmp_path / "audit.jsonl").read_text().startswith("before")
